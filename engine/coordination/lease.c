/* SPDX-License-Identifier: MIT */
#include "coordination/lease_private.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

#include <cairn/json.h>
#include <cairn/key.h>
#include <cairn/timestamp.h>

#include "coordination/attempts.h"
#include "coordination/lease_document.h"
#include "coordination/text.h"

#define WRITE_ATTEMPTS 10

/* How often who waits for his turn looks whether his call was cancelled: microseconds. */
#define TURN_POLL ((int64_t)20000)

int64_t cairn_clock_boot(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int no_memory(struct cairn_call *call, const char *key)
{
	return cairn_error_set(&call->error, CAIRN_NO_MEMORY, "lease %s: out of memory", key);
}

/* The handle */

static int random_holder(char **ret_holder)
{
	unsigned char bytes[16];
	size_t got = 0;
	while (got < sizeof(bytes)) {
		ssize_t more = getrandom(bytes + got, sizeof(bytes) - got, 0);
		if (more < 0 && errno != EINTR)
			return CAIRN_IO;
		if (more > 0)
			got += (size_t)more;
	}
	char *text = malloc(2 * sizeof(bytes) + 1);
	if (!text)
		return CAIRN_NO_MEMORY;
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	*ret_holder = text;
	return CAIRN_OK;
}

static int lease_init_locks(struct cairn_lease *lease)
{
	pthread_condattr_t attributes;
	if (pthread_condattr_init(&attributes))
		return CAIRN_NO_MEMORY;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	int failed = pthread_cond_init(&lease->turn_over, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	if (failed)
		return CAIRN_NO_MEMORY;
	(void)pthread_mutex_init(&lease->lock, NULL);
	return CAIRN_OK;
}

int cairn_lease_new(struct cairn_store *store, struct cairn_call *call, const char *key,
		    const char *holder, int64_t ttl, struct cairn_lease **ret_lease)
{
	int status = cairn_key_check(key, &call->error);
	if (status)
		return status;
	if (ttl <= 0 || ttl > INT64_MAX / 2)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "lease %s: the ttl must be positive and less than 146,000 "
				       "years",
				       key);
	if (holder && !cairn_utf8_valid(cairn_slice_of(holder)))
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "lease %s: the holder string is not UTF-8", key);
	struct cairn_lease *lease = calloc(1, sizeof(*lease));
	if (!lease)
		return no_memory(call, key);
	if (lease_init_locks(lease)) {
		free(lease);
		return no_memory(call, key);
	}
	cairn_buffer_init(&lease->holder_json, CAIRN_JSON_MAX);
	cairn_buffer_init(&lease->state, CAIRN_JSON_MAX);
	lease->store = store;
	lease->ttl = ttl;
	lease->key = strdup(key);
	if (holder)
		lease->holder = strdup(holder);
	else
		status = random_holder(&lease->holder);
	if (!status && lease->holder)
		status = cairn_json_string_encode(cairn_slice_of(lease->holder),
						  &lease->holder_json);
	if (!status && lease->key && lease->holder) {
		*ret_lease = lease;
		return CAIRN_OK;
	}
	cairn_lease_free(lease);
	if (status == CAIRN_IO)
		return cairn_error_set(&call->error, status,
				       "lease %s: the system gives no random bytes", key);
	if (status == CAIRN_TOO_BIG)
		return cairn_error_set(&call->error, status,
				       "lease %s: the holder string is too long", key);
	return no_memory(call, key);
}

void cairn_lease_free(struct cairn_lease *lease)
{
	if (!lease)
		return;
	free(lease->key);
	free(lease->holder);
	cairn_buffer_release(&lease->holder_json);
	cairn_buffer_release(&lease->state);
	(void)pthread_mutex_destroy(&lease->lock);
	(void)pthread_cond_destroy(&lease->turn_over);
	free(lease);
}

