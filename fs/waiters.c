/* SPDX-License-Identifier: MIT */
#include "waiters.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <cairn/store.h>

#define THREADS_MAX 16

struct waiters {
	pthread_mutex_t mutex; /* guards the heap and the flag; not held while a task runs */
	pthread_cond_t changed;
	struct task **heap; /* [1] is due first; heap[i]->position == i */
	int count, capacity;
	bool stopping;
	unsigned threads;
	pthread_t thread[THREADS_MAX];
};

static void place(struct waiters *waiters, struct task *task, int at)
{
	waiters->heap[at] = task;
	task->position = at;
}

/* Restore the heap's order around `at`, whose task's due time has changed. */
static void settle(struct waiters *waiters, int at)
{
	struct task *task = waiters->heap[at];
	while (at > 1 && waiters->heap[at / 2]->due > task->due) {
		place(waiters, waiters->heap[at / 2], at);
		at /= 2;
	}
	for (int child; (child = 2 * at) <= waiters->count; at = child) {
		if (child < waiters->count &&
		    waiters->heap[child + 1]->due < waiters->heap[child]->due)
			child++;
		if (waiters->heap[child]->due >= task->due)
			break;
		place(waiters, waiters->heap[child], at);
	}
	place(waiters, task, at);
}

static void take(struct waiters *waiters, struct task *task)
{
	int at = task->position;
	struct task *last = waiters->heap[waiters->count--];
	task->position = 0;
	if (last != task) {
		place(waiters, last, at);
		settle(waiters, at);
	}
}

static void *serve(void *argument)
{
	struct waiters *waiters = argument;
	pthread_mutex_lock(&waiters->mutex);
	while (!waiters->stopping) {
		if (!waiters->count) {
			pthread_cond_wait(&waiters->changed, &waiters->mutex);
			continue;
		}
		struct task *task = waiters->heap[1];
		if (task->due > cairn_clock()) {
			struct timespec until = { .tv_sec = task->due / 1000000,
						  .tv_nsec = task->due % 1000000 * 1000 };
			(void)pthread_cond_timedwait(&waiters->changed, &waiters->mutex, &until);
			continue;
		}
		take(waiters, task);
		pthread_mutex_unlock(&waiters->mutex);
		task->run(task);
		pthread_mutex_lock(&waiters->mutex);
	}
	pthread_mutex_unlock(&waiters->mutex);
	return NULL;
}

struct waiters *waiters_new(unsigned threads)
{
	struct waiters *waiters = calloc(1, sizeof(*waiters));
	if (!waiters)
		return NULL;
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&waiters->mutex, NULL);
	pthread_cond_init(&waiters->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	for (; waiters->threads < threads && waiters->threads < THREADS_MAX; waiters->threads++)
		if (pthread_create(&waiters->thread[waiters->threads], NULL, serve, waiters) != 0)
			break;
	if (!waiters->threads) {
		waiters_free(waiters);
		return NULL;
	}
	return waiters;
}

void waiters_stop(struct waiters *waiters)
{
	pthread_mutex_lock(&waiters->mutex);
	waiters->stopping = true;
	pthread_cond_broadcast(&waiters->changed);
	pthread_mutex_unlock(&waiters->mutex);
	for (unsigned i = 0; i < waiters->threads; i++)
		pthread_join(waiters->thread[i], NULL);
	waiters->threads = 0;
}

void waiters_free(struct waiters *waiters)
{
	if (!waiters)
		return;
	pthread_cond_destroy(&waiters->changed);
	pthread_mutex_destroy(&waiters->mutex);
	free(waiters->heap);
	free(waiters);
}

bool waiters_schedule(struct waiters *waiters, struct task *task, int64_t due)
{
	bool done = false;
	pthread_mutex_lock(&waiters->mutex);
	if (waiters->stopping)
		goto out;
	if (!task->position) {
		if (waiters->count + 1 >= waiters->capacity) {
			int capacity = waiters->capacity ? waiters->capacity * 2 : 64;
			struct task **heap =
				realloc(waiters->heap, (size_t)capacity * sizeof(*heap));
			if (!heap)
				goto out;
			waiters->heap = heap;
			waiters->capacity = capacity;
		}
		place(waiters, task, ++waiters->count);
	}
	task->due = due;
	settle(waiters, task->position);
	pthread_cond_signal(&waiters->changed);
	done = true;
out:
	pthread_mutex_unlock(&waiters->mutex);
	return done;
}

void waiters_hurry(struct waiters *waiters, struct task *task, int64_t due)
{
	pthread_mutex_lock(&waiters->mutex);
	if (task->position && task->due > due) {
		task->due = due;
		settle(waiters, task->position);
		pthread_cond_signal(&waiters->changed);
	}
	pthread_mutex_unlock(&waiters->mutex);
}

bool waiters_cancel(struct waiters *waiters, struct task *task)
{
	pthread_mutex_lock(&waiters->mutex);
	bool scheduled = task->position != 0;
	if (scheduled)
		take(waiters, task);
	pthread_mutex_unlock(&waiters->mutex);
	return scheduled;
}
