/* SPDX-License-Identifier: MIT */
#include "storage/filesystem_private.h"

#include <cairn/key.h>

#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* How often a put starts again because its directory was removed under it. */
#define PUT_ATTEMPTS 16

static struct filesystem_store *filesystem_of(struct cairn_store *store)
{
	return (struct filesystem_store *)store;
}

/*
 * Commits and snapshots of the root log: peers write and delete them without a lock, by link, so
 * there only the name's creation decides (FORMAT "Filesystem backend").
 */
static bool linked_by_peers(const char *key)
{
	return strncmp(key, "log/", 4) == 0 || strncmp(key, "snapshots/", 10) == 0;
}

/* CAIRN_CONFLICT unless the object has this etag; the lock is held. */
static int check_match(struct filesystem_store *filesystem, struct cairn_call *call,
		       const char *key, const struct filesystem_place *place, const char *etag)
{
	int file = openat(place->directory, place->name,
			  O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0 && errno == ENOENT)
		return cairn_error_set(&call->error, CAIRN_CONFLICT, "%s: is absent now", key);
	if (file < 0)
		return filesystem_fail(filesystem, call, errno, "reading", key);
	const struct cairn_get_options options = { .no_data = true, .if_match = etag };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = filesystem_read(filesystem, call, key, file, &options, &object);
	cairn_object_release(&object);
	(void)close(file);
	return status;
}

static int write_all(int file, struct cairn_slice data)
{
	size_t done = 0;
	while (done < data.size) {
		ssize_t wrote = write(file, data.data + done, data.size - done);
		if (wrote < 0 && errno != EINTR)
			return -1;
		if (wrote > 0)
			done += (size_t)wrote;
	}
	return 0;
}

/* A put under way. */
struct put {
	struct filesystem_store *filesystem;
	struct cairn_call *call;
	const char *key;
	struct cairn_slice data;
	const struct cairn_put_options *options;
	struct cairn_version *version;
	struct filesystem_place place;
	char temporary[48];
};

/*
 * Write the new content into a file of its own. Its time is set to the nanosecond: the file's own
 * clock only ticks, and inode and time together must never have been another put's nonce.
 */
