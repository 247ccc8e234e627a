/* SPDX-License-Identifier: MIT */
/* libcairn's calls, as a program uses them. */
#include "bench.h"

#include <stdio.h>

#define SECOND INT64_C(1000000)

static int fail(int status, const struct cairn_error *error)
{
	if (status)
		fprintf(stderr, "bench: %s: %s\n", cairn_status_name(status), error->text);
	return status ? -1 : 0;
}

static int prepare(struct job *job)
{
	struct cairn_error error = { 0 };
	return fail(cairn_store_open(job->where, NULL, &job->store, &error), &error);
}

static const char *key_of(const struct job *job, char key[static 128])
{
	(void)snprintf(key, 128, "%s/w%u", job->tag, job->worker);
	return key;
}

static int claim(struct job *job, unsigned number)
{
	struct cairn_call call = { 0 };
	struct cairn_claim claim;
	char key[128];
	(void)snprintf(key, sizeof(key), "%s/w%u-%06u", job->tag, job->worker, number);
	cairn_claim_init(&claim);
	int status = cairn_claim(job->store, &call, key, cairn_slice_of(BENCH_VALUE), &claim);
	if (!status && !claim.won)
		status = cairn_error_set(&call.error, CAIRN_EXISTS, "%s: lost", key);
	cairn_claim_release(&claim);
	return fail(status, &call.error);
}

static int acquire(struct job *job)
{
	const struct cairn_lease_options options = { .ttl = 60 * SECOND };
	struct cairn_call call = { 0 };
	char key[128];
	return fail(cairn_lease_acquire(job->store, &call, key_of(job, key), &options, &job->lease),
		    &call.error);
}

static int lease(struct job *job, unsigned number)
{
	struct cairn_call call = { 0 };
	(void)number;
	if (acquire(job) != 0)
		return -1;
	int status = cairn_lease_release(job->lease, &call, NULL);
	cairn_lease_free(job->lease);
	return fail(status, &call.error);
}

static int prepare_renew(struct job *job)
{
	return prepare(job) != 0 ? -1 : acquire(job);
}

static int renew(struct job *job, unsigned number)
{
	struct cairn_call call = { 0 };
	(void)number;
	return fail(cairn_lease_renew(job->lease, &call), &call.error);
}

static int increment(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		     struct cairn_error *error)
{
	struct cairn_slice value;
	int64_t number;
	(void)context;
	int status = cairn_json_member(current, "n", &value);
	if (!status)
		status = cairn_json_integer(value, &number);
	if (status)
		return cairn_error_set(error, status, "no number n in the document");
	return cairn_buffer_printf(ret_next, "{\"n\": %lld}", (long long)number + 1);
}

static int doc(struct job *job, unsigned number)
{
	const struct cairn_doc_options options = { .create = cairn_slice_of("{\"n\":0}") };
	struct cairn_call call = { 0 };
	char key[128];
	(void)number;
	return fail(cairn_doc_update(job->store, &call, key_of(job, key), &options, increment, NULL,
				     NULL),
		    &call.error);
}

const struct workload library_workloads[] = {
	{ "library-claim", prepare, claim },
	{ "library-lease", prepare, lease },
	{ "library-renew", prepare_renew, renew },
	{ "library-doc", prepare, doc },
	{ 0 },
};
