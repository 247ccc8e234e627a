/* SPDX-License-Identifier: MIT */
#include "format/json_private.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A double is decided by its first 767 significant digits and by whether anything but zeros
 * follows them; further digits are dropped, and a last 1 stands for them.
 */
#define DIGITS_MAX 780

/* Up to so many significant digits, different decimals are different (normal) doubles. */
#define DIGITS_EXACT 15

/* 0.d1d2d3… times 10^point; no digits: zero. No locale has a say in it. */
struct decimal {
	bool negative;
	bool cut;
	int64_t point;
	size_t count;
	char digits[DIGITS_MAX + 24]; /* room for an exponent behind them */
};

static bool is_digit(const char *at, const char *end)
{
	return at < end && *at >= '0' && *at <= '9';
}

/* Take in the digits at `at`, in front of the decimal point or behind it; returns their end. */
static const char *read_digits(const char *at, const char *end, bool fraction, struct decimal *ret)
{
	for (; is_digit(at, end); at++) {
		if (ret->count == 0 && *at == '0') {
			ret->point -= fraction;
			continue;
		}
		ret->point += !fraction;
		if (ret->count < DIGITS_MAX)
			ret->digits[ret->count++] = *at;
		else
			ret->cut |= *at != '0';
	}
	return at;
}

/* The exponent at `at`, behind its e; NULL when it has no digits. */
static const char *read_exponent(const char *at, const char *end, struct decimal *decimal)
{
	bool negative = at < end && *at == '-';
	int64_t exponent = 0;
	if (at < end && (*at == '-' || *at == '+'))
		at++;
	if (!is_digit(at, end))
		return NULL;
	for (; is_digit(at, end); at++)
		if (exponent < INT64_MAX / 100)
			exponent = 10 * exponent + (*at - '0');
	decimal->point += negative ? -exponent : exponent;
	return at;
}

static double decimal_value(struct decimal *decimal)
{
	int64_t exponent = decimal->point - (int64_t)decimal->count;
	if (exponent > 100000 || exponent < -100000)
		exponent = exponent > 0 ? 100000 : -100000;
	(void)snprintf(decimal->digits + decimal->count, 24, "e%d", (int)exponent);
	return strtod(decimal->digits, NULL);
}

static void strip_zeros(struct decimal *decimal)
{
	while (decimal->count > 0 && decimal->digits[decimal->count - 1] == '0')
		decimal->count--;
}

/*
 * The first `count` (at most 17) digits of `value`, rounded, and `more` in their last place. The
 * decimal point is skipped, whatever the locale's is.
 */
static void round_to(double value, int count, unsigned more, struct decimal *ret_decimal)
{
	char text[64];
	uint64_t digits = 0;
	(void)snprintf(text, sizeof(text), "%.*e", count - 1, value);
	const char *exponent = strchr(text, 'e');
	for (const char *at = text; at < exponent; at++)
		if (*at >= '0' && *at <= '9')
			digits = 10 * digits + (uint64_t)(*at - '0');
	int length = snprintf(ret_decimal->digits, 24, "%" PRIu64, digits + more);
	ret_decimal->count = (size_t)length;
	ret_decimal->point = strtol(exponent + 1, NULL, 10) + 1 + (length - count);
	strip_zeros(ret_decimal);
}

/*
 * The shortest digits that read back as `value`. Of a normal double 15 digits are either the
 * shortest with zeros behind, or too few; subnormal ones have fewer and are tried from 1 on. Below
 * a power of two the doubles lie closer than above it: the 16 digits that read back as one may be
 * those above it, though others are nearer.
 */
static void shorten(double value, struct decimal *ret_decimal)
{
	int exponent;
	bool power = frexp(value, &exponent) == 0.5;
	for (int count = value < DBL_MIN ? 1 : DIGITS_EXACT; count < 17; count++) {
		for (unsigned more = 0; more <= (power && count == 16); more++) {
			round_to(value, count, more, ret_decimal);
			if (decimal_value(ret_decimal) == value)
				return;
		}
	}
	round_to(value, 17, 0, ret_decimal);
}

/* Of `count` digits, `whole` in front of a point; without one when none are left. */
static char *with_point(char *to, const char *digits, int whole, int count)
{
	to = mempcpy(to, digits, (size_t)whole);
	if (whole < count)
		*to++ = '.';
	return mempcpy(to, digits + whole, (size_t)(count - whole));
}

