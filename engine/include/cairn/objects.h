/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_OBJECTS_H
#define CAIRN_OBJECTS_H

#include <cairn/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Plain objects: the application's own keys, checked by cairn_key_check, over the store's calls of
 * the same names (Python: db.objects). Arguments, results and failures as there.
 */
CAIRN_EXPORT int cairn_object_get(struct cairn_store *store, struct cairn_call *call,
				  const char *key, const struct cairn_get_options *options,
				  struct cairn_object *ret_object) CAIRN_MUST_USE;
CAIRN_EXPORT int cairn_object_put(struct cairn_store *store, struct cairn_call *call,
				  const char *key, struct cairn_slice data,
				  const struct cairn_put_options *options,
				  struct cairn_version *ret_version) CAIRN_MUST_USE;
CAIRN_EXPORT int cairn_object_delete(struct cairn_store *store, struct cairn_call *call,
				     const char *key, const struct cairn_delete_options *options)
	CAIRN_MUST_USE;

/*
 * Every key that begins with `prefix`, in byte order, without those of reserved prefixes
 * (Python: objects.list, which shows them). Fetches all pages.
 */
CAIRN_EXPORT int cairn_object_list(struct cairn_store *store, struct cairn_call *call,
				   const char *prefix, struct cairn_listing *ret_listing)
	CAIRN_MUST_USE;

struct cairn_wait_options {
	int64_t timeout;          /* microseconds; 0: 60 s; negative: for ever */
	int64_t poll;             /* microseconds between looks; 0: 1 s */
	const char *changed_from; /* wait until the object is there with another etag. NULL: until it is there */
};

/*
 * Wait until `key` exists, or has an etag other than changed_from (Python: objects.wait_for). A
 * deleted object counts as changed and is returned when it is there again. One request a look;
 * an unchanged one costs no transfer. call->deadline is not looked at: the timeout is; each
 * look has the store's own timeout. Returns 0 with the object, CAIRN_TIMEOUT, CAIRN_CANCELLED, or
 * the store's failure.
 */
CAIRN_EXPORT int cairn_object_wait_for(struct cairn_store *store, struct cairn_call *call,
				       const char *key, const struct cairn_wait_options *options,
				       struct cairn_object *ret_object) CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
