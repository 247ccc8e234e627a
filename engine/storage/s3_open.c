/* SPDX-License-Identifier: MIT */
#include "storage/s3.h"

#include "storage/s3_private.h"
#include "storage/store_private.h"

/* What a bucket, a host and a region are made of; they become parts of URLs as they are. */
#define BUCKET_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define HOST_BYTES   BUCKET_BYTES ":[]"

#define URL_TEXT_MAX 4096

static int check_bucket(const char *bucket, struct cairn_error *error)
{
	size_t size = bucket ? strlen(bucket) : 0;
	if (size == 0)
		return cairn_error_set(error, CAIRN_INVALID,
				       "no bucket: write s3://BUCKET/PREFIX, or set "
				       "CAIRNDB_S3_BUCKET");
	if (size < 3 || size > 255 || strspn(bucket, BUCKET_BYTES) != size || bucket[0] == '.')
		return cairn_error_set(error, CAIRN_INVALID, "%s: no name of a bucket", bucket);
	return CAIRN_OK;
}

/* Does Amazon serve this bucket under its own host's name, with a certificate for it? */
static bool fits_host(const char *bucket)
{
	return strlen(bucket) <= 63 &&
	       strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(bucket);
}

static int set_endpoint(struct cairn_s3_store *s3, const char *url, struct cairn_error *error)
{
	bool tls = url && strncmp(url, "https://", 8) == 0;
	if (!url) {
		s3->scheme = strdup("https://");
		return s3->scheme ? CAIRN_OK : CAIRN_NO_MEMORY;
	}
	if (!tls && strncmp(url, "http://", 7) != 0)
		return cairn_error_set(error, CAIRN_INVALID,
				       "endpoint_url: write http://HOST:PORT or https://HOST:PORT");
	const char *host = url + (tls ? 8 : 7);
	size_t size = strcspn(host, "/");
	/* The URL may hold a password that must not be told. */
	if (size == 0 || size > 255 || strspn(host, HOST_BYTES) < size)
		return cairn_error_set(error, CAIRN_INVALID,
				       "endpoint_url: no host, or one with odd characters");
	if (host[size] && host[size + 1])
		return cairn_error_set(error, CAIRN_INVALID,
				       "endpoint_url %s: only a host, no path", url);
	/* libcurl leaves the scheme's own port out of the Host header, which is signed. */
	const char *port = tls ? ":443" : ":80";
	size_t tail = strlen(port);
	if (size > tail && strncmp(host + size - tail, port, tail) == 0)
		size -= tail;
	s3->scheme = strdup(tls ? "https://" : "http://");
	s3->host = strndup(host, size);
	return s3->scheme && s3->host ? CAIRN_OK : CAIRN_NO_MEMORY;
}

static int set_prefix(struct cairn_s3_store *s3, const char *prefix)
{
	size_t size = prefix ? strlen(prefix) : 0;
	/* As the Python package does. */
	while (size && prefix[size - 1] == '/')
		size--;
	s3->prefix = calloc(1, size + 2);
	if (!s3->prefix)
		return CAIRN_NO_MEMORY;
	if (size) {
		memcpy(s3->prefix, prefix, size);
		s3->prefix[size] = '/';
	}
	return CAIRN_OK;
}

static int set_up(struct cairn_s3_store *s3, const struct cairn_s3_options *options,
		  struct cairn_error *error)
{
	const char *region = options->region ? options->region : "us-east-1";
	int status = check_bucket(options->bucket, error);
	if (status)
		return status;
	if (strlen(region) >= sizeof(s3->region) ||
	    strspn(region, BUCKET_BYTES) != strlen(region) || !*region)
		return cairn_error_set(error, CAIRN_INVALID, "%s: no name of a region", region);
	(void)snprintf(s3->region, sizeof(s3->region), "%s", region);
	status = set_endpoint(s3, options->endpoint_url, error);
	if (!status)
		status = set_prefix(s3, options->prefix);
	s3->bucket = strdup(options->bucket);
	if (status == CAIRN_NO_MEMORY || (!status && !s3->bucket))
		return cairn_error_set(error, CAIRN_NO_MEMORY, "out of memory");
	if (status)
		return status;
	s3->virtual_host = s3->host ? options->virtual_host : fits_host(options->bucket);
	const struct cairn_http_options http = { .ca_bundle = options->ca_bundle };
	const struct cairn_credential_options credentials = {
		.profile = options->profile,
		.region = region,
		.ca_bundle = options->ca_bundle,
	};
	status = cairn_http_new(&http, &s3->http, error);
	if (!status)
		status = cairn_credential_source_new(&credentials, &s3->credentials, error);
	return status;
}

