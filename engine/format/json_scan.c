/* SPDX-License-Identifier: MIT */
#include "format/json_private.h"

#include <string.h>

enum state {
	VALUE,		/* white space, then a value */
	VALUE_OR_CLOSE, /* behind [ */
	NAME_OR_CLOSE,	/* behind { */
	NAME,		/* behind a comma of an object */
	COLON,
	AFTER, /* behind a value of a container */
	STRING,
	ESCAPE,
	HEX,
	UTF8,
	WORD,
	MINUS, /* numbers, from here to EXPONENT */
	ZERO,
	INTEGER,
	POINT,
	FRACTION,
	EXPONENT_SIGN,
	EXPONENT_FIRST,
	EXPONENT,
	WRONG,
};

static const char *const words[] = { "true", "false", "null", "NaN", "Infinity" };

void cairn_json_scan_init(struct cairn_json_scan *scan)
{
	*scan = (struct cairn_json_scan){ .state = VALUE };
}

static bool in_object(const struct cairn_json_scan *scan)
{
	unsigned level = scan->depth - 1U;
	return scan->depth > 0 && (scan->stack[level / 64] >> (level % 64) & 1);
}

static bool open_container(struct cairn_json_scan *scan, bool object)
{
	unsigned level = scan->depth;
	if (level == CAIRN_JSON_DEPTH)
		return false;
	uint64_t bit = (uint64_t)1 << (level % 64);
	scan->stack[level / 64] = (scan->stack[level / 64] & ~bit) | (object ? bit : 0);
	scan->depth++;
	scan->state = object ? NAME_OR_CLOSE : VALUE_OR_CLOSE;
	return true;
}

/* The state behind a value, or behind a name. */
static enum cairn_json_progress value_ended(struct cairn_json_scan *scan)
{
	if (scan->depth == 0) {
		scan->state = VALUE;
		return CAIRN_JSON_COMPLETE;
	}
	scan->state = AFTER;
	return CAIRN_JSON_PARTIAL;
}

static enum cairn_json_progress start_word(struct cairn_json_scan *scan, char byte)
{
	for (uint8_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i][0] == byte) {
			scan->state = WORD;
			scan->word = i;
			scan->count = 1;
			return CAIRN_JSON_PARTIAL;
		}
	}
	return CAIRN_JSON_WRONG;
}

static enum cairn_json_progress start_value(struct cairn_json_scan *scan, char byte)
{
	switch (byte) {
	case '{':
	case '[':
		return open_container(scan, byte == '{') ? CAIRN_JSON_PARTIAL : CAIRN_JSON_WRONG;
	case '"':
		scan->state = STRING;
		scan->name = false;
		return CAIRN_JSON_PARTIAL;
	case '-':
		scan->state = MINUS;
		return CAIRN_JSON_PARTIAL;
	default:
		if (byte < '0' || byte > '9')
			return start_word(scan, byte);
		scan->state = byte == '0' ? ZERO : INTEGER;
		return CAIRN_JSON_PARTIAL;
	}
}

/* A byte between values, names and marks. */
static enum cairn_json_progress step_structure(struct cairn_json_scan *scan, char byte)
{
	bool close = byte == (in_object(scan) ? '}' : ']') && scan->depth > 0;
	if (cairn_json_space(byte))
		return CAIRN_JSON_PARTIAL;
	if (close && (scan->state == AFTER || scan->state == VALUE_OR_CLOSE ||
		      scan->state == NAME_OR_CLOSE)) {
		scan->depth--;
		return value_ended(scan);
	}
	switch (scan->state) {
	case VALUE:
	case VALUE_OR_CLOSE:
		return start_value(scan, byte);
	case NAME:
	case NAME_OR_CLOSE:
		scan->state = STRING;
		scan->name = true;
		return byte == '"' ? CAIRN_JSON_PARTIAL : CAIRN_JSON_WRONG;
	case COLON:
		scan->state = VALUE;
		return byte == ':' ? CAIRN_JSON_PARTIAL : CAIRN_JSON_WRONG;
	default:
		scan->state = in_object(scan) ? NAME : VALUE;
		return byte == ',' ? CAIRN_JSON_PARTIAL : CAIRN_JSON_WRONG;
	}
}

/* A first byte of UTF-8: how many follow, and the bounds of the second (no overlong forms,
 * no surrogates, nothing above U+10FFFF). */
static bool start_utf8(struct cairn_json_scan *scan, unsigned char byte)
{
	if (byte < 0xc2 || byte > 0xf4)
		return false;
	scan->state = UTF8;
	scan->count = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
	scan->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
	scan->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
	return true;
}

static bool is_hex(char byte)
{
	return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f');
}

