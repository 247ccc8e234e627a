/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_DOC_H
#define CAIRN_DOC_H

#include <cairn/lease.h>
#include <cairn/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A validation hook (Python: doc(model=)), run on every value read and before every write. Returns
 * 0, or a status (usually CAIRN_INVALID) with the reason in `error`, which ends the operation.
 */
struct cairn_check {
	int (*check)(void *context, struct cairn_slice value, struct cairn_error *error);
	void *context;
};

/*
 * Read the document `key`: its JSON text as stored, with its version. `check` may be NULL.
 * Returns 0 with ret_object (initialised) filled, CAIRN_NOT_FOUND, CAIRN_CORRUPT when it is no JSON, what
 * the check returned, or a failure.
 */
CAIRN_EXPORT int cairn_doc_get(struct cairn_store *store, struct cairn_call *call, const char *key,
			       const struct cairn_check *check, struct cairn_object *ret_object)
	CAIRN_MUST_USE;

/*
 * Replace the version `if_match` of `key` (NULL: the document must be absent) by the JSON text
 * `value`, stored canonically. `check` and `ret_version` may be NULL.
 * Returns 0, CAIRN_EXISTS, CAIRN_CONFLICT, CAIRN_INVALID, CAIRN_UNKNOWN, or a failure.
 */
CAIRN_EXPORT int cairn_doc_replace(struct cairn_store *store, struct cairn_call *call,
				   const char *key, const char *if_match, struct cairn_slice value,
				   const struct cairn_check *check,
				   struct cairn_version *ret_version) CAIRN_MUST_USE;

struct cairn_doc_options {
	struct cairn_slice create; /* the value that transform starts from when absent; data NULL: must exist */
	unsigned max_attempts;     /* 0: 10 */
	const struct cairn_check *check; /* may be NULL */
};

/*
 * Read, transform, compare-and-swap; again on conflict, with jittered pauses (FORMAT "doc update";
 * Python: doc.update). `ret_object` (initialised; may be NULL) receives what was written.
 * Returns 0, CAIRN_NOT_FOUND when absent without `create`, CAIRN_BUSY after the attempts,
 * CAIRN_CORRUPT, what transform or check returned, CAIRN_UNKNOWN, or a failure.
 */
CAIRN_EXPORT int cairn_doc_update(struct cairn_store *store, struct cairn_call *call,
				  const char *key, const struct cairn_doc_options *options,
				  cairn_transform transform, void *context,
				  struct cairn_object *ret_object) CAIRN_MUST_USE;

/* Delete the document, whatever its version; one that does not exist is no failure. */
CAIRN_EXPORT int cairn_doc_delete(struct cairn_store *store, struct cairn_call *call,
				  const char *key) CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