int cairn_lease_take_state(struct cairn_lease *lease, struct cairn_call *call,
			   struct cairn_slice state)
{
	(void)pthread_mutex_lock(&lease->lock);
	int status = CAIRN_OK;
	if (!cairn_slice_equal(cairn_buffer_slice(&lease->state), state)) {
		cairn_buffer_clear(&lease->state);
		status = cairn_buffer_append(&lease->state, state.data, state.size);
	}
	(void)pthread_mutex_unlock(&lease->lock);
	return status ? no_memory(call, lease->key) : CAIRN_OK;
}

/* Turns */

/* Wait for the other calls on this lease, within this call's deadline. */
static int turn_begin(struct cairn_lease *lease, struct cairn_call *call)
{
	int status = CAIRN_OK;
	(void)pthread_mutex_lock(&lease->lock);
	while (lease->busy && !status) {
		int64_t until = cairn_clock() + TURN_POLL;
		struct timespec wake = {
			.tv_sec = (time_t)(until / 1000000),
			.tv_nsec = (long)(until % 1000000) * 1000,
		};
		(void)pthread_cond_timedwait(&lease->turn_over, &lease->lock, &wake);
		/* The caller's cancelled() may use the accessors: not under the lock. */
		(void)pthread_mutex_unlock(&lease->lock);
		status = cairn_call_sleep(call, 0);
		(void)pthread_mutex_lock(&lease->lock);
	}
	if (!status)
		lease->busy = true;
	(void)pthread_mutex_unlock(&lease->lock);
	return status;
}

static void turn_end(struct cairn_lease *lease)
{
	(void)pthread_mutex_lock(&lease->lock);
	lease->busy = false;
	(void)pthread_cond_signal(&lease->turn_over);
	(void)pthread_mutex_unlock(&lease->lock);
}

/* Guarded writes, by whoever has the turn */

enum lease_change_kind {
	LEASE_RENEW,   /* the deadline moves */
	LEASE_STATE,   /* only the state changes */
	LEASE_RELEASE, /* the holder goes */
	LEASE_SUCCEED, /* another holder's period follows */
};

struct lease_change {
	const char *what;
	enum lease_change_kind kind;
	cairn_transform transform; /* of the state. NULL: kept */
	void *context;
	struct cairn_lease
		*successor; /* of LEASE_SUCCEED; epoch 0: not sent yet, etag: it stands */
};

static void lease_end(struct cairn_lease *lease)
{
	(void)pthread_mutex_lock(&lease->lock);
	lease->ended = true;
	(void)pthread_mutex_unlock(&lease->lock);
}

static int lease_lost(struct cairn_lease *lease, struct cairn_call *call, const char *how)
{
	lease_end(lease);
	return cairn_error_set(&call->error, CAIRN_LOST, "lease %s: epoch %" PRId64 " was lost: %s",
			       lease->key, lease->epoch, how);
}

/* Epoch and holder are ours: somebody wrote into our document. Take over what it says. */
static int lease_absorb(struct cairn_lease *lease, struct cairn_call *call,
			const struct cairn_lease_members *members)
{
	int status = cairn_lease_take_state(lease, call, members->state);
	if (status)
		return status;
	(void)pthread_mutex_lock(&lease->lock);
	/* An earlier one is that of a peer's stale handle; it must not shorten our period. */
	if (members->deadline > lease->deadline)
		lease->deadline = members->deadline;
	(void)pthread_mutex_unlock(&lease->lock);
	memcpy(lease->etag, members->version.etag, sizeof(lease->etag));
	return CAIRN_OK;
}

/* Does the document show the period that we have handed over to? Nobody else writes all three. */
static bool lease_succeeded(const struct cairn_lease *successor,
			    const struct cairn_lease_members *members)
{
	return successor && successor->epoch == members->epoch &&
	       successor->deadline == members->deadline &&
	       cairn_slice_equal(cairn_buffer_slice(&successor->holder_json), members->holder);
}

