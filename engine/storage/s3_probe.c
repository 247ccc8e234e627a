/* SPDX-License-Identifier: MIT */
#include "storage/s3.h"

#include "storage/s3_private.h"
#include "storage/store_private.h"

/*
 * This is done on the s3 store itself: the retries above it would take a server that refuses the
 * right etag for one that is busy. So a failure that may pass is met here, with another key.
 */
#define ATTEMPTS 5
#define PAUSE	 ((int64_t)50 * 1000)

struct probe {
	struct cairn_s3_store *s3;
	struct cairn_call *call;
	char key[64];
	char etag[CAIRN_ETAG_SIZE]; /* of what is there now */
};

static int put(struct probe *probe, const char *text, const char *if_match)
{
	const struct cairn_put_options options = {
		.if_match = if_match,
		.if_absent = !if_match,
	};
	struct cairn_version version;
	int status = cairn_store_put(&probe->s3->store, probe->call, probe->key,
				     cairn_slice_of(text), &options, &version);
	if (!status)
		memcpy(probe->etag, version.etag, sizeof(probe->etag));
	return status;
}

/* The etag as it is, or in quotes: the form that a compare-and-swap succeeds with. */
static int find_form(struct probe *probe)
{
	int status = CAIRN_CONFLICT;
	for (int quoted = 0; quoted <= 1 && status == CAIRN_CONFLICT; quoted++) {
		probe->s3->quoted = quoted;
		char etag[CAIRN_ETAG_SIZE];
		memcpy(etag, probe->etag, sizeof(etag));
		status = put(probe, quoted ? "quoted" : "bare", etag);
	}
	/* A server that calls an etag in the wrong form a bad argument is refused by that. */
	if (status == CAIRN_CONFLICT || status == CAIRN_INVALID || status == CAIRN_UNSUPPORTED)
		return cairn_error_set(&probe->call->error, CAIRN_UNSUPPORTED,
				       "%s does not keep its preconditions: compare-and-swap with "
				       "the right etag was refused. Writing through it would lose "
				       "data; use another store, or mount read-only",
				       probe->s3->store.name);
	return status;
}

/* Is a delete with a wrong etag refused, and the object still there? */
static int find_deletes(struct probe *probe, bool *ret_conditional)
{
	const struct cairn_delete_options wrong = { .if_match =
							    "00000000000000000000000000000000" };
	const struct cairn_get_options version_only = { .no_data = true };
	struct cairn_object object;
	*ret_conditional = false;
	probe->s3->store.capabilities.delete_if_match = true;
	int status = cairn_store_delete(&probe->s3->store, probe->call, probe->key, &wrong);
	probe->s3->store.capabilities.delete_if_match = false;
	if (status == CAIRN_OK || status == CAIRN_INVALID || status == CAIRN_UNSUPPORTED)
		return CAIRN_OK;
	if (status != CAIRN_CONFLICT)
		return status;
	cairn_object_init(&object);
	status =
		cairn_store_get(&probe->s3->store, probe->call, probe->key, &version_only, &object);
	cairn_object_release(&object);
	*ret_conditional = !status;
	return status == CAIRN_NOT_FOUND ? CAIRN_OK : status;
}

static int probe_once(struct cairn_s3_store *s3, struct cairn_call *call, bool *ret_conditional)
{
	struct probe probe = { .s3 = s3, .call = call };
	uint64_t random[2];
	arc4random_buf(random, sizeof(random));
	(void)snprintf(probe.key, sizeof(probe.key), "cairnfs-probe-%016llx%016llx",
		       (unsigned long long)random[0], (unsigned long long)random[1]);
	int status = put(&probe, "first", NULL);
	if (!status)
		status = find_form(&probe);
	if (!status)
		status = find_deletes(&probe, ret_conditional);
	/* A key of nobody else: what failed may have left it. */
	struct cairn_error error = call->error;
	int deleted = cairn_store_delete(&s3->store, call, probe.key, NULL);
	if (status || !deleted)
		call->error = error;
	return status ? status : deleted;
}

static bool may_pass(int status)
{
	return status == CAIRN_UNKNOWN || status == CAIRN_TIMEOUT || status == CAIRN_IO ||
	       status == CAIRN_BUSY || status == CAIRN_EXISTS || status == CAIRN_NOT_FOUND;
}

int cairn_s3_probe(struct cairn_store *store, struct cairn_call *call)
{
	struct cairn_store *bottom = store;
	while (bottom->below)
		bottom = bottom->below;
	if (bottom->ops != &cairn_s3_ops)
		return CAIRN_OK;
	struct cairn_s3_store *s3 = (struct cairn_s3_store *)bottom;
	bool conditional = false;
	int status;
	for (int attempt = 1;; attempt++) {
		status = probe_once(s3, call, &conditional);
		if (!may_pass(status) || attempt == ATTEMPTS)
			break;
		int64_t pause = PAUSE * attempt > call->retry_after ? PAUSE * attempt
								    : call->retry_after;
		struct cairn_error error = call->error;
		call->retry_after = 0;
		if (cairn_call_sleep(call, cairn_clock() + pause)) {
			call->error = error;
			break;
		}
	}
	if (status)
		return status;
	for (; store; store = store->below)
		store->capabilities.delete_if_match = conditional;
	return CAIRN_OK;
}
