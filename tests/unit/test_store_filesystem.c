/* SPDX-License-Identifier: MIT */
#include "store_directory.h"

#include "storage/store_private.h"

#include <sys/file.h>

#include <dirent.h>

#define SECOND ((int64_t)1000000)

static void test_filesystem_layout_is_the_peers(void **state)
{
	struct directory *directory = *state;
	struct stat status;

	assert_true(stands(directory, "log") && stands(directory, "snapshots"));
	assert_int_equal(put(directory, "a/b", "text"), 0);
	assert_true(stands(directory, "a/b"));
	assert_true(stands(directory, "a/.b.lock"));
	assert_int_equal(fstatat(directory->fd, "a/.b.lock", &status, 0), 0);
	assert_int_equal(status.st_size, 0);
	assert_int_equal(put(directory, "top", "text"), 0);
	assert_true(stands(directory, ".top.lock"));
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "top", NULL), 0);
	assert_true(stands(directory, ".top.lock"));
}

static void test_filesystem_modes_follow_the_umask(void **state)
{
	struct directory *directory = *state;
	struct stat status;
	mode_t before = umask(022);

	assert_int_equal(put(directory, "d/k", "text"), 0);

	(void)umask(before);
	assert_int_equal(fstatat(directory->fd, "d/k", &status, 0), 0);
	assert_int_equal(status.st_mode & 07777, 0644);
	assert_int_equal(fstatat(directory->fd, "d", &status, 0), 0);
	assert_int_equal(status.st_mode & 07777, 0755);
	assert_int_equal(fstatat(directory->fd, "d/.k.lock", &status, 0), 0);
	assert_int_equal(status.st_mode & 07777, 0755);
}

static void test_filesystem_etag_is_the_md5(void **state)
{
	struct directory *directory = *state;
	struct cairn_version version;

	assert_int_equal(cairn_store_put(directory->store, &directory->call, "k",
					 cairn_slice_of("hello"), NULL, &version),
			 0);
	assert_string_equal(version.etag, "5d41402abc4b2a76b9719d911017c592");
	assert_int_equal(cairn_store_put(directory->store, &directory->call, "k",
					 cairn_slice_of(""), NULL, &version),
			 0);
	assert_string_equal(version.etag, "d41d8cd98f00b204e9800998ecf8427e");
}

/* The root's log/ and snapshots/ are written by link, without a lock. */
static void test_filesystem_root_log_by_link(void **state)
{
	struct directory *directory = *state;
	const char *key = "log/000000000001.msgpack";
	const char *snapshot = "snapshots/v1/000000000001.sqlite";

	assert_int_equal(put_if_absent(directory, key, "first"), 0);
	assert_int_equal(put_if_absent(directory, key, "second"), CAIRN_EXISTS);
	assert_int_equal(put_if_absent(directory, snapshot, "s"), 0);
	assert_int_equal(get(directory, key, "first"), 0);
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, key, NULL), 0);
	assert_false(stands(directory, key));

	assert_false(stands(directory, "log/.000000000001.msgpack.lock"));
	assert_false(stands(directory, "snapshots/v1/.000000000001.sqlite.lock"));
	int log = openat(directory->fd, "log", O_RDONLY | O_DIRECTORY);
	DIR *stream = fdopendir(log);
	assert_non_null(stream);
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream))
		assert_true(strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
	(void)closedir(stream);
	/* A named log has locks. */
	assert_int_equal(put_if_absent(directory, "logs/n/log/000000000001.msgpack", "1"), 0);
	assert_true(stands(directory, "logs/n/log/.000000000001.msgpack.lock"));
}

static void test_filesystem_waits_for_a_foreign_lock(void **state)
{
	struct directory *directory = *state;
	assert_int_equal(put(directory, "k", "old"), 0);
	int holder = openat(directory->fd, ".k.lock", O_RDONLY);
	assert_int_equal(flock(holder, LOCK_EX), 0);
	int64_t begun = cairn_clock();

	directory->call.deadline = begun + SECOND / 10;
	assert_int_equal(put(directory, "k", "new"), CAIRN_TIMEOUT);
	assert_non_null(strstr(directory->call.error.text, ".k.lock"));
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "k", NULL),
			 CAIRN_TIMEOUT);
	assert_true(cairn_clock() - begun >= SECOND / 10);
	assert_true(cairn_clock() - begun < 5 * SECOND);
	/* Readers do not wait, and other keys neither. */
	directory->call.deadline = 0;
	assert_int_equal(get(directory, "k", "old"), 0);
	assert_int_equal(put(directory, "l", "new"), 0);
	assert_int_equal(flock(holder, LOCK_UN), 0);
	assert_int_equal(put(directory, "k", "new"), 0);
	(void)close(holder);
}

static bool after_five_looks(void *context)
{
	return ++*(int *)context > 5;
}

