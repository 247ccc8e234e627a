/* SPDX-License-Identifier: MIT */
#include "format/json_private.h"

#include <stdlib.h>
#include <string.h>

/*
 * Two passes, neither recursive. The first reads the text and writes each value canonically, but
 * members in the order of the text, into `work`; of each object whose members are out of order it
 * notes where they lie there. The second copies `work` to the caller's buffer, members in order. So
 * each byte is copied twice, however deep it lies, and what is in order costs no notes.
 */

/* A member in `work`: its name's first quote to its value's end. */
struct member {
	uint32_t start;
	uint32_t end;
	uint32_t node; /* the first node that can lie in it */
};

/* An object in `work`, in the order of their opening braces. */
struct node {
	uint32_t start;	 /* its opening brace */
	uint32_t end;	 /* behind its closing one */
	uint32_t next;	 /* the first node behind it */
	uint32_t member; /* its members in order, in `sorted` */
	uint32_t count;	 /* 0: copied as it stands, save the nodes in it */
};

/* A container that is still open. */
struct level {
	uint32_t member; /* its first, in `members` */
	uint32_t node;
	bool object;
	bool unordered;
};

struct canonical {
	const char *at;
	const char *end;
	const char *wrong; /* the reason, when the text is no JSON */
	struct cairn_buffer work;
	struct cairn_buffer members; /* struct member, of the open objects */
	struct cairn_buffer sorted;  /* struct member, of closed unordered objects */
	struct cairn_buffer nodes;
	unsigned depth;
	struct level levels[CAIRN_JSON_DEPTH];
};

static struct member *members_of(const struct cairn_buffer *buffer)
{
	return (struct member *)(void *)buffer->data;
}

static struct node *nodes_of(const struct canonical *canonical)
{
	return (struct node *)(void *)canonical->nodes.data;
}

static uint32_t count_members(const struct cairn_buffer *buffer)
{
	return (uint32_t)(buffer->size / sizeof(struct member));
}

static uint32_t count_nodes(const struct canonical *canonical)
{
	return (uint32_t)(canonical->nodes.size / sizeof(struct node));
}

static int wrong(struct canonical *canonical, const char *reason)
{
	canonical->wrong = reason;
	return CAIRN_INVALID;
}

/* The next byte that is no white space, NUL at the end; a NUL in the text fits nowhere either. */
static char peek(struct canonical *canonical)
{
	while (canonical->at < canonical->end && cairn_json_space(*canonical->at))
		canonical->at++;
	return canonical->at < canonical->end ? *canonical->at : '\0';
}

static int put(struct canonical *canonical, char byte)
{
	struct cairn_buffer *work = &canonical->work;
	if (work->size + 1 >= work->capacity)
		return cairn_buffer_append(work, &byte, 1);
	work->data[work->size++] = byte;
	work->data[work->size] = '\0';
	return CAIRN_OK;
}

/* One character of a canonical string, its code point; -1 at the closing quote. */
static int32_t next_char(const char **at)
{
	if (**at == '"')
		return -1;
	if (**at != '\\')
		return *(*at)++;
	/* No escape is longer than a pair of surrogates, and the text is known to be good. */
	return cairn_json_read_char(at, *at + 12);
}

/* Names as they stand in `work`, by code point. */
static int compare_names(const char *a, const char *b)
{
	a++;
	b++;
	for (;;) {
		while (*a == *b && *a != '\\' && *a != '"') {
			a++;
			b++;
		}
		int32_t left = next_char(&a);
		int32_t right = next_char(&b);
		if (left != right)
			return left < right ? -1 : 1;
		if (left < 0)
			return 0;
	}
}

/* Equal names in the order of the text. */
static int compare_members(const void *a, const void *b, void *text)
{
	uint32_t left = ((const struct member *)a)->start;
	uint32_t right = ((const struct member *)b)->start;
	int order = compare_names((const char *)text + left, (const char *)text + right);
	return order ? order : left < right ? -1 : left > right;
}

static int read_string(struct canonical *canonical)
{
	const char **at = &canonical->at;
	const char *start = (*at)++;
	for (;;) {
		*at += cairn_json_plain_run(*at, canonical->end);
		if (*at == canonical->end)
			return wrong(canonical, "a string without its closing quote");
		bool quote = **at == '"';
		int status =
			cairn_buffer_append(&canonical->work, start, (size_t)(*at - start) + quote);
		if (status || quote) {
			*at += quote;
			return status;
		}
		int32_t code = cairn_json_read_char(at, canonical->end);
		if (code < 0)
			return wrong(canonical, **at == '\\' ? "a wrong escape"
						: (unsigned char)**at < ' '
							? "a control character in a string"
							: "bytes that are not UTF-8");
		status = cairn_json_write_char(code, &canonical->work);
		if (status)
			return status;
		start = *at;
	}
}

