/* SPDX-License-Identifier: MIT */
#include <cairn/timestamp.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "format/utf8.h"

#define SECOND INT64_C(1000000)
#define DAY    (86400 * SECOND)

/* Days before 1970-01-01 of 0001-01-01, and the day behind 9999-12-31. */
#define FIRST_DAY (-719162)
#define LAST_DAY  2932897

struct text {
	const char *at;
	const char *end;
};

static bool in_range(int64_t time)
{
	return time >= FIRST_DAY * DAY && time < LAST_DAY * DAY;
}

static bool leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_of_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	return days[month - 1] + (month == 2 && leap(year));
}

/* Days since 1970-01-01; a year is counted from March, so that the leap day is its last. */
static int64_t days_of_date(int year, int month, int day)
{
	int64_t years = year - (month <= 2);
	int64_t days = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return 365 * years + years / 4 - years / 100 + years / 400 + days - 719468;
}

/* The Monday of an ISO year's week 1, the week that has its 4th of January. */
static int64_t first_monday(int year)
{
	int64_t fourth = days_of_date(year, 1, 4);
	/* 1970-01-01 was a Thursday; the sum is positive from the year 1 on. */
	return fourth - (fourth - FIRST_DAY) % 7;
}

int64_t cairn_timestamp_now(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * SECOND + now.tv_nsec / 1000;
}

int cairn_timestamp_format(int64_t time, char ret_text[CAIRN_TIMESTAMP_SIZE])
{
	if (!in_range(time))
		return CAIRN_INVALID;
	int64_t since = time - FIRST_DAY * DAY;
	int64_t day = since / DAY + FIRST_DAY;
	int64_t clock = since % DAY;
	/* From the mean length of a year: never too late, and at most one too early. */
	int year = (int)((day - FIRST_DAY) * 400 / 146097) + 1;
	if (days_of_date(year + 1, 1, 1) <= day)
		year++;
	int month = 12;
	while (days_of_date(year, month, 1) > day)
		month--;
	int seconds = (int)(clock / SECOND);
	char text[80];
	(void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", year, month,
		       (int)(day - days_of_date(year, month, 1)) + 1, seconds / 3600,
		       seconds / 60 % 60, seconds % 60, (int)(clock % SECOND));
	memcpy(ret_text, text, CAIRN_TIMESTAMP_SIZE);
	return CAIRN_OK;
}

static bool take(struct text *text, char byte)
{
	bool there = text->at < text->end && *text->at == byte;
	text->at += there;
	return there;
}

static bool is_digit(const struct text *text)
{
	return text->at < text->end && *text->at >= '0' && *text->at <= '9';
}

static bool take_digits(struct text *text, int count, int *ret_number)
{
	int number = 0;
	for (int i = 0; i < count; i++) {
		if (!is_digit(text))
			return false;
		number = 10 * number + (*text->at++ - '0');
	}
	*ret_number = number;
	return true;
}

/*
 * Does the day of a week date follow at text->at (behind YYYYWww or YYYY-Www), or the separator?
 * Where both readings make sense, Python decides so.
 */
static bool week_day_follows(const struct text *text, bool extended)
{
	const char *at = text->at;
	if (extended)
		return at < text->end && *at == '-' &&
		       !(text->end - at > 2 && at[2] >= '0' && at[2] <= '9');
	struct text digits = *text;
	while (is_digit(&digits))
		digits.at++;
	int64_t count = digits.at - at;
	return count == 1 || (count > 0 && count % 2 == 0);
}

static bool read_date(struct text *text, int64_t *ret_day)
{
	int year, month, day;
	if (!take_digits(text, 4, &year) || year < 1)
		return false;
	bool extended = take(text, '-');
	if (take(text, 'W')) {
		int week, weekday = 1;
		if (!take_digits(text, 2, &week))
			return false;
		if (week_day_follows(text, extended) &&
		    ((extended && !take(text, '-')) || !take_digits(text, 1, &weekday)))
			return false;
		int64_t monday = first_monday(year) + 7 * (int64_t)(week - 1);
		/* A year's last week is the one before the next year's first. */
		if (week < 1 || weekday < 1 || weekday > 7 || monday >= first_monday(year + 1))
			return false;
		*ret_day = monday + weekday - 1;
		return true;
	}
	if (!take_digits(text, 2, &month) || month < 1 || month > 12 ||
	    (extended && !take(text, '-')) || !take_digits(text, 2, &day) || day < 1 ||
	    day > days_of_month(year, month))
		return false;
	*ret_day = days_of_date(year, month, day);
	return true;
}

/* HH[:]MM[:]SS, a fraction behind any of them, in microseconds. Ranges are for the caller. */
static bool read_clock(struct text *text, int ret_fields[3], int64_t *ret_time)
{
	int fraction = 0;
	bool extended = false;
	memset(ret_fields, 0, 3 * sizeof(int));
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			extended = text->at < text->end && *text->at == ':';
		if (i > 0 && (text->at == text->end || *text->at == '.' || *text->at == ','))
			break;
		if ((i > 0 && extended && !take(text, ':')) ||
		    !take_digits(text, 2, &ret_fields[i]))
			return false;
	}
	if (take(text, '.') || take(text, ',')) {
		if (!is_digit(text))
			return false;
		for (int unit = 100000; is_digit(text); unit /= 10)
			fraction += unit * (*text->at++ - '0');
	}
	*ret_time = (ret_fields[0] * 3600 + ret_fields[1] * 60 + ret_fields[2]) * SECOND + fraction;
	return text->at == text->end;
}

static bool read_time(struct text *text, int64_t *ret_time, int64_t *ret_offset)
{
	struct text clock = *text;
	int fields[3];
	int64_t offset = 0;
	while (text->at < text->end && *text->at != 'Z' && *text->at != '+' && *text->at != '-')
		text->at++;
	clock.end = text->at;
	if (!read_clock(&clock, fields, ret_time) || fields[1] > 59 || fields[2] > 59 ||
	    *ret_time > DAY)
		return false;
	if (text->at < text->end && !take(text, 'Z')) {
		bool west = *text->at++ == '-';
		if (!read_clock(text, fields, &offset) || offset >= DAY)
			return false;
		/* As Python: a fraction alone is no offset. */
		if (offset < SECOND)
			offset = 0;
		if (west)
			offset = -offset;
	}
	*ret_offset = offset;
	return text->at == text->end;
}

int cairn_timestamp_parse(struct cairn_slice slice, int64_t *ret_time)
{
	if (slice.size == 0)
		return CAIRN_INVALID;
	struct text text = { slice.data, slice.data + slice.size };
	int64_t day, time = 0, offset = 0;
	if (!read_date(&text, &day))
		return CAIRN_INVALID;
	/* Any one character separates the time from the date. */
	if (text.at < text.end &&
	    (cairn_utf8_read(&text.at, text.end) < 0 || !read_time(&text, &time, &offset)))
		return CAIRN_INVALID;
	time += day * DAY;
	if (!in_range(time) || !in_range(time - offset))
		return CAIRN_INVALID;
	*ret_time = time - offset;
	return CAIRN_OK;
}
