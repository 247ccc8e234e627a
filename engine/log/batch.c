/* SPDX-License-Identifier: MIT */
#include "log/committer.h"

#include <cairn/timestamp.h>

#include "format/commit_private.h"

/*
 * A commit that was seen so long ago may have been pruned since, and the number behind it be one
 * that others have used, in microseconds (FORMAT hazard 3).
 */
#define SEEN_MAX ((int64_t)2 * 1000000)

/* After so many commits of others one by one, a listing is cheaper; locally later. */
#define STEPS_MAX	8
#define STEPS_MAX_LOCAL 1000

/* The winner of a lost race is not visible yet, or two collided: wait up to so long. */
#define PAUSE_MAX 50000

/* Memory of an encoded commit that is kept for the next. */
#define OBJECT_KEEP ((size_t)1 << 20)

/* More rivals than that make no writer wait longer. */
#define RIVALS_MAX 16

/* Find the tail anew: the larger of the newest snapshot's number and of what is listed behind it.
 */
static int discover(struct cairn_log *log, struct cairn_call *call)
{
	struct cairn_log_snapshots snapshots;
	int64_t seen = cairn_clock();
	int64_t hint = log->options.tail_hint;
	int64_t tail = 0;
	int status = cairn_log_snapshots(log, call, 0, INT64_MAX, &snapshots);
	/* A hint that is too high is found out: nothing is listed behind it. */
	if (!status && hint > snapshots.newest)
		status = cairn_log_list_tail(log, call, hint, &tail);
	if (!status && tail == 0)
		status = cairn_log_list_tail(log, call, snapshots.newest, &tail);
	if (status)
		return status;
	log->tail = tail > snapshots.newest ? tail : snapshots.newest;
	log->seen = seen;
	return CAIRN_OK;
}

/* The number before the next must have been seen to be there of late. */
static int ensure_tail(struct cairn_log *log, struct cairn_call *call)
{
	int64_t now = cairn_clock();
	if (log->tail >= 0 && now - log->seen <= SEEN_MAX)
		return CAIRN_OK;
	if (log->tail <= 0)
		return discover(log, call);
	int status = cairn_log_look(log, call, log->tail);
	if (status == CAIRN_NOT_FOUND)
		return discover(log, call);
	if (!status)
		log->seen = now;
	return status;
}

/*
 * The commit `number` was won, but its predecessor was last seen too long before the answer. It is
 * rightful when no snapshot was there before it that covers its number already, and when its
 * predecessor is there, is a snapshot's number, or was pruned after it (then a younger snapshot
 * covers it). CAIRN_CONFLICT: it is not.
 */
static int check_won(struct cairn_log *log, struct cairn_call *call, int64_t number,
		     int64_t modified)
{
	struct cairn_log_snapshots snapshots;
	int status = cairn_log_snapshots(log, call, number, modified, &snapshots);
	if (status)
		return status;
	if (number <= snapshots.older)
		return CAIRN_CONFLICT;
	if (number == 1 || snapshots.before || number <= snapshots.newest)
		return CAIRN_OK;
	status = cairn_log_look(log, call, number - 1);
	return status == CAIRN_NOT_FOUND ? CAIRN_CONFLICT : status;
}

/* A number was won that others had used before: nobody will read it. */
static int take_back(struct cairn_log *log, struct cairn_call *call, const char *key,
		     const struct cairn_version *version)
{
	const struct cairn_delete_options options = {
		.if_match = log->store->capabilities.delete_if_match ? version->etag : NULL,
	};
	int status = cairn_store_delete(log->store, call, key, &options);
	if (status && status != CAIRN_CONFLICT)
		return cairn_error_set(&call->error, CAIRN_UNKNOWN,
				       "append to %slog/: %s was won, but the log has been pruned "
				       "beyond it, and taking it back failed: %s",
				       log->prefix, key, call->error.text);
	log->tail = -1;
	return CAIRN_CONFLICT;
}

