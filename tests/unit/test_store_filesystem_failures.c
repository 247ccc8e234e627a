/* SPDX-License-Identifier: MIT */
#include "store_directory.h"

#include <sys/mount.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>

/* Which call of fsync fails, counted from 1; 0: none. The linker sends every fsync here. */
static int failing_fsync;

/* So often an fsync finds the directories d and other removed, if they are empty. */
static int removals;
static int removing_fd;

int __real_fsync(int file);
int __wrap_fsync(int file);

int __wrap_fsync(int file)
{
	if (failing_fsync && --failing_fsync == 0) {
		errno = EIO;
		return -1;
	}
	if (removals) {
		removals--;
		(void)unlinkat(removing_fd, "d/e", AT_REMOVEDIR);
		(void)unlinkat(removing_fd, "d", AT_REMOVEDIR);
		(void)unlinkat(removing_fd, "other", AT_REMOVEDIR);
	}
	return __real_fsync(file);
}

static size_t temporary_files(const struct directory *directory)
{
	size_t count = 0;
	DIR *stream = opendir(directory->root);
	assert_non_null(stream);
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream))
		count += strncmp(entry->d_name, ".cairn-", 7) == 0;
	(void)closedir(stream);
	return count;
}

static void test_filesystem_file_cannot_be_synced(void **state)
{
	struct directory *directory = *state;
	assert_int_equal(put(directory, "k", "old"), 0);

	failing_fsync = 1;
	assert_int_equal(put(directory, "k", "new"), CAIRN_IO);

	assert_int_equal(get(directory, "k", "old"), 0);
	assert_int_equal(temporary_files(directory), 0);
}

/* Behind the rename the content stands, but a crash may undo it: neither success nor failure. */
static void test_filesystem_directory_cannot_be_synced(void **state)
{
	struct directory *directory = *state;

	failing_fsync = 2;
	assert_int_equal(put(directory, "k", "new"), CAIRN_UNKNOWN);
	assert_int_equal(get(directory, "k", "new"), 0);
	failing_fsync = 1;
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "k", NULL),
			 CAIRN_UNKNOWN);
	failing_fsync = 1;
	assert_int_equal(cairn_store_prefix_make(directory->store, &directory->call, "d/"),
			 CAIRN_UNKNOWN);

	assert_int_equal(temporary_files(directory), 0);
}

static void test_filesystem_retry_settles_a_failed_sync(void **state)
{
	struct directory *directory = *state;
	struct cairn_store *retried;
	struct cairn_version version;
	const struct cairn_put_options options = { .if_absent = true };
	assert_int_equal(cairn_retry_store_new(directory->store, &retried), 0);
	directory->store = retried;

	failing_fsync = 2;
	assert_int_equal(cairn_store_put(retried, &directory->call, "k", cairn_slice_of("new"),
					 &options, &version),
			 0);

	assert_int_equal(get(directory, "k", "new"), 0);
	assert_int_equal(put_if_absent(directory, "k", "other"), CAIRN_EXISTS);
}

static void test_filesystem_root_deleted(void **state)
{
	struct directory *directory = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	assert_int_equal(unlinkat(directory->fd, "log", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(directory->fd, "snapshots", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(directory->root), 0);

	assert_int_equal(get(directory, "k", NULL), CAIRN_IO);
	assert_non_null(strstr(directory->call.error.text, "deleted"));
	assert_int_equal(get(directory, "a/k", NULL), CAIRN_IO);
	assert_int_equal(put(directory, "k", "x"), CAIRN_IO);
	assert_int_equal(put(directory, "a/k", "x"), CAIRN_IO);
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "k", NULL),
			 CAIRN_IO);
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "a/k", NULL),
			 CAIRN_IO);
	assert_int_equal(cairn_store_list(directory->store, &directory->call, "", NULL, &listing),
			 CAIRN_IO);
	assert_int_equal(cairn_store_list(directory->store, &directory->call, "a/", NULL, &listing),
			 CAIRN_IO);
	assert_int_equal(cairn_store_prefix_exists(directory->store, &directory->call, ""),
			 CAIRN_IO);
	assert_int_equal(cairn_store_prefix_exists(directory->store, &directory->call, "a/"),
			 CAIRN_IO);
	assert_int_equal(cairn_store_prefix_make(directory->store, &directory->call, "a/"),
			 CAIRN_IO);
	cairn_listing_release(&listing);
}

