/* SPDX-License-Identifier: MIT */
#include "storage/credentials.h"

#include <sys/mman.h>

#include <cairn/json.h>
#include <cairn/timestamp.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "storage/credentials_private.h"
#include "storage/store_private.h"

/* New ones are looked for so long before the old ones end. */
#define EXPIRY_MARGIN ((int64_t)5 * 60 * 1000 * 1000)

/* While another thread looks for them. */
#define LOOKING_POLL ((int64_t)10 * 1000)

const char *cairn_environment(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

void cairn_secret_release(struct cairn_buffer *buffer)
{
	if (buffer->data)
		explicit_bzero(buffer->data, buffer->capacity);
	cairn_buffer_release(buffer);
}

int cairn_secret_read(const char *path, struct cairn_buffer *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? CAIRN_NOT_FOUND
		       : errno == EACCES		   ? CAIRN_ACCESS
							   : CAIRN_IO;
	/* Growing would leave copies behind: room for all at once. */
	int status = cairn_buffer_reserve(out, out->limit);
	while (!status) {
		ssize_t got = read(fd, out->data + out->size, out->limit - out->size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			status = CAIRN_IO;
		if (got <= 0)
			break;
		out->size += (size_t)got;
		out->data[out->size] = '\0';
		if (out->size == out->limit)
			status = CAIRN_TOO_BIG;
	}
	(void)close(fd);
	return status;
}

/* Pages of its own, which no core dump shows. */
static struct cairn_credentials *credentials_new(void)
{
	struct cairn_credentials *credentials = mmap(NULL, sizeof(*credentials),
						     PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (credentials == MAP_FAILED)
		return NULL;
	(void)madvise(credentials, sizeof(*credentials), MADV_DONTDUMP);
	credentials->refs = 1;
	return credentials;
}

void cairn_credentials_unref(struct cairn_credentials *credentials)
{
	if (!credentials || __atomic_sub_fetch(&credentials->refs, 1, __ATOMIC_ACQ_REL))
		return;
	explicit_bzero(credentials, sizeof(*credentials));
	(void)munmap(credentials, sizeof(*credentials));
}

int cairn_credentials_set(char *field, size_t size, struct cairn_slice value)
{
	if (value.size >= size)
		return CAIRN_INVALID;
	/* They go into headers. */
	for (size_t i = 0; i < value.size; i++)
		if ((unsigned char)value.data[i] <= ' ' || value.data[i] == 0x7f)
			return CAIRN_INVALID;
	if (value.size)
		memcpy(field, value.data, value.size);
	field[value.size] = '\0';
	return CAIRN_OK;
}

int cairn_credentials_set_expiry(struct cairn_slice text, struct cairn_credentials *credentials)
{
	return cairn_timestamp_parse(text, &credentials->expires);
}

static int set_member(struct cairn_slice json, const char *name, char *field, size_t size)
{
	struct cairn_slice value;
	int status = cairn_json_member(json, name, &value);
	if (status || cairn_json_kind(value) == 'n')
		return status ? status : CAIRN_NOT_FOUND;
	struct cairn_buffer text;
	cairn_buffer_init(&text, size);
	/* Growing would leave copies behind. */
	status = cairn_buffer_reserve(&text, size);
	if (!status)
		status = cairn_json_string_decode(value, &text);
	if (!status)
		status = cairn_credentials_set(field, size, cairn_buffer_slice(&text));
	cairn_secret_release(&text);
	return status;
}

int cairn_credentials_from_json(struct cairn_slice json, const char *token_name, const char *what,
				struct cairn_call *call, struct cairn_credentials *credentials)
{
	char expiration[64] = "";
	if (set_member(json, "AccessKeyId", credentials->access_key,
		       sizeof(credentials->access_key)) ||
	    set_member(json, "SecretAccessKey", credentials->secret_key,
		       sizeof(credentials->secret_key)))
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "%s: its answer has no AccessKeyId and SecretAccessKey",
				       what);
	int status = set_member(json, token_name, credentials->token, sizeof(credentials->token));
	if (status && status != CAIRN_NOT_FOUND)
		return cairn_error_set(&call->error, CAIRN_INVALID, "%s: its answer has a wrong %s",
				       what, token_name);
	status = set_member(json, "Expiration", expiration, sizeof(expiration));
	if (!status)
		status = cairn_credentials_set_expiry(cairn_slice_of(expiration), credentials);
	if (status && status != CAIRN_NOT_FOUND)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "%s: its answer has a wrong Expiration", what);
	return CAIRN_OK;
}

const char *cairn_profile_name(const struct cairn_credential_source *source)
{
	const char *name = source->profile ? source->profile : cairn_environment("AWS_PROFILE");
	return name ? name : "default";
}

static int from_environment(struct cairn_credential_source *source, struct cairn_call *call,
			    struct cairn_credentials *credentials)
{
	const char *access = cairn_environment("AWS_ACCESS_KEY_ID");
	const char *secret = cairn_environment("AWS_SECRET_ACCESS_KEY");
	const char *token = cairn_environment("AWS_SESSION_TOKEN");
	if (source->profile || !access)
		return CAIRN_NOT_FOUND;
	if (!secret)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY");
	if (cairn_credentials_set(credentials->access_key, sizeof(credentials->access_key),
				  cairn_slice_of(access)) ||
	    cairn_credentials_set(credentials->secret_key, sizeof(credentials->secret_key),
				  cairn_slice_of(secret)) ||
	    cairn_credentials_set(credentials->token, sizeof(credentials->token),
				  cairn_slice_of(token ? token : "")))
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or "
				       "AWS_SESSION_TOKEN holds what no key does");
	return CAIRN_OK;
}

