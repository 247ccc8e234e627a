/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <stdlib.h>

#include "storage/s3.h"

/* The backend that the environment of the Python package names (its storage/config.py). */
static int from_environment(const struct cairn_store_options *options,
			    struct cairn_store **ret_store, struct cairn_error *error)
{
	const char *type = getenv("CAIRNDB_STORAGE_TYPE");
	if (!type)
		type = "filesystem";
	if (strcmp(type, "s3") == 0)
		return cairn_s3_store_open(NULL, options, ret_store, error);
	if (strcmp(type, "azure") == 0 || strcmp(type, "gcs") == 0)
		return cairn_error_set(error, CAIRN_UNSUPPORTED,
				       "CAIRNDB_STORAGE_TYPE=%s: only filesystem and s3 can be "
				       "opened",
				       type);
	if (strcmp(type, "filesystem") != 0)
		return cairn_error_set(error, CAIRN_INVALID,
				       "CAIRNDB_STORAGE_TYPE=%s: no such type of storage", type);
	const char *path = getenv("CAIRNDB_STORAGE_PATH");
	if (!path || !*path)
		return cairn_error_set(error, CAIRN_INVALID,
				       "no bucket: set CAIRNDB_STORAGE_PATH to its directory");
	return cairn_filesystem_store_new(path, options, ret_store, error);
}

/* The backend of a path or a URL. */
static int from_text(const char *where, const struct cairn_store_options *options,
		     struct cairn_store **ret_store, struct cairn_error *error)
{
	if (!*where)
		return cairn_error_set(error, CAIRN_INVALID, "no bucket: its name is empty");
	size_t scheme = strspn(where, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
	if (scheme == 0 || strncmp(where + scheme, "://", 3) != 0)
		return cairn_filesystem_store_new(where, options, ret_store, error);
	const char *rest = where + scheme + 3;
	if (scheme == 2 && strncmp(where, "s3", 2) == 0)
		return cairn_s3_store_open(where, options, ret_store, error);
	if (scheme != 4 || strncmp(where, "file", 4) != 0)
		return cairn_error_set(
			error, CAIRN_UNSUPPORTED,
			"%s: %.*s buckets cannot be opened; a directory and s3:// can", where,
			(int)scheme, where);
	if (*rest != '/' || strchr(rest, '%'))
		return cairn_error_set(error, CAIRN_INVALID,
				       "%s: write a plain path, or file:///PATH without %%XX",
				       where);
	return cairn_filesystem_store_new(rest, options, ret_store, error);
}

int cairn_store_open(const char *where, const struct cairn_store_options *options,
		     struct cairn_store **ret_store, struct cairn_error *error)
{
	struct cairn_store *store = NULL, *traced, *retried;
	int status = where ? from_text(where, options, &store, error)
			   : from_environment(options, &store, error);
	if (status)
		return status;
	if (cairn_trace_store_new(store, &traced)) {
		(void)cairn_error_set(error, CAIRN_NO_MEMORY, "%s: out of memory", store->name);
		cairn_store_free(store);
		return CAIRN_NO_MEMORY;
	}
	if (cairn_retry_store_new(traced, &retried)) {
		(void)cairn_error_set(error, CAIRN_NO_MEMORY, "%s: out of memory", store->name);
		cairn_store_free(traced);
		return CAIRN_NO_MEMORY;
	}
	*ret_store = retried;
	return CAIRN_OK;
}