static void test_filesystem_lock_wait_can_be_cancelled(void **state)
{
	struct directory *directory = *state;
	int looks = 0;
	assert_int_equal(put(directory, "k", "old"), 0);
	int holder = openat(directory->fd, ".k.lock", O_RDONLY);
	assert_int_equal(flock(holder, LOCK_EX), 0);
	directory->call.cancelled = after_five_looks;
	directory->call.context = &looks;

	assert_int_equal(put(directory, "k", "new"), CAIRN_CANCELLED);

	directory->call.cancelled = NULL;
	assert_int_equal(get(directory, "k", "old"), 0);
	(void)close(holder);
}

static void test_filesystem_symlinks_lead_nowhere(void **state)
{
	struct directory *directory = *state;
	char outside[] = "/tmp/cairn-test-XXXXXX";
	char secret[64];
	assert_non_null(mkdtemp(outside));
	(void)snprintf(secret, sizeof(secret), "%s/secret", outside);
	write_file(directory, "inside", "inside");
	int file = open(secret, O_WRONLY | O_CREAT, 0666);
	assert_int_equal(write(file, "secret", 6), 6);
	(void)close(file);
	assert_int_equal(symlinkat(outside, directory->fd, "out"), 0);
	assert_int_equal(symlinkat(secret, directory->fd, "file"), 0);
	assert_int_equal(symlinkat("inside", directory->fd, "within"), 0);
	assert_int_equal(symlinkat("missing", directory->fd, "dangling"), 0);

	static const char *const keys[] = { "out/secret", "file", "within", "dangling" };
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_int_equal(get(directory, keys[i], NULL), CAIRN_INVALID);
		assert_int_equal(put(directory, keys[i], "x"), CAIRN_INVALID);
		assert_int_equal(put_if_absent(directory, keys[i], "x"), CAIRN_INVALID);
		assert_int_equal(
			cairn_store_delete(directory->store, &directory->call, keys[i], NULL),
			CAIRN_INVALID);
	}
	assert_int_equal(put(directory, "out/new/deep", "x"), CAIRN_INVALID);
	assert_int_equal(cairn_store_prefix_make(directory->store, &directory->call, "out/made/"),
			 CAIRN_INVALID);
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	assert_int_equal(cairn_store_list(directory->store, &directory->call, "", NULL, &listing),
			 0);
	assert_int_equal(listing.count, 1);
	assert_string_equal(listing.entries[0].key, "inside");
	assert_int_equal(
		cairn_store_list(directory->store, &directory->call, "out/", NULL, &listing), 0);
	assert_int_equal(listing.count, 0);
	cairn_listing_release(&listing);

	assert_int_equal(unlink(secret), 0);
	assert_int_equal(rmdir(outside), 0); /* nothing else has come there */
}

static void test_filesystem_special_files_are_no_objects(void **state)
{
	struct directory *directory = *state;
	const struct cairn_put_options match = { .if_match = "x" };
	assert_int_equal(mkfifoat(directory->fd, "fifo", 0666), 0);

	assert_int_equal(get(directory, "fifo", NULL), CAIRN_INVALID);
	assert_int_equal(put(directory, "fifo", "x"), CAIRN_INVALID);
	assert_int_equal(cairn_store_put(directory->store, &directory->call, "fifo",
					 cairn_slice_of("x"), &match, NULL),
			 CAIRN_INVALID);
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	assert_int_equal(cairn_store_list(directory->store, &directory->call, "", NULL, &listing),
			 0);
	assert_int_equal(listing.count, 0);
	cairn_listing_release(&listing);
}

static void test_filesystem_stale_temporary_files_are_harmless(void **state)
{
	struct directory *directory = *state;
	write_file(directory, ".k.tmp-1-2", "half");
	write_file(directory, ".cairn-0123.tmp", "half");

	assert_int_equal(put_if_absent(directory, "k", "whole"), 0);

	struct cairn_listing listing;
	cairn_listing_init(&listing);
	assert_int_equal(cairn_store_list(directory->store, &directory->call, "", NULL, &listing),
			 0);
	assert_int_equal(listing.count, 1);
	assert_string_equal(listing.entries[0].key, "k");
	cairn_listing_release(&listing);
}

/* A delete of what is not there leaves no lock file behind. */
static void test_filesystem_delete_of_nothing_leaves_nothing(void **state)
{
	struct directory *directory = *state;
	const struct cairn_delete_options match = { .if_match = "x" };

	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "k", NULL), 0);
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "k", &match),
			 CAIRN_CONFLICT);

	assert_false(stands(directory, ".k.lock"));
}

static void test_filesystem_probe_leaves_nothing(void **state)
{
	struct directory *directory = *state;

	assert_int_equal(cairn_store_probe(directory->store, &directory->call), 0);

	DIR *stream = opendir(directory->root);
	assert_non_null(stream);
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream))
		assert_null(strstr(entry->d_name, "probe"));
	(void)closedir(stream);
}

static void test_filesystem_prefix_with_lock_files_stays(void **state)
{
	struct directory *directory = *state;
	assert_int_equal(put(directory, "d/k", "1"), 0);
	assert_int_equal(cairn_store_delete(directory->store, &directory->call, "d/k", NULL), 0);

	assert_int_equal(cairn_store_prefix_remove(directory->store, &directory->call, "d/"),
			 CAIRN_NOT_EMPTY);
}

