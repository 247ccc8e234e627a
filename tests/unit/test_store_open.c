/* SPDX-License-Identifier: MIT */
#include "store_directory.h"

static void test_open_makes_a_bucket(void **state)
{
	struct directory *directory = *state;
	struct cairn_store *store;
	struct cairn_error error;
	struct cairn_call call = { 0 };
	char path[100], url[120];
	(void)snprintf(path, sizeof(path), "%s/bucket", directory->root);
	(void)snprintf(url, sizeof(url), "file://%s", path);

	assert_int_equal(cairn_store_open(path, NULL, &store, &error), 0);
	assert_true(stands(directory, "bucket/log") && stands(directory, "bucket/snapshots"));
	assert_string_equal(store->capabilities.kind, "directory");
	assert_int_equal(cairn_store_put(store, &call, "k", cairn_slice_of("x"), NULL, NULL), 0);
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	cairn_trace_read(store, counts);
	assert_int_equal(counts[CAIRN_OPERATION_PUT].calls, 1);
	assert_int_equal(counts[CAIRN_OPERATION_PUT].bytes, 1);
	cairn_store_free(store);
	assert_int_equal(cairn_store_open(url, NULL, &store, &error), 0);
	cairn_store_free(store);
}

static void test_open_refuses(void **state)
{
	struct directory *directory = *state;
	char missing[100], file[100];
	(void)snprintf(missing, sizeof(missing), "%s/no/bucket", directory->root);
	(void)snprintf(file, sizeof(file), "%s/file", directory->root);
	write_file(directory, "file", "x");
	const struct {
		const char *where;
		int status;
		const char *word;
	} cases[] = {
		{ "gs://bucket/prefix", CAIRN_UNSUPPORTED, "gs" },
		{ "s3:///prefix", CAIRN_INVALID, "no bucket" },
		{ "s3://KEY:SECRET@bucket", CAIRN_INVALID, "keys do not belong" },
		{ "s3://bucket?endpoint=http://h", CAIRN_INVALID, "no option endpoint;" },
		{ "s3://bucket?endpoint_url=h:80", CAIRN_INVALID, "http://HOST:PORT" },
		{ "s3://bucket?endpoint_url=http://h/path", CAIRN_INVALID, "no path" },
		{ "s3://bucket?region=a/b", CAIRN_INVALID, "region" },
		{ "s3://bucket?addressing=dns", CAIRN_INVALID, "path or virtual" },
		{ "s3://bucket?ca_bundle=/no/such/file", CAIRN_INVALID, "/no/such/file" },
		{ "s3://bucket/a%2", CAIRN_INVALID, "%XX" },
		{ "s3://b", CAIRN_INVALID, "no name of a bucket" },
		{ "https://example.invalid/b", CAIRN_UNSUPPORTED, "https" },
		{ "file://host/path", CAIRN_INVALID, "file:///" },
		{ "file:///a%20b", CAIRN_INVALID, "%XX" },
		{ "", CAIRN_INVALID, "empty" },
		{ missing, CAIRN_NOT_FOUND, missing },
		{ file, CAIRN_INVALID, file },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_store *store;
		struct cairn_error error = { 0 };
		assert_int_equal(cairn_store_open(cases[i].where, NULL, &store, &error),
				 cases[i].status);
		assert_int_equal(error.status, cases[i].status);
		assert_non_null(strstr(error.text, cases[i].word));
	}
}

static void test_open_from_the_environment(void **state)
{
	struct directory *directory = *state;
	struct cairn_store *store;
	struct cairn_error error;
	(void)unsetenv("CAIRNDB_STORAGE_TYPE");
	(void)unsetenv("CAIRNDB_STORAGE_PATH");
	assert_int_equal(cairn_store_open(NULL, NULL, &store, &error), CAIRN_INVALID);
	assert_non_null(strstr(error.text, "CAIRNDB_STORAGE_PATH"));
	(void)setenv("CAIRNDB_STORAGE_PATH", directory->root, 1);
	assert_int_equal(cairn_store_open(NULL, NULL, &store, &error), 0);
	cairn_store_free(store);
	(void)setenv("CAIRNDB_STORAGE_TYPE", "filesystem", 1);
	assert_int_equal(cairn_store_open(NULL, NULL, &store, &error), 0);
	cairn_store_free(store);
	(void)setenv("CAIRNDB_STORAGE_TYPE", "s3", 1);
	(void)unsetenv("CAIRNDB_S3_BUCKET");
	assert_int_equal(cairn_store_open(NULL, NULL, &store, &error), CAIRN_INVALID);
	assert_non_null(strstr(error.text, "CAIRNDB_S3_BUCKET"));
	(void)setenv("CAIRNDB_S3_BUCKET", "bucket", 1);
	(void)setenv("CAIRNDB_S3_ENDPOINT_URL", "http://127.0.0.1:80/", 1);
	assert_int_equal(cairn_store_open(NULL, NULL, &store, &error), 0);
	assert_string_equal(store->capabilities.kind, "s3");
	assert_string_equal(store->name, "s3 bucket bucket at http://127.0.0.1");
	cairn_store_free(store);
	(void)unsetenv("CAIRNDB_S3_BUCKET");
	(void)unsetenv("CAIRNDB_S3_ENDPOINT_URL");
	(void)setenv("CAIRNDB_STORAGE_TYPE", "gcs", 1);
	assert_int_equal(cairn_store_open(NULL, NULL, &store, &error), CAIRN_UNSUPPORTED);
	(void)setenv("CAIRNDB_STORAGE_TYPE", "tape", 1);
	assert_int_equal(cairn_store_open(NULL, NULL, &store, &error), CAIRN_INVALID);
	assert_non_null(strstr(error.text, "CAIRNDB_STORAGE_TYPE"));
	(void)unsetenv("CAIRNDB_STORAGE_TYPE");
	(void)unsetenv("CAIRNDB_STORAGE_PATH");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, directory_set_up, directory_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_open_makes_a_bucket),
		TEST(test_open_refuses),
		TEST(test_open_from_the_environment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
