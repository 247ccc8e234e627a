/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_CREDENTIALS_PRIVATE_H
#define CAIRN_CREDENTIALS_PRIVATE_H

/* What the places that credentials come from share. */

#include <pthread.h>

#include "storage/credentials.h"
#include "storage/http.h"

struct cairn_credential_source {
	char *profile; /* NULL: not named */
	char *region;
	struct cairn_http *http;   /* to services out there */
	struct cairn_http *direct; /* to this machine's, past any proxy */
	/*
	 * Held while credentials are looked for, through requests and programs: they are looked
	 * for once, by one thread. Locked before `lock`.
	 */
	pthread_mutex_t looking;
	pthread_mutex_t lock;
	struct cairn_credentials *current; /* under lock; owned, or NULL */
};

/*
 * One place: fills `credentials` (zeroed). CAIRN_NOT_FOUND: nothing is set up there, look further.
 */
typedef int cairn_credential_place(struct cairn_credential_source *source, struct cairn_call *call,
				   struct cairn_credentials *credentials);

cairn_credential_place cairn_credentials_from_files;
cairn_credential_place cairn_credentials_from_config;
cairn_credential_place cairn_credentials_from_process;
cairn_credential_place cairn_credentials_from_web_identity;
cairn_credential_place cairn_credentials_from_container;
cairn_credential_place cairn_credentials_from_instance;

/* The variable's value; NULL when it is unset or empty. */
const char *cairn_environment(const char *name);

/* AWS_PROFILE or "default" where the source names none. */
const char *cairn_profile_name(const struct cairn_credential_source *source);

/* Copy into a field of `size` bytes. CAIRN_INVALID when it does not fit or holds control bytes. */
int cairn_credentials_set(char *field, size_t size, struct cairn_slice value) CAIRN_MUST_USE;

/*
 * Read the JSON object that processes and services answer; `token_name` is "SessionToken" or
 * "Token". CAIRN_INVALID, described as of `what`, never with its content.
 */
int cairn_credentials_from_json(struct cairn_slice json, const char *token_name, const char *what,
				struct cairn_call *call,
				struct cairn_credentials *credentials) CAIRN_MUST_USE;

/* "2026-01-01T00:00:00Z" as microseconds since 1970 into credentials->expires. CAIRN_INVALID. */
int cairn_credentials_set_expiry(struct cairn_slice text,
				 struct cairn_credentials *credentials) CAIRN_MUST_USE;

/* Release a buffer that held secrets. */
void cairn_secret_release(struct cairn_buffer *buffer);

/* Append a file of at most the buffer's limit. CAIRN_NOT_FOUND, CAIRN_ACCESS, CAIRN_IO, … */
int cairn_secret_read(const char *path, struct cairn_buffer *out) CAIRN_MUST_USE;

#endif
