/* SPDX-License-Identifier: MIT */
#include "log/log_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_WAIT_MAX ((int64_t)10 * 1000000)

/* "logs/" and "/" of a log's prefix, and its NUL. */
#define NAME_MAX_BYTES	(LOG_PREFIX_SIZE - 7)

#define COMMIT_SUFFIX	".msgpack"
#define SNAPSHOT_SUFFIX ".sqlite"
#define NUMBER_DIGITS	12

static int check_name(const char *name, struct cairn_error *error)
{
	size_t size = strlen(name);
	bool good = size > 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
	for (const char *at = name; *at && good; at++)
		good = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || *at == '.' ||
		       *at == '_' || *at == '-';
	if (!good)
		return cairn_error_set(error, CAIRN_INVALID,
				       "log %.100s: a log's name is made of a-z, 0-9, '.', '_' and "
				       "'-', and is not . or ..",
				       name);
	if (size > NAME_MAX_BYTES)
		return cairn_error_set(error, CAIRN_NAME_TOO_LONG,
				       "log %.100s…: the name is %zu "
				       "bytes long, at most %d are possible",
				       name, size, NAME_MAX_BYTES);
	return CAIRN_OK;
}

static int check_options(const struct cairn_log_options *options, struct cairn_error *error)
{
	if (options->max_events_per_commit > CAIRN_COMMIT_EVENTS_MAX)
		return cairn_error_set(error, CAIRN_INVALID,
				       "max_events_per_commit: at most %zu are possible",
				       CAIRN_COMMIT_EVENTS_MAX);
	if (options->max_batch_wait < 0 || options->max_batch_wait > BATCH_WAIT_MAX)
		return cairn_error_set(error, CAIRN_INVALID,
				       "max_batch_wait: 0 to 10 seconds are possible");
	if (options->tail_hint < 0 || options->tail_hint >= CAIRN_COMMIT_NUMBER_MAX)
		return cairn_error_set(error, CAIRN_INVALID, "tail_hint: no such number");
	return CAIRN_OK;
}

static void init_locks(struct cairn_log *log)
{
	pthread_condattr_t monotonic;
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&log->lock, NULL);
	(void)pthread_cond_init(&log->idle, NULL);
	(void)pthread_cond_init(&log->more, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}

int cairn_log_new(struct cairn_store *store, const char *name,
		  const struct cairn_log_options *options, struct cairn_log **ret_log,
		  struct cairn_error *error)
{
	static const struct cairn_log_options defaults;
	if (!options)
		options = &defaults;
	int status = name ? check_name(name, error) : CAIRN_OK;
	if (!status)
		status = check_options(options, error);
	if (status)
		return status;
	struct cairn_log *log = calloc(1, sizeof(*log));
	if (!log)
		return cairn_error_set(error, CAIRN_NO_MEMORY, "log: out of memory");
	log->store = store;
	log->options = *options;
	if (log->options.max_events_per_commit == 0)
		log->options.max_events_per_commit = 1000;
	if (name)
		(void)snprintf(log->prefix, sizeof(log->prefix), "logs/%s/", name);
	log->last = &log->first;
	log->tail = -1;
	cairn_buffer_init(&log->object, CAIRN_COMMIT_MAX);
	init_locks(log);
	*ret_log = log;
	return CAIRN_OK;
}

void cairn_log_close(struct cairn_log *log)
{
	(void)pthread_mutex_lock(&log->lock);
	log->closed = true;
	while (log->first || log->leading)
		(void)pthread_cond_wait(&log->idle, &log->lock);
	(void)pthread_mutex_unlock(&log->lock);
}

void cairn_log_free(struct cairn_log *log)
{
	if (!log)
		return;
	cairn_log_close(log);
	(void)pthread_mutex_destroy(&log->lock);
	(void)pthread_cond_destroy(&log->idle);
	(void)pthread_cond_destroy(&log->more);
	cairn_buffer_release(&log->object);
	free(log);
}

void cairn_log_key(const struct cairn_log *log, int64_t number, char ret_key[LOG_KEY_SIZE])
{
	(void)snprintf(ret_key, LOG_KEY_SIZE, "%slog/%0*lld" COMMIT_SUFFIX, log->prefix,
		       NUMBER_DIGITS, (long long)number);
}