/* A member's name and its colon. */
static int read_name(struct canonical *canonical)
{
	struct level *level = &canonical->levels[canonical->depth - 1];
	struct member member = { (uint32_t)canonical->work.size, 0, count_nodes(canonical) };
	if (peek(canonical) != '"')
		return wrong(canonical, "a member's name was expected");
	int status = read_string(canonical);
	if (status)
		return status;
	if (peek(canonical) != ':')
		return wrong(canonical, "a colon was expected");
	canonical->at++;
	uint32_t count = count_members(&canonical->members);
	const char *text = canonical->work.data;
	if (count > level->member && !level->unordered)
		level->unordered =
			compare_names(text + members_of(&canonical->members)[count - 1].start,
				      text + member.start) >= 0;
	status = cairn_buffer_append(&canonical->members, &member, sizeof(member));
	return status ? status : put(canonical, ':');
}

static int open_container(struct canonical *canonical, bool object)
{
	if (canonical->depth == CAIRN_JSON_DEPTH)
		return wrong(canonical, "nested more than 500 levels deep");
	canonical->levels[canonical->depth++] = (struct level){
		.member = count_members(&canonical->members),
		.node = count_nodes(canonical),
		.object = object,
	};
	canonical->at++;
	int status = CAIRN_OK;
	if (object) {
		struct node node = { .start = (uint32_t)canonical->work.size };
		status = cairn_buffer_append(&canonical->nodes, &node, sizeof(node));
	}
	if (!status)
		status = put(canonical, object ? '{' : '[');
	return status;
}

/* Move the members of the object that closes to `sorted`, in order, of equal names the last. */
static int sort_members(struct canonical *canonical, const struct level *level, struct node *node)
{
	struct member *first = members_of(&canonical->members) + level->member;
	uint32_t count = count_members(&canonical->members) - level->member;
	const char *text = canonical->work.data;
	qsort_r(first, count, sizeof(*first), compare_members, canonical->work.data);
	node->member = count_members(&canonical->sorted);
	for (uint32_t i = 0; i < count; i++) {
		if (i + 1 < count &&
		    compare_names(text + first[i].start, text + first[i + 1].start) == 0)
			continue;
		int status = cairn_buffer_append(&canonical->sorted, &first[i], sizeof(*first));
		if (status)
			return status;
		node->count++;
	}
	return CAIRN_OK;
}

static int close_container(struct canonical *canonical)
{
	struct level *level = &canonical->levels[--canonical->depth];
	canonical->at++;
	int status = put(canonical, level->object ? '}' : ']');
	if (status || !level->object)
		return status;
	struct node *node = nodes_of(canonical) + level->node;
	node->end = (uint32_t)canonical->work.size;
	node->next = count_nodes(canonical);
	if (level->unordered)
		status = sort_members(canonical, level, node);
	else if (node->next == level->node + 1)
		canonical->nodes.size -= sizeof(*node);
	canonical->members.size = level->member * sizeof(struct member);
	return status;
}

static int read_word(struct canonical *canonical)
{
	static const char *const words[] = {
		"true", "false", "null", "NaN", "Infinity", "-Infinity"
	};
	size_t left = (size_t)(canonical->end - canonical->at);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t size = strlen(words[i]);
		if (size <= left && memcmp(canonical->at, words[i], size) == 0) {
			canonical->at += size;
			return cairn_buffer_append(&canonical->work, words[i], size);
		}
	}
	return wrong(canonical, left ? "a value was expected" : "the text ends too early");
}

/* A whole scalar, or a container's opening bracket. */
static int read_value(struct canonical *canonical)
{
	char byte = peek(canonical);
	if (byte == '{' || byte == '[')
		return open_container(canonical, byte == '{');
	if (byte == '"')
		return read_string(canonical);
	bool infinity = byte == '-' && canonical->end - canonical->at > 1 &&
			canonical->at[1] == 'I';
	if (infinity || (byte != '-' && (byte < '0' || byte > '9')))
		return read_word(canonical);
	int status = cairn_json_write_number(&canonical->at, canonical->end, &canonical->work);
	return status == CAIRN_INVALID ? wrong(canonical, "a wrong number") : status;
}

