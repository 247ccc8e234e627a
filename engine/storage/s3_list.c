/* SPDX-License-Identifier: MIT */
#include "storage/s3_private.h"

#include <cairn/timestamp.h>

#include "storage/store_private.h"
#include "storage/xml.h"

/* 1,000 keys of 1,024 bytes, each byte as %XX, and what stands around them. */
#define PAGE_BODY_MAX ((size_t)16 * 1024 * 1024)
#define PAGE_KEYS     1000

/* One page as the server writes it, keys still encoded. */
struct page {
	struct cairn_listing raw;
	struct cairn_buffer key; /* of the item being read */
	char etag[CAIRN_ETAG_SIZE];
	uint64_t size;
	int64_t modified;
	bool encoded;
	bool truncated;
	bool listing; /* it is one, no other document */
	char *token;
};

static bool says(struct cairn_slice text, const char *word)
{
	return cairn_slice_equal(text, cairn_slice_of(word));
}

static bool is_item(const char *path)
{
	return strcmp(path, "ListBucketResult/Contents") == 0 ||
	       strcmp(path, "ListBucketResult/CommonPrefixes") == 0;
}

static int item_begins(void *context, const char *path)
{
	struct page *page = context;
	if (strcmp(path, "ListBucketResult") == 0)
		page->listing = true;
	if (is_item(path)) {
		cairn_buffer_clear(&page->key);
		page->etag[0] = '\0';
		page->size = 0;
		page->modified = 0;
	}
	return CAIRN_OK;
}

static int item_ends(struct page *page, bool is_prefix)
{
	struct cairn_entry *entry;
	if (cairn_listing_add(&page->raw, cairn_buffer_slice(&page->key), (struct cairn_slice){ 0 },
			      *page->etag ? page->etag : NULL, &entry))
		return CAIRN_NO_MEMORY;
	entry->is_prefix = is_prefix;
	entry->size = page->size;
	entry->modified = page->modified;
	return CAIRN_OK;
}

static int keep_key(struct page *page, struct cairn_slice text)
{
	cairn_buffer_clear(&page->key);
	return cairn_buffer_append(&page->key, text.data, text.size);
}

static int keep_token(struct page *page, struct cairn_slice text)
{
	free(page->token);
	page->token = text.size ? strndup(text.data, text.size) : NULL;
	return text.size && !page->token ? CAIRN_NO_MEMORY : CAIRN_OK;
}

static int element_ends(void *context, const char *path, struct cairn_slice text)
{
	static const char root[] = "ListBucketResult/";
	struct page *page = context;
	if (strncmp(path, root, sizeof(root) - 1) != 0)
		return CAIRN_OK;
	const char *name = path + sizeof(root) - 1;
	if (strcmp(name, "Contents/Key") == 0 || strcmp(name, "CommonPrefixes/Prefix") == 0)
		return keep_key(page, text);
	if (strcmp(name, "Contents") == 0 || strcmp(name, "CommonPrefixes") == 0)
		return item_ends(page, name[1] == 'o' && name[2] == 'm');
	if (strcmp(name, "NextContinuationToken") == 0)
		return keep_token(page, text);
	if (strcmp(name, "IsTruncated") == 0)
		page->truncated = says(text, "true");
	else if (strcmp(name, "EncodingType") == 0)
		page->encoded = says(text, "url");
	else if (strcmp(name, "Contents/ETag") == 0 && text.size)
		(void)cairn_s3_read_etag(text.data, page->etag);
	else if (strcmp(name, "Contents/Size") == 0 && text.size)
		page->size = strtoull(text.data, NULL, 10);
	else if (strcmp(name, "Contents/LastModified") == 0)
		return cairn_timestamp_parse(text, &page->modified) ? CAIRN_CORRUPT : CAIRN_OK;
	return CAIRN_OK;
}

static void page_release(struct page *page)
{
	cairn_listing_release(&page->raw);
	cairn_buffer_release(&page->key);
	free(page->token);
	*page = (struct page){ 0 };
	cairn_buffer_init(&page->key, SIZE_MAX / 2);
}

static int digit(char byte)
{
	return byte >= '0' && byte <= '9'   ? byte - '0'
	       : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
	       : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
					    : -1;
}

/* In place; a `+` is a space that the server wrote so. False: a key that no C string holds. */
static bool decode(char *text)
{
	char *out = text;
	for (const char *at = text; *at; at++) {
		int high = *at == '%' ? digit(at[1]) : -1;
		int low = high >= 0 ? digit(at[2]) : -1;
		if (low >= 0) {
			if (!high && !low)
				return false;
			*out++ = (char)(high * 16 + low);
			at += 2;
		} else {
			*out++ = *at == '+' ? ' ' : *at;
		}
	}
	*out = '\0';
	return true;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct cairn_entry *)a)->key, ((const struct cairn_entry *)b)->key);
}

/*
 * The page's entries as ours: decoded, without the store's prefix, behind start_after (a common
 * prefix may lie before it), in one order.
 */