void cairn_log_saw(struct cairn_log *log, int64_t number)
{
	int64_t newest = atomic_load_explicit(&log->newest, memory_order_relaxed);
	while (newest < number &&
	       !atomic_compare_exchange_weak_explicit(&log->newest, &newest, number,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* The number in a file name that is exactly 12 digits and `suffix`; 0 for any other name. */
static int64_t number_of(const char *name, const char *suffix)
{
	int64_t number = 0;
	for (int i = 0; i < NUMBER_DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		number = 10 * number + (name[i] - '0');
	}
	return strcmp(name + NUMBER_DIGITS, suffix) == 0 ? number : 0;
}

int cairn_log_look(struct cairn_log *log, struct cairn_call *call, int64_t number)
{
	const struct cairn_get_options options = { .no_data = true };
	struct cairn_object object;
	char key[LOG_KEY_SIZE];
	cairn_log_key(log, number, key);
	cairn_object_init(&object);
	int status = cairn_store_get(log->store, call, key, &options, &object);
	cairn_object_release(&object);
	if (!status)
		cairn_log_saw(log, number);
	return status;
}

/* The pages of a listing, each handed to `visit` until that says that it has enough. */
static int list(struct cairn_log *log, struct cairn_call *call, const char *prefix,
		struct cairn_list_options *options,
		bool (*visit)(void *context, const struct cairn_entry *entry), void *context)
{
	char *token = NULL;
	bool enough = false;
	int status;
	do {
		struct cairn_listing page;
		cairn_listing_init(&page);
		options->token = token;
		status = cairn_store_list(log->store, call, prefix, options, &page);
		for (size_t i = 0; i < page.count && !enough; i++)
			enough = visit(context, &page.entries[i]);
		free(token);
		token = page.token;
		page.token = NULL;
		cairn_listing_release(&page);
	} while (token && !status && !enough);
	free(token);
	return status;
}

/* Of commits listed behind `after`: the first, or the last. */
struct commits {
	size_t prefix; /* bytes in front of the names */
	int64_t number;
	bool first;
};

static bool visit_commit(void *context, const struct cairn_entry *entry)
{
	struct commits *commits = context;
	int64_t number = number_of(entry->key + commits->prefix, COMMIT_SUFFIX);
	if (number > commits->number)
		commits->number = number;
	return number > 0 && commits->first;
}

static int list_commits(struct cairn_log *log, struct cairn_call *call, int64_t after, bool first,
			int64_t *ret_number)
{
	char prefix[LOG_KEY_SIZE], start[LOG_KEY_SIZE];
	struct commits commits = { .first = first };
	commits.prefix = (size_t)snprintf(prefix, sizeof(prefix), "%slog/", log->prefix);
	cairn_log_key(log, after, start);
	struct cairn_list_options options = {
		.names_only = true,
		/* A stray key or two may come first. */
		.max = first ? 8 : 0,
		.start_after = start,
	};
	int status = list(log, call, prefix, &options, visit_commit, &commits);
	if (status)
		return status;
	cairn_log_saw(log, commits.number);
	*ret_number = commits.number;
	return CAIRN_OK;
}

int cairn_log_list_tail(struct cairn_log *log, struct cairn_call *call, int64_t after,
			int64_t *ret_number)
{
	return list_commits(log, call, after, false, ret_number);
}

int cairn_log_list_next(struct cairn_log *log, struct cairn_call *call, int64_t after,
			int64_t *ret_number)
{
	return list_commits(log, call, after, true, ret_number);
}

struct snapshots {
	struct cairn_log_snapshots *found;
	int64_t number;
	int64_t modified;
};

static bool visit_snapshot(void *context, const struct cairn_entry *entry)
{
	struct snapshots *snapshots = context;
	struct cairn_log_snapshots *found = snapshots->found;
	int64_t number = number_of(strrchr(entry->key, '/') + 1, SNAPSHOT_SUFFIX);
	if (number > found->newest)
		found->newest = number;
	if (number > found->older && entry->modified <= snapshots->modified)
		found->older = number;
	found->before = found->before || (number > 0 && number == snapshots->number - 1);
	return false;
}

int cairn_log_snapshots(struct cairn_log *log, struct cairn_call *call, int64_t number,
			int64_t modified, struct cairn_log_snapshots *ret_snapshots)
{
	char prefix[LOG_KEY_SIZE];
	struct snapshots snapshots = {
		.found = ret_snapshots,
		.number = number,
		.modified = modified,
	};
	struct cairn_list_options options = { .names_only = modified == INT64_MAX };
	(void)snprintf(prefix, sizeof(prefix), "%ssnapshots/v", log->prefix);
	*ret_snapshots = (struct cairn_log_snapshots){ 0 };
	return list(log, call, prefix, &options, visit_snapshot, &snapshots);
}

int cairn_log_current_tail(struct cairn_log *log, struct cairn_call *call, int64_t *ret_number)
{
	struct cairn_log_snapshots snapshots;
	int64_t listed = 0;
	int status = cairn_log_snapshots(log, call, 0, INT64_MAX, &snapshots);
	if (!status)
		status = cairn_log_list_tail(log, call, snapshots.newest, &listed);
	if (!status)
		*ret_number = listed > snapshots.newest ? listed : snapshots.newest;
	return status;
}

int cairn_log_head(struct cairn_log *log, struct cairn_call *call, int64_t *ret_number)
{
	int64_t number = 0;
	int status = cairn_log_list_next(log, call, 0, &number);
	if (!status && number == 0)
		return cairn_error_set(&call->error, CAIRN_NOT_FOUND, "%slog/: there is no commit",
				       log->prefix);
	if (!status)
		*ret_number = number;
	return status;
}
