/* SPDX-License-Identifier: MIT */
#include "leases_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define SECOND	  ((int64_t)1000 * 1000)
#define PAUSE_MIN (SECOND / 10)
#define PAUSE_MAX (2 * SECOND)

/* How long a try that may not wait gives a descriptor that is being closed: RELEASE comes late. */
#define CLOSING (SECOND / 10)

/*
 * Waiters here hand the lease on to each other for so long; then it is given back and left alone
 * for a moment, so that waiters of other hosts, who look more often while epochs pass, get it.
 */
#define TENURE (2 * SECOND)
#define GAP    (SECOND / 6)

/* A request that was interrupted and does not come again, though its process runs, gave up. */
#define PLACE_KEPT SECOND

/* A lock request that waits, or its place. */
struct lease_waiter {
	TAILQ_ENTRY(lease_waiter) next;
	struct lease_key *key;
	struct lease_open *open;
	struct lock_owner owner;
	struct lease_settings wanted; /* a copy: nobody changes it while the lock is tried */
	bool nowait;
	int64_t until; /* of nowait: to be answered at once from then on */
	/* guarded by key->mutex */
	enum {
		WAITER_NEW,    /* its thread is not done with it */
		WAITER_QUEUED, /* whoever takes it out of the queue answers it */
		WAITER_TRIED,  /* a thread asks the store for it, and answers it */
		WAITER_PLACE,  /* answered with EINTR: SIGSTOP and SIGCONT issue it again */
	} state;
	bool interrupted;
	int answer; /* once it is out of the queue */
	fuse_req_t fuse;
	struct process process; /* whose place it is; pid 0: not known */
	int64_t left;		/* when it was interrupted */
};

static bool same_owner(struct lock_owner a, struct lock_owner b)
{
	return a.flock == b.flock && a.owner == b.owner;
}

static void grant_free(struct lease_grant *grant)
{
	lease_period_unref(grant->period);
	free(grant);
}

/* The lock is `open`'s. key->mutex is held; `grant` and the period's reference go over. */
static void grant_add(struct lease_key *key, struct lease_grant *grant, struct lease_open *open,
		      struct lock_owner owner, struct lease_period *period)
{
	*grant = (struct lease_grant){ .open = open, .owner = owner, .period = period };
	TAILQ_INSERT_TAIL(&key->grants, grant, next);
	lease_period_unref(open->period);
	open->period = lease_period_ref(period);
	open->locked = true;
}

/* The lock that `owner` has, if it holds. */
static struct lease_grant *grant_of(struct lease_key *key, struct lock_owner owner)
{
	struct lease_grant *grant;
	TAILQ_FOREACH(grant, &key->grants, next)
	if (same_owner(grant->owner, owner) && lease_period_holds(grant->period, NULL))
		return grant;
	return NULL;
}

/* A lock of somebody here that stands in the way; *ret_until: until then, if it is not renewed. */
static struct lease_grant *blocking(struct lease_key *key, int64_t *ret_until)
{
	struct lease_grant *grant;
	TAILQ_FOREACH(grant, &key->grants, next)
	if (lease_period_holds(grant->period, ret_until))
		return grant;
	return NULL;
}

/* The queue */

/* Take the waiter out of the queue; its answer is the caller's. key->mutex is held. */
static void waiter_remove(struct lease_key *key, struct lease_waiter *waiter)
{
	TAILQ_REMOVE(&key->waiters, waiter, next);
	if (waiter->state != WAITER_PLACE)
		key->leases->waiting--;
}

static void waiter_free(struct lease_waiter *waiter)
{
	lease_settings_release(&waiter->wanted);
	free(waiter);
}

/* Answer a waiter that was removed; no mutex is held. */
static void waiter_answer(struct lease_waiter *waiter, int error)
{
	/* Waits for an interrupt that is being handled: afterwards nobody has the waiter. */
	fuse_req_interrupt_func(waiter->fuse, NULL, NULL);
	(void)fuse_reply_err(waiter->fuse, error);
	waiter_free(waiter);
}

