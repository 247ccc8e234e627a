/* SPDX-License-Identifier: MIT */
#include <cairn/claim.h>

#include <cairn/json.h>
#include <cairn/key.h>

#include "coordination/attempts.h"
#include "coordination/text.h"

#define CLAIM_ATTEMPTS 8

void cairn_claim_init(struct cairn_claim *claim)
{
	*claim = (struct cairn_claim){ 0 };
	cairn_buffer_init(&claim->value, CAIRN_JSON_MAX);
}

void cairn_claim_release(struct cairn_claim *claim)
{
	cairn_buffer_release(&claim->value);
	cairn_claim_init(claim);
}

/* Fill `claim`, which takes the memory of `value`. */
static void claim_settle(struct cairn_claim *claim, bool won, struct cairn_buffer *value,
			 const struct cairn_version *version)
{
	cairn_buffer_release(&claim->value);
	claim->won = won;
	claim->value = *value;
	claim->version = *version;
	cairn_buffer_init(value, CAIRN_JSON_MAX);
}

/* The put said that somebody was first: who? */
static int claim_lose(struct cairn_store *store, struct cairn_call *call, const char *key,
		      struct cairn_attempts *attempts, struct cairn_claim *claim)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_text_get(store, call, "claim", key, &object);
	if (status == CAIRN_NOT_FOUND)
		attempts->again = true; /* deleted in between */
	if (!status)
		status = cairn_text_check("claim", key, cairn_buffer_slice(&object.data),
					  &call->error);
	if (!status)
		claim_settle(claim, false, &object.data, &object.version);
	cairn_object_release(&object);
	return status;
}

static int claim_try(struct cairn_store *store, struct cairn_call *call, const char *key,
		     struct cairn_buffer *value, struct cairn_attempts *attempts,
		     struct cairn_claim *claim)
{
	const struct cairn_put_options options = { .if_absent = true, .immutable = true };
	struct cairn_version version;
	int status =
		cairn_store_put(store, call, key, cairn_buffer_slice(value), &options, &version);
	if (!status)
		claim_settle(claim, true, value, &version);
	if (status == CAIRN_EXISTS)
		return claim_lose(store, call, key, attempts, claim);
	return cairn_attempts_answer(attempts, status);
}

int cairn_claim(struct cairn_store *store, struct cairn_call *call, const char *key,
		struct cairn_slice value, struct cairn_claim *ret_claim)
{
	struct cairn_buffer text;
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	int status = cairn_key_check(key, &call->error);
	if (!status)
		status = cairn_text_canonical("claim", key, value, &text, &call->error);
	if (status)
		goto out;

	struct cairn_attempts attempts;
	cairn_attempts_begin(&attempts, store, call, "claim", key, CLAIM_ATTEMPTS);
	do {
		status = cairn_attempts_next(&attempts);
		if (!status)
			status = claim_try(store, call, key, &text, &attempts, ret_claim);
	} while (attempts.again);
	cairn_attempts_end(&attempts);
out:
	cairn_buffer_release(&text);
	return status;
}