static int write_temporary(struct put *put)
{
	int file;
	do {
		uint64_t random[2];
		arc4random_buf(random, sizeof(random));
		(void)snprintf(put->temporary, sizeof(put->temporary), ".cairn-%016llx%016llx.tmp",
			       (unsigned long long)random[0], (unsigned long long)random[1]);
		file = openat(put->place.directory, put->temporary,
			      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	} while (file < 0 && (errno == EEXIST || errno == EINTR));
	if (file < 0)
		return filesystem_fail(put->filesystem, put->call, errno,
				       "making a temporary file for", put->key);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	(void)clock_gettime(CLOCK_REALTIME, &times[1]);
	struct stat written;
	int status = CAIRN_OK;
	if (write_all(file, put->data) != 0 || futimens(file, times) != 0 || fsync(file) != 0 ||
	    fstat(file, &written) != 0)
		status = filesystem_fail(put->filesystem, put->call, errno, "writing", put->key);
	else
		filesystem_version(&written, put->version);
	if (close(file) != 0 && !status && errno != EINTR)
		status = filesystem_fail(put->filesystem, put->call, errno, "writing", put->key);
	if (status)
		(void)unlinkat(put->place.directory, put->temporary, 0);
	return status;
}

/* Give the temporary file the object's name. `create`: only where there is none, by link. */
static int publish(struct put *put, bool create)
{
	int directory = put->place.directory;
	const char *name = put->place.name;
	int result = create ? linkat(directory, put->temporary, directory, name, 0)
			    : renameat(directory, put->temporary, directory, name);
	int error = errno;
	if (create || result != 0)
		(void)unlinkat(directory, put->temporary, 0);
	if (result != 0)
		return filesystem_fail(put->filesystem, put->call, error, "writing", put->key);
	if (fsync(directory) != 0)
		return cairn_error_set(&put->call->error, CAIRN_UNKNOWN,
				       "writing %s in %s: written, but its directory could not be "
				       "synced (%s): a crash may undo it",
				       put->key, put->filesystem->store.name,
				       strerrordesc_np(errno));
	return CAIRN_OK;
}

/*
 * Check the precondition against what is there. ret_ours: the object is the one that an earlier
 * attempt of this put wrote, as its nonce says.
 */
static int check_present(struct put *put, bool *ret_ours)
{
	const struct cairn_put_options *options = put->options;
	struct stat found;
	*ret_ours = false;
	int status = CAIRN_OK;
	if (fstatat(put->place.directory, put->place.name, &found, AT_SYMLINK_NOFOLLOW) == 0)
		status = filesystem_check_type(put->call, put->key, &found);
	else if (errno != ENOENT)
		status = filesystem_fail(put->filesystem, put->call, errno, "looking up", put->key);
	else if (options->if_match)
		status = cairn_error_set(&put->call->error, CAIRN_CONFLICT, "%s: is absent now",
					 put->key);
	else
		/* Not described: it is the usual case, and the words would cost as much as the
		 * look. */
		return CAIRN_OK;
	if (status)
		return status;
	if (options->nonce && *options->nonce) {
		filesystem_version(&found, put->version);
		*ret_ours = strcmp(put->version->nonce, options->nonce) == 0;
		if (*ret_ours)
			return CAIRN_OK;
	}
	if (options->if_absent)
		return cairn_error_set(&put->call->error, CAIRN_EXISTS, "%s: exists", put->key);
	if (options->if_match)
		return check_match(put->filesystem, put->call, put->key, &put->place,
				   options->if_match);
	return CAIRN_OK;
}

/* One attempt. CAIRN_NOT_FOUND: the directory was removed under it. */
static int put_once(struct put *put)
{
	const struct cairn_put_options *options = put->options;
	int status = filesystem_enter(put->filesystem, put->call, put->key, true, &put->place);
	if (status)
		return status;
	bool bare = linked_by_peers(put->key) && !options->if_match;
	bool ours = false;
	if (!bare)
		status = filesystem_lock(put->filesystem, put->call, put->key, &put->place);
	if (!status)
		status = check_present(put, &ours);
	if (!status && ours) {
		if (fsync(put->place.directory) != 0)
			status = cairn_error_set(&put->call->error, CAIRN_UNKNOWN,
						 "writing %s: its directory cannot be synced",
						 put->key);
	} else if (!status) {
		status = write_temporary(put);
		/* Known to the caller before the object can be seen. */
		if (!status && options->nonce)
			memcpy(options->nonce, put->version->nonce, CAIRN_NONCE_SIZE);
		if (!status)
			status = publish(put, bare && options->if_absent);
	}
	filesystem_leave(put->filesystem, &put->place);
	return status;
}

static int filesystem_put(struct cairn_store *store, struct cairn_call *call, const char *key,
			  struct cairn_slice data, const struct cairn_put_options *options,
			  struct cairn_version *ret_version)
{
	struct put put = {
		.filesystem = filesystem_of(store),
		.call = call,
		.key = key,
		.data = data,
		.options = options,
		.version = ret_version,
	};
	char etag[CAIRN_CONTENT_ETAG_SIZE];
	int status = filesystem_key_check(call, key);
	if (status)
		return status;
	/* Before the lock: the others need not wait for it. */
	if (cairn_content_etag(data.data, data.size, etag))
		return cairn_call_no_memory(call, key);
	for (int i = 0; i < PUT_ATTEMPTS; i++) {
		status = put_once(&put);
		if (status != CAIRN_NOT_FOUND)
			break;
	}
	if (status == CAIRN_NOT_FOUND)
		return cairn_error_set(&call->error, CAIRN_IO,
				       "writing %s in %s: its directory is removed again and again",
				       key, store->name);
	if (!status)
		memcpy(ret_version->etag, etag, sizeof(etag));
	return status;
}

/* Take the object away; the lock is held where one is needed. */
static int unlink_object(struct filesystem_store *filesystem, struct cairn_call *call,
			 const char *key, const struct filesystem_place *place)
{
	if (unlinkat(place->directory, place->name, 0) != 0) {
		if (errno == ENOENT)
			return CAIRN_OK;
		return filesystem_fail(filesystem, call, errno, "deleting", key);
	}
	if (fsync(place->directory) != 0)
		return cairn_error_set(&call->error, CAIRN_UNKNOWN,
				       "deleting %s: deleted, but its directory could not be "
				       "synced (%s): a crash may bring it back",
				       key, strerrordesc_np(errno));
	return CAIRN_OK;
}

static int remove_in(struct filesystem_store *filesystem, struct cairn_call *call, const char *key,
		     const char *if_match, struct filesystem_place *place)
{
	struct stat found;
	/* No lock file for what is not there. */
	if (fstatat(place->directory, place->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
		return filesystem_fail(filesystem, call, errno, "looking up", key);
	if (S_ISDIR(found.st_mode))
		return CAIRN_NOT_FOUND;
	int status = filesystem_check_type(call, key, &found);
	if (!status && (if_match || !linked_by_peers(key)))
		status = filesystem_lock(filesystem, call, key, place);
	if (!status && if_match)
		status = check_match(filesystem, call, key, place, if_match);
	return status ? status : unlink_object(filesystem, call, key, place);
}

static int filesystem_remove(struct cairn_store *store, struct cairn_call *call, const char *key,
			     const struct cairn_delete_options *options)
{
	struct filesystem_store *filesystem = filesystem_of(store);
	struct filesystem_place place;
	int status = filesystem_key_check(call, key);
	if (!status)
		status = filesystem_enter(filesystem, call, key, false, &place);
	else
		return status;
	if (!status) {
		status = remove_in(filesystem, call, key, options->if_match, &place);
		filesystem_leave(filesystem, &place);
	}
	if (status != CAIRN_NOT_FOUND)
		return status;
	return options->if_match
		       ? cairn_error_set(&call->error, CAIRN_CONFLICT, "%s: is absent now", key)
		       : CAIRN_OK;
}

static int filesystem_prefix_exists(struct cairn_store *store, struct cairn_call *call,
				    const char *prefix)
{
	struct filesystem_store *filesystem = filesystem_of(store);
	/* A deleted directory can still be opened as itself. */
	if (!*prefix)
		return filesystem_check_root(filesystem, call, "looking up", "the root");
	int status = filesystem_prefix_check(call, prefix);
	if (status)
		return status;
	int directory = filesystem_open(filesystem->root, prefix, O_PATH | O_DIRECTORY);
	if (directory < 0)
		return filesystem_fail(filesystem, call, errno == ENOTDIR ? ENOENT : errno,
				       "looking up", prefix);
	(void)close(directory);
	return CAIRN_OK;
}

/* The directory of a prefix, and its name in the one above: `prefix` without its last slash. */
static int enter_prefix(struct filesystem_store *filesystem, struct cairn_call *call,
			const char *prefix, char path[CAIRN_KEY_MAX + 1],
			struct filesystem_place *ret_place)
{
	int status = filesystem_prefix_check(call, prefix);
	if (status)
		return status;
	size_t length = strlen(prefix) - 1;
	memcpy(path, prefix, length);
	path[length] = '\0';
	return filesystem_enter(filesystem, call, path, false, ret_place);
}

/* After a change of the place's directory. */
static int sync_place(struct filesystem_store *filesystem, struct cairn_call *call,
		      const char *prefix, const struct filesystem_place *place)
{
	if (fsync(place->directory) == 0)
		return CAIRN_OK;
	return cairn_error_set(&call->error, CAIRN_UNKNOWN,
			       "%s in %s: done, but not synced (%s): a crash may undo it", prefix,
			       filesystem->store.name, strerrordesc_np(errno));
}

static int filesystem_prefix_make(struct cairn_store *store, struct cairn_call *call,
				  const char *prefix)
{
	struct filesystem_store *filesystem = filesystem_of(store);
	struct filesystem_place place;
	char path[CAIRN_KEY_MAX + 1];
	int status = enter_prefix(filesystem, call, prefix, path, &place);
	if (status)
		return status;
	if (mkdirat(place.directory, place.name, 0777) != 0)
		status = filesystem_fail(filesystem, call, errno, "making", prefix);
	else
		status = sync_place(filesystem, call, prefix, &place);
	filesystem_leave(filesystem, &place);
	return status;
}

static int filesystem_prefix_remove(struct cairn_store *store, struct cairn_call *call,
				    const char *prefix)
{
	struct filesystem_store *filesystem = filesystem_of(store);
	struct filesystem_place place;
	char path[CAIRN_KEY_MAX + 1];
	int status = enter_prefix(filesystem, call, prefix, path, &place);
	if (status)
		return status;
	if (unlinkat(place.directory, place.name, AT_REMOVEDIR) != 0) {
		int error = errno == ENOTDIR ? ENOENT : errno;
		/* POSIX lets either be said of a directory that has entries. */
		status = filesystem_fail(filesystem, call, error == EEXIST ? ENOTEMPTY : error,
					 "removing", prefix);
	} else {
		status = sync_place(filesystem, call, prefix, &place);
	}
	filesystem_leave(filesystem, &place);
	return status;
}

static int filesystem_space(struct cairn_store *store, struct cairn_call *call,
			    struct cairn_space *ret_space)
{
	struct filesystem_store *filesystem = filesystem_of(store);
	struct statvfs room;
	if (fstatvfs(filesystem->root, &room) != 0)
		return filesystem_fail(filesystem, call, errno, "measuring", "the bucket");
	ret_space->total = (uint64_t)room.f_blocks * room.f_frsize;
	ret_space->available = (uint64_t)room.f_bavail * room.f_frsize;
	return CAIRN_OK;
}

static void filesystem_free(struct cairn_store *store)
{
	struct filesystem_store *filesystem = filesystem_of(store);
	if (filesystem->root >= 0)
		(void)close(filesystem->root);
	filesystem_etags_free(filesystem->etags);
	free(filesystem);
}

static const struct cairn_store_ops filesystem_ops = {
	.get = filesystem_get,
	.put = filesystem_put,
	.remove = filesystem_remove,
	.list = filesystem_list,
	.prefix_exists = filesystem_prefix_exists,
	.prefix_make = filesystem_prefix_make,
	.prefix_remove = filesystem_prefix_remove,
	.space = filesystem_space,
	.free = filesystem_free,
};

void cairn_filesystem_forget(struct cairn_store *store, const char *key)
{
	while (store->below)
		store = store->below;
	if (store->ops != &filesystem_ops)
		return;
	char name[NAME_MAX + 1];
	filesystem_lock_name(key, name);
	(void)unlinkat(filesystem_of(store)->root, name, 0);
}

static int open_fail(struct cairn_error *error, const char *doing, const char *root)
{
	int number = errno;
	int status = filesystem_status(number);
	/* A file in the place of the directory, say, is not a wrong key. */
	return cairn_error_set(error, status, "%s the bucket %s: %s", doing, root,
			       strerrordesc_np(number));
}

/* Make the directory `name` in `at` if it is missing, durably in `parent`. 0, or -1 and errno. */
static int make_directory(int at, const char *name)
{
	struct stat found;
	if (fstatat(at, name, &found, 0) == 0 && S_ISDIR(found.st_mode))
		return 0;
	if (mkdirat(at, name, 0777) != 0)
		return errno == EEXIST ? 0 : -1;
	char above[PATH_MAX];
	if (snprintf(above, sizeof(above), "%s/..", name) >= (int)sizeof(above)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int parent = openat(at, above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -1;
	int result = fsync(parent);
	(void)close(parent);
	return result;
}

static int open_root(struct filesystem_store *filesystem, const char *root, bool read_only,
		     struct cairn_error *error)
{
	if (!read_only && make_directory(AT_FDCWD, root) != 0)
		return open_fail(error, "making", root);
	filesystem->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (filesystem->root < 0)
		return open_fail(error, "opening", root);
	/* Ask now whether the kernel can resolve beneath a directory. */
	int probe = filesystem_open(filesystem->root, ".", O_PATH | O_DIRECTORY);
	if (probe < 0)
		return open_fail(error, "resolving paths (openat2) in", root);
	(void)close(probe);
	if (read_only)
		return CAIRN_OK;
	if (make_directory(filesystem->root, "log") != 0 ||
	    make_directory(filesystem->root, "snapshots") != 0)
		return open_fail(error, "making log/ and snapshots/ in", root);
	return CAIRN_OK;
}

int cairn_filesystem_store_new(const char *root, const struct cairn_store_options *options,
			       struct cairn_store **ret_store, struct cairn_error *error)
{
	struct filesystem_store *filesystem = calloc(1, sizeof(*filesystem));
	if (!filesystem)
		return cairn_error_set(error, CAIRN_NO_MEMORY, "%s: out of memory", root);
	struct cairn_store *store = &filesystem->store;
	bool read_only = options && options->read_only;
	store->ops = &filesystem_ops;
	store->timeout = options && options->timeout ? options->timeout : CAIRN_TIMEOUT_DEFAULT;
	store->capabilities = (struct cairn_capabilities){
		.kind = "directory",
		.delete_if_match = true,
		.content_etags = true,
		.real_directories = true,
		.local = true,
		.read_only = read_only,
	};
	(void)snprintf(store->name, sizeof(store->name), "directory %s", root);
	filesystem->root = -1;
	filesystem->etags = filesystem_etags_new();
	int status = filesystem->etags
			     ? open_root(filesystem, root, read_only, error)
			     : cairn_error_set(error, CAIRN_NO_MEMORY, "%s: out of memory", root);
	if (status) {
		filesystem_free(store);
		return status;
	}
	*ret_store = store;
	return CAIRN_OK;
}