/* The request is to be answered with EINTR; its place in the queue is kept. key->mutex is held. */
static void keep_place(struct lease_waiter *waiter)
{
	waiter->state = WAITER_PLACE;
	waiter->fuse = NULL;
	waiter->left = cairn_clock();
	waiter->key->leases->waiting--;
}

/* libfuse holds the request's lock, so that it is not freed under us. */
static void interrupted(fuse_req_t fuse, void *context)
{
	struct lease_waiter *waiter = context;
	struct lease_key *key = waiter->key;
	pthread_mutex_lock(&key->mutex);
	waiter->interrupted = true;
	bool queued = waiter->state == WAITER_QUEUED;
	if (queued)
		keep_place(waiter);
	pthread_mutex_unlock(&key->mutex);
	if (queued)
		(void)fuse_reply_err(fuse, EINTR);
}

/* Places whose process does not come back. Asks /proc under the mutex: it waits for nobody. */
static void drop_places(struct lease_key *key)
{
	struct lease_waiter *waiter, *later;
	for (waiter = TAILQ_FIRST(&key->waiters); waiter; waiter = later) {
		later = TAILQ_NEXT(waiter, next);
		if (waiter->state != WAITER_PLACE || cairn_clock() - waiter->left < PLACE_KEPT ||
		    (waiter->process.pid && process_stopped(waiter->process)))
			continue;
		waiter_remove(key, waiter);
		waiter_free(waiter);
	}
}

static struct lease_waiter *first_queued(struct lease_key *key)
{
	struct lease_waiter *waiter;
	TAILQ_FOREACH(waiter, &key->waiters, next)
	if (waiter->state == WAITER_QUEUED)
		return waiter;
	return NULL;
}

/* Somebody waits in front of `place` (NULL: at all) and is not stopped. */
static bool somebody_before(struct lease_key *key, const struct lease_waiter *place)
{
	struct lease_waiter *waiter;
	TAILQ_FOREACH(waiter, &key->waiters, next)
	{
		if (waiter == place)
			return false;
		if (waiter->state != WAITER_PLACE && !waiter->nowait)
			return true;
	}
	return false;
}

/* See who is to be tried, as soon as the pool can. key->mutex is held. */
static void poll_wake(struct lease_key *key)
{
	struct waiters *pool = key->fs->waiters;
	if (!first_queued(key))
		return;
	int64_t now = cairn_clock();
	if (key->polling) {
		/* When it runs already it comes to the mutex once more, and looks. */
		waiters_hurry(pool, &key->poll, now);
	} else if (waiters_schedule(pool, &key->poll, now)) {
		key->polling = true;
		(void)lease_key_ref(key);
	}
}

void lease_poll_hurry(struct lease_key *key)
{
	key->next_look = key->pause = 0;
	poll_wake(key);
}

/* When to ask again: a jittered pause that grows, or the holder's deadline when that is sooner. */
static void back_off(struct lease_key *key, const struct lease_look *look)
{
	int64_t now = cairn_clock();
	if (look->epoch && look->epoch != key->seen)
		key->pause = 0; /* it changes hands */
	key->seen = look->epoch;
	key->pause = key->pause ? key->pause * 2 : PAUSE_MIN;
	if (key->pause > PAUSE_MAX)
		key->pause = PAUSE_MAX;
	uint32_t half = (uint32_t)(key->pause / 2);
	key->next_look = now + half + arc4random_uniform(half);
	/* Hosts that wait for the same moment come one after the other. */
	if (look->free_at > now && look->free_at < key->next_look)
		key->next_look = look->free_at + arc4random_uniform(10000);
}