/* A put that is sent again with the nonce of what stands there has been carried out already. */
static void test_filesystem_knows_its_own_put(void **state)
{
	struct directory *directory = *state;
	char nonce[CAIRN_NONCE_SIZE] = "";
	struct cairn_version first, second;
	const struct cairn_put_options options = { .if_absent = true, .nonce = nonce };

	assert_int_equal(cairn_store_put(directory->store, &directory->call, "k",
					 cairn_slice_of("v"), &options, &first),
			 0);
	assert_int_equal(cairn_store_put(directory->store, &directory->call, "k",
					 cairn_slice_of("v"), &options, &second),
			 0);
	assert_string_equal(first.nonce, second.nonce);
	assert_string_equal(first.etag, second.etag);
	assert_int_equal(put(directory, "k", "v"), 0);
	assert_int_equal(cairn_store_put(directory->store, &directory->call, "k",
					 cairn_slice_of("v"), &options, &second),
			 CAIRN_EXISTS);
}

/* A directory that was removed and made again, or moved away, is not written into. */
static void test_filesystem_replaced_directories(void **state)
{
	struct directory *directory = *state;
	assert_int_equal(put(directory, "a/b/k", "old"), 0);
	assert_int_equal(renameat(directory->fd, "a", directory->fd, "moved"), 0);

	assert_int_equal(put(directory, "a/b/k", "new"), 0);

	assert_int_equal(get(directory, "a/b/k", "new"), 0);
	assert_int_equal(get(directory, "moved/b/k", "old"), 0);
}

static void append_in_place(const struct directory *directory, const char *name, const char *text)
{
	char lock[64];
	(void)snprintf(lock, sizeof(lock), ".%s.lock", name);
	int holder = openat(directory->fd, lock, O_RDWR | O_CREAT, 0777);
	assert_int_equal(flock(holder, LOCK_EX), 0);
	int file = openat(directory->fd, name, O_WRONLY | O_APPEND);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	(void)close(file);
	(void)close(holder);
}

/* Python's append_object_sync changes a file in place; the remembered etag must not outlive it. */
static void test_filesystem_etag_of_a_big_file_that_grows(void **state)
{
	struct directory *directory = *state;
	const size_t size = 300 * 1024;
	struct cairn_version version;
	struct cairn_object object;
	cairn_object_init(&object);
	char *data = calloc(1, size);
	assert_int_equal(cairn_store_put(directory->store, &directory->call, "big",
					 (struct cairn_slice){ data, size }, NULL, &version),
			 0);
	free(data);
	/* Old enough to be remembered. */
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	assert_int_equal(utimensat(directory->fd, "big", old, 0), 0);
	const struct cairn_get_options range = { .if_match = version.etag, .length = 10 };

	for (int i = 0; i < 3; i++)
		assert_int_equal(
			cairn_store_get(directory->store, &directory->call, "big", &range, &object),
			0);
	assert_int_equal(object.data.size, 10);
	append_in_place(directory, "big", "more");
	assert_int_equal(
		cairn_store_get(directory->store, &directory->call, "big", &range, &object),
		CAIRN_CONFLICT);
	const struct cairn_put_options match = { .if_match = version.etag };
	assert_int_equal(cairn_store_put(directory->store, &directory->call, "big",
					 cairn_slice_of("x"), &match, NULL),
			 CAIRN_CONFLICT);
	cairn_object_release(&object);
}

static void test_filesystem_lists_many_in_order(void **state)
{
	struct directory *directory = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	assert_int_equal(mkdirat(directory->fd, "many", 0777), 0);
	for (int i = 0; i < 3000; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "many/%d", i);
		write_file(directory, name, "");
	}

	const struct cairn_list_options options = { .delimited = true, .names_only = true };
	assert_int_equal(
		cairn_store_list(directory->store, &directory->call, "many/", &options, &listing),
		0);

	assert_int_equal(listing.count, 3000);
	for (size_t i = 1; i < listing.count; i++)
		assert_true(strcmp(listing.entries[i - 1].key, listing.entries[i].key) < 0);
	cairn_listing_release(&listing);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, directory_set_up, directory_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_filesystem_layout_is_the_peers),
		TEST(test_filesystem_modes_follow_the_umask),
		TEST(test_filesystem_etag_is_the_md5),
		TEST(test_filesystem_root_log_by_link),
		TEST(test_filesystem_waits_for_a_foreign_lock),
		TEST(test_filesystem_lock_wait_can_be_cancelled),
		TEST(test_filesystem_symlinks_lead_nowhere),
		TEST(test_filesystem_special_files_are_no_objects),
		TEST(test_filesystem_stale_temporary_files_are_harmless),
		TEST(test_filesystem_delete_of_nothing_leaves_nothing),
		TEST(test_filesystem_probe_leaves_nothing),
		TEST(test_filesystem_prefix_with_lock_files_stays),
		TEST(test_filesystem_knows_its_own_put),
		TEST(test_filesystem_replaced_directories),
		TEST(test_filesystem_etag_of_a_big_file_that_grows),
		TEST(test_filesystem_lists_many_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
