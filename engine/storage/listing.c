/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

/* Keys and etags of a listing, many to a chunk. */
struct cairn_listing_chunk {
	struct cairn_listing_chunk *next;
	size_t used;
	size_t size;
	char data[];
};

#define CHUNK_SIZE ((size_t)64 * 1024)

void cairn_listing_init(struct cairn_listing *listing)
{
	*listing = (struct cairn_listing){ 0 };
}

void cairn_listing_release(struct cairn_listing *listing)
{
	struct cairn_listing_chunk *chunk = listing->chunks;
	while (chunk) {
		struct cairn_listing_chunk *next = chunk->next;
		free(chunk);
		chunk = next;
	}
	free(listing->entries);
	free(listing->token);
	cairn_listing_init(listing);
}

static char *allocate(struct cairn_listing *listing, size_t size)
{
	struct cairn_listing_chunk *chunk = listing->chunks;
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;
		/* A small listing takes little, a big one few chunks. */
		if (!chunk && size < 1024)
			room = 1024;
		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->next = listing->chunks;
		chunk->used = 0;
		chunk->size = room;
		listing->chunks = chunk;
	}
	char *memory = chunk->data + chunk->used;
	chunk->used += size;
	return memory;
}

static int reserve(struct cairn_listing *listing, size_t extra)
{
	if (listing->capacity - listing->count >= extra)
		return CAIRN_OK;
	size_t capacity = listing->capacity ? listing->capacity * 2 : 16;
	if (capacity - listing->count < extra)
		capacity = listing->count + extra;
	struct cairn_entry *entries =
		reallocarray(listing->entries, capacity, sizeof(*listing->entries));
	if (!entries)
		return CAIRN_NO_MEMORY;
	listing->entries = entries;
	listing->capacity = capacity;
	return CAIRN_OK;
}

int cairn_listing_add(struct cairn_listing *listing, struct cairn_slice head,
		      struct cairn_slice tail, const char *etag, struct cairn_entry **ret_entry)
{
	if (reserve(listing, 1))
		return CAIRN_NO_MEMORY;
	size_t etag_size = etag ? strlen(etag) + 1 : 0;
	char *memory = allocate(listing, head.size + tail.size + 1 + etag_size);
	if (!memory)
		return CAIRN_NO_MEMORY;
	struct cairn_entry *entry = &listing->entries[listing->count++];
	*entry = (struct cairn_entry){ .key = memory };
	if (head.size)
		memcpy(memory, head.data, head.size);
	if (tail.size)
		memcpy(memory + head.size, tail.data, tail.size);
	memory += head.size + tail.size;
	*memory++ = '\0';
	if (etag) {
		memcpy(memory, etag, etag_size);
		entry->etag = memory;
	}
	if (ret_entry)
		*ret_entry = entry;
	return CAIRN_OK;
}

int cairn_listing_append(struct cairn_listing *listing, struct cairn_listing *page)
{
	if (reserve(listing, page->count))
		return CAIRN_NO_MEMORY;
	if (page->count)
		memcpy(listing->entries + listing->count, page->entries,
		       page->count * sizeof(*page->entries));
	listing->count += page->count;
	/* The page's chunks go behind the listing's first, which is the one being filled. */
	struct cairn_listing_chunk **end = &listing->chunks;
	if (*end)
		end = &(*end)->next;
	while (page->chunks) {
		struct cairn_listing_chunk *chunk = page->chunks;
		page->chunks = chunk->next;
		chunk->next = *end;
		*end = chunk;
	}
	free(listing->token);
	listing->token = page->token;
	page->token = NULL;
	cairn_listing_release(page);
	return CAIRN_OK;
}

int cairn_listing_cut(struct cairn_listing *listing, size_t count)
{
	char *token = strdup(listing->entries[count - 1].key);
	if (!token)
		return CAIRN_NO_MEMORY;
	free(listing->token);
	listing->token = token;
	listing->count = count;
	return CAIRN_OK;
}
