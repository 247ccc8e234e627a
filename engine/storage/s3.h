/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_S3_H
#define CAIRN_S3_H

/* The bucket on Amazon S3 and servers that speak it with conditional writes. */

#include <cairn/store.h>

struct cairn_s3_options {
	const char *bucket;
	const char *prefix;	  /* of every key, without its last slash; NULL: none */
	const char *endpoint_url; /* http(s)://HOST[:PORT]; NULL: Amazon's of the region */
	const char *region;	  /* NULL: us-east-1, and what the server says */
	const char *profile;	  /* as of cairn_credential_options */
	const char *ca_bundle;	  /* as of cairn_http_options */
	bool virtual_host; /* the bucket as part of the host's name. Amazon's: always, if it can be
			    */
};

/*
 * The store alone: it sends each request once and answers as the server does. No request is made
 * here. Returns 0, CAIRN_INVALID, CAIRN_NO_MEMORY, described. options NULL: defaults.
 */
int cairn_s3_store_new(const struct cairn_s3_options *s3, const struct cairn_store_options *options,
		       struct cairn_store **ret_store, struct cairn_error *error) CAIRN_MUST_USE;

/*
 * The same of "s3://bucket/prefix?endpoint_url=…&region=…&profile=…&ca_bundle=…&addressing=…", with
 * %XX in each part, or, NULL, of CAIRNDB_S3_BUCKET and CAIRNDB_STORAGE_PREFIX. What neither says is
 * taken from CAIRNDB_S3_ENDPOINT_URL, _S3_REGION, then AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
 * AWS_REGION, AWS_DEFAULT_REGION, AWS_CA_BUNDLE, then the profile in the config file.
 */
int cairn_s3_store_open(const char *url, const struct cairn_store_options *options,
			struct cairn_store **ret_store, struct cairn_error *error) CAIRN_MUST_USE;

/*
 * Find out what the server of the s3 store at the bottom of `store` does with etags and conditional
 * deletes, and let the stores say so: whether it wants an etag in quotes, and
 * capabilities.delete_if_match. To be called before other threads use the store. A store that is
 * not s3: nothing happens. Returns 0, CAIRN_UNSUPPORTED with the failed check, or the failure.
 */
int cairn_s3_probe(struct cairn_store *store, struct cairn_call *call) CAIRN_MUST_USE;

#endif
