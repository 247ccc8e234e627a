/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_CREDENTIALS_H
#define CAIRN_CREDENTIALS_H

/*
 * The keys that requests are signed with, from where the AWS SDKs look: the environment, a web
 * identity token, the shared files with their profiles and credential_process, a container's
 * endpoint, EC2's metadata service. They lie outside core dumps and never in a message.
 */

#include <cairn/store.h>

/* Never changed once it is handed out. */
struct cairn_credentials {
	char access_key[256];
	char secret_key[256];
	char token[8192]; /* "" without a session */
	int64_t expires;  /* microseconds since 1970; 0: never */
	unsigned refs;	  /* private */
};

/* Thread-safe. */
struct cairn_credential_source;

struct cairn_credential_options {
	const char *profile;   /* NULL: AWS_PROFILE, or "default". Named, it goes before the
				  environment */
	const char *region;    /* of the token service */
	const char *ca_bundle; /* as of cairn_http_options */
};

int cairn_credential_source_new(const struct cairn_credential_options *options,
				struct cairn_credential_source **ret_source,
				struct cairn_error *error) CAIRN_MUST_USE;

/* NULL is fine. */
void cairn_credential_source_free(struct cairn_credential_source *source);

/*
 * Credentials that are good now; may ask a service, within call->deadline. The caller unrefs them.
 * Returns 0, CAIRN_ACCESS when there are none, CAIRN_INVALID where what is set up is wrong, or why
 * a service did not give them.
 */
int cairn_credentials_get(struct cairn_credential_source *source, struct cairn_call *call,
			  struct cairn_credentials **ret_credentials) CAIRN_MUST_USE;

void cairn_credentials_unref(struct cairn_credentials *credentials);

/*
 * A server refused `used` as expired or unknown: look for new ones. True: there are others now, and
 * the request may be sent again.
 */
bool cairn_credentials_renew(struct cairn_credential_source *source, struct cairn_call *call,
			     const struct cairn_credentials *used) CAIRN_MUST_USE;

/*
 * The value of `name` in the config file's section of `profile` (NULL: as above), malloc; NULL when
 * there is none.
 */
char *cairn_profile_setting(const char *profile, const char *name);

#endif
