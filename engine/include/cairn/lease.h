/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_LEASE_H
#define CAIRN_LEASE_H

#include <cairn/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A function of the caller's that makes a new JSON value of the present one, or says no. `current`
 * is the stored text (any layout), data NULL where there is none. It appends the new value (any
 * layout) to `ret_next` (empty, limit CAIRN_JSON_MAX) and returns 0; any other status ends the
 * operation with that status, nothing written. It may be called again after a lost race, so it
 * must depend on `current` alone.
 */
typedef int (*cairn_transform)(void *context, struct cairn_slice current,
			       struct cairn_buffer *ret_next, struct cairn_error *error);

/* What a lease document says (FORMAT "A lease document"). */
struct cairn_lease_document {
	int64_t epoch;
	bool held;                 /* holder is not null */
	struct cairn_buffer holder; /* owned; UTF-8 of the holder string, empty when not held */
	int64_t deadline;          /* microseconds since 1970 */
	struct cairn_buffer state; /* owned; canonical JSON, "null" when there was none */
	struct cairn_version version;
};

CAIRN_EXPORT void cairn_lease_document_init(struct cairn_lease_document *document);
CAIRN_EXPORT void cairn_lease_document_release(struct cairn_lease_document *document);

/*
 * Parse a stored lease document. CAIRN_CORRUPT, with the field and the reason, when it is no JSON
 * object, epoch is no integer of 1 to 2^63-1, holder is missing or neither string nor null, or
 * deadline_at is no timestamp. A missing state is null, further fields are ignored.
 */
CAIRN_EXPORT int cairn_lease_parse(const char *key, struct cairn_slice data,
				   struct cairn_lease_document *ret_document,
				   struct cairn_error *error) CAIRN_MUST_USE;

/* Read and parse the lease document of `key`. 0, CAIRN_NOT_FOUND, CAIRN_CORRUPT, or a failure. */
CAIRN_EXPORT int cairn_lease_read(struct cairn_store *store, struct cairn_call *call,
				  const char *key, struct cairn_lease_document *ret_document)
	CAIRN_MUST_USE;

/* One ownership period of this process. Thread-safe: calls on one lease take turns. */
struct cairn_lease;

struct cairn_lease_options {
	int64_t ttl;          /* microseconds, positive */
	const char *holder;   /* UTF-8, a credential. NULL: 32 random hex digits */
	bool no_steal;        /* an expired lease that still names a holder counts as held */
	cairn_transform transition; /* new state from the present one, written with the acquisition; NULL: kept */
	void *context;        /* of transition */
	const struct cairn_lease_document *seen; /* as just read: the first attempt goes by it. NULL: not read */
};

/*
 * Acquire the lease `key` (FORMAT "lease acquire"; Python: db.lease): absent, released, or expired
 * and stealing is allowed. One look, no waiting; 8 attempts against races. For a fresh document
 * the put-if-absent is tried first, so that winning costs one request.
 * Returns 0 with a lease that the caller frees, CAIRN_HELD (who and until when in call->error,
 * never the holder string), CAIRN_CORRUPT, CAIRN_BUSY, what transition returned, or a failure.
 */
CAIRN_EXPORT int cairn_lease_acquire(struct cairn_store *store, struct cairn_call *call,
				     const char *key, const struct cairn_lease_options *options,
				     struct cairn_lease **ret_lease) CAIRN_MUST_USE;

/*
 * Re-enter the period that `holder` has now (FORMAT "attach"; Python: db.attach_lease): one read,
 * nothing written, same epoch. CAIRN_HELD when it is not `holder`'s or expired, CAIRN_NOT_FOUND.
 */
CAIRN_EXPORT int cairn_lease_attach(struct cairn_store *store, struct cairn_call *call,
				    const char *key, const char *holder, int64_t ttl,
				    struct cairn_lease **ret_lease) CAIRN_MUST_USE;

