/* SPDX-License-Identifier: MIT */
#include "log_steps.h"

#include <sys/wait.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* What the hooks of a test work with. */
static struct cairn_log *hooked_log; /* the one that is appended to */
static struct cairn_log *rival;	     /* another's, past all faults */
static _Atomic size_t wanted;	     /* events that must be queued */
static int rival_id;

static void wait_for_queue(struct bucket *bucket)
{
	(void)bucket;
	size_t queued;
	do {
		(void)sched_yield();
		(void)pthread_mutex_lock(&hooked_log->lock);
		queued = hooked_log->queued;
		(void)pthread_mutex_unlock(&hooked_log->lock);
	} while (queued < wanted);
}

static void rival_appends(struct bucket *bucket)
{
	(void)bucket;
	(void)append_good(rival, rival_id++);
}

/* One append of `count` events in a thread of its own. */
struct appender {
	pthread_t thread;
	struct cairn_log *log;
	int first;
	int count;
	int status;
	struct cairn_call call;
	struct cairn_sequence sequences[16];
};

static void *run_appender(void *context)
{
	struct appender *appender = context;
	struct test_event storage[16];
	struct cairn_event events[16];
	for (int i = 0; i < appender->count; i++)
		events[i] = *event_of(&storage[i], "t", appender->first + i);
	appender->status = cairn_log_append_many(appender->log, &appender->call, events,
						 (size_t)appender->count, appender->sequences);
	return NULL;
}

static void start(struct appender *appender, struct cairn_log *log, int first, int count)
{
	*appender = (struct appender){ .log = log, .first = first, .count = count };
	assert_int_equal(pthread_create(&appender->thread, NULL, run_appender, appender), 0);
}

static void finish(struct appender *appender)
{
	assert_int_equal(pthread_join(appender->thread, NULL), 0);
	assert_status(&appender->call, appender->status, CAIRN_OK);
}

/* Wait until `log` has `queued` events queued behind the put that is under way. */
static void await_queued(struct cairn_log *log, size_t queued)
{
	bool reached;
	do {
		(void)sched_yield();
		(void)pthread_mutex_lock(&log->lock);
		reached = log->leading && log->queued == queued;
		(void)pthread_mutex_unlock(&log->lock);
	} while (!reached);
}

static void test_committer_shares_commits_while_a_put_is_under_way(void **state)
{
	struct bucket *bucket = *state;
	struct appender appenders[8];
	hooked_log = log_open(bucket->store, NULL, NULL);
	wanted = 7;
	bucket_hook_puts(bucket, 1, wait_for_queue, NULL);
	for (int i = 0; i < 8; i++)
		start(&appenders[i], hooked_log, i, 1);
	for (int i = 0; i < 8; i++)
		finish(&appenders[i]);
	int64_t tail = 0;
	assert_status(&bucket->call, cairn_log_current_tail(hooked_log, &bucket->call, &tail),
		      CAIRN_OK);
	assert_int_equal(tail, 2);
	assert_each_once(bucket, NULL, 8);
	cairn_log_free(hooked_log);
}

static void test_committer_merges_whole_appends_up_to_its_limit(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_log_options options = { .max_events_per_commit = 5 };
	static const int counts[] = { 1, 2, 2, 2, 9, 1 };
	struct appender appenders[6];
	int first = 0;
	hooked_log = log_open(bucket->store, NULL, &options);
	wanted = 16;
	bucket_hook_puts(bucket, 1, wait_for_queue, NULL);
	for (int i = 0; i < 6; i++) {
		start(&appenders[i], hooked_log, first, counts[i]);
		first += counts[i];
		await_queued(hooked_log, (size_t)(i ? first - 1 : 0));
	}
	for (int i = 0; i < 6; i++)
		finish(&appenders[i]);
	assert_commit(bucket, NULL, 1, "0");
	assert_commit(bucket, NULL, 2, "1 2 3 4");
	assert_commit(bucket, NULL, 3, "5 6");
	assert_commit(bucket, NULL, 4, "7 8 9 10 11 12 13 14 15");
	assert_commit(bucket, NULL, 5, "16");
	assert_int_equal(appenders[4].sequences[8].commit, 4);
	assert_int_equal(appenders[4].sequences[8].index, 8);
	assert_int_equal(appenders[2].sequences[1].commit, 2);
	assert_int_equal(appenders[2].sequences[1].index, 3);
	cairn_log_free(hooked_log);
}

