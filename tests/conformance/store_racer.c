/* SPDX-License-Identifier: MIT */
/*
 * One process of ours in the races against Python processes (race_python.py):
 *
 *     store_racer ROOT count N      add one to the object `counter`, N times, by compare-and-swap
 *     store_racer ROOT create N     put-if-absent race/0 … race/N-1; prints the numbers won
 *     store_racer ROOT commit N     the same with log/000000000001.msgpack …
 *     store_racer ROOT read N       read `grows` until it has N lines, each of them whole
 *     store_racer ROOT delete N     create `door` and delete it, N times; prints how often
 */
#include <cairn/store.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cairn_store *store;
static struct cairn_call call;

static int give_up(const char *what)
{
	(void)fprintf(stderr, "%s: %s\n", what, call.error.text);
	return 1;
}

static int count(long times)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int status = CAIRN_OK;
	while (times > 0 && !status) {
		status = cairn_store_get(store, &call, "counter", NULL, &object);
		if (status)
			break;
		char value[32];
		(void)snprintf(value, sizeof(value), "%ld", strtol(object.data.data, NULL, 10) + 1);
		const struct cairn_put_options options = { .if_match = object.version.etag };
		status = cairn_store_put(store, &call, "counter", cairn_slice_of(value), &options,
					 NULL);
		if (status == CAIRN_OK)
			times--;
		else if (status == CAIRN_CONFLICT)
			status = CAIRN_OK;
	}
	cairn_object_release(&object);
	return status ? give_up("count") : 0;
}

static int create(const char *prefix, const char *format_end, long first, long times)
{
	char value[32];
	(void)snprintf(value, sizeof(value), "c-%ld", (long)getpid());
	for (long i = first; i < first + times; i++) {
		char key[64];
		if (*format_end)
			(void)snprintf(key, sizeof(key), "%s%012ld%s", prefix, i, format_end);
		else
			(void)snprintf(key, sizeof(key), "%s%ld", prefix, i);
		const struct cairn_put_options options = { .if_absent = true, .immutable = true };
		int status =
			cairn_store_put(store, &call, key, cairn_slice_of(value), &options, NULL);
		if (status && status != CAIRN_EXISTS)
			return give_up(key);
		if (!status)
			(void)printf("%ld\n", i);
	}
	return 0;
}

/* Lines of the form "line\n": is every one whole? */
static long whole_lines(const struct cairn_buffer *data)
{
	if (data->size % 5 != 0)
		return -1;
	for (size_t i = 0; i < data->size; i += 5)
		if (memcmp(data->data + i, "line\n", 5) != 0)
			return -1;
	return (long)(data->size / 5);
}

static int read_growing(long lines)
{
	struct cairn_object object;
	cairn_object_init(&object);
	long seen = 0;
	while (seen >= 0 && seen < lines) {
		int status = cairn_store_get(store, &call, "grows", NULL, &object);
		if (status == CAIRN_NOT_FOUND || status == CAIRN_BUSY)
			continue;
		if (status)
			return give_up("read");
		seen = whole_lines(&object.data);
	}
	cairn_object_release(&object);
	return seen < 0 ? give_up("a torn line") : 0;
}

static int open_and_shut(long times)
{
	long done = 0;
	for (long i = 0; i < times; i++) {
		const struct cairn_put_options options = { .if_absent = true };
		struct cairn_version version;
		int status = cairn_store_put(store, &call, "door", cairn_slice_of("ours"), &options,
					     &version);
		if (status == CAIRN_EXISTS)
			continue;
		const struct cairn_delete_options match = { .if_match = version.etag };
		if (!status)
			status = cairn_store_delete(store, &call, "door", &match);
		if (status)
			return give_up("door");
		done++;
	}
	(void)printf("%ld\n", done);
	return 0;
}

int main(int argc, char **argv)
{
	struct cairn_error error = { 0 };
	if (argc != 4) {
		(void)fprintf(stderr,
			      "usage: store_racer ROOT count|create|commit|read|delete N\n");
		return 2;
	}
	if (cairn_store_open(argv[1], NULL, &store, &error)) {
		(void)fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	long number = strtol(argv[3], NULL, 10);
	int result = 2;
	if (strcmp(argv[2], "count") == 0)
		result = count(number);
	else if (strcmp(argv[2], "create") == 0)
		result = create("race/", "", 0, number);
	else if (strcmp(argv[2], "commit") == 0)
		result = create("log/", ".msgpack", 1, number);
	else if (strcmp(argv[2], "read") == 0)
		result = read_growing(number);
	else if (strcmp(argv[2], "delete") == 0)
		result = open_and_shut(number);
	cairn_store_free(store);
	return result;
}