/* What one try came to, for a waiter in state WAITER_TRIED; no mutex is held on either side. */
static void settle(struct lease_key *key, struct lease_waiter *waiter, struct request *request,
		   int status, struct lease_period *period, const struct lease_look *look)
{
	struct lease_grant *grant = status ? NULL : malloc(sizeof(*grant));
	bool again = status == CAIRN_HELD && !waiter->nowait;
	bool was_interrupted;
	int error = !status && grant	   ? 0
		    : !status		   ? ENOMEM
		    : status == CAIRN_HELD ? EAGAIN
					   : request_failed(request, key->name, status, 0);
	if (!status && !grant) {
		lease_give_back(request, period);
		lease_period_unref(period);
	}
	pthread_mutex_lock(&key->mutex);
	if (!status && key->trying)
		key->since = cairn_clock();
	if (again)
		back_off(key, look);
	else
		key->next_look = key->pause = 0;
	was_interrupted = again && waiter->interrupted;
	if (again && !was_interrupted) {
		waiter->state = WAITER_QUEUED;
	} else if (!again) {
		waiter_remove(key, waiter);
		if (grant)
			grant_add(key, grant, waiter->open, waiter->owner, period);
	}
	pthread_mutex_unlock(&key->mutex);
	if (!again) {
		waiter_answer(waiter, error);
	} else if (was_interrupted) {
		fuse_req_t fuse = waiter->fuse;
		fuse_req_interrupt_func(fuse, NULL, NULL);
		pthread_mutex_lock(&key->mutex);
		keep_place(waiter);
		pthread_mutex_unlock(&key->mutex);
		(void)fuse_reply_err(fuse, EINTR);
	}
}

/*
 * Who is to be tried now, or NULL with *ret_due: when to look again, LEASE_NEVER when whoever is at
 * it will say so. Waiters whose answer is known move to `answered`: who may not wait, and threads
 * of an owner that has the lock by now. key->mutex is held.
 */
TAILQ_HEAD(lease_waiters, lease_waiter);
static struct lease_waiter *whose_turn(struct lease_key *key, struct lease_waiters *answered,
				       int64_t *ret_due)
{
	int64_t now = cairn_clock(), until = LEASE_NEVER;
	drop_places(key);
	*ret_due = LEASE_NEVER;
	struct lease_waiter *first = first_queued(key), *waiter, *later;
	if (!first || key->trying || key->releasing)
		return NULL;
	bool held = blocking(key, &until) != NULL;
	bool early = !first->nowait && now < key->next_look;
	if (!held && !early)
		return first;
	for (waiter = first; waiter; waiter = later) {
		later = TAILQ_NEXT(waiter, next);
		if (waiter->state != WAITER_QUEUED)
			continue;
		bool owns = held && grant_of(key, waiter->owner);
		if (!owns && !waiter->nowait)
			continue;
		if (!owns && held && now < waiter->until) {
			*ret_due = waiter->until < *ret_due ? waiter->until : *ret_due;
			continue;
		}
		waiter->answer = owns ? 0 : EAGAIN;
		waiter_remove(key, waiter);
		TAILQ_INSERT_TAIL(answered, waiter, next);
	}
	if (first_queued(key)) {
		int64_t next = held ? until + 1000 : key->next_look;
		*ret_due = next < *ret_due ? next : *ret_due;
	}
	return NULL;
}

static void poll_run(struct task *task)
{
	struct lease_key *key =
		(struct lease_key *)((char *)task - offsetof(struct lease_key, poll));
	int64_t due;
	struct lease_look look;
	for (;;) {
		struct lease_waiters answered = TAILQ_HEAD_INITIALIZER(answered);
		struct lease_waiter *waiter, *answer;
		struct lease_period *period = NULL;
		struct request request;
		pthread_mutex_lock(&key->mutex);
		waiter = whose_turn(key, &answered, &due);
		if (waiter) {
			waiter->state = WAITER_TRIED;
			key->trying = true;
			request_begin(&request, waiter->fuse);
		}
		bool done = !waiter && TAILQ_EMPTY(&answered);
		if (done && (due == LEASE_NEVER || !waiters_schedule(key->fs->waiters, task, due)))
			key->polling = false;
		bool last = !key->polling;
		pthread_mutex_unlock(&key->mutex);
		if (done) {
			if (last)
				lease_key_put(key);
			return;
		}
		while ((answer = TAILQ_FIRST(&answered))) {
			TAILQ_REMOVE(&answered, answer, next);
			waiter_answer(answer, answer->answer);
		}
		if (!waiter)
			continue;
		int status =
			lease_take(&request, waiter->open, &waiter->wanted, false, &period, &look);
		settle(key, waiter, &request, status, period, &look);
		pthread_mutex_lock(&key->mutex);
		key->trying = false;
		pthread_mutex_unlock(&key->mutex);
	}
}