/* The put of `number` was answered: is it ours to keep? */
static int settle_won(struct cairn_log *log, struct cairn_call *call, const char *key,
		      int64_t number, const struct cairn_version *version)
{
	if (cairn_clock() - log->seen <= SEEN_MAX)
		return CAIRN_OK;
	/* The caller's deadline may be used up by the put itself. */
	int64_t deadline = call->deadline;
	call->deadline = 0;
	int status = check_won(log, call, number, version->modified);
	if (status == CAIRN_CONFLICT)
		status = take_back(log, call, key, version);
	else if (status)
		status = cairn_error_set(&call->error, CAIRN_UNKNOWN,
					 "append to %slog/: %s was won, but whether the log was "
					 "pruned beyond it cannot be told: %s",
					 log->prefix, key, call->error.text);
	call->deadline = deadline;
	return status;
}

static int encode(struct cairn_log *log, const struct batch *batch, int64_t number,
		  struct cairn_error *error)
{
	size_t count = 0;
	for (const struct pending *at = batch->first; at; at = at->next)
		count += at->count;
	cairn_buffer_clear(&log->object);
	int status =
		cairn_commit_encode_head(number, cairn_timestamp_now(), count, &log->object, error);
	for (const struct pending *at = batch->first; at && !status; at = at->next)
		if (cairn_buffer_append(&log->object, at->encoded.data, at->encoded.size))
			status = cairn_error_set(error, CAIRN_NO_MEMORY,
						 "append to %slog/: out of memory", log->prefix);
	return status;
}

/* All members that are left end so. */
static void end_all(struct cairn_log *log, struct batch *batch, int status)
{
	while (batch->first) {
		struct pending *pending = batch->first;
		batch->first = pending->next;
		cairn_pending_end(log, pending, status, &batch->call.error);
	}
}

static void win(struct cairn_log *log, struct batch *batch, int64_t number, int64_t sent)
{
	int64_t index = 0;
	log->tail = number;
	log->seen = sent;
	log->won = cairn_clock();
	int64_t duration = log->won - sent;
	log->duration = log->duration ? (7 * log->duration + duration) / 8 : duration;
	int64_t rivals = log->interleaved < RIVALS_MAX ? log->interleaved : RIVALS_MAX;
	log->rivals += (16 * rivals - log->rivals) / 4;
	log->interleaved = 0;
	cairn_log_saw(log, number);
	for (struct pending *at = batch->first; at; at = at->next) {
		at->first = (struct cairn_sequence){ .commit = number, .index = index };
		index += (int64_t)at->count;
	}
	end_all(log, batch, CAIRN_OK);
}

/* Somebody else's commit `number` is there: it is the tail now. */
static void pass(struct cairn_log *log, int64_t number, int64_t seen)
{
	log->interleaved += number - log->tail;
	log->tail = number;
	log->seen = seen;
	cairn_log_saw(log, number);
}

/*
 * Others won `number` and perhaps more: go to the tail, showing what came before to the hook.
 * The first loss is taken for the only one: looking would give the next number away to whoever
 * does not, and the put finds out as well.
 */
static int advance(struct cairn_log *log, struct batch *batch, int64_t number)
{
	struct cairn_commit commit;
	bool hook = log->options.revalidate && !batch->first->at;
	int steps = log->store->capabilities.local ? STEPS_MAX_LOCAL : STEPS_MAX;
	int status = CAIRN_OK;
	cairn_commit_init(&commit);
	if (!hook)
		pass(log, number++, cairn_clock());
	if (!hook && batch->losses == 1)
		return CAIRN_OK;
	for (; !status && batch->first && steps >= 0; number++, steps--) {
		int64_t seen = cairn_clock();
		int64_t last = number;
		if (hook)
			status = cairn_log_read_commit(log, &batch->call, number, &commit);
		else if (steps > 0)
			status = cairn_log_look(log, &batch->call, number);
		else
			status = cairn_log_list_tail(log, &batch->call, number - 1, &last);
		if (status || last < number)
			break;
		if (hook) {
			steps++; /* it must see them all */
			cairn_batch_revalidate(log, batch, &commit);
		}
		pass(log, last, seen);
	}
	cairn_commit_release(&commit);
	return status == CAIRN_NOT_FOUND ? CAIRN_OK : status;
}

/*
 * Two collided, or the winner of a lost race is not visible yet: wait a little, for whoever
 * collided must not meet again. A loser that has found the tail does not wait: it is the winner
 * who lets others go first.
 */
static int pause_after_collision(struct batch *batch)
{
	int64_t pause = (int64_t)arc4random_uniform(PAUSE_MAX + 1);
	int status = cairn_call_sleep(&batch->call, cairn_clock() + pause);
	/* Whose deadline it is, is told by drop_late. */
	return status == CAIRN_TIMEOUT ? CAIRN_OK : status;
}