/*
 * The guarded writes (FORMAT "lease write"): compare-and-swap on the etag last seen; when it fails,
 * the document is read again: same epoch and holder, then its state and the later deadline are
 * taken and the change is tried again, 10 attempts; anything else is CAIRN_LOST, for good.
 * Renewing an expired lease that nobody took succeeds. After release: CAIRN_LOST.
 * Further failures: CAIRN_BUSY, CAIRN_UNKNOWN (the lease is not lost; call again), the store's.
 */

/* Move the deadline to now + ttl; the state is kept, cooperative writes in it are taken over. */
CAIRN_EXPORT int cairn_lease_renew(struct cairn_lease *lease, struct cairn_call *call)
	CAIRN_MUST_USE;

/* Replace the state by the JSON text `state`, whatever it was. */
CAIRN_EXPORT int cairn_lease_write(struct cairn_lease *lease, struct cairn_call *call,
				   struct cairn_slice state) CAIRN_MUST_USE;

/* Replace the state by what `transform` makes of the freshest one. */
CAIRN_EXPORT int cairn_lease_update_state(struct cairn_lease *lease, struct cairn_call *call,
					  cairn_transform transform, void *context)
	CAIRN_MUST_USE;

/* End the period: holder null, deadline now. `state` NULL: kept; else the final state. */
CAIRN_EXPORT int cairn_lease_release(struct cairn_lease *lease, struct cairn_call *call,
				     const struct cairn_slice *state) CAIRN_MUST_USE;

/*
 * Hand the lease over to another holder in one guarded write: `options` say the period that
 * follows (`no_steal` and `seen` do not matter), the state is kept or passed through `transition`.
 * 0 with the new period's lease, and this one has ended; CAIRN_LOST, or a failure as above.
 */
CAIRN_EXPORT int cairn_lease_succeed(struct cairn_lease *lease, struct cairn_call *call,
				     const struct cairn_lease_options *options,
				     struct cairn_lease **ret_lease) CAIRN_MUST_USE;

/* Free the handle; the document stays as it is (no release). NULL is fine. */
CAIRN_EXPORT void cairn_lease_free(struct cairn_lease *lease);

CAIRN_EXPORT int64_t cairn_lease_epoch(const struct cairn_lease *lease);

/* The holder string, owned by the lease. */
CAIRN_EXPORT const char *cairn_lease_holder(const struct cairn_lease *lease);

/* The deadline in the document as last written or seen, microseconds since 1970. */
CAIRN_EXPORT int64_t cairn_lease_deadline(struct cairn_lease *lease);

/*
 * The holder's own deadline: CLOCK_BOOTTIME microseconds when the last successful acquisition or
 * renewal was sent, plus ttl (for attach: what was left of the document's). Past it the holder
 * must not assume that it holds.
 */
CAIRN_EXPORT int64_t cairn_lease_own_deadline(struct cairn_lease *lease);

/* Lost or released: no write through this handle can succeed any more. */
CAIRN_EXPORT bool cairn_lease_ended(struct cairn_lease *lease);

/* Append the state as last written or seen (canonical JSON) to `out`. As cairn_buffer_append. */
CAIRN_EXPORT int cairn_lease_state(struct cairn_lease *lease, struct cairn_buffer *out)
	CAIRN_MUST_USE;

/*
 * Change the state from outside the lease (FORMAT "cooperative write"; Python:
 * db.cooperative_write): epoch, holder and deadline stay as the fresh document has them.
 * `ret_state` (may be NULL) receives the state that was written. CAIRN_NOT_FOUND without a
 * document, CAIRN_BUSY after 10 attempts, what transform returned, or a failure.
 */
CAIRN_EXPORT int cairn_lease_cooperative_write(struct cairn_store *store, struct cairn_call *call,
					       const char *key, cairn_transform transform,
					       void *context, struct cairn_buffer *ret_state)
	CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
