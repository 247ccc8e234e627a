/* SPDX-License-Identifier: MIT */
#include "reads.h"

#include <poll.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#define READS_PER_KEY 64
#define READS_IN_ALL  16384

#define AWAIT_READERS 8
#define AWAIT_MS      250

struct reader {
	TAILQ_ENTRY(reader) next;
	uint64_t read; /* when, by the table's clock */
	uint64_t used; /* when it was made a base or found tangled; 0: not yet */
	bool refused;  /* used for what was refused outright: reads_refuse */
	bool awaited;  /* its end was waited for: once is enough for a process that lives on */
	char version[READS_VERSION_SIZE];
	unsigned count; /* its lineage, without the unused places */
	struct process chain[];
};

/* The readers of one key, longest untouched first; so are the keys in the table. */
struct key {
	TAILQ_ENTRY(key) next;
	TAILQ_HEAD(, reader) readers;
	unsigned count;
	char *name;
};

struct reads {
	pthread_mutex_t mutex; /* guards all below */
	uint64_t clock;
	unsigned count;
	void *names; /* keys by name: a tree of search.h */
	TAILQ_HEAD(, key) keys;
};

/* One reader, as the writer sees it. */
struct kin {
	struct reader *reader;
	unsigned at;	      /* the common ancestor's place above the writer */
	unsigned depth;	      /* its place above the reader */
	struct process below; /* the ancestor's child towards the reader, unless depth is 0 */
};

struct choice {
	unsigned count; /* the reads that make the base: equally near, of one version or tangled */
	struct reader *base[READS_PER_KEY];
	uint64_t spent;		/* when the newest used read was used that hides what is farther */
	struct reader *hiding;	/* that one */
	unsigned awaited_count; /* living readers, nearer than the base, that may be about to end */
	struct reader *awaited_readers[AWAIT_READERS];
	struct process awaited[AWAIT_READERS]; /* their kin.below */
};

static int compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct key *)a)->name, ((const struct key *)b)->name);
}

static struct key *find_key(struct reads *reads, const char *name)
{
	struct key wanted = { .name = (char *)name };

	void *found = tfind(&wanted, &reads->names, compare_keys);
	return found ? *(struct key **)found : NULL;
}

static struct key *add_key(struct reads *reads, const char *name)
{
	struct key *key = calloc(1, sizeof(*key));

	if (!key)
		return NULL;
	TAILQ_INIT(&key->readers);
	key->name = strdup(name);
	if (!key->name || !tsearch(key, &reads->names, compare_keys)) {
		free(key->name);
		free(key);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&reads->keys, key, next);
	return key;
}

static void remove_reader(struct reads *reads, struct key *key, struct reader *reader)
{
	TAILQ_REMOVE(&key->readers, reader, next);
	key->count--;
	reads->count--;
	free(reader);
}

static void remove_key(struct reads *reads, struct key *key)
{
	struct reader *reader;

	while ((reader = TAILQ_FIRST(&key->readers)))
		remove_reader(reads, key, reader);
	tdelete(key, &reads->names, compare_keys);
	TAILQ_REMOVE(&reads->keys, key, next);
	free(key->name);
	free(key);
}

static bool same(struct process a, struct process b)
{
	return a.pid == b.pid && a.start == b.start;
}

/* Both used, or both not, and of one parent. */
static bool alike(const struct reader *a, const struct reader *b)
{
	return !a->used == !b->used && a->count > 1 && b->count > 1 &&
	       same(a->chain[1], b->chain[1]);
}

static struct reader *next_alike(const struct reader *reader)
{
	struct reader *other = TAILQ_NEXT(reader, next);

	while (other && !alike(reader, other))
		other = TAILQ_NEXT(other, next);
	return other;
}

/*
 * Makes room for one more reader, so that hardly anything which is forgotten makes a tangle look
 * like a base, or lets a retry borrow another job's read. Of the used reads under one parent the
 * newest hides, from that parent and its other children, as much as all; of the unused the oldest
 * and the newest are as tangled as all. Only when there are none to spare goes the oldest used one,
 * else the oldest with all that it might tangle with.
 */
static void forget_one(struct reads *reads, struct key *key)
{
	struct reader *reader, *other, *used = NULL;

	TAILQ_FOREACH(reader, &key->readers, next)
	{
		if (reader->used && !used)
			used = reader;
		if (!(other = next_alike(reader)))
			continue;
		if (!reader->used && !next_alike(other))
			continue;
		remove_reader(reads, key, reader->used ? reader : other);
		return;
	}
	reader = used ? used : TAILQ_FIRST(&key->readers);
	while (!used && (other = next_alike(reader)))
		remove_reader(reads, key, other);
	remove_reader(reads, key, reader);
}