/* Members whose deadline has come end; the call gets the latest of the others'. */
static void drop_late(struct cairn_log *log, struct batch *batch)
{
	int64_t now = cairn_clock();
	unsigned max = log->options.max_commit_attempts;
	bool over = max && batch->attempts >= max;
	struct pending **at = &batch->first;
	batch->call.deadline = 0;
	while (*at) {
		struct pending *pending = *at;
		if (now < pending->deadline && !over) {
			if (pending->deadline > batch->call.deadline)
				batch->call.deadline = pending->deadline;
			at = &pending->next;
			continue;
		}
		*at = pending->next;
		struct cairn_error error;
		int status = batch->losses ? CAIRN_BUSY : CAIRN_TIMEOUT;
		cairn_error_set(&error, status,
				"append to %slog/: %s after %u attempts, of which %u were lost "
				"to other writers; nothing was appended, try again",
				log->prefix, over ? "given up" : "not committed at the deadline",
				batch->attempts, batch->losses);
		cairn_pending_end(log, pending, status, &error);
	}
}

/* An append that wants one number alone: can it have it? */
static int check_at(struct cairn_log *log, struct batch *batch)
{
	int64_t at = batch->first->at;
	struct cairn_call *call = &batch->call;
	int status = at > log->tail + 1 ? discover(log, call) : CAIRN_OK;
	if (status)
		return status;
	if (at <= log->tail)
		return cairn_error_set(&call->error, CAIRN_EXISTS,
				       "append to %slog/: commit %lld is taken", log->prefix,
				       (long long)at);
	if (at > log->tail + 1)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "append to %slog/: the next commit is %lld, not %lld",
				       log->prefix, (long long)log->tail + 1, (long long)at);
	return CAIRN_OK;
}

/* One attempt. Ends all members unless the race was lost; then it has caught up. */
static int attempt(struct cairn_log *log, struct batch *batch)
{
	struct cairn_call *call = &batch->call;
	char key[LOG_KEY_SIZE], nonce[CAIRN_NONCE_SIZE] = "";
	const struct cairn_put_options options = {
		.if_absent = true,
		.immutable = true,
		.nonce = nonce,
	};
	struct cairn_version version = { 0 };
	batch->attempts++;
	int status = ensure_tail(log, call);
	if (!status && batch->first->at)
		status = check_at(log, batch);
	int64_t number = log->tail + 1;
	if (!status)
		status = encode(log, batch, number, &call->error);
	if (status)
		return status;
	cairn_log_key(log, number, key);
	int64_t sent = cairn_clock();
	status = cairn_store_put(log->store, call, key, cairn_buffer_slice(&log->object), &options,
				 &version);
	if (!status)
		status = settle_won(log, call, key, number, &version);
	if (!status) {
		win(log, batch, number, sent);
		return CAIRN_OK;
	}
	if (status == CAIRN_EXISTS && batch->first->at) {
		pass(log, number, sent);
		return cairn_error_set(&call->error, CAIRN_EXISTS,
				       "append to %slog/: commit %lld is taken", log->prefix,
				       (long long)number);
	}
	/* What became of the number is not known: look again. */
	if (status != CAIRN_EXISTS && status != CAIRN_BUSY && status != CAIRN_CONFLICT) {
		log->tail = -1;
		return status;
	}
	batch->losses++;
	int64_t tail = log->tail;
	status = status == CAIRN_EXISTS ? advance(log, batch, number) : CAIRN_OK;
	if (!status && batch->first && log->tail == tail)
		status = pause_after_collision(batch);
	return status;
}

void cairn_batch_commit(struct cairn_log *log, struct batch *batch)
{
	for (;;) {
		drop_late(log, batch);
		if (!batch->first)
			return;
		int status = attempt(log, batch);
		if (log->object.capacity > OBJECT_KEEP)
			cairn_buffer_release(&log->object);
		if (!batch->first)
			return;
		/* The deadline of some: of all others it is none. */
		if (status == CAIRN_TIMEOUT && cairn_clock() >= batch->call.deadline)
			continue;
		if (status) {
			end_all(log, batch, status);
			return;
		}
	}
}
