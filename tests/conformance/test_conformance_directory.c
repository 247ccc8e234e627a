/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where buckets are made, and the present one. */
struct place {
	const char *parent;
	char root[200];
};

static int make(void *context, struct cairn_store **ret_store)
{
	struct place *place = context;
	(void)snprintf(place->root, sizeof(place->root), "%s/cairn-test-XXXXXX", place->parent);
	assert_non_null(mkdtemp(place->root));
	return cairn_filesystem_store_new(place->root, NULL, ret_store, NULL);
}

static int reopen(void *context, struct cairn_store **ret_store)
{
	const struct place *place = context;
	return cairn_filesystem_store_new(place->root, NULL, ret_store, NULL);
}

static int leftover(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	return name[0] == '.' && strncmp(name, ".cairn-", 7) == 0;
}

static int take_away(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	/* No case may leave a temporary file. */
	assert_false(leftover(path));
	return remove(path);
}

static void discard(void *context)
{
	const struct place *place = context;
	assert_int_equal(nftw(place->root, take_away, 64, FTW_DEPTH | FTW_PHYS), 0);
}

static int run(const char *name, const char *parent)
{
	struct place place = { .parent = parent };
	const struct conformance_target target = {
		.name = name,
		.context = &place,
		.make = make,
		.reopen = reopen,
		.discard = discard,
	};
	return conformance_run(&target);
}

int main(void)
{
	const char *disk = getenv("TMPDIR");
	int failed = run("directory", disk ? disk : "/tmp");
	if (access("/dev/shm", W_OK) == 0)
		failed += run("directory on tmpfs", "/dev/shm");
	return failed;
}