static void test_committer_waits_for_a_batch_no_longer_than_needed(void **state)
{
	struct bucket *bucket = *state;
	/* The test's own time would be over before the wait. */
	const struct cairn_log_options options = {
		.max_events_per_commit = 3,
		.max_batch_wait = 10000000,
	};
	struct cairn_log *log = log_open(bucket->store, NULL, &options);
	struct appender appenders[3];
	int64_t begun = cairn_clock();
	for (int i = 0; i < 3; i++)
		start(&appenders[i], log, i, 1);
	for (int i = 0; i < 3; i++)
		finish(&appenders[i]);
	assert_true(cairn_clock() - begun < 9000000);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 1);
	assert_each_once(bucket, NULL, 3);
	cairn_log_free(log);
}

static void test_committer_asks_once_a_commit(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	for (int i = 0; i < 10; i++)
		assert_int_equal(append_good(log, i), i + 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 10);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 0);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_LIST), 2);
	/* After a pause one look more. */
	sleep_long(log);
	assert_int_equal(append_good(log, 10), 11);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 11);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_LIST), 2);
	cairn_log_free(log);
}

static void test_committer_believes_a_hint_only_if_it_is_true(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->backend, NULL, NULL);
	fill_to(log, 7);
	cairn_log_free(log);
	static const int64_t hints[] = { 3, 8, 500 };
	for (int i = 0; i < 3; i++) {
		const struct cairn_log_options options = { .tail_hint = hints[i] };
		log = log_open(bucket->store, NULL, &options);
		assert_int_equal(append_good(log, i), 8 + i);
		cairn_log_free(log);
	}
}

static void test_committer_loser_goes_behind_the_winner(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	rival = log_open(bucket->backend, NULL, NULL);
	rival_id = 1;
	bucket_hook_puts(bucket, 3, rival_appends, NULL);
	assert_int_equal(append_good(log, 0), 4);
	assert_each_once(bucket, NULL, 4);
	cairn_log_free(rival);
	cairn_log_free(log);
}

static void test_committer_catches_up_with_many(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	rival = log_open(bucket->backend, NULL, NULL);
	assert_int_equal(append_good(log, 0), 1);
	fill_to(rival, 1500);
	assert_int_equal(append_good(log, 0), 1501);
	cairn_log_free(rival);
	cairn_log_free(log);
}

static void test_committer_fails_at_the_deadline_or_after_its_attempts(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_log_options options = { .max_commit_attempts = 3 };
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_call call = bucket_call_within(50000);
	rival = log_open(bucket->backend, NULL, NULL);
	rival_id = 0;
	bucket_hook_puts(bucket, 1000000, rival_appends, NULL);
	assert_status(&call, append_id(log, &call, "t", 1000000, NULL), CAIRN_BUSY);
	cairn_log_free(log);

	log = log_open(bucket->store, NULL, &options);
	bucket_hook_puts(bucket, 1000000, rival_appends, NULL);
	call = (struct cairn_call){ 0 };
	assert_status(&call, append_id(log, &call, "t", 1000000, NULL), CAIRN_BUSY);
	assert_int_equal(bucket->runs, 3);
	bucket_hook_puts(bucket, 0, NULL, NULL);
	assert_each_once(bucket, NULL, rival_id);
	cairn_log_free(rival);
	cairn_log_free(log);
}

static bool say_cancelled(void *context)
{
	return *(_Atomic bool *)context;
}