/* What stands behind a value: closing brackets, then a comma and the next member's name. */
static int read_behind(struct canonical *canonical)
{
	while (canonical->depth > 0) {
		const struct level *level = &canonical->levels[canonical->depth - 1];
		uint32_t count = count_members(&canonical->members);
		if (level->object && count > level->member)
			members_of(&canonical->members)[count - 1].end =
				(uint32_t)canonical->work.size;
		char byte = peek(canonical);
		char last = canonical->work.data[canonical->work.size - 1];
		bool fresh = last == '{' || last == '[';
		int status;
		if (byte == (level->object ? '}' : ']')) {
			status = close_container(canonical);
			if (status)
				return status;
			continue;
		}
		if (fresh)
			return level->object ? read_name(canonical) : CAIRN_OK;
		if (byte != ',')
			return wrong(canonical, level->object ? "a comma or } was expected"
							      : "a comma or ] was expected");
		canonical->at++;
		status = put(canonical, ',');
		return status || !level->object ? status : read_name(canonical);
	}
	return CAIRN_OK;
}

static int read_text(struct canonical *canonical)
{
	int status;
	do {
		status = read_value(canonical);
		if (!status)
			status = read_behind(canonical);
	} while (!status && canonical->depth > 0);
	if (!status && (peek(canonical) || canonical->at < canonical->end))
		status = wrong(canonical, "more text behind the value");
	return status;
}

/* A stretch of `work` that is being copied, and the object that interrupts it. */
struct stretch {
	uint32_t at;
	uint32_t end;
	uint32_t node;
	uint32_t member; /* of that object, the next to be copied … */
	uint32_t last;	 /* … and where they end, in `sorted` */
};

static int copy(const struct canonical *canonical, struct stretch *stretch, uint32_t end,
		struct cairn_buffer *out)
{
	uint32_t start = stretch->at;
	stretch->at = end;
	return cairn_buffer_append(out, canonical->work.data + start, end - start);
}

static int write_ordered(const struct canonical *canonical, struct cairn_buffer *out)
{
	struct stretch stretches[CAIRN_JSON_DEPTH + 1];
	const struct member *sorted = members_of(&canonical->sorted);
	const struct node *nodes = nodes_of(canonical);
	uint32_t node_count = count_nodes(canonical);
	unsigned depth = 1;
	stretches[0] = (struct stretch){ .end = (uint32_t)canonical->work.size };
	int status = CAIRN_OK;
	while (depth > 0 && !status) {
		struct stretch *stretch = &stretches[depth - 1];
		const struct node *node = nodes + stretch->node;
		if (stretch->member < stretch->last) {
			/* Whatever comes behind a member ends in no opening brace. */
			const struct member *member = &sorted[stretch->member++];
			if (out->data[out->size - 1] != '{')
				status = cairn_buffer_append(out, ",", 1);
			stretches[depth++] =
				(struct stretch){ member->start, member->end, member->node, 0, 0 };
		} else if (stretch->node == node_count || node->start >= stretch->end) {
			status = copy(canonical, stretch, stretch->end, out);
			depth--;
		} else if (node->count == 0) {
			stretch->node++;
		} else {
			/* Up to the opening brace; goes on with the closing one. */
			status = copy(canonical, stretch, node->start + 1, out);
			*stretch = (struct stretch){ node->end - 1, stretch->end, node->next,
						     node->member, node->member + node->count };
		}
	}
	return status;
}

int cairn_json_canonical(const char *text, size_t size, struct cairn_buffer *out,
			 struct cairn_error *error)
{
	size_t before = out->size;
	struct canonical canonical;
	canonical.at = text;
	canonical.end = size ? text + size : text;
	canonical.wrong = NULL;
	canonical.depth = 0;
	/* Places in `work` are 32 bits. */
	cairn_buffer_init(&canonical.work, UINT32_MAX - 1);
	cairn_buffer_init(&canonical.members, SIZE_MAX / 4);
	cairn_buffer_init(&canonical.sorted, SIZE_MAX / 4);
	cairn_buffer_init(&canonical.nodes, SIZE_MAX / 4);
	int status = cairn_buffer_reserve(&canonical.work, size);
	if (!status)
		status = read_text(&canonical);
	if (!status)
		status = write_ordered(&canonical, out);
	if (status && out->data) {
		out->size = before;
		out->data[before] = '\0';
	}
	if (status == CAIRN_INVALID)
		cairn_error_set(error, status, "not JSON: %s, at byte %zu", canonical.wrong,
				(size_t)(canonical.at - text));
	else if (status)
		cairn_error_set(error, status, "%zu bytes of JSON: %s", size,
				status == CAIRN_TOO_BIG ? "the canonical form is too big"
							: "out of memory");
	cairn_buffer_release(&canonical.work);
	cairn_buffer_release(&canonical.members);
	cairn_buffer_release(&canonical.sorted);
	cairn_buffer_release(&canonical.nodes);
	return status;
}
