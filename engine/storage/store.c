/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <cairn/key.h>

#include <time.h>

#define CANCEL_POLL (20 * 1000)

static int64_t clock_read(clockid_t id)
{
	struct timespec now;
	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t cairn_clock(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

int64_t cairn_clock_real(void)
{
	return clock_read(CLOCK_REALTIME);
}

int cairn_call_check(struct cairn_call *call, const char *what)
{
	if (call->cancelled && call->cancelled(call->context))
		return cairn_error_set(&call->error, CAIRN_CANCELLED, "%s: cancelled", what);
	if (call->deadline && cairn_clock() >= call->deadline)
		return cairn_error_set(&call->error, CAIRN_TIMEOUT,
				       "%s: not done within the call's deadline", what);
	return CAIRN_OK;
}

int cairn_call_no_memory(struct cairn_call *call, const char *key)
{
	return cairn_error_set(&call->error, CAIRN_NO_MEMORY, "%s: out of memory", key);
}

int cairn_call_sleep(struct cairn_call *call, int64_t until)
{
	for (;;) {
		int status = cairn_call_check(call, "waiting");
		if (status)
			return status;
		int64_t now = cairn_clock();
		if (now >= until)
			return CAIRN_OK;
		int64_t wake = until;
		if (call->deadline && call->deadline < wake)
			wake = call->deadline;
		if (call->cancelled && now + CANCEL_POLL < wake)
			wake = now + CANCEL_POLL;
		struct timespec pause = {
			.tv_sec = (time_t)(wake / 1000000),
			.tv_nsec = (long)(wake % 1000000) * 1000,
		};
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &pause, NULL);
	}
}

void cairn_object_init(struct cairn_object *object)
{
	*object = (struct cairn_object){ 0 };
	/* What a get may bring is bounded by its own max_size. */
	cairn_buffer_init(&object->data, SIZE_MAX / 2);
}

void cairn_object_release(struct cairn_object *object)
{
	cairn_buffer_release(&object->data);
	cairn_object_init(object);
}

void cairn_store_stack(struct cairn_store *store, const struct cairn_store_ops *ops,
		       struct cairn_store *below)
{
	*store = *below;
	store->ops = ops;
	store->below = below;
}

void cairn_store_free(struct cairn_store *store)
{
	while (store) {
		struct cairn_store *below = store->below;
		store->ops->free(store);
		store = below;
	}
}

/*
 * Every call passes through enter and leave: the outermost store's timeout becomes the deadline,
 * for this call alone.
 */
static int64_t enter(const struct cairn_store *store, struct cairn_call *call)
{
	int64_t deadline = call->deadline;
	if (!deadline)
		call->deadline = cairn_clock() + store->timeout;
	call->error.status = CAIRN_OK;
	call->error.text[0] = '\0';
	return deadline;
}

static int leave(struct cairn_call *call, int64_t deadline, int status)
{
	call->deadline = deadline;
	return status;
}

static int check_key(struct cairn_call *call, const char *key)
{
	if (!key || !*key)
		return cairn_error_set(&call->error, CAIRN_INVALID, "the empty key names nothing");
	if (strnlen(key, CAIRN_KEY_MAX + 1) > CAIRN_KEY_MAX)
		return cairn_error_set(&call->error, CAIRN_NAME_TOO_LONG,
				       "key %.40s…: longer than %d bytes", key, CAIRN_KEY_MAX);
	return CAIRN_OK;
}

static int check_etag(struct cairn_call *call, const char *key, const char *etag)
{
	/* Some servers take an empty If-Match for none at all, and overwrite (S3.md). */
	if (etag && !*etag)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "%s: an empty etag matches nothing", key);
	return CAIRN_OK;
}

static int check_write(const struct cairn_store *store, struct cairn_call *call, const char *key)
{
	int status = check_key(call, key);
	if (!status && store->capabilities.read_only)
		status = cairn_error_set(&call->error, CAIRN_READ_ONLY,
					 "%s: %s was opened read-only", key, store->name);
	return status;
}