/* Look everywhere, in the order of the SDKs; source->looking is held. */
static int look(struct cairn_credential_source *source, struct cairn_call *call,
		struct cairn_credentials **ret_credentials)
{
	static cairn_credential_place *const places[] = {
		from_environment,
		cairn_credentials_from_web_identity,
		cairn_credentials_from_files,
		cairn_credentials_from_process,
		cairn_credentials_from_config,
		cairn_credentials_from_container,
		cairn_credentials_from_instance,
	};
	struct cairn_credentials *found = credentials_new();
	if (!found)
		return cairn_call_no_memory(call, "credentials");
	int status = CAIRN_NOT_FOUND;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && status == CAIRN_NOT_FOUND; i++)
		status = places[i](source, call, found);
	if (!status) {
		*ret_credentials = found;
		return CAIRN_OK;
	}
	cairn_credentials_unref(found);
	if (status != CAIRN_NOT_FOUND)
		return status;
	return cairn_error_set(
		&call->error, CAIRN_ACCESS,
		"no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
		"write them into ~/.aws/credentials (profile %s)",
		cairn_profile_name(source));
}

/* The present ones with a reference, or NULL. ret_left: microseconds until they end. */
static struct cairn_credentials *present(struct cairn_credential_source *source, int64_t *ret_left)
{
	(void)pthread_mutex_lock(&source->lock);
	struct cairn_credentials *current = source->current;
	*ret_left = INT64_MAX;
	if (current) {
		(void)__atomic_add_fetch(&current->refs, 1, __ATOMIC_RELAXED);
		if (current->expires)
			*ret_left = current->expires - cairn_clock_real();
	}
	(void)pthread_mutex_unlock(&source->lock);
	return current;
}

static void replace(struct cairn_credential_source *source, struct cairn_credentials *found)
{
	(void)pthread_mutex_lock(&source->lock);
	struct cairn_credentials *before = source->current;
	source->current = found;
	(void)__atomic_add_fetch(&found->refs, 1, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&source->lock);
	cairn_credentials_unref(before);
}

