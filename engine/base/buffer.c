/* SPDX-License-Identifier: MIT */
#include <cairn/buffer.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cairn_buffer_init(struct cairn_buffer *buffer, size_t limit)
{
	*buffer = (struct cairn_buffer){ .limit = limit };
}

void cairn_buffer_release(struct cairn_buffer *buffer)
{
	free(buffer->data);
	cairn_buffer_init(buffer, buffer->limit);
}

void cairn_buffer_clear(struct cairn_buffer *buffer)
{
	buffer->size = 0;
	if (buffer->data)
		buffer->data[0] = '\0';
}

int cairn_buffer_reserve(struct cairn_buffer *buffer, size_t extra)
{
	if (extra > buffer->limit || buffer->size > buffer->limit - extra)
		return CAIRN_TOO_BIG;
	size_t needed = buffer->size + extra + 1;
	if (needed <= buffer->capacity)
		return CAIRN_OK;
	size_t capacity = buffer->capacity + buffer->capacity / 2;
	if (capacity > buffer->limit)
		capacity = buffer->limit + 1;
	if (capacity < needed)
		capacity = needed;
	if (capacity < 64)
		capacity = 64;
	char *data = realloc(buffer->data, capacity);
	if (!data)
		return CAIRN_NO_MEMORY;
	data[buffer->size] = '\0';
	buffer->data = data;
	buffer->capacity = capacity;
	return CAIRN_OK;
}

int cairn_buffer_append(struct cairn_buffer *buffer, const void *data, size_t size)
{
	int status = cairn_buffer_reserve(buffer, size);
	if (status)
		return status;
	if (size)
		memcpy(buffer->data + buffer->size, data, size);
	buffer->size += size;
	buffer->data[buffer->size] = '\0';
	return CAIRN_OK;
}

int cairn_buffer_printf(struct cairn_buffer *buffer, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return CAIRN_INVALID;
	int status = cairn_buffer_reserve(buffer, (size_t)length);
	if (status)
		return status;
	va_start(arguments, format);
	(void)vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, arguments);
	va_end(arguments);
	buffer->size += (size_t)length;
	return CAIRN_OK;
}

char *cairn_buffer_steal(struct cairn_buffer *buffer, size_t *ret_size)
{
	char *data = buffer->data;
	if (ret_size)
		*ret_size = buffer->size;
	cairn_buffer_init(buffer, buffer->limit);
	return data;
}

struct cairn_slice cairn_buffer_slice(const struct cairn_buffer *buffer)
{
	return (struct cairn_slice){ .data = buffer->data, .size = buffer->size };
}

struct cairn_slice cairn_slice_of(const char *text)
{
	return (struct cairn_slice){ .data = text, .size = strlen(text) };
}

bool cairn_slice_equal(struct cairn_slice a, struct cairn_slice b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
