/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_FORMAT_COMMIT_PRIVATE_H
#define CAIRN_FORMAT_COMMIT_PRIVATE_H

#include <cairn/commit.h>

/* A commit is its head and then its events; these are encoded once, however often it is put. */

/* Append the head of a commit of `count` events. As cairn_commit_encode. */
int cairn_commit_encode_head(int64_t number, int64_t created_at, size_t count,
			     struct cairn_buffer *out, struct cairn_error *error) CAIRN_MUST_USE;

/* Append one event, defaults filled in. As cairn_commit_encode. */
int cairn_event_encode(const struct cairn_event *event, struct cairn_buffer *out,
		       struct cairn_error *error) CAIRN_MUST_USE;

#endif
