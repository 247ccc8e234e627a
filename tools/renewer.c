/* SPDX-License-Identifier: MIT */
#include "renewer.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool renewer_cancelled(void *context)
{
	struct renewer *renewer = context;
	(void)pthread_mutex_lock(&renewer->lock);
	bool stop = renewer->stop;
	(void)pthread_mutex_unlock(&renewer->lock);
	return stop;
}

static void *renewer_main(void *context)
{
	struct renewer *renewer = context;
	(void)pthread_mutex_lock(&renewer->lock);
	while (!renewer->stop) {
		if (!renewer->busy || renewer->done) {
			(void)pthread_cond_wait(&renewer->asked, &renewer->lock);
			continue;
		}
		struct cairn_call call = {
			.deadline = renewer->until,
			.cancelled = renewer_cancelled,
			.context = renewer,
		};
		(void)pthread_mutex_unlock(&renewer->lock);
		int status = cairn_lease_renew(renewer->lease, &call);
		(void)pthread_mutex_lock(&renewer->lock);
		renewer->status = status;
		renewer->error = call.error;
		renewer->done = true;
		(void)eventfd_write(renewer->event, 1);
	}
	(void)pthread_mutex_unlock(&renewer->lock);
	return NULL;
}

int renewer_start(struct renewer *renewer, struct cairn_lease *lease)
{
	*renewer = (struct renewer){
		.lease = lease,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.asked = PTHREAD_COND_INITIALIZER,
		.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	if (renewer->event < 0)
		return CAIRN_IO;
	if (pthread_create(&renewer->thread, NULL, renewer_main, renewer) == 0)
		return CAIRN_OK;
	(void)close(renewer->event);
	return CAIRN_NO_MEMORY;
}

void renewer_ask(struct renewer *renewer, int64_t until)
{
	(void)pthread_mutex_lock(&renewer->lock);
	if (!renewer->busy) {
		renewer->busy = true;
		renewer->until = until;
		(void)pthread_cond_signal(&renewer->asked);
	}
	(void)pthread_mutex_unlock(&renewer->lock);
}

bool renewer_take(struct renewer *renewer, int *ret_status, struct cairn_error *ret_error)
{
	eventfd_t count;
	(void)eventfd_read(renewer->event, &count);
	(void)pthread_mutex_lock(&renewer->lock);
	bool done = renewer->done;
	if (done) {
		*ret_status = renewer->status;
		*ret_error = renewer->error;
		renewer->busy = false;
		renewer->done = false;
	}
	(void)pthread_mutex_unlock(&renewer->lock);
	return done;
}

void renewer_stop(struct renewer *renewer)
{
	(void)pthread_mutex_lock(&renewer->lock);
	renewer->stop = true;
	(void)pthread_cond_signal(&renewer->asked);
	(void)pthread_mutex_unlock(&renewer->lock);
	(void)pthread_join(renewer->thread, NULL);
	(void)close(renewer->event);
}