/* The document as it stands now: is it still that of our period? */
static int lease_judge(struct cairn_lease *lease, struct cairn_call *call,
		       const struct lease_change *change, const struct cairn_lease_members *members)
{
	struct cairn_slice holder = cairn_buffer_slice(&lease->holder_json);
	if (lease_succeeded(change->successor, members)) {
		lease_end(lease);
		memcpy(change->successor->etag, members->version.etag,
		       sizeof(change->successor->etag));
		return cairn_lease_take_state(change->successor, call, members->state);
	}
	if (members->epoch != lease->epoch)
		return lease_lost(lease, call, "another epoch began");
	if (members->held && !cairn_slice_equal(members->holder, holder))
		return lease_lost(lease, call, "it has another holder");
	if (members->held)
		return lease_absorb(lease, call, members);
	if (!lease->release_sent || members->deadline != lease->release_sent)
		return lease_lost(lease, call, "it was released by another handle");
	/* Our own release, whose answer did not come. */
	lease_end(lease);
	return cairn_lease_take_state(lease, call, members->state);
}

/*
 * Look at the document: 0 with the etag known again, or with the lease ended by our own release or
 * succession; CAIRN_LOST, or a failure.
 */
static int lease_refresh(struct cairn_lease *lease, struct cairn_call *call,
			 const struct lease_change *change)
{
	struct cairn_lease_members members;
	cairn_lease_members_init(&members);
	int status = cairn_lease_members_read(lease->store, call, lease->key, &members);
	if (status == CAIRN_NOT_FOUND)
		status = lease_lost(lease, call, "the document was deleted");
	else if (status == CAIRN_CORRUPT || status == CAIRN_TOO_BIG)
		status = lease_lost(lease, call, "what stands there is no lease document any more");
	else if (!status)
		status = lease_judge(lease, call, change, &members);
	cairn_lease_members_release(&members);
	return status;
}

/* The first version of the period that follows ours; every attempt sends the same. */
static int lease_next_period(struct cairn_lease *lease, struct cairn_call *call,
			     struct cairn_lease *successor, struct cairn_lease_members *next)
{
	if (lease->epoch == INT64_MAX)
		return cairn_error_set(&call->error, CAIRN_CORRUPT,
				       "lease %s: no epoch can follow its epoch %" PRId64,
				       lease->key, lease->epoch);
	if (!successor->epoch) {
		successor->epoch = lease->epoch + 1;
		successor->own_deadline = cairn_clock_boot() + successor->ttl;
		successor->deadline = cairn_timestamp_now() + successor->ttl;
	}
	next->epoch = successor->epoch;
	next->holder = cairn_buffer_slice(&successor->holder_json);
	next->deadline = successor->deadline;
	return cairn_lease_take_state(successor, call, next->state);
}

/* The version that `change` makes of ours; `state` holds a new state. */
static int lease_next(struct cairn_lease *lease, struct cairn_call *call,
		      const struct lease_change *change, struct cairn_buffer *state,
		      struct cairn_lease_members *ret_next)
{
	*ret_next = (struct cairn_lease_members){
		.epoch = lease->epoch,
		.holder = cairn_buffer_slice(&lease->holder_json),
		.deadline = lease->deadline,
		.state = cairn_buffer_slice(&lease->state),
	};
	if (change->transform) {
		int status = cairn_text_transform(change->what, lease->key, change->transform,
						  change->context, ret_next->state, state,
						  &call->error);
		if (status)
			return status;
		ret_next->state = cairn_buffer_slice(state);
	}
	if (change->kind == LEASE_RENEW)
		ret_next->deadline = cairn_timestamp_now() + lease->ttl;
	if (change->kind == LEASE_RELEASE) {
		/* Every attempt sends the same moment, by which a lost answer is recognised. */
		if (!lease->release_sent)
			lease->release_sent = cairn_timestamp_now();
		ret_next->deadline = lease->release_sent;
		ret_next->holder = cairn_slice_of("null");
	}
	if (change->kind == LEASE_SUCCEED)
		return lease_next_period(lease, call, change->successor, ret_next);
	return CAIRN_OK;
}

/*
 * An earlier release of ours had landed: the success of a release that wants the same state. So had
 * our succession: its success.
 */