int cairn_s3_store_new(const struct cairn_s3_options *options,
		       const struct cairn_store_options *store_options,
		       struct cairn_store **ret_store, struct cairn_error *error)
{
	static const struct cairn_store_options defaults;
	if (!store_options)
		store_options = &defaults;
	struct cairn_s3_store *s3 = calloc(1, sizeof(*s3));
	if (!s3)
		return cairn_error_set(error, CAIRN_NO_MEMORY, "out of memory");
	s3->store.ops = &cairn_s3_ops;
	s3->store.timeout = store_options->timeout ? store_options->timeout : CAIRN_TIMEOUT_DEFAULT;
	s3->store.capabilities = (struct cairn_capabilities){
		.kind = "s3",
		.content_etags = true,
		.listing_etags = true,
		.read_only = store_options->read_only,
	};
	(void)pthread_mutex_init(&s3->lock, NULL);
	int status = set_up(s3, options, error);
	if (status) {
		cairn_store_free(&s3->store);
		return status;
	}
	(void)snprintf(s3->store.name, sizeof(s3->store.name), "s3 bucket %.80s at %s%.120s",
		       s3->bucket, s3->host ? s3->scheme : "", s3->host ? s3->host : "Amazon");
	*ret_store = &s3->store;
	return CAIRN_OK;
}

/* Where the bucket is, in strings of this struct's own. */
struct place {
	char bucket[256];
	char prefix[URL_TEXT_MAX];
	char endpoint_url[512];
	char region[CAIRN_S3_REGION_SIZE];
	char profile[256];
	char ca_bundle[URL_TEXT_MAX];
	char addressing[16];
};

static int digit(char byte)
{
	return byte >= '0' && byte <= '9'   ? byte - '0'
	       : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
	       : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
					    : -1;
}

/* Decode %XX of `size` bytes into a field. */
static int set_field(char *field, size_t room, const char *text, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < size; i++) {
		char byte = text[i];
		if (byte == '%') {
			int high = i + 2 < size ? digit(text[i + 1]) : -1;
			int low = i + 2 < size ? digit(text[i + 2]) : -1;
			if (high < 0 || low < 0)
				return CAIRN_INVALID;
			byte = (char)(high * 16 + low);
			i += 2;
		}
		if (!byte || used + 1 >= room)
			return CAIRN_INVALID;
		field[used++] = byte;
	}
	field[used] = '\0';
	return CAIRN_OK;
}

/* One "name=value" of a URL's query. */
static int set_option(struct place *place, const char *text, size_t size, struct cairn_error *error)
{
	const struct {
		const char *name;
		char *field;
		size_t room;
	} fields[] = {
		{ "endpoint_url", place->endpoint_url, sizeof(place->endpoint_url) },
		{ "region", place->region, sizeof(place->region) },
		{ "profile", place->profile, sizeof(place->profile) },
		{ "ca_bundle", place->ca_bundle, sizeof(place->ca_bundle) },
		{ "addressing", place->addressing, sizeof(place->addressing) },
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t name = strlen(fields[i].name);
		if (size <= name || strncmp(text, fields[i].name, name) != 0 || text[name] != '=')
			continue;
		if (set_field(fields[i].field, fields[i].room, text + name + 1, size - name - 1))
			return cairn_error_set(error, CAIRN_INVALID,
					       "s3 URL: %s is too long, or has a wrong %%XX",
					       fields[i].name);
		return CAIRN_OK;
	}
	return cairn_error_set(error, CAIRN_INVALID,
			       "s3 URL: no option %.*s; there are endpoint_url, region, profile, "
			       "ca_bundle and addressing",
			       (int)strcspn(text, "=&"), text);
}