/* A byte inside a string. */
static enum cairn_json_progress step_string(struct cairn_json_scan *scan, char byte)
{
	unsigned char raw = (unsigned char)byte;
	bool good = true;
	switch (scan->state) {
	case ESCAPE:
		scan->state = byte == 'u' ? HEX : STRING;
		scan->count = 4;
		good = byte && strchr("\"\\/bfnrtu", byte);
		break;
	case HEX:
		good = is_hex(byte);
		if (--scan->count == 0)
			scan->state = STRING;
		break;
	case UTF8:
		good = raw >= scan->low && raw <= scan->high;
		scan->low = 0x80;
		scan->high = 0xbf;
		if (--scan->count == 0)
			scan->state = STRING;
		break;
	default:
		if (byte == '"' && !scan->name)
			return value_ended(scan);
		if (byte == '"')
			scan->state = COLON;
		else if (byte == '\\')
			scan->state = ESCAPE;
		else
			good = raw >= 0x80 ? start_utf8(scan, raw) : raw >= ' ';
	}
	return good ? CAIRN_JSON_PARTIAL : CAIRN_JSON_WRONG;
}

/* The state that `byte` leads to inside a number; WRONG where it does not belong to it. */
static enum state number_next(enum state state, char byte)
{
	if (byte >= '0' && byte <= '9') {
		if (state == MINUS)
			return byte == '0' ? ZERO : INTEGER;
		if (state == POINT)
			return FRACTION;
		if (state == EXPONENT_SIGN || state == EXPONENT_FIRST)
			return EXPONENT;
		return state == ZERO ? WRONG : state;
	}
	if (byte == '.')
		return state == ZERO || state == INTEGER ? POINT : WRONG;
	if (byte == 'e' || byte == 'E')
		return state == ZERO || state == INTEGER || state == FRACTION ? EXPONENT_SIGN
									      : WRONG;
	if (byte == '+' || byte == '-')
		return state == EXPONENT_SIGN ? EXPONENT_FIRST : WRONG;
	return WRONG;
}

/* Is the number or word so far a whole one? */
static bool scalar_whole(const struct cairn_json_scan *scan)
{
	if (scan->state == WORD)
		return words[scan->word][scan->count] == '\0';
	return scan->state == ZERO || scan->state == INTEGER || scan->state == FRACTION ||
	       scan->state == EXPONENT;
}

/* A byte of a number or a word; *ret_behind is set when the byte is the first behind it. */
static enum cairn_json_progress step_scalar(struct cairn_json_scan *scan, char byte,
					    bool *ret_behind)
{
	if (scan->state == WORD) {
		char wanted = words[scan->word][scan->count];
		if (wanted && byte == wanted) {
			scan->count++;
			return CAIRN_JSON_PARTIAL;
		}
	} else if (scan->state == MINUS && byte == 'I') {
		return start_word(scan, byte);
	} else {
		enum state next = number_next((enum state)scan->state, byte);
		if (next != WRONG) {
			scan->state = (uint8_t)next;
			return CAIRN_JSON_PARTIAL;
		}
	}
	if (!scalar_whole(scan) || (scan->depth == 0 && !cairn_json_space(byte)))
		return CAIRN_JSON_WRONG;
	*ret_behind = true;
	return value_ended(scan);
}

enum cairn_json_progress cairn_json_scan_feed(struct cairn_json_scan *scan, const char *data,
					      size_t size, size_t *ret_end)
{
	size_t at = 0;
	while (at < size && scan->state != WRONG) {
		enum cairn_json_progress progress;
		bool behind = false;
		if (scan->state == STRING) {
			at += cairn_json_plain_run(data + at, data + size);
			if (at == size)
				break;
		}
		if (scan->state < STRING)
			progress = step_structure(scan, data[at]);
		else if (scan->state < WORD)
			progress = step_string(scan, data[at]);
		else
			progress = step_scalar(scan, data[at], &behind);
		if (progress == CAIRN_JSON_WRONG) {
			scan->state = WRONG;
			break;
		}
		at += !behind;
		if (progress == CAIRN_JSON_COMPLETE) {
			*ret_end = at;
			return CAIRN_JSON_COMPLETE;
		}
	}
	*ret_end = at;
	return cairn_json_scan_end(scan);
}

enum cairn_json_progress cairn_json_scan_end(const struct cairn_json_scan *scan)
{
	if (scan->state == WRONG)
		return CAIRN_JSON_WRONG;
	if (scan->depth == 0 && scan->state == VALUE)
		return CAIRN_JSON_EMPTY;
	if (scan->depth == 0 && scan->state >= WORD && scalar_whole(scan))
		return CAIRN_JSON_OPEN_ENDED;
	return CAIRN_JSON_PARTIAL;
}
