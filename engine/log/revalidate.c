/* SPDX-License-Identifier: MIT */
#include "log/committer.h"

#include <stdlib.h>
#include <string.h>

/* Copy one of the event's texts to *at and move that behind it. */
static struct cairn_slice copy_slice(struct cairn_slice slice, char **at)
{
	if (!slice.data)
		return slice;
	struct cairn_slice copy = { .data = *at, .size = slice.size };
	if (slice.size)
		memcpy(*at, slice.data, slice.size);
	*at += slice.size;
	return copy;
}

/* Keep `event` as the item's, in memory of its own. */
static int replace(struct item *item, const struct cairn_event *event)
{
	size_t size = event->event_type.size + event->schema_version.size + event->payload.size +
		      event->metadata.size;
	char *memory = malloc(size + 1);
	if (!memory)
		return CAIRN_NO_MEMORY;
	char *at = memory;
	item->event.timestamp = event->timestamp;
	item->event.event_type = copy_slice(event->event_type, &at);
	item->event.schema_version = copy_slice(event->schema_version, &at);
	item->event.payload = copy_slice(event->payload, &at);
	item->event.metadata = copy_slice(event->metadata, &at);
	free(item->memory);
	item->memory = memory;
	return CAIRN_OK;
}

static bool same_slice(struct cairn_slice a, struct cairn_slice b)
{
	return a.data == b.data && a.size == b.size;
}

static bool same_event(const struct cairn_event *a, const struct cairn_event *b)
{
	return a->timestamp == b->timestamp && same_slice(a->event_type, b->event_type) &&
	       same_slice(a->schema_version, b->schema_version) &&
	       same_slice(a->payload, b->payload) && same_slice(a->metadata, b->metadata);
}

static void reject(struct pending *pending, struct item *item, int status,
		   const struct cairn_error *error)
{
	item->rejected = true;
	pending->count--;
	if (pending->status)
		return;
	pending->status = status;
	cairn_error_set(&pending->error, status, "event %zu was rejected: %s",
			(size_t)(item - pending->items),
			error->status == status ? error->text : cairn_status_name(status));
}

static void look_again(struct cairn_log *log, struct pending *pending,
		       const struct cairn_commit *commit)
{
	bool changed = false;
	for (size_t i = 0; i < pending->given; i++) {
		struct item *item = &pending->items[i];
		if (item->rejected)
			continue;
		struct cairn_event event = item->event;
		struct cairn_error error = { 0 };
		int status = log->options.revalidate(log->options.context, &item->event, commit,
						     &event, &error);
		if (!status && same_event(&event, &item->event))
			continue;
		changed = true;
		if (!status)
			status = replace(item, &event);
		if (status)
			reject(pending, item, status, &error);
	}
	/* A changed event that cannot be encoded is rejected too, and the others are tried again.
	 */
	while (changed && pending->count > 0) {
		struct cairn_error error;
		size_t index = 0;
		int status = cairn_pending_encode(pending, NULL, &index, &error);
		if (!status)
			return;
		reject(pending, &pending->items[index], status, &error);
	}
}

void cairn_batch_revalidate(struct cairn_log *log, struct batch *batch,
			    const struct cairn_commit *commit)
{
	struct pending **at = &batch->first;
	while (*at) {
		struct pending *pending = *at;
		look_again(log, pending, commit);
		if (pending->count > 0) {
			at = &pending->next;
			continue;
		}
		*at = pending->next;
		cairn_pending_end(log, pending, pending->status, &pending->error);
	}
}
