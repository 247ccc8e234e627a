/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <stdatomic.h>

struct trace_counters {
	atomic_uint_fast64_t calls;
	atomic_uint_fast64_t failures;
	atomic_uint_fast64_t microseconds;
	atomic_uint_fast64_t bytes;
};

struct trace_store {
	struct cairn_store store;
	struct trace_counters counters[CAIRN_OPERATION_COUNT];
};

static bool is_answer(int status)
{
	return status == CAIRN_OK || status == CAIRN_NOT_FOUND || status == CAIRN_EXISTS ||
	       status == CAIRN_CONFLICT || status == CAIRN_UNCHANGED || status == CAIRN_NOT_EMPTY;
}

static void add(atomic_uint_fast64_t *counter, uint64_t amount)
{
	atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static int count(struct cairn_store *store, enum cairn_operation operation, int64_t begun,
		 int status, uint64_t bytes)
{
	struct trace_counters *counters = &((struct trace_store *)store)->counters[operation];
	add(&counters->calls, 1);
	if (!is_answer(status))
		add(&counters->failures, 1);
	add(&counters->microseconds, (uint64_t)(cairn_clock() - begun));
	if (!status)
		add(&counters->bytes, bytes);
	return status;
}

static int trace_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		     const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	int64_t begun = cairn_clock();
	int status = cairn_store_get(store->below, call, key, options, ret_object);
	return count(store, CAIRN_OPERATION_GET, begun, status, ret_object->data.size);
}

static int trace_put(struct cairn_store *store, struct cairn_call *call, const char *key,
		     struct cairn_slice data, const struct cairn_put_options *options,
		     struct cairn_version *ret_version)
{
	int64_t begun = cairn_clock();
	int status = cairn_store_put(store->below, call, key, data, options, ret_version);
	return count(store, CAIRN_OPERATION_PUT, begun, status, data.size);
}

static int trace_remove(struct cairn_store *store, struct cairn_call *call, const char *key,
			const struct cairn_delete_options *options)
{
	int64_t begun = cairn_clock();
	int status = cairn_store_delete(store->below, call, key, options);
	return count(store, CAIRN_OPERATION_DELETE, begun, status, 0);
}

static int trace_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		      const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	int64_t begun = cairn_clock();
	int status = cairn_store_list(store->below, call, prefix, options, ret_listing);
	return count(store, CAIRN_OPERATION_LIST, begun, status, 0);
}

static int trace_prefix_exists(struct cairn_store *store, struct cairn_call *call,
			       const char *prefix)
{
	int64_t begun = cairn_clock();
	int status = cairn_store_prefix_exists(store->below, call, prefix);
	return count(store, CAIRN_OPERATION_PREFIX, begun, status, 0);
}

static int trace_prefix_make(struct cairn_store *store, struct cairn_call *call, const char *prefix)
{
	int64_t begun = cairn_clock();
	int status = cairn_store_prefix_make(store->below, call, prefix);
	return count(store, CAIRN_OPERATION_PREFIX, begun, status, 0);
}

static int trace_prefix_remove(struct cairn_store *store, struct cairn_call *call,
			       const char *prefix)
{
	int64_t begun = cairn_clock();
	int status = cairn_store_prefix_remove(store->below, call, prefix);
	return count(store, CAIRN_OPERATION_PREFIX, begun, status, 0);
}

static int trace_space(struct cairn_store *store, struct cairn_call *call,
		       struct cairn_space *ret_space)
{
	/* No request of the protocol, so not counted. */
	return cairn_store_space(store->below, call, ret_space);
}

static void trace_free(struct cairn_store *store)
{
	free(store);
}

static const struct cairn_store_ops trace_ops = {
	.get = trace_get,
	.put = trace_put,
	.remove = trace_remove,
	.list = trace_list,
	.prefix_exists = trace_prefix_exists,
	.prefix_make = trace_prefix_make,
	.prefix_remove = trace_prefix_remove,
	.space = trace_space,
	.free = trace_free,
};

int cairn_trace_store_new(struct cairn_store *below, struct cairn_store **ret_store)
{
	struct trace_store *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return CAIRN_NO_MEMORY;
	cairn_store_stack(&trace->store, &trace_ops, below);
	*ret_store = &trace->store;
	return CAIRN_OK;
}

void cairn_trace_read(struct cairn_store *store, struct cairn_trace_count *ret_counts)
{
	while (store && store->ops != &trace_ops)
		store = store->below;
	for (int i = 0; i < CAIRN_OPERATION_COUNT; i++) {
		ret_counts[i] = (struct cairn_trace_count){ 0 };
		if (!store)
			continue;
		struct trace_counters *counters = &((struct trace_store *)store)->counters[i];
		ret_counts[i].calls = atomic_load(&counters->calls);
		ret_counts[i].failures = atomic_load(&counters->failures);
		ret_counts[i].microseconds = atomic_load(&counters->microseconds);
		ret_counts[i].bytes = atomic_load(&counters->bytes);
	}
}