static void test_committer_queued_append_can_be_cancelled_and_late(void **state)
{
	struct bucket *bucket = *state;
	struct appender leader, follower;
	_Atomic bool cancelled = false;
	hooked_log = log_open(bucket->store, NULL, NULL);
	/* The leader's put ends when an append of two events waits behind it. */
	wanted = 2;
	bucket_hook_puts(bucket, 1, wait_for_queue, NULL);
	start(&leader, hooked_log, 0, 1);
	await_queued(hooked_log, 0);

	struct cairn_call call = { .cancelled = say_cancelled, .context = &cancelled };
	cancelled = true;
	assert_int_equal(append_id(hooked_log, &call, "t", 9, NULL), CAIRN_CANCELLED);
	call = bucket_call_within(20000);
	assert_int_equal(append_id(hooked_log, &call, "t", 9, NULL), CAIRN_TIMEOUT);

	start(&follower, hooked_log, 1, 2);
	finish(&leader);
	finish(&follower);
	assert_each_once(bucket, NULL, 3);
	cairn_log_free(hooked_log);
}

struct closing {
	pthread_t thread;
	struct cairn_log *log;
};

static void *run_close(void *context)
{
	cairn_log_close(((struct closing *)context)->log);
	return NULL;
}

static void test_committer_close_drains(void **state)
{
	struct bucket *bucket = *state;
	struct appender appenders[3];
	struct closing closing;
	bool closed;
	hooked_log = log_open(bucket->store, NULL, NULL);
	closing.log = hooked_log;
	wanted = 3;
	bucket_hook_puts(bucket, 1, wait_for_queue, NULL);
	start(&appenders[0], hooked_log, 0, 1);
	await_queued(hooked_log, 0);
	start(&appenders[1], hooked_log, 1, 1);
	await_queued(hooked_log, 1);
	assert_int_equal(pthread_create(&closing.thread, NULL, run_close, &closing), 0);
	/* The put goes on once the log is closed. */
	do {
		(void)pthread_mutex_lock(&hooked_log->lock);
		closed = hooked_log->closed;
		(void)pthread_mutex_unlock(&hooked_log->lock);
	} while (!closed);
	wanted = 1;
	finish(&appenders[0]);
	finish(&appenders[1]);
	assert_int_equal(pthread_join(closing.thread, NULL), 0);
	struct cairn_call call = { 0 };
	assert_int_equal(append_id(hooked_log, &call, "t", 9, NULL), CAIRN_INVALID);
	assert_non_null(strstr(call.error.text, "closed"));
	assert_each_once(bucket, NULL, 2);
	cairn_log_free(hooked_log);
}

static void test_committer_bad_events_are_refused_before_anything(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct test_event storage;
	struct cairn_event events[2];
	events[0] = *event_of(&storage, "t", 0);
	events[1] = events[0];
	events[1].payload = cairn_slice_of("[]");
	assert_status(&bucket->call, cairn_log_append_many(log, &bucket->call, events, 2, NULL),
		      CAIRN_INVALID);
	assert_non_null(strstr(bucket->call.error.text, "event 1"));
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 0);
	assert_status(&bucket->call, cairn_log_append_many(log, &bucket->call, events, 0, NULL),
		      CAIRN_OK);
	assert_each_once(bucket, NULL, 0);
	cairn_log_free(log);
}

/* --- The hook ------------------------------------------------------------------------------- */

struct seen {
	char numbers[64]; /* of the commits that were shown for each event */
};

static int judge(void *context, const struct cairn_event *event,
		 const struct cairn_commit *interleaved, struct cairn_event *ret_event,
		 struct cairn_error *error)
{
	static char changed[64];
	struct seen *seen = context;
	size_t at = strlen(seen->numbers);
	(void)snprintf(seen->numbers + at, sizeof(seen->numbers) - at, "%lld ",
		       (long long)interleaved->number);
	if (event->event_type.data[0] == 'r')
		return cairn_error_set(error, CAIRN_ABORTED, "overtaken");
	if (event->event_type.data[0] == 'c') {
		(void)snprintf(changed, sizeof(changed), "{\"id\":%lld}",
			       100 + (long long)interleaved->number);
		ret_event->payload = cairn_slice_of(changed);
	}
	if (event->event_type.data[0] == 'b')
		ret_event->payload = cairn_slice_of("[]");
	return CAIRN_OK;
}

