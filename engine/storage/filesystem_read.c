/* SPDX-License-Identifier: MIT */
#include "storage/filesystem_private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/* From this size on an etag is remembered; below, hashing costs less than asking. */
#define BIG_SIZE ((uint64_t)256 * 1024)

/*
 * A change within the clock tick of the one before leaves the times as they are, so a file is only
 * trusted to show changes once its times are older than any tick.
 */
#define SETTLED	      ((int64_t)50 * 1000)

#define CACHE_SIZE    512
#define READ_ATTEMPTS 10
#define HASH_PIECE    ((size_t)256 * 1024)

struct etag_entry {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified;
	struct timespec changed;
	char etag[CAIRN_CONTENT_ETAG_SIZE];
};

/* One place for each inode's number; a newcomer takes it over. */
struct etag_cache {
	pthread_mutex_t lock;
	struct etag_entry entries[CACHE_SIZE]; /* under lock */
};

struct etag_cache *filesystem_etags_new(void)
{
	struct etag_cache *cache = calloc(1, sizeof(*cache));
	if (cache)
		(void)pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

void filesystem_etags_free(struct etag_cache *cache)
{
	if (!cache)
		return;
	(void)pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int64_t microseconds(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static bool cache_get(struct etag_cache *cache, const struct stat *file, char *ret_etag)
{
	const struct etag_entry *entry = &cache->entries[file->st_ino % CACHE_SIZE];
	(void)pthread_mutex_lock(&cache->lock);
	bool hit = entry->inode == file->st_ino && entry->device == file->st_dev &&
		   entry->size == file->st_size && same_time(entry->modified, file->st_mtim) &&
		   same_time(entry->changed, file->st_ctim);
	if (hit)
		memcpy(ret_etag, entry->etag, sizeof(entry->etag));
	(void)pthread_mutex_unlock(&cache->lock);
	return hit;
}

static void cache_put(struct etag_cache *cache, const struct stat *file, const char *etag,
		      int64_t hashed)
{
	if (microseconds(file->st_mtim) > hashed - SETTLED ||
	    microseconds(file->st_ctim) > hashed - SETTLED)
		return;
	struct etag_entry *entry = &cache->entries[file->st_ino % CACHE_SIZE];
	(void)pthread_mutex_lock(&cache->lock);
	*entry = (struct etag_entry){
		.device = file->st_dev,
		.inode = file->st_ino,
		.size = file->st_size,
		.modified = file->st_mtim,
		.changed = file->st_ctim,
	};
	memcpy(entry->etag, etag, sizeof(entry->etag));
	(void)pthread_mutex_unlock(&cache->lock);
}

void filesystem_version(const struct stat *status, struct cairn_version *ret_version)
{
	*ret_version = (struct cairn_version){
		.size = (uint64_t)status->st_size,
		.modified = microseconds(status->st_mtim),
	};
	(void)snprintf(ret_version->nonce, sizeof(ret_version->nonce), "%llx-%llx.%lx",
		       (unsigned long long)status->st_ino,
		       (unsigned long long)status->st_mtim.tv_sec,
		       (unsigned long)status->st_mtim.tv_nsec);
}

int filesystem_check_type(struct cairn_call *call, const char *key, const struct stat *found)
{
	if (S_ISREG(found->st_mode))
		return CAIRN_OK;
	if (S_ISDIR(found->st_mode))
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "%s: there are keys below it; a directory bucket cannot "
				       "hold an object beside its own prefix",
				       key);
	return cairn_error_set(&call->error, CAIRN_INVALID,
			       "%s: its file is no regular file, so it is no object", key);
}

/* Read up to `size` bytes from `offset` on; fewer at the end. -1 and errno. */
static ssize_t read_full(int file, char *data, size_t size, uint64_t offset)
{
	size_t done = 0;
	while (done < size) {
		ssize_t got = pread(file, data + done, size - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* What one look at a file is about. */
struct look {
	struct filesystem_store *filesystem;
	struct cairn_call *call;
	const char *key;
	int file;
	const struct cairn_get_options *options;
	struct cairn_object *object;
};

static int read_range(const struct look *look, uint64_t offset, uint64_t length)
{
	struct cairn_buffer *data = &look->object->data;
	if (length > SIZE_MAX || cairn_buffer_reserve(data, (size_t)length))
		return cairn_error_set(&look->call->error, CAIRN_NO_MEMORY,
				       "reading %s: no memory for its %llu bytes", look->key,
				       (unsigned long long)length);
	ssize_t got = read_full(look->file, data->data, (size_t)length, offset);
	if (got < 0)
		return filesystem_fail(look->filesystem, look->call, errno, "reading", look->key);
	data->size = (size_t)got;
	data->data[data->size] = '\0';
	return CAIRN_OK;
}

/* The etag of the first `size` bytes, which are not kept. */
static int hash_file(const struct look *look, uint64_t size, char *ret_etag)
{
	char *piece = malloc(HASH_PIECE);
	struct cairn_content_hash *hash = piece ? cairn_content_hash_new() : NULL;
	int status = hash ? CAIRN_OK : cairn_call_no_memory(look->call, look->key);
	for (uint64_t done = 0; !status && done < size;) {
		uint64_t left = size - done;
		ssize_t got = read_full(look->file, piece,
					left < HASH_PIECE ? (size_t)left : HASH_PIECE, done);
		if (got < 0)
			status = filesystem_fail(look->filesystem, look->call, errno, "reading",
						 look->key);
		else if (cairn_content_hash_update(hash, piece, (size_t)got))
			status = cairn_call_no_memory(look->call, look->key);
		else
			status = cairn_call_check(look->call, look->key);
		if (got <= 0)
			break;
		done += (uint64_t)got;
	}
	if (cairn_content_hash_final(hash, ret_etag) && !status)
		status = cairn_call_no_memory(look->call, look->key);
	free(piece);
	return status;
}

static int check_conditions(const struct look *look)
{
	const struct cairn_get_options *options = look->options;
	const char *etag = look->object->version.etag;
	if (options->if_none_match && strcmp(options->if_none_match, etag) == 0)
		return cairn_error_set(&look->call->error, CAIRN_UNCHANGED, "%s: unchanged",
				       look->key);
	if (options->if_match && strcmp(options->if_match, etag) != 0)
		return cairn_error_set(&look->call->error, CAIRN_CONFLICT,
				       "%s: is another version now", look->key);
	return CAIRN_OK;
}

/* A Python process appends in place: what was read holds only if the file stayed as it was. */
static int check_stable(const struct look *look, const struct stat *before, bool *ret_stable)
{
	struct stat after;
	if (fstat(look->file, &after) != 0)
		return filesystem_fail(look->filesystem, look->call, errno, "reading", look->key);
	*ret_stable = after.st_size == before->st_size && same_time(after.st_mtim, before->st_mtim);
	return CAIRN_OK;
}

/* Version and conditions. ret_loaded: the whole content lies in the object's buffer. */
static int look_at_version(const struct look *look, const struct stat *before, bool whole,
			   bool *ret_loaded, bool *ret_stable)
{
	struct cairn_version *version = &look->object->version;
	uint64_t size = (uint64_t)before->st_size;
	bool big = size >= BIG_SIZE;
	*ret_loaded = false;
	*ret_stable = true;
	if (big && cache_get(look->filesystem->etags, before, version->etag))
		return check_conditions(look);
	int64_t hashed = cairn_clock_real();
	int status;
	if (whole || !big) {
		*ret_loaded = true;
		status = read_range(look, 0, size);
		if (!status && cairn_content_etag(look->object->data.data, look->object->data.size,
						  version->etag))
			status = cairn_call_no_memory(look->call, look->key);
	} else {
		status = hash_file(look, size, version->etag);
	}
	if (!status)
		status = check_stable(look, before, ret_stable);
	if (status || !*ret_stable)
		return status;
	if (big)
		cache_put(look->filesystem->etags, before, version->etag, hashed);
	return check_conditions(look);
}

/* Leave only the asked part of the whole content. */
static void cut_range(struct cairn_buffer *data, uint64_t offset, uint64_t length)
{
	size_t from = offset < data->size ? (size_t)offset : data->size;
	size_t size = data->size - from;
	if (length && length < size)
		size = (size_t)length;
	if (from && size)
		memmove(data->data, data->data + from, size);
	data->size = size;
	if (data->data)
		data->data[size] = '\0';
}

static int look_once(const struct look *look, bool *ret_stable)
{
	const struct cairn_get_options *options = look->options;
	struct cairn_object *object = look->object;
	struct stat before;
	cairn_buffer_clear(&object->data);
	if (fstat(look->file, &before) != 0)
		return filesystem_fail(look->filesystem, look->call, errno, "reading", look->key);
	int status = filesystem_check_type(look->call, look->key, &before);
	if (status)
		return status;
	filesystem_version(&before, &object->version);
	uint64_t size = object->version.size;
	bool wanted = !options->no_data && options->offset < size &&
		      !(options->max_size && size > options->max_size);
	bool whole = wanted && options->offset == 0 &&
		     (options->length == 0 || options->length >= size);
	bool loaded;
	status = look_at_version(look, &before, whole, &loaded, ret_stable);
	if (status || !*ret_stable)
		return status;
	if (!wanted) {
		cairn_buffer_clear(&object->data);
		return CAIRN_OK;
	}
	if (loaded) {
		cut_range(&object->data, options->offset, options->length);
		return CAIRN_OK;
	}
	uint64_t left = size - options->offset;
	status = read_range(look, options->offset,
			    options->length && options->length < left ? options->length : left);
	return status ? status : check_stable(look, &before, ret_stable);
}

int filesystem_read(struct filesystem_store *filesystem, struct cairn_call *call, const char *key,
		    int file, const struct cairn_get_options *options,
		    struct cairn_object *ret_object)
{
	const struct look look = { filesystem, call, key, file, options, ret_object };
	for (int i = 0; i < READ_ATTEMPTS; i++) {
		bool stable = false;
		int status = look_once(&look, &stable);
		if (status)
			return status;
		if (stable) {
			int64_t age = cairn_clock_real() - ret_object->version.modified;
			ret_object->version.age = age > 0 ? age : 0;
			return CAIRN_OK;
		}
	}
	return cairn_error_set(&call->error, CAIRN_BUSY,
			       "reading %s: it was written in place during each of %d reads", key,
			       READ_ATTEMPTS);
}

int filesystem_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		   const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	struct filesystem_store *filesystem = (struct filesystem_store *)store;
	cairn_object_release(ret_object);
	int status = filesystem_key_check(call, key);
	if (status)
		return status;
	int file = filesystem_open(filesystem->root, key, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (file < 0) {
		int error = errno == ENOTDIR ? ENOENT : errno;
		return filesystem_fail(filesystem, call, error, "reading", key);
	}
	struct stat found;
	if (fstat(file, &found) == 0 && S_ISDIR(found.st_mode))
		status = filesystem_fail(filesystem, call, ENOENT, "reading", key);
	else
		status = filesystem_read(filesystem, call, key, file, options, ret_object);
	(void)close(file);
	if (status)
		cairn_object_release(ret_object);
	return status;
}
