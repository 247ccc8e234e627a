/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_COORDINATION_TEXT_H
#define CAIRN_COORDINATION_TEXT_H

#include <cairn/lease.h>
#include <cairn/store.h>

/* JSON texts on their way in and out of the bucket. `what` and `key` are for the messages. */

/*
 * Read `key`, at most CAIRN_JSON_MAX bytes (else CAIRN_TOO_BIG). The bytes are not looked at. As
 * cairn_store_get.
 */
int cairn_text_get(struct cairn_store *store, struct cairn_call *call, const char *what,
		   const char *key, struct cairn_object *ret_object) CAIRN_MUST_USE;

/* Are the stored bytes JSON? 0, CAIRN_CORRUPT, CAIRN_TOO_BIG or CAIRN_NO_MEMORY. */
int cairn_text_check(const char *what, const char *key, struct cairn_slice data,
		     struct cairn_error *error) CAIRN_MUST_USE;

/*
 * The canonical form of a value of the caller's, appended to `ret_text`. 0, CAIRN_INVALID,
 * CAIRN_TOO_BIG or CAIRN_NO_MEMORY.
 */
int cairn_text_canonical(const char *what, const char *key, struct cairn_slice value,
			 struct cairn_buffer *ret_text, struct cairn_error *error) CAIRN_MUST_USE;

/*
 * The canonical form of what `transform` makes of `current`, appended to `ret_text`. What
 * transform returned, with its words or ours in `error`; else as cairn_text_canonical.
 */
int cairn_text_transform(const char *what, const char *key, cairn_transform transform,
			 void *context, struct cairn_slice current, struct cairn_buffer *ret_text,
			 struct cairn_error *error) CAIRN_MUST_USE;

#endif