void lease_poll_init(struct lease_key *key)
{
	key->poll.run = poll_run;
}

void lease_waiters_free(struct lease_key *key)
{
	struct lease_waiter *waiter;
	(void)waiters_cancel(key->fs->waiters, &key->poll);
	while ((waiter = TAILQ_FIRST(&key->waiters))) {
		waiter_remove(key, waiter);
		/* The kernel answers what is left open; EINTR without a signal would be none. */
		if (waiter->fuse)
			fuse_reply_none(waiter->fuse);
		waiter_free(waiter);
	}
}

/* Unlocking */

/*
 * The period of a lock that is gone: one compare-and-swap hands it over to `waiter`, the first that
 * waits here, or gives it back.
 */
static void end_period(struct request *request, struct lease_key *key, struct lease_period *period,
		       struct lease_waiter *waiter)
{
	if (!waiter) {
		lease_give_back(request, period);
		return;
	}
	const struct lease_settings *wanted = &waiter->wanted;
	const struct cairn_lease_options options = { .ttl = wanted->ttl, .holder = wanted->holder };
	struct cairn_lease *lease = NULL;
	struct lease_period *next = NULL;
	int status = cairn_lease_succeed(period->lease, &request->call, &options, &lease);
	if (!status && !(next = lease_period_new(waiter->open, lease, wanted->ttl)))
		status = CAIRN_NO_MEMORY;
	if (status)
		log_line(key->fs->log, "leases/%s: %s", key->name, request->call.error.text);
	/* Not to be handed over is no answer for who waits: it asks by itself. */
	if (status && waiter->nowait)
		waiter->until = 0;
	settle(key, waiter, request, status ? CAIRN_HELD : 0, next,
	       &(struct lease_look){ .free_at = LEASE_NEVER });
}

/* End the locks of `open` (NULL: any) and `owner` (NULL: any). */
static void unlock(struct request *request, struct lease_key *key, const struct lease_open *open,
		   const struct lock_owner *owner)
{
	for (;;) {
		struct lease_grant *grant, *other;
		struct lease_waiter *waiter = NULL;
		bool tired = false;
		pthread_mutex_lock(&key->mutex);
		TAILQ_FOREACH(grant, &key->grants, next)
		if ((!open || grant->open == open) && (!owner || same_owner(grant->owner, *owner)))
			break;
		if (!grant) {
			pthread_mutex_unlock(&key->mutex);
			return;
		}
		struct lease_period *period = grant->period;
		TAILQ_REMOVE(&key->grants, grant, next);
		bool ends = lease_period_ended(period) == LEASE_RUNS;
		TAILQ_FOREACH(other, &key->grants, next)
		ends = ends && other->period != period;
		if (ends) {
			(void)lease_period_end(period, LEASE_UNLOCKED);
			key->releasing++;
			/* One that is tried has found the lease free, or will wait for its turn. */
			tired = cairn_clock() - key->since > TENURE;
			if (!key->trying && !tired && (waiter = first_queued(key)))
				waiter->state = WAITER_TRIED;
		}
		pthread_mutex_unlock(&key->mutex);
		if (ends) {
			end_period(request, key, period, waiter);
			pthread_mutex_lock(&key->mutex);
			key->releasing--;
			lease_poll_hurry(key);
			if (tired)
				key->next_look = cairn_clock() + GAP;
			pthread_mutex_unlock(&key->mutex);
		}
		grant_free(grant);
	}
}

void lease_unlock_all(struct request *request, struct lease_open *open)
{
	struct lease_key *key = open->key;
	struct lease_waiter *waiter, *later;
	pthread_mutex_lock(&key->mutex);
	for (waiter = TAILQ_FIRST(&key->waiters); waiter; waiter = later) {
		later = TAILQ_NEXT(waiter, next);
		if (waiter->open != open)
			continue;
		waiter_remove(key, waiter); /* a place: a request would keep the file open */
		waiter_free(waiter);
	}
	pthread_mutex_unlock(&key->mutex);
	unlock(request, key, open, NULL);
}