static int lease_released(struct cairn_lease *lease, struct cairn_call *call,
			  const struct lease_change *change)
{
	if (change->successor && change->successor->etag[0])
		return CAIRN_OK;
	if (change->kind != LEASE_RELEASE)
		return lease_lost(lease, call, "it was released");
	struct cairn_lease_members next;
	struct cairn_buffer state;
	cairn_buffer_init(&state, CAIRN_JSON_MAX);
	int status = lease_next(lease, call, change, &state, &next);
	if (!status && !cairn_slice_equal(next.state, cairn_buffer_slice(&lease->state)))
		status = lease_lost(lease, call, "it was released with another state");
	cairn_buffer_release(&state);
	return status;
}

/* The store took `next`: so say the fields. `state` is the new one, unless it is empty. */
static void lease_written(struct cairn_lease *lease, const struct lease_change *change,
			  const struct cairn_lease_members *next, struct cairn_buffer *state,
			  int64_t own_deadline, const struct cairn_version *version)
{
	if (change->kind == LEASE_SUCCEED) {
		memcpy(change->successor->etag, version->etag, sizeof(version->etag));
		lease_end(lease);
		return;
	}
	(void)pthread_mutex_lock(&lease->lock);
	lease->deadline = next->deadline;
	if (change->kind == LEASE_RENEW)
		lease->own_deadline = own_deadline;
	if (change->kind == LEASE_RELEASE)
		lease->ended = true;
	if (change->transform) {
		struct cairn_buffer old = lease->state;
		lease->state = *state;
		*state = old;
	}
	(void)pthread_mutex_unlock(&lease->lock);
	memcpy(lease->etag, version->etag, sizeof(lease->etag));
	lease->release_sent = 0;
}

static int lease_try(struct cairn_lease *lease, struct cairn_call *call,
		     const struct lease_change *change, struct cairn_attempts *attempts)
{
	bool fresh = !lease->etag[0];
	int status = fresh ? lease_refresh(lease, call, change) : CAIRN_OK;
	if (status)
		return status;
	if (lease->ended)
		return lease_released(lease, call, change);
	struct cairn_lease_members next;
	struct cairn_buffer state, text;
	cairn_buffer_init(&state, CAIRN_JSON_MAX);
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	/* Before the document's own deadline is made, so that it is never the later one. */
	int64_t own_deadline = cairn_clock_boot() + lease->ttl;
	status = lease_next(lease, call, change, &state, &next);
	if (!status)
		status = cairn_lease_members_encode(lease->key, &next, &text, &call->error);
	if (status && change->transform && !fresh) {
		/* It said no to what may be an old state: look, and ask again. */
		lease->etag[0] = '\0';
		attempts->again = true;
	}
	if (status)
		goto out;
	const struct cairn_put_options options = { .if_match = lease->etag };
	struct cairn_version version;
	status = cairn_store_put(lease->store, call, lease->key, cairn_buffer_slice(&text),
				 &options, &version);
	if (!status) {
		lease_written(lease, change, &next, &state, own_deadline, &version);
	} else {
		/* Somebody wrote, or it may have been us without our knowing: look first. */
		lease->etag[0] = '\0';
		(void)cairn_attempts_answer(attempts, status);
	}
	/* The successor's handle would be gone: find out whether its period began. */
	if (status == CAIRN_UNKNOWN && change->kind == LEASE_SUCCEED) {
		struct cairn_error unknown = call->error;
		status = lease_refresh(lease, call, change);
		if (!lease->ended) {
			call->error = unknown;
			status = CAIRN_UNKNOWN;
		} else if (!status) {
			status = lease_released(lease, call, change);
		}
	}
out:
	cairn_buffer_release(&text);
	cairn_buffer_release(&state);
	return status;
}

static int lease_change(struct cairn_lease *lease, struct cairn_call *call,
			const struct lease_change *change)
{
	struct cairn_attempts attempts;
	cairn_attempts_begin(&attempts, lease->store, call, change->what, lease->key,
			     WRITE_ATTEMPTS);
	int status = turn_begin(lease, call);
	if (status)
		goto out;
	if (lease->ended) {
		status = cairn_error_set(&call->error, CAIRN_LOST,
					 "%s %s: epoch %" PRId64 " was lost or released",
					 change->what, lease->key, lease->epoch);
	} else {
		do {
			status = cairn_attempts_next(&attempts);
			if (!status)
				status = lease_try(lease, call, change, &attempts);
		} while (attempts.again);
	}
	turn_end(lease);
out:
	cairn_attempts_end(&attempts);
	return status;
}

