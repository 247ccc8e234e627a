/* SPDX-License-Identifier: MIT */
#include "staging.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 1024

struct staging_file {
	struct staging *staging;
	atomic_uint references; /* of the content */
	atomic_uint memories;   /* of this struct: one for all references, and each inode's */
	uint64_t id;
	int fd;
	pthread_mutex_t mutex; /* guards all below */
	off_t size;
	unsigned names;
	struct staging_state state;
	struct lineage writer;
};

struct name {
	struct name *next;
	struct staging_file *file; /* counted */
	enum view view;
	size_t prefix_size; /* the directory's part of `path` */
	char path[];
};

struct staging {
	char *directory;
	char *globs;
	uint64_t max;
	atomic_uint_fast64_t used, next_id;
	pthread_mutex_t mutex; /* guards the names; taken before a file's */
	struct name *names[BUCKETS];
};

int staging_new(const char *cache_dir, uint64_t max, const char *globs,
		struct staging **ret_staging, struct cairn_error *error)
{
	char path[4096];
	if (snprintf(path, sizeof(path), "%s", cache_dir) >= (int)sizeof(path))
		return cairn_error_set(error, CAIRN_NAME_TOO_LONG, "cache_dir %.100s…: too long",
				       cache_dir);
	for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		(void)mkdir(path, 0755);
	}
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return cairn_error_set(error, errno == ENOSPC ? CAIRN_NO_SPACE : CAIRN_ACCESS,
				       "make cache_dir %s: %s; state another with -o cache_dir=",
				       cache_dir, strerror(errno));
	if (access(path, W_OK | X_OK) != 0)
		return cairn_error_set(
			error, CAIRN_ACCESS,
			"write in cache_dir %s: %s; state another with -o cache_dir=", cache_dir,
			strerror(errno));
	struct staging *staging = calloc(1, sizeof(*staging));
	if (!staging)
		return CAIRN_NO_MEMORY;
	staging->directory = strdup(path);
	staging->globs = globs ? strdup(globs) : NULL;
	staging->max = max;
	pthread_mutex_init(&staging->mutex, NULL);
	if (!staging->directory || (globs && !staging->globs)) {
		staging_free(staging);
		return CAIRN_NO_MEMORY;
	}
	*ret_staging = staging;
	return CAIRN_OK;
}

void staging_free(struct staging *staging)
{
	if (!staging)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct name *name = staging->names[i], *next; name; name = next) {
			next = name->next;
			staging_unref(name->file);
			free(name);
		}
	pthread_mutex_destroy(&staging->mutex);
	free(staging->directory);
	free(staging->globs);
	free(staging);
}

enum staging_name staging_name(struct staging *staging, const char *name)
{
	size_t size = strlen(name);
	if (name[0] == '.' || (size && name[size - 1] == '~') || strcmp(name, "4913") == 0)
		return STAGING_YES;
	for (const char *at = staging->globs; at && *at;) {
		size_t length = strcspn(at, ":");
		char glob[256];
		if (length < sizeof(glob)) {
			memcpy(glob, at, length);
			glob[length] = '\0';
			if (fnmatch(glob, name, 0) == 0)
				return STAGING_GLOB;
		}
		at += length + (at[length] == ':');
	}
	return STAGING_NO;
}

static struct name **bucket(struct staging *staging, enum view view, const char *prefix,
			    const char *name)
{
	uint64_t hash = inode_number(view, prefix) * 31 + inode_number(view, name);
	return &staging->names[hash % BUCKETS];
}

/* The link that points to the name, or to the end. The table is locked. */
static struct name **find(struct staging *staging, enum view view, const char *prefix,
			  const char *name)
{
	size_t size = strlen(prefix);
	struct name **at = bucket(staging, view, prefix, name);
	for (; *at; at = &(*at)->next)
		if ((*at)->view == view && (*at)->prefix_size == size &&
		    memcmp((*at)->path, prefix, size) == 0 && strcmp((*at)->path + size, name) == 0)
			break;
	return at;
}

static struct name *name_new(struct staging_file *file, enum view view, const char *prefix,
			     const char *name)
{
	size_t prefix_size = strlen(prefix), size = strlen(name) + 1;
	struct name *made = malloc(sizeof(*made) + prefix_size + size);
	if (!made)
		return NULL;
	*made = (struct name){ .file = staging_ref(file),
			       .view = view,
			       .prefix_size = prefix_size };
	memcpy(made->path, prefix, prefix_size);
	memcpy(made->path + prefix_size, name, size);
	return made;
}

static void count_names(struct staging_file *file, int change)
{
	pthread_mutex_lock(&file->mutex);
	file->names += (unsigned)change;
	pthread_mutex_unlock(&file->mutex);
}