static void test_committer_revalidates_after_a_lost_race(void **state)
{
	struct bucket *bucket = *state;
	struct seen seen = { "" };
	const struct cairn_log_options options = { .revalidate = judge, .context = &seen };
	struct cairn_log *log = log_open(bucket->store, NULL, &options);
	struct test_event storage[5];
	struct cairn_event events[5];
	struct cairn_sequence sequences[5];
	static const char *const types[] = { "keep", "reject", "change", "bad", "keep" };
	rival = log_open(bucket->backend, NULL, NULL);
	rival_id = 50;
	for (int i = 0; i < 5; i++)
		events[i] = *event_of(&storage[i], types[i], i);
	bucket_hook_puts(bucket, 2, rival_appends, NULL);
	assert_status(&bucket->call,
		      cairn_log_append_many(log, &bucket->call, events, 5, sequences),
		      CAIRN_ABORTED);
	assert_non_null(strstr(bucket->call.error.text, "event 1"));
	assert_non_null(strstr(bucket->call.error.text, "overtaken"));
	/* Commit 1 is shown for all five, commit 2 for the three that are left. */
	assert_string_equal(seen.numbers, "1 1 1 1 1 2 2 2 ");
	assert_commit(bucket, NULL, 3, "0 102 4");
	static const int64_t expected[5][2] = { { 3, 0 }, { 0, 0 }, { 3, 1 }, { 0, 0 }, { 3, 2 } };
	for (int i = 0; i < 5; i++) {
		assert_int_equal(sequences[i].commit, expected[i][0]);
		assert_int_equal(sequences[i].index, expected[i][1]);
	}
	cairn_log_free(rival);
	cairn_log_free(log);
}

static void test_committer_commits_nothing_when_all_is_rejected(void **state)
{
	struct bucket *bucket = *state;
	struct seen seen = { "" };
	const struct cairn_log_options options = { .revalidate = judge, .context = &seen };
	struct cairn_log *log = log_open(bucket->store, NULL, &options);
	rival = log_open(bucket->backend, NULL, NULL);
	rival_id = 0;
	bucket_hook_puts(bucket, 1, rival_appends, NULL);
	assert_status(&bucket->call, append_id(log, &bucket->call, "reject", 9, NULL),
		      CAIRN_ABORTED);
	/* Without a lost race the hook is not asked. */
	assert_status(&bucket->call, append_id(log, &bucket->call, "reject", 1, NULL), CAIRN_OK);
	assert_string_equal(seen.numbers, "1 ");
	assert_each_once(bucket, NULL, 2);
	cairn_log_free(rival);
	cairn_log_free(log);
}

/* --- A number of one's own ------------------------------------------------------------------ */

