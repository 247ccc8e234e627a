/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <stdlib.h>

#include "storage/s3.h"

/* A probe under way. */
struct probe {
	struct cairn_store *store;
	struct cairn_call *call;
	char key[64];
	char etag[CAIRN_ETAG_SIZE]; /* of what is there now */
};

static int refuse(const struct probe *probe, const char *what)
{
	return cairn_error_set(&probe->call->error, CAIRN_UNSUPPORTED,
			       "%s does not keep its preconditions: %s. Writing through it would "
			       "lose data; use another store, or mount read-only",
			       probe->store->name, what);
}

/* A put that must end with `expected`; any other answer is `fault`. */
static int expect_put(struct probe *probe, const char *text, const char *if_match, int expected,
		      const char *fault)
{
	const struct cairn_put_options options = {
		.if_match = if_match,
		.if_absent = !if_match,
	};
	struct cairn_version version;
	int status = cairn_store_put(probe->store, probe->call, probe->key, cairn_slice_of(text),
				     &options, &version);
	if (status == CAIRN_OK)
		memcpy(probe->etag, version.etag, sizeof(probe->etag));
	if (status == expected)
		return CAIRN_OK;
	if (status == CAIRN_OK || status == CAIRN_EXISTS || status == CAIRN_CONFLICT)
		return refuse(probe, fault);
	return status;
}

/* What is there must be `text`, under the etag that its put answered. */
static int expect_content(struct probe *probe, const char *text, const char *fault)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(probe->store, probe->call, probe->key, NULL, &object);
	if (status == CAIRN_NOT_FOUND ||
	    (!status &&
	     (!cairn_slice_equal(cairn_buffer_slice(&object.data), cairn_slice_of(text)) ||
	      strcmp(object.version.etag, probe->etag) != 0)))
		status = refuse(probe, fault);
	cairn_object_release(&object);
	return status;
}

static int check_puts(struct probe *probe)
{
	/* Of the form of a content etag, which no version here has. */
	static const char wrong[] = "00000000000000000000000000000000";
	char first[CAIRN_ETAG_SIZE];
	int status = expect_put(probe, "1", NULL, CAIRN_OK,
				"put-if-absent of an absent key was refused");
	if (!status)
		status = expect_put(probe, "2", NULL, CAIRN_EXISTS,
				    "put-if-absent overwrote an object");
	if (!status)
		status = expect_content(probe, "1", "put-if-absent changed an object");
	if (!status)
		status = expect_put(probe, "3", wrong, CAIRN_CONFLICT,
				    "compare-and-swap with a wrong etag overwrote an object");
	if (status)
		return status;
	memcpy(first, probe->etag, sizeof(first));
	status = expect_put(probe, "4", first, CAIRN_OK,
			    "compare-and-swap with the right etag was refused");
	if (!status)
		status = expect_put(probe, "5", first, CAIRN_CONFLICT,
				    "compare-and-swap with an old etag overwrote an object");
	if (!status)
		status = expect_content(probe, "4", "compare-and-swap left other content");
	return status;
}

static int check_deletes(struct probe *probe)
{
	struct cairn_delete_options options = { .if_match = "00000000000000000000000000000000" };
	bool conditional = probe->store->capabilities.delete_if_match;
	int status = CAIRN_CONFLICT;
	if (conditional)
		status = cairn_store_delete(probe->store, probe->call, probe->key, &options);
	if (status == CAIRN_OK)
		return refuse(probe, "a delete with a wrong etag deleted the object");
	if (status != CAIRN_CONFLICT)
		return status;
	options.if_match = conditional ? probe->etag : NULL;
	status = cairn_store_delete(probe->store, probe->call, probe->key, &options);
	if (status == CAIRN_CONFLICT)
		return refuse(probe, "a delete with the right etag was refused");
	if (status)
		return status;
	struct cairn_object object;
	cairn_object_init(&object);
	status = cairn_store_get(probe->store, probe->call, probe->key, NULL, &object);
	cairn_object_release(&object);
	if (status == CAIRN_NOT_FOUND)
		return CAIRN_OK;
	return status ? status : refuse(probe, "a deleted object is still there");
}

int cairn_store_probe(struct cairn_store *store, struct cairn_call *call)
{
	struct probe probe = { .store = store, .call = call };
	uint64_t random[2];
	arc4random_buf(random, sizeof(random));
	(void)snprintf(probe.key, sizeof(probe.key), "cairnfs-probe-%016llx%016llx",
		       (unsigned long long)random[0], (unsigned long long)random[1]);
	int status = cairn_s3_probe(store, call);
	if (status)
		return status;
	status = check_puts(&probe);
	if (!status)
		status = check_deletes(&probe);
	if (status) {
		/* The failure is what counts; a key that cannot be deleted cannot be helped. */
		struct cairn_error error = call->error;
		(void)!cairn_store_delete(store, call, probe.key, NULL);
		call->error = error;
	} else {
		call->error = (struct cairn_error){ 0 };
	}
	cairn_filesystem_forget(store, probe.key);
	return status;
}