static int read_url(const char *url, struct place *place, struct cairn_error *error)
{
	const char *bucket = url + strlen("s3://");
	size_t size = strcspn(bucket, "/?");
	if (memchr(bucket, '@', size))
		return cairn_error_set(error, CAIRN_INVALID,
				       "s3 URL: keys do not belong there; use the environment or "
				       "~/.aws/credentials");
	if (set_field(place->bucket, sizeof(place->bucket), bucket, size))
		return cairn_error_set(error, CAIRN_INVALID, "s3 URL: no name of a bucket");
	const char *at = bucket + size;
	if (*at == '/') {
		size = strcspn(++at, "?");
		if (set_field(place->prefix, sizeof(place->prefix), at, size))
			return cairn_error_set(error, CAIRN_INVALID,
					       "s3 URL: the prefix is too long, or has a wrong "
					       "%%XX (write %%25 for %%)");
		at += size;
	}
	int status = CAIRN_OK;
	while (*at && !status) {
		size = strcspn(++at, "&");
		if (size)
			status = set_option(place, at, size, error);
		at += size;
	}
	return status;
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

/* What `names` (ended by NULL) say first, else the profile's setting, unless the field is set. */
static int fill(char *field, size_t room, const char *const *names, const char *profile,
		const char *setting, struct cairn_error *error)
{
	if (*field)
		return CAIRN_OK;
	const char *value = NULL;
	for (; *names && !value; names++)
		value = environment(*names);
	char *owned = value ? NULL : cairn_profile_setting(profile, setting);
	if (!value)
		value = owned ? owned : "";
	bool fits = strlen(value) < room;
	if (fits)
		(void)snprintf(field, room, "%s", value);
	free(owned);
	return fits ? CAIRN_OK
		    : cairn_error_set(error, CAIRN_INVALID, "%s of the environment is too long",
				      setting);
}

static int fill_all(struct place *place, struct cairn_error *error)
{
	static const char *const endpoints[] = { "CAIRNDB_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
						 "AWS_ENDPOINT_URL", NULL };
	static const char *const regions[] = { "CAIRNDB_S3_REGION", "AWS_REGION",
					       "AWS_DEFAULT_REGION", NULL };
	static const char *const bundles[] = { "AWS_CA_BUNDLE", NULL };
	const char *profile = *place->profile ? place->profile : NULL;
	int status = fill(place->endpoint_url, sizeof(place->endpoint_url), endpoints, profile,
			  "endpoint_url", error);
	if (!status)
		status = fill(place->region, sizeof(place->region), regions, profile, "region",
			      error);
	if (!status)
		status = fill(place->ca_bundle, sizeof(place->ca_bundle), bundles, profile,
			      "ca_bundle", error);
	return status;
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

int cairn_s3_store_open(const char *url, const struct cairn_store_options *options,
			struct cairn_store **ret_store, struct cairn_error *error)
{
	struct place *place = calloc(1, sizeof(*place));
	if (!place)
		return cairn_error_set(error, CAIRN_NO_MEMORY, "out of memory");
	int status = CAIRN_OK;
	if (url) {
		status = read_url(url, place, error);
	} else {
		const char *bucket = environment("CAIRNDB_S3_BUCKET");
		const char *prefix = environment("CAIRNDB_STORAGE_PREFIX");
		(void)snprintf(place->bucket, sizeof(place->bucket), "%s", bucket ? bucket : "");
		(void)snprintf(place->prefix, sizeof(place->prefix), "%s", prefix ? prefix : "");
	}
	if (!status)
		status = fill_all(place, error);
	if (!status && *place->addressing && strcmp(place->addressing, "path") != 0 &&
	    strcmp(place->addressing, "virtual") != 0)
		status = cairn_error_set(error, CAIRN_INVALID,
					 "s3 URL: addressing is path or virtual");
	if (!status) {
		const struct cairn_s3_options s3 = {
			.bucket = place->bucket,
			.prefix = place->prefix,
			.endpoint_url = or_null(place->endpoint_url),
			.region = or_null(place->region),
			.profile = or_null(place->profile),
			.ca_bundle = or_null(place->ca_bundle),
			.virtual_host = strcmp(place->addressing, "virtual") == 0,
		};
		status = cairn_s3_store_new(&s3, options, ret_store, error);
	}
	free(place);
	return status;
}
