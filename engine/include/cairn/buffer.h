/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_BUFFER_H
#define CAIRN_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that somebody else owns. `data` may be NULL when `size` is 0. */
struct cairn_slice {
	const char *data;
	size_t size;
};

/*
 * The one growing buffer. `data` is owned, always NUL-terminated behind `size` once anything was
 * appended (the NUL is not counted), NULL before. It never grows beyond `limit` bytes.
 */
struct cairn_buffer {
	char *data;
	size_t size;
	size_t capacity;
	size_t limit;
};

/* Make `buffer` empty, to hold at most `limit` bytes. Nothing is allocated. */
CAIRN_EXPORT void cairn_buffer_init(struct cairn_buffer *buffer, size_t limit);

/* Free what the buffer holds; it is empty afterwards and keeps its limit. */
CAIRN_EXPORT void cairn_buffer_release(struct cairn_buffer *buffer);

/* Forget the content, keep the memory. */
CAIRN_EXPORT void cairn_buffer_clear(struct cairn_buffer *buffer);

/* Make room for `extra` more bytes. CAIRN_TOO_BIG beyond the limit, CAIRN_NO_MEMORY. */
CAIRN_EXPORT int cairn_buffer_reserve(struct cairn_buffer *buffer, size_t extra) CAIRN_MUST_USE;

/* Append `size` bytes. As cairn_buffer_reserve; on failure the content is as before. */
CAIRN_EXPORT int cairn_buffer_append(struct cairn_buffer *buffer, const void *data, size_t size)
	CAIRN_MUST_USE;

/* Append what printf would print. As cairn_buffer_append. */
CAIRN_EXPORT int cairn_buffer_printf(struct cairn_buffer *buffer, const char *format, ...)
	CAIRN_PRINTF(2, 3) CAIRN_MUST_USE;

/*
 * Give the content's memory to the caller, who frees it with free(3); never NULL unless the
 * buffer was never appended to. `ret_size` (may be NULL) is set to its size. The buffer is empty.
 */
CAIRN_EXPORT char *cairn_buffer_steal(struct cairn_buffer *buffer, size_t *ret_size);

/* The content as a slice, good until the buffer is next changed. */
CAIRN_EXPORT struct cairn_slice cairn_buffer_slice(const struct cairn_buffer *buffer);

/* The bytes of a NUL-terminated string, without the NUL. */
CAIRN_EXPORT struct cairn_slice cairn_slice_of(const char *text);

/* Equal size and bytes. */
CAIRN_EXPORT bool cairn_slice_equal(struct cairn_slice a, struct cairn_slice b);

#ifdef __cplusplus
}
#endif
#endif
