/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_STORE_PRIVATE_H
#define CAIRN_STORE_PRIVATE_H

/* What the stores share behind cairn/store.h. */

#include <cairn/store.h>

#define CAIRN_TIMEOUT_DEFAULT ((int64_t)30 * 1000 * 1000)

/* CLOCK_REALTIME in microseconds. */
int64_t cairn_clock_real(void);

/* 0, CAIRN_TIMEOUT or CAIRN_CANCELLED without waiting, described in call->error as `what`. */
int cairn_call_check(struct cairn_call *call, const char *what) CAIRN_MUST_USE;

/* CAIRN_NO_MEMORY, described. */
int cairn_call_no_memory(struct cairn_call *call, const char *key);

/*
 * Make `store` a store stacked on `below`, which it owns: capabilities, timeout and name are those
 * of `below`.
 */
void cairn_store_stack(struct cairn_store *store, const struct cairn_store_ops *ops,
		       struct cairn_store *below);

/* Bytes of a content etag with its NUL: the lower-case hex MD5. */
#define CAIRN_CONTENT_ETAG_SIZE 33

/* The hex MD5 of `size` bytes. CAIRN_NO_MEMORY or CAIRN_UNSUPPORTED (libcrypto without MD5). */
int cairn_content_etag(const void *data, size_t size, char *ret_etag) CAIRN_MUST_USE;

/* The same piece by piece: new, update…, final frees (also on failure; NULL is fine). */
struct cairn_content_hash;
struct cairn_content_hash *cairn_content_hash_new(void);
int cairn_content_hash_update(struct cairn_content_hash *hash, const void *data,
			      size_t size) CAIRN_MUST_USE;
int cairn_content_hash_final(struct cairn_content_hash *hash, char *ret_etag);

/*
 * Append an entry with the key `head` and then `tail`; `etag` may be NULL. ret_entry (may be NULL)
 * is good until the next add. CAIRN_NO_MEMORY.
 */
int cairn_listing_add(struct cairn_listing *listing, struct cairn_slice head,
		      struct cairn_slice tail, const char *etag,
		      struct cairn_entry **ret_entry) CAIRN_MUST_USE;

/* Drop entries from the end until `count` are left; the token becomes the last one's key. */
int cairn_listing_cut(struct cairn_listing *listing, size_t count) CAIRN_MUST_USE;

/*
 * The directory store at the bottom of `store` forgets the key `key` for good: its lock file goes.
 * Only for a key that no other process can know. Anything but a directory: nothing happens.
 */
void cairn_filesystem_forget(struct cairn_store *store, const char *key);

#endif
