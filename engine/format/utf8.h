/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_FORMAT_UTF8_H
#define CAIRN_FORMAT_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * The character at *at, before `end`; *at is moved behind it. -1 where no well-formed UTF-8 stands
 * (or nothing at all), *at as before.
 */
int32_t cairn_utf8_read(const char **at, const char *end);

/* Write `code`, a character and no surrogate, as UTF-8; returns its length, 1 to 4. */
size_t cairn_utf8_write(int32_t code, char ret_bytes[4]);

#endif