static void test_committer_appends_at_a_number_or_not_at_all(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct test_event storage;
	const struct cairn_event *event = event_of(&storage, "t", 0);
	static const struct {
		int64_t number;
		int status;
	} cases[] = { { 2, CAIRN_INVALID },  { 1, CAIRN_OK },	 { 1, CAIRN_EXISTS },
		      { 4, CAIRN_INVALID },  { 2, CAIRN_OK },	 { 0, CAIRN_INVALID },
		      { -1, CAIRN_INVALID }, { 1, CAIRN_EXISTS } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_status(&bucket->call,
			      cairn_log_append_at(log, &bucket->call, cases[i].number, event, 1),
			      cases[i].status);
	/* What others appended since is found. */
	rival = log_open(bucket->backend, NULL, NULL);
	fill_to(rival, 9);
	assert_status(&bucket->call, cairn_log_append_at(log, &bucket->call, 3, event, 1),
		      CAIRN_EXISTS);
	assert_status(&bucket->call, cairn_log_append_at(log, &bucket->call, 10, event, 1),
		      CAIRN_OK);
	rival_id = 0;
	bucket_hook_puts(bucket, 1, rival_appends, NULL);
	assert_status(&bucket->call, cairn_log_append_at(log, &bucket->call, 11, event, 1),
		      CAIRN_EXISTS);
	cairn_log_free(rival);
	cairn_log_free(log);
}

/* --- Hazards of FORMAT.md ------------------------------------------------------------------- */

static void test_committer_lost_answers_append_each_event_once(void **state)
{
	struct bucket *bucket = *state;
	static const struct {
		int status;
		bool act;
	} faults[] = { { CAIRN_UNKNOWN, true }, { CAIRN_UNKNOWN, false }, { CAIRN_TIMEOUT, true } };
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	int id = 0;
	for (size_t fault = 0; fault < sizeof(faults) / sizeof(faults[0]); fault++) {
		for (unsigned skip = 0; skip < 3; skip++) {
			const struct cairn_fault_rule rule = {
				.operations = 1u << CAIRN_OPERATION_PUT,
				.skip = skip,
				.times = 1,
				.status = faults[fault].status,
				.act = faults[fault].act,
			};
			assert_int_equal(cairn_fault_rule_add(bucket->fault, &rule), CAIRN_OK);
			for (int i = 0; i < 3; i++, id++)
				assert_int_equal(append_good(log, id), id + 1);
			bucket_heal(bucket);
		}
	}
	assert_each_once(bucket, NULL, id);
	cairn_log_free(log);
}

static void test_committer_lost_answer_of_a_put_that_lost(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	rival = log_open(bucket->backend, NULL, NULL);
	rival_id = 1;
	bucket_hook_puts(bucket, 1, rival_appends, NULL);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true);
	assert_int_equal(append_good(log, 0), 2);
	assert_each_once(bucket, NULL, 2);
	cairn_log_free(rival);
	cairn_log_free(log);
}

static void test_committer_an_unknown_outcome_is_told(void **state)
{
	struct bucket *bucket = *state;
	/* Without the store that finds out. */
	struct cairn_log *log = log_open(bucket->bare, NULL, NULL);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true);
	assert_status(&bucket->call, append_id(log, &bucket->call, "t", 0, NULL), CAIRN_UNKNOWN);
	/* The log goes on where it is. */
	assert_int_equal(append_good(log, 1), 2);
	assert_each_once(bucket, NULL, 2);
	cairn_log_free(log);
}

static void test_committer_collisions_are_tried_again(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->bare, NULL, NULL);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 3, CAIRN_BUSY, false);
	assert_int_equal(append_good(log, 0), 1);
	bucket_heal(bucket);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 0, CAIRN_BUSY, false);
	struct cairn_call call = bucket_call_within(30000);
	assert_status(&call, append_id(log, &call, "t", 9, NULL), CAIRN_BUSY);
	assert_each_once(bucket, NULL, 1);
	cairn_log_free(log);
}

static void others_prune(struct bucket *bucket)
{
	fill_to(rival, 80);
	snapshot_at(bucket, 80);
	prune_to(bucket, 80);
	sleep_long(hooked_log);
}

