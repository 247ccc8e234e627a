/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_CLAIM_H
#define CAIRN_CLAIM_H

#include <cairn/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cairn_claim {
	bool won;
	struct cairn_buffer value; /* owned: the winner's value, as stored (canonical when it is ours) */
	struct cairn_version version;
};

CAIRN_EXPORT void cairn_claim_init(struct cairn_claim *claim);
CAIRN_EXPORT void cairn_claim_release(struct cairn_claim *claim);

/*
 * Claim `key` with the JSON text `value` (any layout, stored canonically): put-if-absent, exactly
 * one caller wins, a loser reads the winner's value (FORMAT "claim"; Python: db.claim). A claim
 * that was deleted in between is tried again, 8 times in all.
 * Returns 0 with ret_claim (initialised) filled, won or lost; CAIRN_INVALID for a bad key or
 * value, CAIRN_BUSY when it would not settle, CAIRN_CORRUPT when the winner's value is no JSON,
 * CAIRN_UNKNOWN, or the store's failure.
 */
CAIRN_EXPORT int cairn_claim(struct cairn_store *store, struct cairn_call *call, const char *key,
			     struct cairn_slice value, struct cairn_claim *ret_claim)
	CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
