/* SPDX-License-Identifier: MIT */
#ifndef STORE_DIRECTORY_H
#define STORE_DIRECTORY_H

/* A directory store in a private directory, for the tests of its own things. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cairn/store.h>

#include <sys/stat.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct directory {
	char root[64];
	int fd; /* of root */
	struct cairn_store *store;
	struct cairn_call call;
};

static inline int directory_set_up(void **state)
{
	struct directory *directory = calloc(1, sizeof(*directory));
	assert_non_null(directory);
	(void)snprintf(directory->root, sizeof(directory->root), "/tmp/cairn-test-XXXXXX");
	assert_non_null(mkdtemp(directory->root));
	assert_int_equal(cairn_filesystem_store_new(directory->root, NULL, &directory->store, NULL),
			 0);
	directory->fd = open(directory->root, O_RDONLY | O_DIRECTORY);
	assert_true(directory->fd >= 0);
	*state = directory;
	return 0;
}

static inline int directory_take_away(const char *path, const struct stat *status, int type,
				      struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

static inline int directory_tear_down(void **state)
{
	struct directory *directory = *state;
	cairn_store_free(directory->store);
	(void)close(directory->fd);
	(void)nftw(directory->root, directory_take_away, 64, FTW_DEPTH | FTW_PHYS);
	free(directory);
	return 0;
}

static inline int put(struct directory *directory, const char *key, const char *text)
{
	return cairn_store_put(directory->store, &directory->call, key, cairn_slice_of(text), NULL,
			       NULL);
}

static inline int put_if_absent(struct directory *directory, const char *key, const char *text)
{
	const struct cairn_put_options options = { .if_absent = true };
	return cairn_store_put(directory->store, &directory->call, key, cairn_slice_of(text),
			       &options, NULL);
}

/* The status of a get; its text must be `expected` where that is not NULL. */
static inline int get(struct directory *directory, const char *key, const char *expected)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(directory->store, &directory->call, key, NULL, &object);
	if (!status && expected)
		assert_string_equal(object.data.data, expected);
	cairn_object_release(&object);
	return status;
}

/* Is there a file of this name, whatever its kind? */
static inline bool stands(const struct directory *directory, const char *path)
{
	struct stat status;
	return fstatat(directory->fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void write_file(const struct directory *directory, const char *path, const char *text)
{
	int file = openat(directory->fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	assert_int_equal(close(file), 0);
}

#endif