/* Wait for our turn to look, for as long as the call may take. */
static int lock_looking(struct cairn_credential_source *source, struct cairn_call *call)
{
	int status = CAIRN_OK;
	while (!status && pthread_mutex_trylock(&source->looking))
		status = cairn_call_sleep(call, cairn_clock() + LOOKING_POLL);
	return status;
}

int cairn_credentials_get(struct cairn_credential_source *source, struct cairn_call *call,
			  struct cairn_credentials **ret_credentials)
{
	int64_t left;
	struct cairn_credentials *current = present(source, &left);
	if (current && left > EXPIRY_MARGIN) {
		*ret_credentials = current;
		return CAIRN_OK;
	}
	bool usable = current && left > 0;
	/* While they still are good, one thread looks and the others go on. */
	if (usable && pthread_mutex_trylock(&source->looking)) {
		*ret_credentials = current;
		return CAIRN_OK;
	}
	int status = usable ? CAIRN_OK : lock_looking(source, call);
	if (status) {
		cairn_credentials_unref(current);
		return status;
	}
	struct cairn_credentials *found = present(source, &left);
	if (!found || left <= EXPIRY_MARGIN) {
		cairn_credentials_unref(found);
		found = NULL;
		status = look(source, call, &found);
		if (!status)
			replace(source, found);
	}
	(void)pthread_mutex_unlock(&source->looking);
	if (status && usable) {
		*ret_credentials = current;
		return CAIRN_OK;
	}
	cairn_credentials_unref(current);
	if (!status)
		*ret_credentials = found;
	return status;
}

static bool same(const struct cairn_credentials *a, const struct cairn_credentials *b)
{
	return strcmp(a->access_key, b->access_key) == 0 &&
	       strcmp(a->secret_key, b->secret_key) == 0 && strcmp(a->token, b->token) == 0;
}

bool cairn_credentials_renew(struct cairn_credential_source *source, struct cairn_call *call,
			     const struct cairn_credentials *used)
{
	if (lock_looking(source, call))
		return false;
	int64_t left;
	struct cairn_credentials *found = present(source, &left);
	/* Another thread may have found new ones meanwhile. */
	bool renewed = found && !same(found, used);
	if (!renewed) {
		cairn_credentials_unref(found);
		found = NULL;
		if (!look(source, call, &found)) {
			renewed = !same(found, used);
			replace(source, found);
		}
	}
	(void)pthread_mutex_unlock(&source->looking);
	cairn_credentials_unref(found);
	return renewed;
}

int cairn_credential_source_new(const struct cairn_credential_options *options,
				struct cairn_credential_source **ret_source,
				struct cairn_error *error)
{
	const struct cairn_http_options http = { .ca_bundle = options->ca_bundle };
	const struct cairn_http_options direct = { .direct = true };
	struct cairn_credential_source *source = calloc(1, sizeof(*source));
	if (!source)
		return cairn_error_set(error, CAIRN_NO_MEMORY, "credentials: out of memory");
	(void)pthread_mutex_init(&source->looking, NULL);
	(void)pthread_mutex_init(&source->lock, NULL);
	int status = cairn_http_new(&http, &source->http, error);
	if (!status)
		status = cairn_http_new(&direct, &source->direct, error);
	if (!status) {
		source->region = strdup(options->region ? options->region : "us-east-1");
		source->profile = options->profile ? strdup(options->profile) : NULL;
		if (!source->region || (options->profile && !source->profile))
			status = cairn_error_set(error, CAIRN_NO_MEMORY,
						 "credentials: out of memory");
	}
	if (status) {
		cairn_credential_source_free(source);
		return status;
	}
	*ret_source = source;
	return CAIRN_OK;
}

void cairn_credential_source_free(struct cairn_credential_source *source)
{
	if (!source)
		return;
	cairn_credentials_unref(source->current);
	cairn_http_free(source->http);
	cairn_http_free(source->direct);
	(void)pthread_mutex_destroy(&source->looking);
	(void)pthread_mutex_destroy(&source->lock);
	free(source->profile);
	free(source->region);
	free(source);
}