static void test_committer_never_wins_an_old_number_after_sleeping(void **state)
{
	struct bucket *bucket = *state;
	hooked_log = log_open(bucket->store, NULL, NULL);
	rival = log_open(bucket->backend, NULL, NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(append_good(hooked_log, 0), i + 1);
	others_prune(bucket);
	assert_int_equal(append_good(hooked_log, 0), 81);
	bucket_assert(bucket, "log/000000000006.msgpack", NULL);
	assert_each_once(bucket, NULL, 1);
	cairn_log_free(rival);
	cairn_log_free(hooked_log);
}

static void test_committer_takes_back_an_old_number_won_by_a_slow_put(void **state)
{
	struct bucket *bucket = *state;
	hooked_log = log_open(bucket->store, NULL, NULL);
	rival = log_open(bucket->backend, NULL, NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(append_good(hooked_log, 0), i + 1);
	bucket_hook_puts(bucket, 1, others_prune, NULL);
	assert_int_equal(append_good(hooked_log, 0), 81);
	assert_int_equal(bucket->runs, 1);
	bucket_assert(bucket, "log/000000000006.msgpack", NULL);
	assert_each_once(bucket, NULL, 1);
	cairn_log_free(rival);
	cairn_log_free(hooked_log);
}

static void test_committer_an_old_number_not_taken_back_is_unknown(void **state)
{
	struct bucket *bucket = *state;
	hooked_log = log_open(bucket->bare, NULL, NULL);
	rival = log_open(bucket->backend, NULL, NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(append_good(hooked_log, 0), i + 1);
	bucket_hook_puts(bucket, 1, others_prune, NULL);
	bucket_fail(bucket, CAIRN_OPERATION_DELETE, 0, CAIRN_IO, false);
	assert_status(&bucket->call, append_id(hooked_log, &bucket->call, "t", 0, NULL),
		      CAIRN_UNKNOWN);
	cairn_log_free(rival);
	cairn_log_free(hooked_log);
}

static void others_go_on(struct bucket *bucket)
{
	fill_to(rival, 12);
	snapshot_at(bucket, 10);
	prune_to(bucket, 5);
	sleep_long(hooked_log);
}

static void test_committer_keeps_a_number_that_a_later_snapshot_covers(void **state)
{
	struct bucket *bucket = *state;
	hooked_log = log_open(bucket->store, NULL, NULL);
	rival = log_open(bucket->backend, NULL, NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(append_good(hooked_log, 0), i + 1);
	bucket_hook_puts(bucket, 1, NULL, others_go_on);
	assert_int_equal(append_good(hooked_log, 77), 6);
	assert_commit(bucket, NULL, 6, "77");
	cairn_log_free(rival);
	cairn_log_free(hooked_log);
}

static void only_slow(struct bucket *bucket)
{
	(void)bucket;
	sleep_long(hooked_log);
}

static void test_committer_a_slow_put_asks_at_most_twice_more(void **state)
{
	struct bucket *bucket = *state;
	hooked_log = log_open(bucket->store, NULL, NULL);
	assert_int_equal(append_good(hooked_log, 0), 1);
	uint64_t lists = bucket_calls(bucket, CAIRN_OPERATION_LIST);
	bucket_hook_puts(bucket, 1, only_slow, NULL);
	assert_int_equal(append_good(hooked_log, 1), 2);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 2);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_LIST), lists + 1);
	assert_each_once(bucket, NULL, 2);
	cairn_log_free(hooked_log);
}

/* --- Many writers --------------------------------------------------------------------------- */

#define WRITERS 8

struct writer {
	pthread_t thread;
	struct cairn_log *log;
	_Atomic int *left; /* appends of all writers together; NULL: `count` of its own */
	int first;
	int count;
	int done;
};

static void *run_writer(void *context)
{
	struct writer *writer = context;
	while (writer->left ? atomic_fetch_sub(writer->left, 1) > 0
			    : writer->done < writer->count) {
		(void)append_good(writer->log, writer->first + writer->done);
		writer->done++;
	}
	return NULL;
}

static void test_committer_no_writer_starves(void **state)
{
	struct bucket *bucket = *state;
	struct writer writers[WRITERS];
	_Atomic int left = 1600;
	int least = INT32_MAX, most = 0;
	/* A put takes time, or whoever has the processor wins them all. */
	const struct cairn_fault_rule rule = {
		.operations = 1u << CAIRN_OPERATION_PUT,
		.delay_before = 300,
		.delay_after = 200,
	};
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &rule), CAIRN_OK);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .left = &left, .first = 10000 * i };
		writers[i].log = log_open(bucket->store, NULL, NULL);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]),
				 0);
	}
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		least = writers[i].done < least ? writers[i].done : least;
		most = writers[i].done > most ? writers[i].done : most;
		cairn_log_free(writers[i].log);
	}
	if (least * 5 < most)
		fail_msg("the slowest has %d, the fastest %d", least, most);
}