static void test_filesystem_disk_full(void **state)
{
	struct directory *directory = *state;
	if (geteuid() != 0)
		skip();
	char root[80];
	(void)snprintf(root, sizeof(root), "%s/full", directory->root);
	assert_int_equal(mkdir(root, 0777), 0);
	if (mount("tmpfs", root, "tmpfs", 0, "size=256k") != 0)
		skip();
	struct directory full = { .fd = open(root, O_RDONLY | O_DIRECTORY) };
	(void)snprintf(full.root, sizeof(full.root), "%.63s", root);
	assert_int_equal(cairn_filesystem_store_new(root, NULL, &full.store, NULL), 0);
	assert_int_equal(put(&full, "k", "old"), 0);
	char *data = calloc(1, 512 * 1024);
	const struct cairn_slice big = { data, 512 * 1024 };

	int status = cairn_store_put(full.store, &full.call, "k", big, NULL, NULL);

	int after = get(&full, "k", "old");
	size_t left = temporary_files(&full);
	int again = put(&full, "k", "new");
	int deleted = cairn_store_delete(full.store, &full.call, "k", NULL);
	free(data);
	cairn_store_free(full.store);
	(void)close(full.fd);
	assert_int_equal(umount(root), 0);
	assert_int_equal(status, CAIRN_NO_SPACE);
	assert_int_equal(after, 0);
	assert_int_equal(left, 0);
	assert_int_equal(again, 0);
	assert_int_equal(deleted, 0);
}

/* Run `act` as a user without rights; its result. Root reads and writes everything otherwise. */
static int as_nobody(struct directory *directory, int (*act)(struct directory *directory))
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(99);
		_exit(-act(directory));
	}
	int how;
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFEXITED(how));
	return -WEXITSTATUS(how);
}

static int put_new(struct directory *directory)
{
	return put(directory, "new", "x");
}

static int put_known(struct directory *directory)
{
	return put(directory, "known", "x");
}

static int get_secret(struct directory *directory)
{
	return get(directory, "secret", NULL);
}

static int list_all(struct directory *directory)
{
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	int status = cairn_store_list(directory->store, &directory->call, "", NULL, &listing);
	cairn_listing_release(&listing);
	return status;
}

static void test_filesystem_permission_is_missing(void **state)
{
	struct directory *directory = *state;
	assert_int_equal(put(directory, "known", "x"), 0);
	assert_int_equal(put(directory, "secret", "x"), 0);
	assert_int_equal(fchmodat(directory->fd, "secret", 0, 0), 0);
	assert_int_equal(mkdirat(directory->fd, "shut", 0), 0);
	assert_int_equal(chmod(directory->root, 0555), 0);

	assert_int_equal(as_nobody(directory, put_new), CAIRN_ACCESS);
	assert_int_equal(as_nobody(directory, put_known), CAIRN_ACCESS);
	assert_int_equal(as_nobody(directory, get_secret), CAIRN_ACCESS);
	assert_int_equal(as_nobody(directory, list_all), CAIRN_ACCESS);

	assert_int_equal(chmod(directory->root, 0755), 0);
	assert_int_equal(fchmodat(directory->fd, "shut", 0755, 0), 0);
}

/* A lock file is taken read-only: it may be another user's. */
static void test_filesystem_lock_file_of_another_user(void **state)
{
	struct directory *directory = *state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(put(directory, "known", "x"), 0);
	assert_int_equal(chmod(directory->root, 0777), 0);
	assert_int_equal(as_nobody(directory, put_known), 0);
	/* In a sticky directory O_CREAT of another's file is refused (fs.protected_regular). */
	assert_int_equal(chmod(directory->root, 01777), 0);
	assert_int_equal(as_nobody(directory, put_new), 0);
	assert_int_equal(as_nobody(directory, put_known), 0);
}

