/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <pthread.h>

#include <cairn/key.h>

/* One object, never changed once it is in the table. */
struct memory_object {
	struct cairn_version version;
	size_t key_size;
	char *data;
	char key[];
};

struct memory_store {
	struct cairn_store store;
	pthread_mutex_t lock;
	/* Under lock: sorted by the bytes of the keys. */
	struct memory_object **objects;
	size_t count;
	size_t capacity;
	uint64_t nonces;
};

static struct memory_store *memory_of(struct cairn_store *store)
{
	return (struct memory_store *)store;
}

static void object_free(struct memory_object *object)
{
	if (object)
		free(object->data);
	free(object);
}

/* The first place whose key is not before `key`. */
static size_t place_of(const struct memory_store *memory, const char *key)
{
	size_t low = 0, high = memory->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(memory->objects[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct memory_object *find(const struct memory_store *memory, const char *key,
				  size_t *ret_place)
{
	*ret_place = place_of(memory, key);
	if (*ret_place < memory->count && strcmp(memory->objects[*ret_place]->key, key) == 0)
		return memory->objects[*ret_place];
	return NULL;
}

static bool begins_with(const char *key, const char *prefix)
{
	return strncmp(key, prefix, strlen(prefix)) == 0;
}

/* Version and the asked part of the data; the lock is held. */
static int read_object(struct cairn_call *call, const struct memory_object *object,
		       const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	ret_object->version = object->version;
	int64_t age = cairn_clock_real() - object->version.modified;
	ret_object->version.age = age > 0 ? age : 0;
	uint64_t size = object->version.size;
	if (options->no_data || (options->max_size && size > options->max_size) ||
	    options->offset >= size)
		return CAIRN_OK;
	size_t length = (size_t)(size - options->offset);
	if (options->length && options->length < length)
		length = (size_t)options->length;
	if (cairn_buffer_append(&ret_object->data, object->data + options->offset, length))
		return cairn_call_no_memory(call, object->key);
	return CAIRN_OK;
}

static int memory_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		      const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	struct memory_store *memory = memory_of(store);
	cairn_object_release(ret_object);
	(void)pthread_mutex_lock(&memory->lock);
	size_t place;
	const struct memory_object *object = find(memory, key, &place);
	int status;
	if (!object)
		status = cairn_error_set(&call->error, CAIRN_NOT_FOUND, "%s: no such object", key);
	else if (options->if_none_match &&
		 strcmp(options->if_none_match, object->version.etag) == 0)
		status = cairn_error_set(&call->error, CAIRN_UNCHANGED, "%s: unchanged", key);
	else if (options->if_match && strcmp(options->if_match, object->version.etag) != 0)
		status = cairn_error_set(&call->error, CAIRN_CONFLICT, "%s: is another version now",
					 key);
	else
		status = read_object(call, object, options, ret_object);
	(void)pthread_mutex_unlock(&memory->lock);
	return status;
}

static struct memory_object *object_new(const char *key, struct cairn_slice data)
{
	size_t key_size = strlen(key);
	struct memory_object *object = calloc(1, sizeof(*object) + key_size + 1);
	if (!object)
		return NULL;
	memcpy(object->key, key, key_size + 1);
	object->key_size = key_size;
	object->version.size = data.size;
	object->data = malloc(data.size + 1);
	if (!object->data || cairn_content_etag(data.data, data.size, object->version.etag)) {
		object_free(object);
		return NULL;
	}
	if (data.size)
		memcpy(object->data, data.data, data.size);
	return object;
}

/* Put `object` at `place`, in place of `present` if there is one; the lock is held. */
static int place_object(struct memory_store *memory, size_t place, struct memory_object *present,
			struct memory_object *object)
{
	if (present) {
		memory->objects[place] = object;
		object_free(present);
		return CAIRN_OK;
	}
	if (memory->count == memory->capacity) {
		size_t capacity = memory->capacity ? memory->capacity * 2 : 64;
		struct memory_object **objects =
			reallocarray(memory->objects, capacity, sizeof(*objects));
		if (!objects)
			return CAIRN_NO_MEMORY;
		memory->objects = objects;
		memory->capacity = capacity;
	}
	memmove(memory->objects + place + 1, memory->objects + place,
		(memory->count - place) * sizeof(*memory->objects));
	memory->objects[place] = object;
	memory->count++;
	return CAIRN_OK;
}

static int check_put(struct cairn_call *call, const char *key,
		     const struct cairn_put_options *options, const struct memory_object *present)
{
	if (options->if_absent && present)
		return cairn_error_set(&call->error, CAIRN_EXISTS, "%s: exists", key);
	if (options->if_match &&
	    (!present || strcmp(options->if_match, present->version.etag) != 0))
		return cairn_error_set(&call->error, CAIRN_CONFLICT, "%s: is %s now", key,
				       present ? "another version" : "absent");
	return CAIRN_OK;
}

static int memory_put(struct cairn_store *store, struct cairn_call *call, const char *key,
		      struct cairn_slice data, const struct cairn_put_options *options,
		      struct cairn_version *ret_version)
{
	struct memory_store *memory = memory_of(store);
	struct memory_object *object = object_new(key, data);
	if (!object)
		return cairn_call_no_memory(call, key);
	(void)pthread_mutex_lock(&memory->lock);
	size_t place;
	struct memory_object *present = find(memory, key, &place);
	if (options->nonce && *options->nonce)
		(void)snprintf(object->version.nonce, CAIRN_NONCE_SIZE, "%s", options->nonce);
	else
		(void)snprintf(object->version.nonce, CAIRN_NONCE_SIZE, "%016llx",
			       (unsigned long long)++memory->nonces);
	if (options->nonce)
		memcpy(options->nonce, object->version.nonce, CAIRN_NONCE_SIZE);
	object->version.modified = cairn_clock_real();
	int status = check_put(call, key, options, present);
	if (!status) {
		*ret_version = object->version;
		if (place_object(memory, place, present, object))
			status = cairn_call_no_memory(call, key);
	}
	(void)pthread_mutex_unlock(&memory->lock);
	if (status)
		object_free(object);
	return status;
}

/* Take out what lies at `place`; the lock is held. */
static void take_out(struct memory_store *memory, size_t place)
{
	object_free(memory->objects[place]);
	memory->count--;
	memmove(memory->objects + place, memory->objects + place + 1,
		(memory->count - place) * sizeof(*memory->objects));
}

static int memory_remove(struct cairn_store *store, struct cairn_call *call, const char *key,
			 const struct cairn_delete_options *options)
{
	struct memory_store *memory = memory_of(store);
	(void)pthread_mutex_lock(&memory->lock);
	size_t place;
	const struct memory_object *present = find(memory, key, &place);
	int status = CAIRN_OK;
	if (options->if_match &&
	    (!present || strcmp(options->if_match, present->version.etag) != 0))
		status = cairn_error_set(&call->error, CAIRN_CONFLICT, "%s: is %s now", key,
					 present ? "another version" : "absent");
	else if (present)
		take_out(memory, place);
	(void)pthread_mutex_unlock(&memory->lock);
	return status;
}

/* Add `object` or the common prefix that it lies under. ret_cut: bytes of that prefix, or 0. */
static int list_object(struct cairn_listing *listing, const struct memory_object *object,
		       const char *prefix, const struct cairn_list_options *options,
		       size_t *ret_cut)
{
	const char *slash = options->delimited ? strchr(object->key + strlen(prefix), '/') : NULL;
	struct cairn_slice head = { object->key, object->key_size };
	if (slash)
		head.size = (size_t)(slash - object->key) + 1;
	*ret_cut = slash ? head.size : 0;
	struct cairn_entry *entry;
	if (cairn_listing_add(listing, head, (struct cairn_slice){ 0 },
			      slash ? NULL : object->version.etag, &entry))
		return CAIRN_NO_MEMORY;
	entry->is_prefix = slash != NULL;
	if (!slash) {
		entry->size = object->version.size;
		entry->modified = object->version.modified;
	}
	return CAIRN_OK;
}

static int list_locked(struct memory_store *memory, const char *prefix,
		       const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	const char *after = options->start_after ? options->start_after : "";
	if (options->token && strcmp(options->token, after) > 0)
		after = options->token;
	size_t place = place_of(memory, strcmp(prefix, after) > 0 ? prefix : after);
	while (place < memory->count && begins_with(memory->objects[place]->key, prefix)) {
		const struct memory_object *object = memory->objects[place++];
		size_t cut;
		if (list_object(ret_listing, object, prefix, options, &cut))
			return CAIRN_NO_MEMORY;
		while (cut && place < memory->count &&
		       strncmp(memory->objects[place]->key, object->key, cut) == 0)
			place++;
		if (strcmp(ret_listing->entries[ret_listing->count - 1].key, after) <= 0)
			ret_listing->count--;
		if (options->max && ret_listing->count > options->max)
			return cairn_listing_cut(ret_listing, options->max);
	}
	return CAIRN_OK;
}

static int memory_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		       const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	struct memory_store *memory = memory_of(store);
	(void)pthread_mutex_lock(&memory->lock);
	int status = list_locked(memory, prefix, options, ret_listing);
	(void)pthread_mutex_unlock(&memory->lock);
	return status ? cairn_call_no_memory(call, prefix) : CAIRN_OK;
}

static int memory_prefix_exists(struct cairn_store *store, struct cairn_call *call,
				const char *prefix)
{
	struct memory_store *memory = memory_of(store);
	(void)pthread_mutex_lock(&memory->lock);
	size_t place = place_of(memory, prefix);
	bool exists = !*prefix ||
		      (place < memory->count && begins_with(memory->objects[place]->key, prefix));
	(void)pthread_mutex_unlock(&memory->lock);
	if (exists)
		return CAIRN_OK;
	return cairn_error_set(&call->error, CAIRN_NOT_FOUND, "%s: no such prefix", prefix);
}

static int memory_prefix_make(struct cairn_store *store, struct cairn_call *call,
			      const char *prefix)
{
	struct cairn_put_options options = { .if_absent = true };
	struct cairn_version version;
	return memory_put(store, call, prefix, (struct cairn_slice){ 0 }, &options, &version);
}

static int memory_prefix_remove(struct cairn_store *store, struct cairn_call *call,
				const char *prefix)
{
	struct memory_store *memory = memory_of(store);
	(void)pthread_mutex_lock(&memory->lock);
	size_t place;
	const struct memory_object *made = find(memory, prefix, &place);
	size_t next = made ? place + 1 : place;
	int status = CAIRN_OK;
	if (next < memory->count && begins_with(memory->objects[next]->key, prefix))
		status = cairn_error_set(&call->error, CAIRN_NOT_EMPTY, "%s: holds keys", prefix);
	else if (!made)
		status = cairn_error_set(&call->error, CAIRN_NOT_FOUND, "%s: no such prefix",
					 prefix);
	else
		take_out(memory, place);
	(void)pthread_mutex_unlock(&memory->lock);
	return status;
}

static int memory_space(struct cairn_store *store, struct cairn_call *call,
			struct cairn_space *ret_space)
{
	(void)store;
	(void)call;
	*ret_space = (struct cairn_space){ .total = UINT64_MAX, .available = UINT64_MAX };
	return CAIRN_OK;
}

static void memory_free(struct cairn_store *store)
{
	struct memory_store *memory = memory_of(store);
	for (size_t i = 0; i < memory->count; i++)
		object_free(memory->objects[i]);
	free(memory->objects);
	(void)pthread_mutex_destroy(&memory->lock);
	free(memory);
}

static const struct cairn_store_ops memory_ops = {
	.get = memory_get,
	.put = memory_put,
	.remove = memory_remove,
	.list = memory_list,
	.prefix_exists = memory_prefix_exists,
	.prefix_make = memory_prefix_make,
	.prefix_remove = memory_prefix_remove,
	.space = memory_space,
	.free = memory_free,
};

int cairn_memory_store_new(struct cairn_store **ret_store)
{
	struct memory_store *memory = calloc(1, sizeof(*memory));
	if (!memory)
		return CAIRN_NO_MEMORY;
	memory->store.ops = &memory_ops;
	memory->store.timeout = CAIRN_TIMEOUT_DEFAULT;
	memory->store.capabilities = (struct cairn_capabilities){
		.kind = "memory",
		.delete_if_match = true,
		.content_etags = true,
		.local = true,
		.listing_etags = true,
	};
	(void)snprintf(memory->store.name, sizeof(memory->store.name), "memory");
	(void)pthread_mutex_init(&memory->lock, NULL);
	*ret_store = &memory->store;
	return CAIRN_OK;
}