static int check_prefix(struct cairn_call *call, const char *prefix)
{
	int status = check_key(call, prefix);
	if (!status && prefix[strlen(prefix) - 1] != '/')
		status = cairn_error_set(&call->error, CAIRN_INVALID,
					 "%s: a prefix ends in a slash", prefix);
	return status;
}

int cairn_store_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		    const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	static const struct cairn_get_options defaults;
	int64_t deadline = enter(store, call);
	if (!options)
		options = &defaults;
	int status = check_key(call, key);
	if (!status)
		status = check_etag(call, key, options->if_match);
	if (!status)
		status = store->ops->get(store, call, key, options, ret_object);
	return leave(call, deadline, status);
}

int cairn_store_put(struct cairn_store *store, struct cairn_call *call, const char *key,
		    struct cairn_slice data, const struct cairn_put_options *options,
		    struct cairn_version *ret_version)
{
	static const struct cairn_put_options defaults;
	struct cairn_version version;
	int64_t deadline = enter(store, call);
	if (!options)
		options = &defaults;
	int status = check_write(store, call, key);
	if (!status)
		status = check_etag(call, key, options->if_match);
	if (!status && options->if_match && options->if_absent)
		status = cairn_error_set(&call->error, CAIRN_INVALID,
					 "%s: a put has one condition, if_match or if_absent", key);
	if (!status)
		status = store->ops->put(store, call, key, data, options, &version);
	if (!status && ret_version)
		*ret_version = version;
	return leave(call, deadline, status);
}

int cairn_store_delete(struct cairn_store *store, struct cairn_call *call, const char *key,
		       const struct cairn_delete_options *options)
{
	static const struct cairn_delete_options defaults;
	int64_t deadline = enter(store, call);
	if (!options)
		options = &defaults;
	int status = check_write(store, call, key);
	if (!status)
		status = check_etag(call, key, options->if_match);
	if (!status && options->if_match && !store->capabilities.delete_if_match)
		status = cairn_error_set(&call->error, CAIRN_UNSUPPORTED,
					 "%s: %s has no conditional delete", key, store->name);
	if (!status)
		status = store->ops->remove(store, call, key, options);
	return leave(call, deadline, status);
}

int cairn_store_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		     const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	static const struct cairn_list_options defaults;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	int64_t deadline = enter(store, call);
	int status = store->ops->list(store, call, prefix ? prefix : "",
				      options ? options : &defaults, &listing);
	if (status) {
		cairn_listing_release(&listing);
	} else {
		cairn_listing_release(ret_listing);
		*ret_listing = listing;
	}
	return leave(call, deadline, status);
}

int cairn_store_prefix_exists(struct cairn_store *store, struct cairn_call *call,
			      const char *prefix)
{
	int64_t deadline = enter(store, call);
	int status = prefix && !*prefix ? CAIRN_OK : check_prefix(call, prefix);
	if (!status)
		status = store->ops->prefix_exists(store, call, prefix);
	return leave(call, deadline, status);
}

int cairn_store_prefix_make(struct cairn_store *store, struct cairn_call *call, const char *prefix)
{
	int64_t deadline = enter(store, call);
	int status = check_write(store, call, prefix);
	if (!status)
		status = check_prefix(call, prefix);
	if (!status)
		status = store->ops->prefix_make(store, call, prefix);
	return leave(call, deadline, status);
}

int cairn_store_prefix_remove(struct cairn_store *store, struct cairn_call *call,
			      const char *prefix)
{
	int64_t deadline = enter(store, call);
	int status = check_write(store, call, prefix);
	if (!status)
		status = check_prefix(call, prefix);
	if (!status)
		status = store->ops->prefix_remove(store, call, prefix);
	return leave(call, deadline, status);
}

int cairn_store_space(struct cairn_store *store, struct cairn_call *call,
		      struct cairn_space *ret_space)
{
	int64_t deadline = enter(store, call);
	return leave(call, deadline, store->ops->space(store, call, ret_space));
}
