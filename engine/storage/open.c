/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <stdlib.h>

/* The directory that the environment of the Python package names (its storage/config.py). */
static int from_environment(const char **ret_path, struct cairn_error *error)
{
	const char *type = getenv("CAIRNDB_STORAGE_TYPE");
	if (!type)
		type = "filesystem";
	if (strcmp(type, "s3") == 0 || strcmp(type, "azure") == 0 || strcmp(type, "gcs") == 0)
		return cairn_error_set(error, CAIRN_UNSUPPORTED,
				       "CAIRNDB_STORAGE_TYPE=%s: only filesystem can be opened",
				       type);
	if (strcmp(type, "filesystem") != 0)
		return cairn_error_set(error, CAIRN_INVALID,
				       "CAIRNDB_STORAGE_TYPE=%s: no such type of storage", type);
	const char *path = getenv("CAIRNDB_STORAGE_PATH");
	if (!path || !*path)
		return cairn_error_set(error, CAIRN_INVALID,
				       "no bucket: set CAIRNDB_STORAGE_PATH to its directory");
	*ret_path = path;
	return CAIRN_OK;
}

/* The directory behind a path or a file URL. */
static int from_text(const char *where, const char **ret_path, struct cairn_error *error)
{
	if (!*where)
		return cairn_error_set(error, CAIRN_INVALID, "no bucket: its name is empty");
	size_t scheme = strspn(where, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
	if (scheme == 0 || strncmp(where + scheme, "://", 3) != 0) {
		*ret_path = where;
		return CAIRN_OK;
	}
	const char *rest = where + scheme + 3;
	if (scheme != 4 || strncmp(where, "file", 4) != 0)
		return cairn_error_set(error, CAIRN_UNSUPPORTED,
				       "%s: %.*s buckets cannot be opened; only a directory can",
				       where, (int)scheme, where);
	if (*rest != '/' || strchr(rest, '%'))
		return cairn_error_set(error, CAIRN_INVALID,
				       "%s: write a plain path, or file:///PATH without %%XX",
				       where);
	*ret_path = rest;
	return CAIRN_OK;
}

int cairn_store_open(const char *where, const struct cairn_store_options *options,
		     struct cairn_store **ret_store, struct cairn_error *error)
{
	const char *path = NULL;
	int status = where ? from_text(where, &path, error) : from_environment(&path, error);
	if (status)
		return status;
	struct cairn_store *store = NULL;
	status = cairn_filesystem_store_new(path, options, &store, error);
	if (status)
		return status;
	struct cairn_store *traced, *retried;
	if (cairn_trace_store_new(store, &traced)) {
		cairn_store_free(store);
		return cairn_error_set(error, CAIRN_NO_MEMORY, "%s: out of memory", path);
	}
	if (cairn_retry_store_new(traced, &retried)) {
		cairn_store_free(traced);
		return cairn_error_set(error, CAIRN_NO_MEMORY, "%s: out of memory", path);
	}
	*ret_store = retried;
	return CAIRN_OK;
}