int cairn_lease_renew(struct cairn_lease *lease, struct cairn_call *call)
{
	const struct lease_change change = { .what = "renew lease", .kind = LEASE_RENEW };
	return lease_change(lease, call, &change);
}

/* A transform whose answer does not depend on the question: context is the new value's slice. */
static int replace(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		   struct cairn_error *error)
{
	(void)current;
	const struct cairn_slice *value = context;
	int status = cairn_buffer_append(ret_next, value->data, value->size);
	if (status)
		return cairn_error_set(error, status, "the new state: %s",
				       cairn_status_name(status));
	return CAIRN_OK;
}

int cairn_lease_write(struct cairn_lease *lease, struct cairn_call *call, struct cairn_slice state)
{
	const struct lease_change change = {
		.what = "write lease",
		.kind = LEASE_STATE,
		.transform = replace,
		.context = &state,
	};
	return lease_change(lease, call, &change);
}

int cairn_lease_update_state(struct cairn_lease *lease, struct cairn_call *call,
			     cairn_transform transform, void *context)
{
	const struct lease_change change = {
		.what = "update lease",
		.kind = LEASE_STATE,
		.transform = transform,
		.context = context,
	};
	return lease_change(lease, call, &change);
}

int cairn_lease_release(struct cairn_lease *lease, struct cairn_call *call,
			const struct cairn_slice *state)
{
	struct cairn_slice final = state ? *state : (struct cairn_slice){ 0 };
	const struct lease_change change = {
		.what = "release lease",
		.kind = LEASE_RELEASE,
		.transform = state ? replace : NULL,
		.context = &final,
	};
	return lease_change(lease, call, &change);
}

int cairn_lease_succeed(struct cairn_lease *lease, struct cairn_call *call,
			const struct cairn_lease_options *options, struct cairn_lease **ret_lease)
{
	struct cairn_lease *successor = NULL;
	int status = cairn_lease_new(lease->store, call, lease->key, options->holder, options->ttl,
				     &successor);
	if (status)
		return status;
	const struct lease_change change = {
		.what = "hand over lease",
		.kind = LEASE_SUCCEED,
		.transform = options->transition,
		.context = options->context,
		.successor = successor,
	};
	status = lease_change(lease, call, &change);
	if (status)
		cairn_lease_free(successor);
	else
		*ret_lease = successor;
	return status;
}

/* What the handle knows */

int64_t cairn_lease_epoch(const struct cairn_lease *lease)
{
	return lease->epoch;
}

const char *cairn_lease_holder(const struct cairn_lease *lease)
{
	return lease->holder;
}

int64_t cairn_lease_deadline(struct cairn_lease *lease)
{
	(void)pthread_mutex_lock(&lease->lock);
	int64_t deadline = lease->deadline;
	(void)pthread_mutex_unlock(&lease->lock);
	return deadline;
}

int64_t cairn_lease_own_deadline(struct cairn_lease *lease)
{
	(void)pthread_mutex_lock(&lease->lock);
	int64_t own_deadline = lease->own_deadline;
	(void)pthread_mutex_unlock(&lease->lock);
	return own_deadline;
}

bool cairn_lease_ended(struct cairn_lease *lease)
{
	(void)pthread_mutex_lock(&lease->lock);
	bool ended = lease->ended;
	(void)pthread_mutex_unlock(&lease->lock);
	return ended;
}

int cairn_lease_state(struct cairn_lease *lease, struct cairn_buffer *out)
{
	(void)pthread_mutex_lock(&lease->lock);
	int status = cairn_buffer_append(out, lease->state.data, lease->state.size);
	(void)pthread_mutex_unlock(&lease->lock);
	return status;
}
