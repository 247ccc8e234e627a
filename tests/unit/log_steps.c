/* SPDX-License-Identifier: MIT */
#include "log_steps.h"

struct cairn_log *log_open(struct cairn_store *store, const char *name,
			   const struct cairn_log_options *options)
{
	struct cairn_log *log;
	assert_int_equal(cairn_log_new(store, name, options, &log, NULL), CAIRN_OK);
	return log;
}

struct cairn_event *event_of(struct test_event *storage, const char *type, int id)
{
	(void)snprintf(storage->payload, sizeof(storage->payload), "{\"id\":%d}", id);
	storage->event = (struct cairn_event){
		.event_type = cairn_slice_of(type),
		.timestamp = CAIRN_TIMESTAMP_NOW,
		.payload = cairn_slice_of(storage->payload),
	};
	return &storage->event;
}

int append_id(struct cairn_log *log, struct cairn_call *call, const char *type, int id,
	      struct cairn_sequence *ret_sequence)
{
	struct test_event storage;
	return cairn_log_append(log, call, event_of(&storage, type, id), ret_sequence);
}

int64_t append_good(struct cairn_log *log, int id)
{
	struct cairn_call call = { 0 };
	struct cairn_sequence sequence = { 0 };
	assert_status(&call, append_id(log, &call, "t", id, &sequence), CAIRN_OK);
	return sequence.commit;
}

void fill_to(struct cairn_log *log, int64_t tail)
{
	struct cairn_call call = { 0 };
	int64_t number;
	assert_status(&call, cairn_log_current_tail(log, &call, &number), CAIRN_OK);
	while (number < tail)
		number = append_good(log, 1000000);
	assert_int_equal(number, tail);
}

static int64_t id_of(const struct cairn_event *event)
{
	struct cairn_slice value;
	int64_t id;
	assert_int_equal(cairn_json_member(event->payload, "id", &value), CAIRN_OK);
	assert_int_equal(cairn_json_integer(value, &id), CAIRN_OK);
	return id;
}

void assert_each_once(struct bucket *bucket, const char *name, int count)
{
	struct cairn_log *log = log_open(bucket->backend, name, NULL);
	struct cairn_call call = { 0 };
	struct cairn_log_reader reader;
	struct cairn_sequence sequence;
	const struct cairn_event *event;
	int64_t tail;
	int seen = 0;
	unsigned char *found = calloc((size_t)count + 1, 1);
	cairn_log_reader_init(&reader, log, 0, 0);
	int status;
	while (!(status = cairn_log_reader_event(&reader, &call, &sequence, &event))) {
		int64_t id = id_of(event);
		assert_in_range(id, 0, count - 1);
		assert_int_equal(found[id], 0);
		found[id] = 1;
		seen++;
	}
	assert_status(&call, status, CAIRN_NOT_FOUND);
	assert_int_equal(seen, count);
	/* Nothing stands behind a gap. */
	assert_status(&call, cairn_log_current_tail(log, &call, &tail), CAIRN_OK);
	assert_int_equal(tail, reader.after);
	free(found);
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

void commit_ids(struct bucket *bucket, const char *name, int64_t number, char ret_text[256])
{
	struct cairn_log *log = log_open(bucket->backend, name, NULL);
	struct cairn_call call = { 0 };
	struct cairn_commit commit;
	size_t at = 0;
	ret_text[0] = '\0';
	cairn_commit_init(&commit);
	int status = cairn_log_read_commit(log, &call, number, &commit);
	if (status != CAIRN_NOT_FOUND)
		assert_status(&call, status, CAIRN_OK);
	for (size_t i = 0; i < commit.count; i++)
		at += (size_t)snprintf(ret_text + at, 256 - at, "%s%lld", i ? " " : "",
				       (long long)id_of(&commit.events[i]));
	cairn_commit_release(&commit);
	cairn_log_free(log);
}

void snapshot_at(struct bucket *bucket, int64_t number)
{
	char key[64];
	(void)snprintf(key, sizeof(key), "snapshots/v1/%012lld.sqlite", (long long)number);
	bucket_put(bucket, key, "SQLite");
}

void prune_to(struct bucket *bucket, int64_t number)
{
	for (int64_t i = 1; i <= number; i++) {
		char key[64];
		(void)snprintf(key, sizeof(key), "log/%012lld.msgpack", (long long)i);
		bucket_delete(bucket, key);
	}
}

void sleep_long(struct cairn_log *log)
{
	log->seen -= 3 * 1000000;
}