void leases_closed(struct request *request, struct handle *handle, uint64_t owner)
{
	struct lease_open *open = handle->lease;
	const struct lock_owner process = { .owner = owner };
	pthread_mutex_lock(&open->key->mutex);
	open->closed = cairn_clock();
	pthread_mutex_unlock(&open->key->mutex);
	unlock(request, open->key, NULL, &process);
}

/* Locking */

/*
 * What the locks here say to a request of `owner` through `open`: 0 it has the lock, an errno, or
 * DEFERRED when it has none. key->mutex is held; it is released for a renewal.
 */
static int lock_again(struct request *request, struct lease_open *open, struct lock_owner owner)
{
	struct lease_key *key = open->key;
	struct lease_grant *grant, *mine = NULL, *joined = NULL;
	TAILQ_FOREACH(grant, &key->grants, next)
	{
		if (same_owner(grant->owner, owner))
			mine = grant;
		else if (grant->open == open && grant->owner.flock != owner.flock)
			joined = grant;
	}
	if (mine && lease_period_holds(mine->period, NULL))
		return 0;
	/* Locked both ways, by flock and fcntl: the description would wait for itself. */
	if (!mine && joined && lease_period_holds(joined->period, NULL)) {
		if (!(grant = malloc(sizeof(*grant))))
			return ENOMEM;
		grant_add(key, grant, open, owner, lease_period_ref(joined->period));
		return 0;
	}
	if (!mine)
		return DEFERRED;
	if (lease_period_ended(mine->period) != LEASE_RUNS) {
		TAILQ_REMOVE(&key->grants, mine, next);
		grant_free(mine);
		return DEFERRED;
	}
	/* Past its deadline: it goes on if nobody took over. */
	struct lease_period *period = lease_period_ref(mine->period);
	pthread_mutex_unlock(&key->mutex);
	int status = lease_period_renew(period, &request->call, true);
	int error = status && status != CAIRN_LOST ? request_failed(request, key->name, status, 0)
						   : 0;
	lease_period_unref(period);
	pthread_mutex_lock(&key->mutex);
	return status == CAIRN_LOST ? lock_again(request, open, owner) : error;
}

static struct lease_waiter *place_of(struct lease_key *key, const struct lease_open *open,
				     struct lock_owner owner)
{
	struct lease_waiter *waiter;
	TAILQ_FOREACH(waiter, &key->waiters, next)
	if (waiter->state == WAITER_PLACE && waiter->open == open &&
	    same_owner(waiter->owner, owner))
		return waiter;
	return NULL;
}

/*
 * Ask the store, in this thread. 0, EAGAIN (ret_look as of take), or an errno. key->mutex is held,
 * and released meanwhile.
 */
static int try_now(struct request *request, struct lease_open *open, struct lock_owner owner,
		   struct lease_look *ret_look)
{
	struct lease_key *key = open->key;
	struct lease_settings wanted;
	struct lease_period *period = NULL;
	struct lease_grant *grant = malloc(sizeof(*grant));
	if (!grant || lease_settings_copy(&open->settings, &wanted)) {
		free(grant);
		return ENOMEM;
	}
	/* Who enters a period that is there stands in nobody's way. */
	bool alone = !wanted.attach;
	key->trying = key->trying || alone;
	/* A name that was just created: acquiring it is one request. */
	bool absent = open->created && !open->period;
	pthread_mutex_unlock(&key->mutex);
	int status = lease_take(request, open, &wanted, absent, &period, ret_look);
	int error = status == CAIRN_HELD ? EAGAIN
		    : status		 ? request_failed(request, key->name, status, 0)
					 : 0;
	lease_settings_release(&wanted);
	pthread_mutex_lock(&key->mutex);
	key->trying = key->trying && !alone;
	if (error) {
		free(grant);
	} else {
		key->since = cairn_clock();
		grant_add(key, grant, open, owner, period);
		free(open->settings.attach);
		open->settings.attach = NULL;
		struct lease_waiter *place = place_of(key, open, owner);
		if (place) {
			waiter_remove(key, place);
			waiter_free(place);
		}
	}
	poll_wake(key);
	return error;
}