static int keep_entries(const struct cairn_s3_store *s3, struct cairn_call *call,
			const char *prefix, const struct cairn_list_options *options,
			struct page *page)
{
	size_t cut = strlen(s3->prefix), kept = 0;
	struct cairn_listing *raw = &page->raw;
	for (size_t i = 0; i < raw->count; i++) {
		struct cairn_entry entry = raw->entries[i];
		if (page->encoded && !decode(entry.key))
			continue;
		if (strncmp(entry.key, s3->prefix, cut) != 0 ||
		    strncmp(entry.key + cut, prefix, strlen(prefix)) != 0)
			return cairn_error_set(&call->error, CAIRN_CORRUPT,
					       "%s: %s listed a key outside what was asked for",
					       prefix, s3->store.name);
		entry.key += cut;
		if (!*entry.key ||
		    (options->start_after && strcmp(entry.key, options->start_after) <= 0))
			continue;
		raw->entries[kept++] = entry;
	}
	raw->count = kept;
	if (kept)
		qsort(raw->entries, kept, sizeof(*raw->entries), by_key);
	return CAIRN_OK;
}

static int read_page(const struct cairn_s3_store *s3, struct cairn_call *call, const char *prefix,
		     const struct cairn_s3_answer *answer, struct page *page)
{
	const struct cairn_xml_handler handler = {
		.begin = item_begins,
		.end = element_ends,
		.context = page,
	};
	struct cairn_error error = { 0 };
	const char *what = *prefix ? prefix : "the bucket";
	int status = CAIRN_TOO_BIG;
	if (!answer->response.cut)
		status = cairn_xml_read(cairn_buffer_slice(&answer->response.body), &handler,
					&error);
	if (status == CAIRN_NO_MEMORY)
		return cairn_call_no_memory(call, what);
	/* It may have been cut on its way: worth another try. */
	if (status || !page->listing)
		return cairn_error_set(&call->error, CAIRN_IO,
				       "%s: the listing from %s cannot be read: %s", what,
				       s3->store.name,
				       answer->response.cut ? "it is too long"
				       : *error.text	    ? error.text
							    : "it is none");
	return CAIRN_OK;
}

/* One request for the page behind `token`. */
static int fetch(struct cairn_s3_store *s3, struct cairn_call *call, const char *prefix,
		 const struct cairn_list_options *options, const char *token, struct page *page)
{
	char max[16];
	struct cairn_buffer full, after;
	struct cairn_s3_answer answer;
	struct cairn_s3_request request = {
		.what = *prefix ? prefix : "the bucket",
		.method = "GET",
		.max_body = PAGE_BODY_MAX,
	};
	size_t wanted = options->max && options->max < PAGE_KEYS ? options->max : PAGE_KEYS;
	cairn_buffer_init(&full, SIZE_MAX / 2);
	cairn_buffer_init(&after, SIZE_MAX / 2);
	cairn_s3_answer_init(&answer);
	int status = CAIRN_OK;
	if (cairn_buffer_printf(&full, "%s%s", s3->prefix, prefix) ||
	    cairn_buffer_printf(&after, "%s%s", s3->prefix,
				options->start_after ? options->start_after : "")) {
		status = cairn_call_no_memory(call, prefix);
		goto out;
	}
	(void)snprintf(max, sizeof(max), "%zu", wanted);
	cairn_s3_add_query(&request, "list-type", "2");
	cairn_s3_add_query(&request, "encoding-type", "url");
	cairn_s3_add_query(&request, "max-keys", max);
	cairn_s3_add_query(&request, "prefix", full.data);
	if (options->delimited)
		cairn_s3_add_query(&request, "delimiter", "/");
	if (token)
		cairn_s3_add_query(&request, "continuation-token", token);
	else if (options->start_after)
		cairn_s3_add_query(&request, "start-after", after.data);
	status = cairn_s3_send(s3, call, &request, &answer);
	if (!status && !cairn_s3_is_good(&answer))
		status = cairn_s3_failure(s3, call, &request, &answer);
	else if (!status)
		status = read_page(s3, call, prefix, &answer, page);
out:
	cairn_s3_answer_release(&answer);
	cairn_buffer_release(&full);
	cairn_buffer_release(&after);
	return status;
}

int cairn_s3_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		  const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	struct cairn_s3_store *s3 = (struct cairn_s3_store *)store;
	struct page page = { 0 };
	char *token = NULL;
	int status = CAIRN_OK;
	page_release(&page);
	/* A page of which nothing is left is no page: the next one is asked for. */
	do {
		const char *sent = token ? token : options->token;
		page_release(&page);
		status = fetch(s3, call, prefix, options, sent, &page);
		if (!status)
			status = keep_entries(s3, call, prefix, options, &page);
		/* It would never end. */
		if (!status && page.truncated &&
		    (!page.token || (sent && strcmp(page.token, sent) == 0)))
			status = cairn_error_set(&call->error, CAIRN_CORRUPT,
						 "%s: the listing from %s goes on, but %s",
						 *prefix ? prefix : "the bucket", s3->store.name,
						 page.token ? "from where it was"
							    : "does not say from where");
		free(token);
		token = page.truncated ? page.token : NULL;
		if (token)
			page.token = NULL;
	} while (!status && token && page.raw.count == 0);
	if (!status) {
		*ret_listing = page.raw;
		ret_listing->token = token;
		token = NULL;
		cairn_listing_init(&page.raw);
	}
	free(token);
	page_release(&page);
	return status;
}