/* Take a name out of the table, which is locked. */
static void drop_name(struct name **at)
{
	struct name *name = *at;
	*at = name->next;
	count_names(name->file, -1);
	staging_unref(name->file);
	free(name);
}

/* Add a name that does not stand yet; the table is locked. */
static int add_name(struct staging *staging, struct staging_file *file, enum view view,
		    const char *prefix, const char *name)
{
	struct name *made = name_new(file, view, prefix, name);
	if (!made)
		return ENOMEM;
	struct name **at = bucket(staging, view, prefix, name);
	made->next = *at;
	*at = made;
	count_names(file, 1);
	return 0;
}

struct staging_file *staging_find(struct staging *staging, enum view view, const char *prefix,
				  const char *name)
{
	pthread_mutex_lock(&staging->mutex);
	struct name *found = *find(staging, view, prefix, name);
	struct staging_file *file = found ? staging_ref(found->file) : NULL;
	pthread_mutex_unlock(&staging->mutex);
	return file;
}

static int open_unnamed(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd;
	char path[4200];
	(void)snprintf(path, sizeof(path), "%s/staging-XXXXXX", directory);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

int staging_gather(struct staging *staging, struct staging_file **ret_file)
{
	struct staging_file *file = calloc(1, sizeof(*file));
	if (!file)
		return ENOMEM;
	file->fd = open_unnamed(staging->directory);
	if (file->fd < 0) {
		int error = errno;
		free(file);
		return error;
	}
	file->staging = staging;
	file->references = file->memories = 1;
	file->id = ++staging->next_id;
	pthread_mutex_init(&file->mutex, NULL);
	*ret_file = file;
	return 0;
}

int staging_create(struct staging *staging, enum view view, const char *prefix, const char *name,
		   const struct staging_state *state, struct staging_file **ret_file)
{
	struct staging_file *file = NULL;
	int error = staging_gather(staging, &file);
	if (error)
		return error;
	file->state = *state;
	error = staging_link(staging, file, view, prefix, name);
	if (error)
		staging_unref(file);
	else
		*ret_file = file;
	return error;
}

int staging_link(struct staging *staging, struct staging_file *file, enum view view,
		 const char *prefix, const char *name)
{
	pthread_mutex_lock(&staging->mutex);
	int error = *find(staging, view, prefix, name)
			    ? EEXIST
			    : add_name(staging, file, view, prefix, name);
	pthread_mutex_unlock(&staging->mutex);
	return error;
}

int staging_unlink(struct staging *staging, enum view view, const char *prefix, const char *name)
{
	pthread_mutex_lock(&staging->mutex);
	struct name **at = find(staging, view, prefix, name);
	int error = *at ? 0 : ENOENT;
	if (*at)
		drop_name(at);
	pthread_mutex_unlock(&staging->mutex);
	return error;
}

int staging_rename(struct staging *staging, enum view view, const char *prefix, const char *name,
		   const char *new_prefix, const char *new_name, bool exclusive)
{
	int error = ENOENT;
	pthread_mutex_lock(&staging->mutex);
	struct name *from = *find(staging, view, prefix, name);
	struct name *onto = *find(staging, view, new_prefix, new_name);
	if (!from)
		goto out;
	error = onto && exclusive ? EEXIST : 0;
	if (error || from == onto || (onto && onto->file == from->file))
		goto out;
	if (onto)
		drop_name(find(staging, view, new_prefix, new_name));
	error = add_name(staging, from->file, view, new_prefix, new_name);
	if (!error)
		drop_name(find(staging, view, prefix, name));
out:
	pthread_mutex_unlock(&staging->mutex);
	return error;
}

void staging_list(struct staging *staging, enum view view, const char *prefix,
		  bool (*each)(void *context, const char *name, uint64_t id), void *context)
{
	size_t size = strlen(prefix);
	pthread_mutex_lock(&staging->mutex);
	bool more = true;
	for (size_t i = 0; i < BUCKETS && more; i++)
		for (struct name *name = staging->names[i]; name && more; name = name->next)
			if (name->view == view && name->prefix_size == size &&
			    memcmp(name->path, prefix, size) == 0)
				more = each(context, name->path + size, name->file->id);
	pthread_mutex_unlock(&staging->mutex);
}

bool staging_below(struct staging *staging, enum view view, const char *prefix)
{
	bool below = false;
	size_t size = strlen(prefix);
	pthread_mutex_lock(&staging->mutex);
	for (size_t i = 0; i < BUCKETS && !below; i++)
		for (struct name *name = staging->names[i]; name && !below; name = name->next)
			below = name->view == view && name->prefix_size >= size &&
				memcmp(name->path, prefix, size) == 0;
	pthread_mutex_unlock(&staging->mutex);
	return below;
}

struct staging_file *staging_ref(struct staging_file *file)
{
	file->references++;
	return file;
}

void staging_unref(struct staging_file *file)
{
	if (!file || --file->references)
		return;
	file->staging->used -= (uint64_t)file->size;
	close(file->fd);
	staging_forget(file);
}

void staging_remember(struct staging_file *file)
{
	file->memories++;
}

void staging_forget(struct staging_file *file)
{
	if (!file || --file->memories)
		return;
	pthread_mutex_destroy(&file->mutex);
	free(file);
}

struct staging_file *staging_use(struct staging_file *file)
{
	unsigned references = file->references;
	while (references)
		if (atomic_compare_exchange_weak(&file->references, &references, references + 1))
			return file;
	return NULL;
}

uint64_t staging_id(const struct staging_file *file)
{
	return file->id;
}

int staging_fd(const struct staging_file *file)
{
	return file->fd;
}

/* Account for the file becoming `size` bytes large; ENOSPC over the bound. Its mutex is held. */
static int resize(struct staging_file *file, off_t size)
{
	struct staging *staging = file->staging;
	if (size > file->size) {
		uint64_t more = (uint64_t)(size - file->size);
		if (more > staging->max || (staging->used += more) > staging->max) {
			if (more <= staging->max)
				staging->used -= more;
			return ENOSPC;
		}
	} else {
		staging->used -= (uint64_t)(file->size - size);
	}
	file->size = size;
	return 0;
}

int staging_write(struct staging_file *file, const void *data, size_t size, off_t offset)
{
	off_t end = 0;
	if (offset < 0 || __builtin_add_overflow(offset, (off_t)size, &end))
		return EFBIG;
	pthread_mutex_lock(&file->mutex);
	off_t before = file->size;
	int error = file->state.placed ? EPERM : end > before ? resize(file, end) : 0;
	for (size_t done = 0; !error && done < size;) {
		ssize_t written = pwrite(file->fd, (const char *)data + done, size - done,
					 offset + (off_t)done);
		if (written < 0 && errno != EINTR)
			error = errno;
		else if (written > 0)
			done += (size_t)written;
	}
	if (error && file->size != before) {
		(void)resize(file, before);
		(void)!ftruncate(file->fd, before);
	}
	pthread_mutex_unlock(&file->mutex);
	return error;
}

int staging_truncate(struct staging_file *file, off_t size)
{
	pthread_mutex_lock(&file->mutex);
	off_t before = file->size;
	int error = file->state.placed ? EPERM : resize(file, size);
	if (!error && ftruncate(file->fd, size) != 0) {
		error = errno;
		(void)resize(file, before);
	}
	pthread_mutex_unlock(&file->mutex);
	return error;
}

int staging_stat(struct staging_file *file, struct stat *ret_stat)
{
	struct stat now;
	if (fstat(file->fd, &now) != 0)
		return errno;
	pthread_mutex_lock(&file->mutex);
	now.st_mode = file->state.mode;
	now.st_uid = file->state.uid;
	now.st_gid = file->state.gid;
	now.st_nlink = file->names;
	pthread_mutex_unlock(&file->mutex);
	*ret_stat = now;
	return 0;
}

int staging_read_all(struct staging_file *file, struct cairn_buffer *out)
{
	struct stat now;
	if (fstat(file->fd, &now) != 0)
		return errno;
	int status = cairn_buffer_reserve(out, (size_t)now.st_size);
	if (status)
		return cairn_status_errno(status);
	for (off_t at = 0; at < now.st_size;) {
		ssize_t got =
			pread(file->fd, out->data + out->size, (size_t)(now.st_size - at), at);
		if (got < 0 && errno != EINTR)
			return errno;
		if (got == 0)
			break;
		if (got > 0) {
			at += got;
			out->size += (size_t)got;
			out->data[out->size] = '\0';
		}
	}
	return 0;
}

struct staging_state staging_state(struct staging_file *file)
{
	pthread_mutex_lock(&file->mutex);
	struct staging_state state = file->state;
	pthread_mutex_unlock(&file->mutex);
	return state;
}

void staging_set_state(struct staging_file *file, const struct staging_state *state)
{
	pthread_mutex_lock(&file->mutex);
	file->state = *state;
	pthread_mutex_unlock(&file->mutex);
}

void staging_set_writer(struct staging_file *file, const struct lineage *writer)
{
	pthread_mutex_lock(&file->mutex);
	file->writer = *writer;
	pthread_mutex_unlock(&file->mutex);
}

struct lineage staging_writer(struct staging_file *file)
{
	pthread_mutex_lock(&file->mutex);
	struct lineage writer = file->writer;
	pthread_mutex_unlock(&file->mutex);
	return writer;
}

uint64_t staging_used(struct staging *staging)
{
	return staging->used;
}
