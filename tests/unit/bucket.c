/* SPDX-License-Identifier: MIT */
#include "bucket.h"

#include <ftw.h>
#include <unistd.h>

/* The one bucket of the test that runs. */
static struct bucket *hooked_bucket;

static int put_hooked(struct cairn_store *store, struct cairn_call *call, const char *key,
		      struct cairn_slice data, const struct cairn_put_options *options,
		      struct cairn_version *ret_version)
{
	struct bucket *bucket = hooked_bucket;
	bool hooked = bucket->hooked > 0;
	if (hooked) {
		bucket->hooked--;
		bucket->runs++;
	}
	/* What the hook puts is not hooked. */
	unsigned left = bucket->hooked;
	bucket->hooked = 0;
	if (hooked && bucket->before_put)
		bucket->before_put(bucket);
	int status = bucket->hooked_ops->put(store, call, key, data, options, ret_version);
	if (hooked && bucket->after_put)
		bucket->after_put(bucket);
	bucket->hooked = left;
	return status;
}

void bucket_hook_puts(struct bucket *bucket, unsigned count, void (*before)(struct bucket *),
		      void (*after)(struct bucket *))
{
	hooked_bucket = bucket;
	if (!bucket->hooked_ops) {
		bucket->hooked_ops = bucket->backend->ops;
		bucket->ops = *bucket->hooked_ops;
		bucket->ops.put = put_hooked;
		bucket->backend->ops = &bucket->ops;
	}
	bucket->hooked = count;
	bucket->runs = 0;
	bucket->before_put = before;
	bucket->after_put = after;
}

static void bucket_stack(struct bucket *bucket)
{
	assert_int_equal(cairn_fault_store_new(bucket->backend, 1, &bucket->fault), CAIRN_OK);
	assert_int_equal(cairn_trace_store_new(bucket->fault, &bucket->bare), CAIRN_OK);
	assert_int_equal(cairn_retry_store_new(bucket->bare, &bucket->store), CAIRN_OK);
}

int bucket_setup_memory(void **state)
{
	struct bucket *bucket = calloc(1, sizeof(*bucket));
	assert_non_null(bucket);
	assert_int_equal(cairn_memory_store_new(&bucket->backend), CAIRN_OK);
	bucket_stack(bucket);
	*state = bucket;
	return 0;
}

int bucket_setup_directory(void **state)
{
	struct bucket *bucket = calloc(1, sizeof(*bucket));
	assert_non_null(bucket);
	(void)snprintf(bucket->directory, sizeof(bucket->directory), "/tmp/cairn-test-XXXXXX");
	assert_non_null(mkdtemp(bucket->directory));
	assert_int_equal(cairn_filesystem_store_new(bucket->directory, NULL, &bucket->backend,
						    &bucket->call.error),
			 CAIRN_OK);
	bucket_stack(bucket);
	*state = bucket;
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

int bucket_teardown(void **state)
{
	struct bucket *bucket = *state;
	cairn_store_free(bucket->store);
	if (bucket->directory[0])
		(void)nftw(bucket->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(bucket);
	return 0;
}

void bucket_put(struct bucket *bucket, const char *key, const char *text)
{
	struct cairn_call call = { 0 };
	assert_status(
		&call,
		cairn_store_put(bucket->backend, &call, key, cairn_slice_of(text), NULL, NULL),
		CAIRN_OK);
}

void bucket_delete(struct bucket *bucket, const char *key)
{
	struct cairn_call call = { 0 };
	assert_status(&call, cairn_store_delete(bucket->backend, &call, key, NULL), CAIRN_OK);
}

void bucket_etag(struct bucket *bucket, const char *key, char ret_etag[CAIRN_ETAG_SIZE])
{
	struct cairn_call call = { 0 };
	struct cairn_object object;
	cairn_object_init(&object);
	assert_status(&call, cairn_store_get(bucket->backend, &call, key, NULL, &object), CAIRN_OK);
	memcpy(ret_etag, object.version.etag, CAIRN_ETAG_SIZE);
	cairn_object_release(&object);
}

void bucket_assert(struct bucket *bucket, const char *key, const char *text)
{
	struct cairn_call call = { 0 };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(bucket->backend, &call, key, NULL, &object);
	assert_status(&call, status, text ? CAIRN_OK : CAIRN_NOT_FOUND);
	if (text) {
		assert_int_equal(object.data.size, strlen(text));
		assert_memory_equal(object.data.data ? object.data.data : "", text, strlen(text));
	}
	cairn_object_release(&object);
}

void bucket_fail(struct bucket *bucket, enum cairn_operation operation, unsigned times, int status,
		 bool act)
{
	const struct cairn_fault_rule rule = {
		.operations = 1u << operation,
		.times = times,
		.status = status,
		.act = act,
	};
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &rule), CAIRN_OK);
}

void bucket_heal(struct bucket *bucket)
{
	assert_int_equal(cairn_fault_rule_add(bucket->fault, NULL), CAIRN_OK);
}

uint64_t bucket_calls(struct bucket *bucket, enum cairn_operation operation)
{
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	cairn_trace_read(bucket->store, counts);
	return counts[operation].calls;
}

struct cairn_call bucket_call_within(int64_t microseconds)
{
	return (struct cairn_call){ .deadline = cairn_clock() + microseconds };
}

void assert_status_at(const char *file, int line, const struct cairn_call *call, int status,
		      int expected)
{
	if (status == expected)
		return;
	print_error("%s:%d: %s, expected %s: %s\n", file, line, cairn_status_name(status),
		    cairn_status_name(expected), call->error.text);
	_fail(file, line);
}

int transform_increment(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
			struct cairn_error *error)
{
	int64_t number = 0;
	if (current.data && cairn_json_kind(current) != 'n' && cairn_json_integer(current, &number))
		return cairn_error_set(error, CAIRN_INVALID, "no counter: %.*s", (int)current.size,
				       current.data);
	if (context)
		++*(unsigned *)context;
	return cairn_buffer_printf(ret_next, "%lld", (long long)number + 1);
}

int transform_constant(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		       struct cairn_error *error)
{
	(void)current;
	(void)error;
	return cairn_buffer_append(ret_next, context, strlen(context));
}

int transform_refuse(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		     struct cairn_error *error)
{
	(void)current;
	(void)ret_next;
	(void)error;
	return *(const int *)context;
}