static void test_committer_threads_append_each_event_once(void **state)
{
	struct bucket *bucket = *state;
	struct writer writers[WRITERS];
	/* Four share a handle, the others have their own; answers get lost. */
	struct cairn_log *logs[5];
	const struct cairn_fault_rule rule = {
		.operations = 1u << CAIRN_OPERATION_PUT,
		.permille = 10,
		.status = CAIRN_UNKNOWN,
		.act = true,
	};
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &rule), CAIRN_OK);
	for (int i = 0; i < 5; i++)
		logs[i] = log_open(bucket->store, "orders", NULL);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .first = 100 * i, .count = 100 };
		writers[i].log = logs[i < 4 ? 0 : i - 3];
		assert_int_equal(pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]),
				 0);
	}
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
	for (int i = 0; i < 5; i++)
		cairn_log_free(logs[i]);
	bucket_heal(bucket);
	assert_each_once(bucket, "orders", 100 * WRITERS);
}

/* A process of its own, which has inherited no thread. Never returns. */
static void run_process(const char *directory, int first)
{
	struct cairn_store *store;
	struct writer writers[2];
	if (cairn_store_open(directory, NULL, &store, NULL))
		_exit(1);
	struct cairn_log *log = log_open(store, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		writers[i] = (struct writer){ .log = log, .first = first + 100 * i, .count = 100 };
		if (pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]))
			_exit(1);
	}
	for (int i = 0; i < 2; i++)
		(void)pthread_join(writers[i].thread, NULL);
	_exit(writers[0].done == 100 && writers[1].done == 100 ? 0 : 1);
}

static void test_committer_processes_append_each_event_once(void **state)
{
	struct bucket *bucket = *state;
	pid_t processes[4];
	for (int i = 0; i < 4; i++) {
		processes[i] = fork();
		assert_true(processes[i] >= 0);
		if (processes[i] == 0)
			run_process(bucket->directory, 200 * i);
	}
	for (int i = 0; i < 4; i++) {
		int result;
		assert_int_equal(waitpid(processes[i], &result, 0), processes[i]);
		assert_int_equal(result, 0);
	}
	assert_each_once(bucket, NULL, 800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_committer_shares_commits_while_a_put_is_under_way),
		BUCKET_TESTS(test_committer_merges_whole_appends_up_to_its_limit),
		BUCKET_TESTS(test_committer_waits_for_a_batch_no_longer_than_needed),
		BUCKET_TESTS(test_committer_asks_once_a_commit),
		BUCKET_TESTS(test_committer_believes_a_hint_only_if_it_is_true),
		BUCKET_TESTS(test_committer_loser_goes_behind_the_winner),
		BUCKET_TESTS(test_committer_catches_up_with_many),
		BUCKET_TESTS(test_committer_fails_at_the_deadline_or_after_its_attempts),
		BUCKET_TESTS(test_committer_queued_append_can_be_cancelled_and_late),
		BUCKET_TESTS(test_committer_close_drains),
		BUCKET_TESTS(test_committer_bad_events_are_refused_before_anything),
		BUCKET_TESTS(test_committer_revalidates_after_a_lost_race),
		BUCKET_TESTS(test_committer_commits_nothing_when_all_is_rejected),
		BUCKET_TESTS(test_committer_appends_at_a_number_or_not_at_all),
		BUCKET_TESTS(test_committer_lost_answers_append_each_event_once),
		BUCKET_TESTS(test_committer_lost_answer_of_a_put_that_lost),
		BUCKET_TESTS(test_committer_an_unknown_outcome_is_told),
		BUCKET_TESTS(test_committer_collisions_are_tried_again),
		BUCKET_TESTS(test_committer_never_wins_an_old_number_after_sleeping),
		BUCKET_TESTS(test_committer_takes_back_an_old_number_won_by_a_slow_put),
		BUCKET_TESTS(test_committer_an_old_number_not_taken_back_is_unknown),
		BUCKET_TESTS(test_committer_keeps_a_number_that_a_later_snapshot_covers),
		BUCKET_TESTS(test_committer_a_slow_put_asks_at_most_twice_more),
		BUCKET_TESTS(test_committer_no_writer_starves),
		BUCKET_TESTS(test_committer_threads_append_each_event_once),
		cmocka_unit_test_setup_teardown(test_committer_processes_append_each_event_once,
						bucket_setup_directory, bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
