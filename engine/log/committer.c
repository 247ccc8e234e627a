/* SPDX-License-Identifier: MIT */
#include "log/committer.h"

#include <stdlib.h>
#include <string.h>

#include <cairn/timestamp.h>

#include "format/commit_private.h"

/* Appends are merged up to so many bytes; a longer one is a commit of its own. */
#define BATCH_BYTES_MAX ((size_t)8 << 20)

/* Room for a commit's head. */
#define HEAD_BYTES 128

/* Longest time that rivals are given, in microseconds. */
#define TURN_MAX ((int64_t)1000000)

/* How often a waiting append looks at its caller's cancelled(). */
#define CANCEL_POLL ((int64_t)20000)

void cairn_pending_end(struct cairn_log *log, struct pending *pending, int status,
		       const struct cairn_error *error)
{
	(void)pthread_mutex_lock(&log->lock);
	/* What revalidation said of one event stands, though the others were committed. */
	if (status || !pending->status) {
		pending->status = status;
		pending->error = *error;
	}
	pending->done = true;
	(void)pthread_cond_signal(&pending->woken);
	(void)pthread_mutex_unlock(&log->lock);
}

/* Wait on `condition` until `until`, cairn_clock's time. */
static void wait_until(struct cairn_log *log, pthread_cond_t *condition, int64_t until)
{
	const struct timespec time = {
		.tv_sec = (time_t)(until / 1000000),
		.tv_nsec = (long)(until % 1000000) * 1000,
	};
	(void)pthread_cond_timedwait(condition, &log->lock, &time);
}

static void enqueue(struct cairn_log *log, struct pending *pending)
{
	*log->last = pending;
	log->last = &pending->next;
	log->queued += pending->count;
	(void)pthread_cond_signal(&log->more);
}

static void unlink_pending(struct cairn_log *log, struct pending *pending)
{
	struct pending **at = &log->first;
	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
	if (log->last == &pending->next)
		log->last = at;
	log->queued -= pending->count;
	pending->next = NULL;
}

/*
 * Before a batch is taken: wait for company if the caller wants that, and let rivals go first
 * where there are some. A writer that has just won knows the tail best and would win again and
 * again; what arrives in the meantime goes into the same commit.
 */
static void wait_before(struct cairn_log *log)
{
	int64_t now = cairn_clock();
	int64_t until = now + log->options.max_batch_wait;
	int64_t range = log->duration * log->rivals / 16;
	range = range < TURN_MAX ? range : TURN_MAX;
	if (range > 0) {
		int64_t turn = log->won + (int64_t)arc4random_uniform((uint32_t)range + 1);
		if (turn > until)
			until = turn;
	}
	while (now < until && log->queued < log->options.max_events_per_commit) {
		wait_until(log, &log->more, until);
		now = cairn_clock();
	}
}

/* Take from the queue's front what fits into one commit. */
static void take_batch(struct cairn_log *log, struct batch *ret_batch)
{
	struct pending **end = &ret_batch->first;
	size_t events = 0, bytes = 0;
	while (log->first) {
		struct pending *pending = log->first;
		size_t more = pending->encoded.size;
		bool fits = events + pending->count <= log->options.max_events_per_commit &&
			    bytes + more <= BATCH_BYTES_MAX && !pending->at;
		if (events > 0 && !fits)
			break;
		unlink_pending(log, pending);
		pending->taken = true;
		*end = pending;
		end = &pending->next;
		events += pending->count;
		bytes += more;
		if (pending->at)
			break;
	}
	ret_batch->lone = ret_batch->first->next ? NULL : ret_batch->first;
}

static bool batch_cancelled(void *context)
{
	const struct batch *batch = context;
	struct cairn_call *call = batch->lone->call;
	return call->cancelled(call->context);
}

/* Nobody may be leading: the next in the queue is to; whoever comes first is as good. */
static void pass_on(struct cairn_log *log)
{
	if (log->leading)
		return;
	if (log->first)
		(void)pthread_cond_signal(&log->first->woken);
	else
		(void)pthread_cond_broadcast(&log->idle);
}

/* Commit one batch. The lock is held on entry and on return. */
static void lead(struct cairn_log *log)
{
	struct batch batch = { 0 };
	log->leading = true;
	wait_before(log);
	/* Who waited may have left. */
	if (!log->first)
		goto out;
	take_batch(log, &batch);
	(void)pthread_mutex_unlock(&log->lock);
	if (batch.lone && batch.lone->call->cancelled) {
		batch.call.cancelled = batch_cancelled;
		batch.call.context = &batch;
	}
	cairn_batch_commit(log, &batch);
	(void)pthread_mutex_lock(&log->lock);
out:
	log->leading = false;
	pass_on(log);
}

/* Wait for the batch that `pending` is in; lead it if nobody else does. The lock is held. */
static int wait_for(struct cairn_log *log, struct pending *pending)
{
	struct cairn_call *call = pending->call;
	while (!pending->done) {
		if (!log->leading && !pending->taken) {
			lead(log);
			continue;
		}
		if (pending->taken) {
			(void)pthread_cond_wait(&pending->woken, &log->lock);
			continue;
		}
		int64_t now = cairn_clock();
		int status = CAIRN_OK;
		if (call->cancelled && call->cancelled(call->context))
			status = cairn_error_set(&pending->error, CAIRN_CANCELLED,
						 "append to %slog/: cancelled", log->prefix);
		else if (now >= pending->deadline)
			status = cairn_error_set(&pending->error, CAIRN_TIMEOUT,
						 "append to %slog/: not committed within the "
						 "call's deadline; nothing was appended",
						 log->prefix);
		if (status) {
			unlink_pending(log, pending);
			pass_on(log);
			return status;
		}
		int64_t wake = pending->deadline;
		if (call->cancelled && now + CANCEL_POLL < wake)
			wake = now + CANCEL_POLL;
		wait_until(log, &pending->woken, wake);
	}
	return pending->status;
}

