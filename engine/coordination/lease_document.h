/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_COORDINATION_LEASE_DOCUMENT_H
#define CAIRN_COORDINATION_LEASE_DOCUMENT_H

#include <cairn/lease.h>
#include <cairn/store.h>

/*
 * A stored lease document taken apart, its members as canonical JSON: what is only copied from one
 * version to the next (a holder with a lone surrogate, a state with NaN) stays exactly as it was.
 */
struct cairn_lease_members {
	struct cairn_buffer text; /* owned; the canonical document, which the slices point into */
	int64_t epoch;
	bool held;
	struct cairn_slice holder; /* a JSON string, or null */
	int64_t deadline;
	struct cairn_slice state;     /* "null" where the document has none */
	struct cairn_version version; /* of cairn_lease_members_read */
};

void cairn_lease_members_init(struct cairn_lease_members *members);
void cairn_lease_members_release(struct cairn_lease_members *members);

/* Take `data` apart (`members` is initialised). As cairn_lease_parse. */
int cairn_lease_members_parse(const char *key, struct cairn_slice data,
			      struct cairn_lease_members *members,
			      struct cairn_error *error) CAIRN_MUST_USE;

/* Read the document `key` and take it apart. As cairn_lease_read; CAIRN_TOO_BIG. */
int cairn_lease_members_read(struct cairn_store *store, struct cairn_call *call, const char *key,
			     struct cairn_lease_members *members) CAIRN_MUST_USE;

/*
 * Append the document of these members to `ret_text`, `holder` and `state` being canonical JSON.
 * CAIRN_INVALID when the deadline is beyond the year 9999 or the state nested so deep that the
 * document could not be read back, CAIRN_TOO_BIG, CAIRN_NO_MEMORY.
 */
int cairn_lease_members_encode(const char *key, const struct cairn_lease_members *members,
			       struct cairn_buffer *ret_text,
			       struct cairn_error *error) CAIRN_MUST_USE;

#endif