/* As Python's repr: exponent form below 1e-4 and from 1e16 on. */
static int write_decimal(const struct decimal *decimal, struct cairn_buffer *out)
{
	char text[48];
	char *to = text;
	const char *digits = decimal->digits;
	int count = (int)decimal->count;
	int point = (int)decimal->point;
	if (decimal->negative)
		*to++ = '-';
	if (point <= -4 || point > 16) {
		to = with_point(to, digits, 1, count);
		to += snprintf(to, 8, "e%c%02d", point > 0 ? '+' : '-', abs(point - 1));
	} else {
		/* Zeros in front, or behind, until a digit stands on each side of the point. */
		char padded[48];
		int front = point <= 0 ? 1 - point : 0;
		int behind = point >= count ? point + 1 - count : 0;
		memset(padded, '0', sizeof(padded));
		memcpy(padded + front, digits, (size_t)count);
		to = with_point(to, padded, front + point, front + count + behind);
	}
	return cairn_buffer_append(out, text, (size_t)(to - text));
}

static int write_special(bool negative, const char *word, struct cairn_buffer *out)
{
	int status = negative ? cairn_buffer_append(out, "-", 1) : CAIRN_OK;
	return status ? status : cairn_buffer_append(out, word, strlen(word));
}

static int write_float(struct decimal *decimal, struct cairn_buffer *out)
{
	if (decimal->cut)
		decimal->digits[decimal->count++] = '1';
	strip_zeros(decimal);
	if (decimal->count == 0)
		return write_special(decimal->negative, "0.0", out);
	if (decimal->count <= DIGITS_EXACT && decimal->point > -300 && decimal->point < 300)
		return write_decimal(decimal, out);
	double value = decimal_value(decimal);
	if (value > DBL_MAX)
		return write_special(decimal->negative, "Infinity", out);
	if (value == 0)
		return write_special(decimal->negative, "0.0", out);
	shorten(value, decimal);
	return write_decimal(decimal, out);
}

/*
 * Take in the number at `start`. Returns its end, or NULL where it goes wrong (at *ret_wrong);
 * ret_real: it is no integer.
 */
static const char *read_number(const char *start, const char *end, struct decimal *decimal,
			       bool *ret_real, const char **ret_wrong)
{
	decimal->negative = *start == '-';
	decimal->cut = false;
	decimal->point = 0;
	decimal->count = 0;
	*ret_real = false;
	const char *text = start + decimal->negative;
	if (!is_digit(text, end))
		goto wrong;
	text = *text == '0' ? text + 1 : read_digits(text, end, false, decimal);
	if (text < end && *text == '.') {
		*ret_real = true;
		if (!is_digit(++text, end))
			goto wrong;
		text = read_digits(text, end, true, decimal);
	}
	if (text < end && (*text == 'e' || *text == 'E')) {
		*ret_real = true;
		const char *behind = read_exponent(text + 1, end, decimal);
		if (!behind)
			goto wrong;
		text = behind;
	}
	return text;
wrong:
	*ret_wrong = text;
	return NULL;
}

int cairn_json_write_number(const char **at, const char *end, struct cairn_buffer *out)
{
	const char *start = *at;
	struct decimal decimal;
	bool real;
	const char *behind = read_number(start, end, &decimal, &real, at);
	if (!behind)
		return CAIRN_INVALID;
	*at = behind;
	if (real)
		return write_float(&decimal, out);
	/* An integer of any size stays digit for digit; there is only one zero. */
	if (behind - start == 2 && start[0] == '-' && start[1] == '0')
		start++;
	return cairn_buffer_append(out, start, (size_t)(behind - start));
}

int cairn_json_write_double(double value, struct cairn_buffer *out)
{
	struct decimal decimal;
	decimal.negative = signbit(value);
	decimal.count = 0;
	if (isnan(value))
		return write_special(false, "NaN", out);
	if (isinf(value))
		return write_special(decimal.negative, "Infinity", out);
	if (value == 0)
		return write_special(decimal.negative, "0.0", out);
	shorten(fabs(value), &decimal);
	return write_decimal(&decimal, out);
}

double cairn_json_real(struct cairn_slice value)
{
	struct decimal decimal;
	bool real;
	const char *wrong;
	bool negative = value.data[0] == '-';
	if (cairn_json_kind(value) == 'N')
		return value.data[0] == 'N' ? (double)NAN
					    : (negative ? -(double)INFINITY : (double)INFINITY);
	if (!read_number(value.data, value.data + value.size, &decimal, &real, &wrong))
		return (double)NAN;
	if (decimal.cut)
		decimal.digits[decimal.count++] = '1';
	strip_zeros(&decimal);
	double size = decimal.count ? decimal_value(&decimal) : 0.0;
	return negative ? -size : size;
}
