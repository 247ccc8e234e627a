/* SPDX-License-Identifier: MIT */
#include "lease_steps.h"

#include <time.h>

struct cairn_lease *acquire(struct bucket *bucket, struct cairn_store *store, const char *holder,
			    int64_t ttl)
{
	const struct cairn_lease_options options = { .ttl = ttl, .holder = holder };
	struct cairn_lease *lease = NULL;
	assert_status(&bucket->call,
		      cairn_lease_acquire(store, &bucket->call, "k", &options, &lease), CAIRN_OK);
	assert_non_null(lease);
	return lease;
}

void read_document(struct bucket *bucket, struct cairn_lease_document *document)
{
	struct cairn_call call = { 0 };
	cairn_lease_document_init(document);
	assert_status(&call, cairn_lease_read(bucket->backend, &call, "k", document), CAIRN_OK);
}

void assert_state(struct bucket *bucket, const char *state)
{
	struct cairn_lease_document document;
	read_document(bucket, &document);
	assert_string_equal(document.state.data, state);
	cairn_lease_document_release(&document);
}

void assert_known_state(struct cairn_lease *lease, const char *state)
{
	struct cairn_buffer seen;
	cairn_buffer_init(&seen, CAIRN_JSON_MAX);
	assert_int_equal(cairn_lease_state(lease, &seen), CAIRN_OK);
	assert_string_equal(seen.data, state);
	cairn_buffer_release(&seen);
}

int write_state(struct bucket *bucket, struct cairn_lease *lease, const char *state)
{
	return cairn_lease_write(lease, &bucket->call, cairn_slice_of(state));
}

int increment(struct bucket *bucket, struct cairn_lease *lease)
{
	return cairn_lease_update_state(lease, &bucket->call, transform_increment, NULL);
}

int release(struct bucket *bucket, struct cairn_lease *lease, const char *state)
{
	struct cairn_slice final = cairn_slice_of(state ? state : "");
	return cairn_lease_release(lease, &bucket->call, state ? &final : NULL);
}

void write_into(struct bucket *bucket, const char *state)
{
	struct cairn_call call = { 0 };
	char text[100];
	(void)snprintf(text, sizeof(text), "%s", state);
	assert_status(&call,
		      cairn_lease_cooperative_write(bucket->backend, &call, "k", transform_constant,
						    text, NULL),
		      CAIRN_OK);
}

void assert_lost(struct bucket *bucket, struct cairn_lease *lease)
{
	assert_true(cairn_lease_ended(lease));
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_LOST);
	assert_status(&bucket->call, write_state(bucket, lease, "1"), CAIRN_LOST);
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_LOST);
	assert_status(&bucket->call, release(bucket, lease, NULL), CAIRN_LOST);
	assert_non_null(strstr(bucket->call.error.text, "lease k"));
}

int64_t boot_clock(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