struct reads *reads_new(void)
{
	struct reads *reads = calloc(1, sizeof(*reads));

	if (!reads)
		return NULL;
	TAILQ_INIT(&reads->keys);
	pthread_mutex_init(&reads->mutex, NULL);
	return reads;
}

void reads_free(struct reads *reads)
{
	struct key *key;

	if (!reads)
		return;
	while ((key = TAILQ_FIRST(&reads->keys)))
		remove_key(reads, key);
	pthread_mutex_destroy(&reads->mutex);
	free(reads);
}

static struct reader *new_reader(const struct lineage *lineage, const char *version)
{
	size_t chain = lineage->count * sizeof(lineage->chain[0]);
	struct reader *reader = calloc(1, sizeof(*reader) + chain);

	if (!reader)
		return NULL;
	memcpy(reader->version, version, strlen(version));
	reader->count = lineage->count;
	memcpy(reader->chain, lineage->chain, chain);
	return reader;
}

void reads_record(struct reads *reads, const char *name, const struct lineage *lineage,
		  const char *version)
{
	struct reader *earlier;

	if (lineage->count == 0)
		return;
	/* A version that is too long to compare is none, but the earlier read is over all the same.
	 */
	struct reader *reader = strlen(version) < READS_VERSION_SIZE ? new_reader(lineage, version)
								     : NULL;

	pthread_mutex_lock(&reads->mutex);
	struct key *key = find_key(reads, name);
	if (!key && reader)
		key = add_key(reads, name);
	if (!key) {
		free(reader);
		goto out;
	}
	TAILQ_FOREACH(earlier, &key->readers, next)
	{
		if (same(earlier->chain[0], lineage->chain[0])) {
			if (reader)
				reader->awaited = earlier->awaited;
			remove_reader(reads, key, earlier);
			break;
		}
	}
	if (reader) {
		if (key->count >= READS_PER_KEY)
			forget_one(reads, key);
		reader->read = ++reads->clock;
		TAILQ_INSERT_TAIL(&key->readers, reader, next);
		key->count++;
		reads->count++;
	}
	TAILQ_REMOVE(&reads->keys, key, next);
	TAILQ_INSERT_TAIL(&reads->keys, key, next);
	/* Whole keys, for the reason that forget_one gives; never this one, the last. */
	while (reads->count > READS_IN_ALL)
		remove_key(reads, TAILQ_FIRST(&reads->keys));
	if (key->count == 0)
		remove_key(reads, key);
out:
	pthread_mutex_unlock(&reads->mutex);
}

static int compare_kin(const void *a, const void *b)
{
	const struct kin *left = a, *right = b;

	return (left->at > right->at) - (left->at < right->at);
}

/* The readers that are related to the writer, the nearest first. Returns how many. */
static unsigned find_kin(const struct key *key, const struct lineage *writer, struct kin *ret)
{
	struct reader *reader;
	struct lineage lineage;
	unsigned count = 0;

	TAILQ_FOREACH(reader, &key->readers, next)
	{
		struct kin kin = { .reader = reader };

		lineage.count = reader->count;
		memcpy(lineage.chain, reader->chain, reader->count * sizeof(reader->chain[0]));
		if (!lineage_common(writer, &lineage, &kin.at, &kin.depth))
			continue;
		if (kin.depth)
			kin.below = reader->chain[kin.depth - 1];
		ret[count++] = kin;
	}
	qsort(ret, count, sizeof(*ret), compare_kin);
	return count;
}

/*
 * A living child of the common ancestor is another job, or a filter that is about to end: its
 * output is closed, else the writer would not have the whole content. It is the reader itself or
 * a subshell made for it.
 */
static void add_awaited(const struct kin *kin, struct choice *choice)
{
	if (kin->depth > 2 || kin->reader->used || kin->reader->awaited ||
	    choice->awaited_count == AWAIT_READERS)
		return;
	choice->awaited_readers[choice->awaited_count] = kin->reader;
	choice->awaited[choice->awaited_count++] = kin->below;
}

/*
 * The nearest reads that count. Asks /proc, under the mutex, whether those under a child of the
 * common ancestor are another job's: the only system calls there, they wait for nobody, and a
 * process that has read for itself, the usual case, needs none.
 */