static void test_filesystem_read_only(void **state)
{
	struct directory *directory = *state;
	const struct cairn_store_options options = { .read_only = true };
	struct cairn_error error;
	struct directory other = *directory;
	assert_int_equal(put(directory, "k", "x"), 0);
	assert_int_equal(unlinkat(directory->fd, "log", AT_REMOVEDIR), 0);

	assert_int_equal(
		cairn_filesystem_store_new(directory->root, &options, &other.store, &error), 0);
	assert_int_equal(get(&other, "k", "x"), 0);
	assert_int_equal(put(&other, "k", "y"), CAIRN_READ_ONLY);
	assert_int_equal(put(&other, "new/k", "y"), CAIRN_READ_ONLY);
	assert_int_equal(cairn_store_delete(other.store, &other.call, "k", NULL), CAIRN_READ_ONLY);
	assert_int_equal(cairn_store_prefix_make(other.store, &other.call, "d/"), CAIRN_READ_ONLY);
	assert_int_equal(cairn_store_prefix_remove(other.store, &other.call, "snapshots/"),
			 CAIRN_READ_ONLY);
	assert_int_equal(cairn_store_probe(other.store, &other.call), CAIRN_READ_ONLY);
	cairn_store_free(other.store);
	assert_false(stands(directory, "log"));
	assert_int_equal(cairn_filesystem_store_new("/tmp/cairn-test-no-such", &options,
						    &other.store, &error),
			 CAIRN_NOT_FOUND);
	assert_int_equal(access("/tmp/cairn-test-no-such", F_OK), -1);
}

#define CONTENT_SIZE ((size_t)200 * 1024)

static _Noreturn void write_for_ever(struct directory *directory)
{
	char *data = malloc(CONTENT_SIZE);
	if (!data)
		_exit(1);
	for (unsigned char value = 'a';; value = value == 'z' ? 'a' : value + 1) {
		memset(data, value, CONTENT_SIZE);
		if (cairn_store_put(directory->store, &directory->call, "k",
				    (struct cairn_slice){ data, CONTENT_SIZE }, NULL, NULL))
			_exit(2);
	}
}

static void expect_whole(struct directory *directory)
{
	struct cairn_object object;
	cairn_object_init(&object);
	assert_int_equal(cairn_store_get(directory->store, &directory->call, "k", NULL, &object),
			 0);
	assert_int_equal(object.data.size, CONTENT_SIZE);
	for (size_t i = 1; i < object.data.size; i++)
		assert_int_equal(object.data.data[i], object.data.data[0]);
	cairn_object_release(&object);
}

static void test_filesystem_writer_is_killed(void **state)
{
	struct directory *directory = *state;
	char *data = calloc(1, CONTENT_SIZE);
	assert_int_equal(cairn_store_put(directory->store, &directory->call, "k",
					 (struct cairn_slice){ data, CONTENT_SIZE }, NULL, NULL),
			 0);
	free(data);
	for (int round = 0; round < 20; round++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			write_for_ever(directory);
		/* Anywhere in a put: readers see whole versions meanwhile. */
		for (int i = 0; i <= round % 5; i++)
			expect_whole(directory);
		(void)usleep((useconds_t)(round * 137));
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		expect_whole(directory);
		/* Its lock went with it. */
		assert_int_equal(
			cairn_store_delete(directory->store, &directory->call, "other", NULL), 0);
		char *fresh = calloc(1, CONTENT_SIZE);
		assert_int_equal(cairn_store_put(directory->store, &directory->call, "k",
						 (struct cairn_slice){ fresh, CONTENT_SIZE }, NULL,
						 NULL),
				 0);
		free(fresh);
	}
}

/* Whoever removes empty directories does so right after they were made. */
static void test_filesystem_directory_vanishes_during_a_put(void **state)
{
	struct directory *directory = *state;
	removing_fd = directory->fd;

	removals = 5;
	assert_int_equal(put(directory, "d/e/k", "x"), 0);
	assert_int_equal(removals, 0);
	assert_int_equal(get(directory, "d/e/k", "x"), 0);
	removals = 1000000;
	assert_int_equal(put(directory, "other/k", "x"), CAIRN_IO);
	assert_non_null(strstr(directory->call.error.text, "removed"));
	removals = 0;
	assert_int_equal(put(directory, "other/k", "x"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, directory_set_up, directory_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_filesystem_file_cannot_be_synced),
		TEST(test_filesystem_directory_cannot_be_synced),
		TEST(test_filesystem_retry_settles_a_failed_sync),
		TEST(test_filesystem_root_deleted),
		TEST(test_filesystem_disk_full),
		TEST(test_filesystem_permission_is_missing),
		TEST(test_filesystem_lock_file_of_another_user),
		TEST(test_filesystem_read_only),
		TEST(test_filesystem_writer_is_killed),
		TEST(test_filesystem_directory_vanishes_during_a_put),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
