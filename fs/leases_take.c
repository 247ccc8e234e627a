/* SPDX-License-Identifier: MIT */
#include "leases_private.h"

int lease_take(struct request *request, struct lease_open *open,
	       const struct lease_settings *wanted, bool absent, struct lease_period **ret_period,
	       struct lease_look *ret_look)
{
	struct cairn_store *store = request->fs->store;
	struct cairn_call *call = &request->call;
	const char *name = open->key->name;
	struct cairn_lease *lease = NULL;
	struct cairn_lease_document seen;
	struct cairn_lease_options options = { .ttl = wanted->ttl,
					       .holder = wanted->holder,
					       .no_steal = wanted->no_steal };
	cairn_lease_document_init(&seen);
	*ret_look = (struct lease_look){ .free_at = LEASE_NEVER };
	int status;
	if (wanted->attach) {
		status = cairn_lease_attach(store, call, name, wanted->attach, wanted->ttl, &lease);
		if (status == CAIRN_NOT_FOUND)
			status = CAIRN_HELD;
		goto out;
	}
	status = absent ? CAIRN_NOT_FOUND : cairn_lease_read(store, call, name, &seen);
	if (!status) {
		int64_t left = seen.deadline - cairn_timestamp_now();
		options.seen = &seen;
		if (seen.held && (left > 0 || wanted->no_steal)) {
			status = CAIRN_HELD;
			ret_look->epoch = seen.epoch;
			if (left > 0 && !wanted->no_steal)
				ret_look->free_at = cairn_clock() + left;
			goto out;
		}
	} else if (status != CAIRN_NOT_FOUND) {
		goto out;
	}
	status = cairn_lease_acquire(store, call, name, &options, &lease);
	if (status == CAIRN_BUSY)
		status = CAIRN_HELD; /* others took it, one after the other */
out:
	cairn_lease_document_release(&seen);
	if (!status && !(*ret_period = lease_period_new(open, lease, wanted->ttl)))
		status = CAIRN_NO_MEMORY;
	return status;
}

void lease_give_back(struct request *request, struct lease_period *period)
{
	int status = cairn_lease_release(period->lease, &request->call, NULL);
	if (status)
		log_line(request->fs->log, "leases/%s: %s%s", period->key->name,
			 request->call.error.text,
			 status == CAIRN_LOST ? "" : "; it will run out at its deadline");
}
