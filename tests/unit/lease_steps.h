/* SPDX-License-Identifier: MIT */
#ifndef TEST_LEASE_STEPS_H
#define TEST_LEASE_STEPS_H

#include "bucket.h"

/* Steps of the tests of leases, which all use the key `k`. */

#define HOUR   ((int64_t)3600 * 1000000)
#define PAST   "\"2001-01-01T00:00:00.000000Z\""
#define FUTURE "\"2999-01-01T00:00:00.000000Z\""

/* A lease document with these members, as JSON texts. */
#define DOCUMENT(deadline, epoch, holder, state)                                                   \
	"{\"deadline_at\":" deadline ",\"epoch\":" epoch ",\"holder\":" holder ",\"state\":" state \
	"}"

struct cairn_lease *acquire(struct bucket *bucket, struct cairn_store *store, const char *holder,
			    int64_t ttl);

/* The document as it stands; `document` is initialised here. */
void read_document(struct bucket *bucket, struct cairn_lease_document *document);

/* The state in the document is `state`; and the one that the handle knows. */
void assert_state(struct bucket *bucket, const char *state);
void assert_known_state(struct cairn_lease *lease, const char *state);

/* The guarded writes, with the bucket's call. `state` NULL: kept. */
int write_state(struct bucket *bucket, struct cairn_lease *lease, const char *state);
int increment(struct bucket *bucket, struct cairn_lease *lease);
int release(struct bucket *bucket, struct cairn_lease *lease, const char *state);

/* A cooperative write from outside. */
void write_into(struct bucket *bucket, const char *state);

/* Every write through the handle is refused, for good. */
void assert_lost(struct bucket *bucket, struct cairn_lease *lease);

/* CLOCK_BOOTTIME in microseconds. */
int64_t boot_clock(void);

#endif
