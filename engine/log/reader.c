/* SPDX-License-Identifier: MIT */
#include "log/log_private.h"

#include <limits.h>

#define POLL_DEFAULT ((int64_t)1000000)

/* How often a reader that waits looks whether it was overtaken by a prune. */
#define CHECK_INTERVAL ((int64_t)60 * 1000000)

int cairn_log_read_commit(struct cairn_log *log, struct cairn_call *call, int64_t number,
			  struct cairn_commit *ret_commit)
{
	const struct cairn_get_options options = { .max_size = CAIRN_COMMIT_MAX };
	struct cairn_object object;
	char key[LOG_KEY_SIZE];
	cairn_log_key(log, number, key);
	if (number < 1 || number > CAIRN_COMMIT_NUMBER_MAX)
		return cairn_error_set(&call->error, CAIRN_NOT_FOUND, "%s: no such commit", key);
	cairn_object_init(&object);
	int status = cairn_store_get(log->store, call, key, &options, &object);
	if (!status && object.version.size > CAIRN_COMMIT_MAX)
		status = cairn_error_set(&call->error, CAIRN_TOO_BIG,
					 "%s: %llu bytes; commits of more than %zu are not read",
					 key, (unsigned long long)object.version.size,
					 CAIRN_COMMIT_MAX);
	if (!status)
		status = cairn_commit_decode(key, number, cairn_buffer_slice(&object.data),
					     ret_commit, &call->error);
	cairn_object_release(&object);
	if (!status)
		cairn_log_saw(log, number);
	return status;
}

void cairn_log_reader_init(struct cairn_log_reader *reader, struct cairn_log *log, int64_t after,
			   int64_t end_at)
{
	*reader = (struct cairn_log_reader){
		.log = log,
		.after = after > 0 ? after : 0,
		.end_at = end_at,
		.checked = INT64_MIN,
	};
	cairn_commit_init(&reader->commit);
}

void cairn_log_reader_release(struct cairn_log_reader *reader)
{
	cairn_commit_release(&reader->commit);
}

static int read_next(struct cairn_log_reader *reader, struct cairn_call *call)
{
	int status = cairn_log_read_commit(reader->log, call, reader->after + 1, &reader->commit);
	if (status)
		return status;
	reader->after++;
	reader->index = 0;
	reader->started = true;
	return CAIRN_OK;
}

/*
 * The next commit is not there: is this the tail, or was it pruned, or is one missing? A listing
 * tells; it is only asked where there is reason to.
 */
static int look_into_miss(struct cairn_log_reader *reader, struct cairn_call *call)
{
	struct cairn_log *log = reader->log;
	struct cairn_error miss = call->error;
	bool behind = atomic_load_explicit(&log->newest, memory_order_relaxed) > reader->after;
	int64_t now = cairn_clock();
	if (reader->checked != INT64_MIN && !behind && now - reader->checked < CHECK_INTERVAL)
		goto tail;
	if (reader->started && !behind && reader->checked == INT64_MIN) {
		/* It has just read the commit before. */
		reader->checked = now;
		goto tail;
	}
	reader->checked = now;
	int64_t next = 0;
	int status = cairn_log_list_next(log, call, reader->after, &next);
	if (status)
		return status;
	if (next == 0)
		goto tail;
	/* It may have come since it was missed. */
	status = read_next(reader, call);
	if (status != CAIRN_NOT_FOUND)
		return status;
	if (reader->after == 0 && !reader->started && (!reader->end_at || next <= reader->end_at)) {
		reader->after = next - 1;
		return read_next(reader, call);
	}
	return cairn_error_set(&call->error, CAIRN_LOST,
			       "%slog/: commits %lld to %lld are not there any more, the next is "
			       "%lld; start again from a snapshot",
			       log->prefix, (long long)reader->after + 1, (long long)next - 1,
			       (long long)next);
tail:
	call->error = miss;
	return CAIRN_NOT_FOUND;
}

int cairn_log_reader_commit(struct cairn_log_reader *reader, struct cairn_call *call)
{
	if (reader->end_at && reader->after >= reader->end_at)
		return cairn_error_set(&call->error, CAIRN_NOT_FOUND,
				       "%slog/: commit %lld is the last that was asked for",
				       reader->log->prefix, (long long)reader->end_at);
	int status = read_next(reader, call);
	return status == CAIRN_NOT_FOUND ? look_into_miss(reader, call) : status;
}

int cairn_log_reader_event(struct cairn_log_reader *reader, struct cairn_call *call,
			   struct cairn_sequence *ret_sequence,
			   const struct cairn_event **ret_event)
{
	if (!reader->started || reader->index == reader->commit.count) {
		int status = cairn_log_reader_commit(reader, call);
		if (status)
			return status;
	}
	*ret_sequence = (struct cairn_sequence){
		.commit = reader->commit.number,
		.index = (int64_t)reader->index,
	};
	*ret_event = &reader->commit.events[reader->index++];
	return CAIRN_OK;
}

int cairn_log_reader_wait(struct cairn_log_reader *reader, struct cairn_call *call, int64_t poll)
{
	int64_t outer_deadline = call->deadline;
	int64_t deadline = outer_deadline ? outer_deadline : INT64_MAX;
	bool ended = reader->end_at && reader->after >= reader->end_at;
	if (poll <= 0)
		poll = POLL_DEFAULT;
	for (;;) {
		call->deadline = 0; /* of this look: the store's own timeout */
		int status = cairn_log_reader_commit(reader, call);
		if (status == CAIRN_NOT_FOUND && !ended) {
			int64_t now = cairn_clock();
			call->deadline = deadline;
			status = cairn_call_sleep(call,
						  poll < deadline - now ? now + poll : deadline);
			if (!status)
				continue;
		}
		call->deadline = outer_deadline;
		return status;
	}
}
