/* SPDX-License-Identifier: MIT */
#include <cairn/lease.h>

#include <cairn/json.h>
#include <cairn/key.h>

#include "coordination/attempts.h"
#include "coordination/lease_document.h"
#include "coordination/text.h"

/* Writes into a lease document by who does not hold the lease. */

#define COOPERATIVE_ATTEMPTS 10

static int cooperative_try(struct cairn_store *store, struct cairn_call *call,
			   cairn_transform transform, void *context,
			   struct cairn_attempts *attempts, struct cairn_buffer *state)
{
	struct cairn_lease_members members;
	struct cairn_buffer text;
	cairn_lease_members_init(&members);
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	int status = cairn_lease_members_read(store, call, attempts->key, &members);
	if (status)
		goto out;
	cairn_buffer_clear(state);
	status = cairn_text_transform(attempts->what, attempts->key, transform, context,
				      members.state, state, &call->error);
	if (status)
		goto out;
	members.state = cairn_buffer_slice(state);
	status = cairn_lease_members_encode(attempts->key, &members, &text, &call->error);
	if (status)
		goto out;
	const struct cairn_put_options options = { .if_match = members.version.etag };
	status = cairn_store_put(store, call, attempts->key, cairn_buffer_slice(&text), &options,
				 NULL);
	(void)cairn_attempts_answer(attempts, status);
out:
	cairn_buffer_release(&text);
	cairn_lease_members_release(&members);
	return status;
}

int cairn_lease_cooperative_write(struct cairn_store *store, struct cairn_call *call,
				  const char *key, cairn_transform transform, void *context,
				  struct cairn_buffer *ret_state)
{
	int status = cairn_key_check(key, &call->error);
	if (status)
		return status;
	struct cairn_buffer state;
	cairn_buffer_init(&state, CAIRN_JSON_MAX);
	struct cairn_attempts attempts;
	cairn_attempts_begin(&attempts, store, call, "write into lease", key, COOPERATIVE_ATTEMPTS);
	do {
		status = cairn_attempts_next(&attempts);
		if (!status)
			status =
				cooperative_try(store, call, transform, context, &attempts, &state);
	} while (attempts.again);
	cairn_attempts_end(&attempts);
	if (!status && ret_state) {
		cairn_buffer_release(ret_state);
		*ret_state = state;
		cairn_buffer_init(&state, CAIRN_JSON_MAX);
	}
	cairn_buffer_release(&state);
	return status;
}
