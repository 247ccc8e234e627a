/* SPDX-License-Identifier: MIT */
#include "leases_private.h"

#include <inttypes.h>
#include <stdlib.h>

#define SECOND ((int64_t)1000 * 1000)

/* When a period is renewed: a third of its ttl after the last time, which its own deadline tells.
 */
static int64_t next_beat(struct lease_period *period)
{
	int64_t until;
	(void)lease_period_holds(period, &until);
	return until - period->ttl / 3 * 2;
}

/* Sooner than the next beat: a failure is tried again, a stopped opener may go on. */
static int64_t next_look(const struct lease_period *period)
{
	int64_t pause = period->ttl / 12;
	if (pause > SECOND)
		pause = SECOND;
	if (pause < SECOND / 50)
		pause = SECOND / 50;
	return cairn_clock() + pause;
}

/* Keep the heart beating, or give the task's reference back. */
static void beat_at(struct lease_period *period, int64_t due)
{
	struct lease_key *key = period->key;
	pthread_mutex_lock(&key->mutex);
	bool beats = lease_period_ended(period) == LEASE_RUNS &&
		     waiters_schedule(key->fs->waiters, &period->heartbeat, due);
	pthread_mutex_unlock(&key->mutex);
	if (!beats)
		lease_period_unref(period);
}

static void beat(struct task *task)
{
	struct lease_period *period =
		(struct lease_period *)((char *)task - offsetof(struct lease_period, heartbeat));
	struct lease_key *key = period->key;
	struct filesystem *fs = key->fs;
	pthread_mutex_lock(&key->mutex);
	bool runs = lease_period_ended(period) == LEASE_RUNS;
	int64_t due = next_beat(period);
	pthread_mutex_unlock(&key->mutex);
	if (!runs) {
		lease_period_unref(period);
		return;
	}
	if (due > cairn_clock()) { /* renewed by user.cairn.renew */
		beat_at(period, due);
		return;
	}
	/* A paused process must lose its lease, as the protocol promises. */
	if (period->opener.pid && process_stopped(period->opener)) {
		beat_at(period, next_look(period));
		return;
	}
	int64_t patience = period->ttl < fs->options.timeout ? period->ttl : fs->options.timeout;
	struct cairn_call call = { .deadline = cairn_clock() + patience };
	int status = lease_period_renew(period, &call, true);
	if (status == CAIRN_LOST) {
		lease_period_unref(period);
		return;
	}
	if (status)
		log_line(fs->log, "leases/%s: epoch %" PRId64 " could not be renewed: %s",
			 key->name, cairn_lease_epoch(period->lease), call.error.text);
	pthread_mutex_lock(&key->mutex);
	due = status ? next_look(period) : next_beat(period);
	pthread_mutex_unlock(&key->mutex);
	beat_at(period, due);
}

struct lease_period *lease_period_new(struct lease_open *open, struct cairn_lease *lease,
				      int64_t ttl)
{
	struct lease_period *period = calloc(1, sizeof(*period));
	if (!period) {
		cairn_lease_free(lease);
		return NULL;
	}
	period->references = 2; /* the caller's and the heartbeat's */
	period->key = lease_key_ref(open->key);
	period->lease = lease;
	period->ttl = ttl;
	if (open->opener.count)
		period->opener = open->opener.chain[0];
	period->heartbeat.run = beat;
	period->key->leases->held++;
	pthread_mutex_lock(&period->key->mutex);
	int64_t due = next_beat(period);
	pthread_mutex_unlock(&period->key->mutex);
	beat_at(period, due);
	return period;
}

struct lease_period *lease_period_ref(struct lease_period *period)
{
	period->references++;
	return period;
}

void lease_period_unref(struct lease_period *period)
{
	if (!period || --period->references)
		return;
	if (period->end == LEASE_RUNS)
		period->key->leases->held--;
	cairn_lease_free(period->lease);
	content_unref(period->base);
	lease_key_put(period->key);
	free(period);
}

void lease_period_quiet(struct lease_period *period)
{
	if (waiters_cancel(period->key->fs->waiters, &period->heartbeat))
		lease_period_unref(period);
}

bool lease_period_end(struct lease_period *period, enum lease_end how)
{
	if (period->end != LEASE_RUNS)
		return false;
	period->end = how;
	period->key->leases->held--;
	lease_period_quiet(period); /* not the last reference: the caller's is another */
	return true;
}

enum lease_end lease_period_ended(struct lease_period *period)
{
	if (cairn_lease_ended(period->lease))
		(void)lease_period_end(period, LEASE_LOST);
	return period->end;
}

void lease_period_lost(struct lease_period *period, const char *how)
{
	struct lease_key *key = period->key;
	pthread_mutex_lock(&key->mutex);
	/* Whoever looked at it since the engine knew has ended it without a word. */
	bool told = period->told || period->end == LEASE_UNLOCKED || period->end == LEASE_RELEASED;
	period->told = true;
	(void)lease_period_end(period, LEASE_LOST);
	lease_poll_hurry(key);
	pthread_mutex_unlock(&key->mutex);
	if (how && !told)
		log_line(key->fs->log, "leases/%s: %s", key->name, how);
}

int lease_period_renew(struct lease_period *period, struct cairn_call *call, bool say)
{
	int status = cairn_lease_renew(period->lease, call);
	if (status == CAIRN_LOST)
		lease_period_lost(period, say ? call->error.text : NULL);
	return status;
}
