/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/s3_private.h"

/* test_conformance_s3 NAME ENDPOINT_URL [folder]: the suite on a server, a bucket for each case. */
struct place {
	const char *endpoint_url;
	char bucket[64];
	unsigned made;
};

static int open_bucket(const struct place *place, struct cairn_store **ret_store)
{
	const struct cairn_s3_options options = { .bucket = place->bucket,
						  .endpoint_url = place->endpoint_url };
	struct cairn_error error = { 0 };
	int status = cairn_s3_store_new(&options, NULL, ret_store, &error);
	if (status)
		print_error("%s\n", error.text);
	return status;
}

/* Only tests make buckets. */
static int create_bucket(struct cairn_store *store, struct cairn_call *call)
{
	const struct cairn_s3_request request = { .what = "a bucket",
						  .method = "PUT",
						  .max_body = 1000 };
	struct cairn_s3_store *s3 = (struct cairn_s3_store *)store;
	struct cairn_s3_answer answer;
	cairn_s3_answer_init(&answer);
	int status = cairn_s3_send(s3, call, &request, &answer);
	if (!status && !cairn_s3_is_good(&answer))
		status = cairn_s3_failure(s3, call, &request, &answer);
	cairn_s3_answer_release(&answer);
	return status;
}

static int make(void *context, struct cairn_store **ret_store)
{
	struct place *place = context;
	struct cairn_call call = { 0 };
	(void)snprintf(place->bucket, sizeof(place->bucket), "cairn-%d-%u", (int)getpid(),
		       place->made++);
	int status = open_bucket(place, ret_store);
	if (!status)
		status = create_bucket(*ret_store, &call);
	if (!status)
		status = cairn_s3_probe(*ret_store, &call);
	if (status)
		print_error("%s\n", call.error.text);
	return status;
}

static int reopen(void *context, struct cairn_store **ret_store)
{
	struct cairn_call call = { 0 };
	int status = open_bucket(context, ret_store);
	return status ? status : cairn_s3_probe(*ret_store, &call);
}

int main(int count, char **arguments)
{
	struct place place = { 0 };
	if (count < 3) {
		(void)fprintf(stderr, "usage: test_conformance_s3 NAME ENDPOINT_URL [folder]\n");
		return 2;
	}
	place.endpoint_url = arguments[2];
	const struct conformance_target target = {
		.name = arguments[1],
		.context = &place,
		.make = make,
		.reopen = reopen,
		/* Last-Modified has whole seconds, and a put's answer has none. */
		.clock_slack = 2000000,
		.folder = count > 3 && strcmp(arguments[3], "folder") == 0,
	};
	return conformance_run(&target);
}