int cairn_pending_encode(struct pending *pending, const struct cairn_event *events,
			 size_t *ret_index, struct cairn_error *error)
{
	cairn_buffer_clear(&pending->encoded);
	for (size_t i = 0; i < pending->given; i++) {
		const struct item *item = pending->items ? &pending->items[i] : NULL;
		if (item && item->rejected)
			continue;
		int status = cairn_event_encode(item ? &item->event : &events[i], &pending->encoded,
						error);
		if (status) {
			*ret_index = i;
			return status;
		}
	}
	return CAIRN_OK;
}

static int pending_init(struct cairn_log *log, struct cairn_call *call, int64_t at,
			const struct cairn_event *events, size_t count, struct pending *ret_pending)
{
	*ret_pending = (struct pending){
		.count = count,
		.given = count,
		.at = at,
		.call = call,
		.deadline = call->deadline ? call->deadline : cairn_clock() + log->store->timeout,
	};
	cairn_buffer_init(&ret_pending->encoded, CAIRN_COMMIT_MAX - HEAD_BYTES);
	if (count > CAIRN_COMMIT_EVENTS_MAX)
		return cairn_error_set(&call->error, CAIRN_TOO_BIG,
				       "append to %slog/: %zu events; one commit holds %zu",
				       log->prefix, count, CAIRN_COMMIT_EVENTS_MAX);
	if (log->options.revalidate && !at) {
		ret_pending->items = calloc(count, sizeof(*ret_pending->items));
		if (!ret_pending->items)
			return cairn_error_set(&call->error, CAIRN_NO_MEMORY,
					       "append to %slog/: out of memory", log->prefix);
		for (size_t i = 0; i < count; i++) {
			ret_pending->items[i].event = events[i];
			/* What is looked at again is what was written: its time is now. */
			if (events[i].timestamp == CAIRN_TIMESTAMP_NOW)
				ret_pending->items[i].event.timestamp = cairn_timestamp_now();
		}
	}
	size_t index = 0;
	int status = cairn_pending_encode(ret_pending, events, &index, &call->error);
	if (status)
		return cairn_error_set(&call->error, status, "append to %slog/: event %zu: %s",
				       log->prefix, index, call->error.text);
	pthread_condattr_t monotonic;
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&ret_pending->woken, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	return CAIRN_OK;
}

static void pending_release(struct pending *pending)
{
	for (size_t i = 0; pending->items && i < pending->given; i++)
		free(pending->items[i].memory);
	free(pending->items);
	cairn_buffer_release(&pending->encoded);
}

static void tell_sequences(const struct pending *pending, struct cairn_sequence *ret_sequences)
{
	struct cairn_sequence sequence = pending->first;
	for (size_t i = 0; i < pending->given; i++) {
		bool rejected = pending->items && pending->items[i].rejected;
		ret_sequences[i] = rejected ? (struct cairn_sequence){ 0 } : sequence;
		sequence.index += !rejected;
	}
}

static int append(struct cairn_log *log, struct cairn_call *call, int64_t at,
		  const struct cairn_event *events, size_t count,
		  struct cairn_sequence *ret_sequences)
{
	struct pending pending;
	if (count == 0)
		return CAIRN_OK;
	int status = pending_init(log, call, at, events, count, &pending);
	if (status)
		goto out;
	(void)pthread_mutex_lock(&log->lock);
	if (log->closed) {
		status = cairn_error_set(&pending.error, CAIRN_INVALID,
					 "append to %slog/: the log is closed", log->prefix);
	} else {
		enqueue(log, &pending);
		status = wait_for(log, &pending);
	}
	(void)pthread_mutex_unlock(&log->lock);
	(void)pthread_cond_destroy(&pending.woken);
	if (status)
		call->error = pending.error;
	/* Also when some were rejected. */
	if (pending.first.commit && ret_sequences)
		tell_sequences(&pending, ret_sequences);
out:
	pending_release(&pending);
	return status;
}

int cairn_log_append_many(struct cairn_log *log, struct cairn_call *call,
			  const struct cairn_event *events, size_t count,
			  struct cairn_sequence *ret_sequences)
{
	return append(log, call, 0, events, count, ret_sequences);
}

int cairn_log_append(struct cairn_log *log, struct cairn_call *call,
		     const struct cairn_event *event, struct cairn_sequence *ret_sequence)
{
	return append(log, call, 0, event, 1, ret_sequence);
}

int cairn_log_append_at(struct cairn_log *log, struct cairn_call *call, int64_t number,
			const struct cairn_event *events, size_t count)
{
	if (number < 1 || number > CAIRN_COMMIT_NUMBER_MAX)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "append to %slog/: %lld is no commit's number", log->prefix,
				       (long long)number);
	return append(log, call, number, events, count, NULL);
}