static void choose(const struct key *key, const struct lineage *writer, struct choice *ret)
{
	struct kin kin[READS_PER_KEY];

	*ret = (struct choice){ 0 };
	if (!key || !writer)
		return;
	unsigned count = find_kin(key, writer, kin);
	for (unsigned i = 0; i < count && !ret->count;) {
		unsigned level = kin[i].at;
		uint64_t spent = ret->spent; /* equally near ones hide nothing */
		unsigned awaited_count = ret->awaited_count;
		for (; i < count && kin[i].at == level; i++) {
			struct reader *reader = kin[i].reader;
			if (spent && !(kin[i].depth == 0 && reader->read > spent))
				continue;
			if (kin[i].depth && process_alive(kin[i].below)) {
				add_awaited(&kin[i], ret);
			} else if (!reader->used) {
				ret->base[ret->count++] = reader;
			} else if (reader->used > ret->spent) {
				ret->spent = reader->used;
				ret->hiding = reader;
			}
		}
		if (ret->count)
			ret->awaited_count = awaited_count;
	}
}

static enum reads_base judge(const struct choice *choice, char ret_version[READS_VERSION_SIZE])
{
	if (choice->count == 0)
		return choice->hiding && choice->hiding->refused ? READS_REFUSED : READS_NONE;
	for (unsigned i = 1; i < choice->count; i++)
		if (strcmp(choice->base[i]->version, choice->base[0]->version) != 0)
			return READS_TANGLED;
	memcpy(ret_version, choice->base[0]->version, strlen(choice->base[0]->version) + 1);
	return READS_VERSION;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits, without the mutex, until the processes have ended, at most until the deadline. */
static void await(const struct process *processes, unsigned count, int64_t deadline)
{
	for (unsigned i = 0; i < count; i++) {
		struct pollfd end = { .fd = pidfd_open(processes[i].pid, 0), .events = POLLIN };
		if (end.fd < 0)
			continue;
		/* Only now: the descriptor may be that of a later process of this pid. */
		int64_t left = deadline - now_ms();
		if (left > 0 && process_alive(processes[i]))
			(void)poll(&end, 1, (int)left);
		close(end.fd);
	}
}

/* The reads of a choice are used from now on. The table's mutex is held. */
static void use_up(struct reads *reads, struct key *key, const struct choice *choice, bool refused)
{
	if (choice->count)
		reads->clock++;
	for (unsigned i = 0; i < choice->count; i++) {
		choice->base[i]->used = reads->clock;
		choice->base[i]->refused = refused;
		/* The list is by last use. */
		TAILQ_REMOVE(&key->readers, choice->base[i], next);
		TAILQ_INSERT_TAIL(&key->readers, choice->base[i], next);
	}
}

enum reads_base reads_base(struct reads *reads, const char *name, const struct lineage *writer,
			   const struct lineage *renamer, char ret_version[READS_VERSION_SIZE])
{
	int64_t deadline = now_ms() + AWAIT_MS;
	struct choice choice;
	struct key *key;

	pthread_mutex_lock(&reads->mutex);
	for (;;) {
		key = find_key(reads, name);
		choose(key, writer, &choice);
		if (!choice.count && !choice.spent && !choice.awaited_count)
			choose(key, renamer, &choice);
		if (!choice.awaited_count || now_ms() >= deadline)
			break;
		for (unsigned i = 0; i < choice.awaited_count; i++)
			choice.awaited_readers[i]->awaited = true;
		pthread_mutex_unlock(&reads->mutex);
		await(choice.awaited, choice.awaited_count, deadline);
		pthread_mutex_lock(&reads->mutex);
	}
	enum reads_base base = judge(&choice, ret_version);
	use_up(reads, key, &choice, false);
	pthread_mutex_unlock(&reads->mutex);
	return base;
}

void reads_refuse(struct reads *reads, const char *name, const struct lineage *asker)
{
	struct choice choice;

	pthread_mutex_lock(&reads->mutex);
	struct key *key = find_key(reads, name);
	choose(key, asker, &choice);
	use_up(reads, key, &choice, true);
	if (!choice.count && choice.hiding)
		choice.hiding->refused = true;
	pthread_mutex_unlock(&reads->mutex);
}

bool reads_peek(struct reads *reads, const char *name, const struct lineage *asker,
		char ret_version[READS_VERSION_SIZE])
{
	struct choice choice;

	pthread_mutex_lock(&reads->mutex);
	choose(find_key(reads, name), asker, &choice);
	bool known = judge(&choice, ret_version) == READS_VERSION;
	pthread_mutex_unlock(&reads->mutex);
	return known;
}

void reads_forget(struct reads *reads, const char *name)
{
	pthread_mutex_lock(&reads->mutex);
	struct key *key = find_key(reads, name);
	if (key)
		remove_key(reads, key);
	pthread_mutex_unlock(&reads->mutex);
}
