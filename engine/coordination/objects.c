/* SPDX-License-Identifier: MIT */
#include <cairn/objects.h>

#include <cairn/key.h>

#define WAIT_TIMEOUT ((int64_t)60 * 1000000)
#define WAIT_POLL    ((int64_t)1000000)

int cairn_object_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		     const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	int status = cairn_key_check(key, &call->error);
	return status ? status : cairn_store_get(store, call, key, options, ret_object);
}

int cairn_object_put(struct cairn_store *store, struct cairn_call *call, const char *key,
		     struct cairn_slice data, const struct cairn_put_options *options,
		     struct cairn_version *ret_version)
{
	int status = cairn_key_check(key, &call->error);
	return status ? status : cairn_store_put(store, call, key, data, options, ret_version);
}

int cairn_object_delete(struct cairn_store *store, struct cairn_call *call, const char *key,
			const struct cairn_delete_options *options)
{
	int status = cairn_key_check(key, &call->error);
	return status ? status : cairn_store_delete(store, call, key, options);
}

/* Leave out what applications may not see. */
static void listing_filter(struct cairn_listing *listing)
{
	size_t count = 0;
	for (size_t i = 0; i < listing->count; i++) {
		if (!cairn_key_reserved(listing->entries[i].key))
			listing->entries[count++] = listing->entries[i];
	}
	listing->count = count;
}

int cairn_object_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		      struct cairn_listing *ret_listing)
{
	struct cairn_listing all, page;
	cairn_listing_init(&all);
	cairn_listing_init(&page);
	int status;
	do {
		const struct cairn_list_options options = { .token = all.token };
		status = cairn_store_list(store, call, prefix, &options, &page);
		if (status)
			goto out;
		listing_filter(&page);
		if (cairn_listing_append(&all, &page)) {
			status = cairn_error_set(&call->error, CAIRN_NO_MEMORY,
						 "list %s: out of memory", prefix);
			goto out;
		}
	} while (all.token);
	cairn_listing_release(ret_listing);
	*ret_listing = all;
	cairn_listing_init(&all);
out:
	cairn_listing_release(&page);
	cairn_listing_release(&all);
	return status;
}

int cairn_object_wait_for(struct cairn_store *store, struct cairn_call *call, const char *key,
			  const struct cairn_wait_options *options, struct cairn_object *ret_object)
{
	int status = cairn_key_check(key, &call->error);
	if (status)
		return status;
	const struct cairn_wait_options none = { 0 };
	if (!options)
		options = &none;
	int64_t timeout = options->timeout ? options->timeout : WAIT_TIMEOUT;
	int64_t poll = options->poll > 0 ? options->poll : WAIT_POLL;
	int64_t now = cairn_clock();
	int64_t deadline = timeout < 0 || timeout > INT64_MAX - now ? INT64_MAX : now + timeout;
	struct cairn_get_options get = { .if_none_match = options->changed_from };
	int64_t outer_deadline = call->deadline;

	for (;;) {
		call->deadline = 0; /* of this look: the store's own timeout */
		status = cairn_store_get(store, call, key, &get, ret_object);
		if (status != CAIRN_NOT_FOUND && status != CAIRN_UNCHANGED)
			break;
		/* Seen deleted: whatever comes is a change, also of the same bytes and etag. */
		if (status == CAIRN_NOT_FOUND)
			get.if_none_match = NULL;
		now = cairn_clock();
		if (now >= deadline) {
			status = cairn_error_set(&call->error, CAIRN_TIMEOUT,
						 "wait for %s: it did not %s within %.3f s", key,
						 status == CAIRN_NOT_FOUND ? "appear" : "change",
						 (double)timeout / 1e6);
			break;
		}
		call->deadline = INT64_MAX;
		status = cairn_call_sleep(call, poll < deadline - now ? now + poll : deadline);
		if (status)
			break;
	}
	call->deadline = outer_deadline;
	return status;
}