/* Wait in the queue, or until the answer is known. key->mutex is held, and released on return. */
static int wait_in_queue(struct request *request, struct lease_open *open, struct lock_owner owner,
			 bool nowait)
{
	struct lease_key *key = open->key;
	const struct lineage *asker = request_lineage(request);
	struct lease_waiter *waiter = place_of(key, open, owner);
	struct lease_settings wanted = { 0 };
	if (!waiter && (waiter = calloc(1, sizeof(*waiter))))
		TAILQ_INSERT_TAIL(&key->waiters, waiter, next);
	if (!waiter || lease_settings_copy(&open->settings, &wanted)) {
		if (waiter) {
			TAILQ_REMOVE(&key->waiters, waiter, next);
			waiter_free(waiter);
		}
		pthread_mutex_unlock(&key->mutex);
		return ENOMEM;
	}
	lease_settings_release(&waiter->wanted);
	waiter->key = key;
	waiter->open = open;
	waiter->owner = owner;
	waiter->wanted = wanted;
	waiter->nowait = nowait;
	waiter->until = cairn_clock() + (nowait ? CLOSING : 0);
	waiter->state = WAITER_NEW;
	waiter->interrupted = false;
	waiter->fuse = request->fuse;
	waiter->process = asker->count ? asker->chain[0] : (struct process){ 0 };
	key->leases->waiting++;
	pthread_mutex_unlock(&key->mutex);
	/* Takes the request's lock, under which `interrupted` takes the mutex. */
	fuse_req_interrupt_func(request->fuse, interrupted, waiter);
	pthread_mutex_lock(&key->mutex);
	bool stop = waiter->interrupted;
	if (!stop) {
		waiter->state = WAITER_QUEUED;
		poll_wake(key);
	}
	pthread_mutex_unlock(&key->mutex);
	if (!stop)
		return DEFERRED;
	fuse_req_interrupt_func(request->fuse, NULL, NULL);
	pthread_mutex_lock(&key->mutex);
	keep_place(waiter);
	pthread_mutex_unlock(&key->mutex);
	return EINTR;
}

/* A lock in the way, or a try under way, may soon be gone: who may not wait waits that long. */
static bool soon_free(struct lease_key *key)
{
	int64_t until;
	const struct lease_grant *grant = blocking(key, &until);
	if (somebody_before(key, NULL))
		return false;
	return !grant || cairn_clock() - grant->open->closed < CLOSING;
}

int leases_lock(struct request *request, struct handle *handle, struct lock_owner owner, int type,
		bool wait)
{
	struct lease_open *open = handle->lease;
	struct lease_key *key = open->key;
	if (type == F_UNLCK) {
		unlock(request, key, NULL, &owner);
		return 0;
	}
	(void)request_lineage(request); /* read here, not under the mutex */
	int64_t until;
	struct lease_look look;
	pthread_mutex_lock(&key->mutex);
	int error = lock_again(request, open, owner);
	if (error != DEFERRED)
		goto out;
	bool attaches = open->settings.attach;
	if (attaches || (!key->trying && !key->releasing && !blocking(key, &until) &&
			 !somebody_before(key, place_of(key, open, owner)))) {
		error = try_now(request, open, owner, &look);
		if (error != EAGAIN || attaches || !wait)
			goto out;
		back_off(key, &look);
	} else if (!wait && !soon_free(key)) {
		error = EAGAIN;
		goto out;
	}
	return wait_in_queue(request, open, owner, !wait);
out:
	pthread_mutex_unlock(&key->mutex);
	return error;
}

int leases_locked(struct request *request, struct handle *handle, struct lock_owner owner,
		  bool *ret_held)
{
	struct lease_key *key = handle->lease->key;
	struct lease_grant *grant;
	bool known = false, held = false;
	pthread_mutex_lock(&key->mutex);
	TAILQ_FOREACH(grant, &key->grants, next)
	{
		if (!lease_period_holds(grant->period, NULL))
			continue;
		held = held || !same_owner(grant->owner, owner);
		known = true;
	}
	pthread_mutex_unlock(&key->mutex);
	*ret_held = held;
	if (known)
		return 0;
	struct cairn_lease_document document;
	int error = lease_document(request, key->name, &document);
	*ret_held = !error && lease_document_holds(&document);
	cairn_lease_document_release(&document);
	return error == ENOENT ? 0 : error;
}
