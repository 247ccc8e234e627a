/* SPDX-License-Identifier: MIT */
#include "storage/filesystem_private.h"

#include <cairn/key.h>

#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

/* How often a directory that somebody keeps removing is made again. */
#define MAKE_ATTEMPTS  16

#define LOCK_SPINS     20
#define LOCK_PAUSE_MIN 50
#define LOCK_PAUSE_MAX 4000

int filesystem_status(int error)
{
	switch (error) {
	case ENOENT:
		return CAIRN_NOT_FOUND;
	case EEXIST:
		return CAIRN_EXISTS;
	case ENOTEMPTY:
		return CAIRN_NOT_EMPTY;
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case EXDEV:
	case ENXIO:
		return CAIRN_INVALID;
	case ENAMETOOLONG:
		return CAIRN_NAME_TOO_LONG;
	case EACCES:
	case EPERM:
		return CAIRN_ACCESS;
	case EROFS:
		return CAIRN_READ_ONLY;
	case ENOSPC:
	case EDQUOT:
		return CAIRN_NO_SPACE;
	case EFBIG:
		return CAIRN_TOO_BIG;
	case ENOMEM:
		return CAIRN_NO_MEMORY;
	default:
		return CAIRN_IO;
	}
}

/* What the errno means here, where strerror would mislead. */
static const char *reason(int error)
{
	switch (error) {
	case ENOTDIR:
		return "an object stands where a directory is needed";
	case EISDIR:
		return "it is a directory";
	case ELOOP:
		return "a symbolic link, which a bucket does not follow";
	case EXDEV:
		return "it leads out of the bucket";
	case ENXIO:
		return "it is no regular file";
	default:
		return strerrordesc_np(error);
	}
}

static bool root_deleted(const struct filesystem_store *filesystem)
{
	struct stat root;
	return fstat(filesystem->root, &root) != 0 || root.st_nlink == 0;
}

int filesystem_check_root(const struct filesystem_store *filesystem, struct cairn_call *call,
			  const char *doing, const char *key)
{
	if (!root_deleted(filesystem))
		return CAIRN_OK;
	return cairn_error_set(&call->error, CAIRN_IO,
			       "%s %s: the bucket, %s, has been deleted; open it again", doing, key,
			       filesystem->store.name);
}

int filesystem_fail(const struct filesystem_store *filesystem, struct cairn_call *call, int error,
		    const char *doing, const char *key)
{
	/* In a deleted root nothing is found, which must not read as "no such key". */
	if (error == ENOENT || error == ESTALE) {
		int status = filesystem_check_root(filesystem, call, doing, key);
		if (status)
			return status;
	}
	const char *text = reason(error);
	return cairn_error_set(&call->error, filesystem_status(error), "%s %s in %s: %s", doing,
			       key, filesystem->store.name, text ? text : "unknown error");
}

/* The segments of `path`; the last has at most `longest` bytes. */
static int check_segments(struct cairn_call *call, const char *path, size_t length, size_t longest)
{
	const char *end = path + length;
	for (const char *segment = path; segment <= end;) {
		const char *slash = memchr(segment, '/', (size_t)(end - segment));
		size_t size = (size_t)((slash ? slash : end) - segment);
		if (size == 0 || segment[0] == '.')
			return cairn_error_set(
				&call->error, CAIRN_INVALID,
				"%s: a directory bucket cannot hold a key with %s", path,
				size ? "a segment that begins with a dot" : "an empty segment");
		if (size > (slash ? NAME_MAX : longest))
			return cairn_error_set(&call->error, CAIRN_NAME_TOO_LONG,
					       "%s: the segment %.20s… is longer than %zu bytes",
					       path, segment, slash ? NAME_MAX : longest);
		segment += size + 1;
	}
	return CAIRN_OK;
}

int filesystem_key_check(struct cairn_call *call, const char *key)
{
	return check_segments(call, key, strlen(key), FILESYSTEM_NAME_MAX);
}

int filesystem_prefix_check(struct cairn_call *call, const char *prefix)
{
	return check_segments(call, prefix, strlen(prefix) - 1, NAME_MAX);
}

int filesystem_open(int directory, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long file;
	do {
		file = syscall(SYS_openat2, directory, path, &how, sizeof(how));
	} while (file < 0 && (errno == EINTR || errno == EAGAIN));
	return (int)file;
}

/* Make the directories of `path`, each durable in its parent. 0, or -1 and errno. */
static int make_directories(int root, char *path)
{
	int at = root;
	int result = -1;
	for (char *segment = path; segment;) {
		char *slash = strchr(segment, '/');
		if (slash)
			*slash = '\0';
		int next = filesystem_open(at, segment, O_RDONLY | O_DIRECTORY);
		if (next < 0 && errno == ENOENT) {
			if (mkdirat(at, segment, 0777) != 0 && errno != EEXIST)
				goto out;
			if (fsync(at) != 0)
				goto out;
			next = filesystem_open(at, segment, O_RDONLY | O_DIRECTORY);
		}
		if (slash)
			*slash = '/';
		if (next < 0)
			goto out;
		if (at != root)
			(void)close(at);
		at = next;
		segment = slash ? slash + 1 : NULL;
	}
	result = 0;
out:;
	int error = errno;
	if (at != root)
		(void)close(at);
	errno = error;
	return result;
}

int filesystem_enter(struct filesystem_store *filesystem, struct cairn_call *call, const char *key,
		     bool make, struct filesystem_place *ret_place)
{
	const char *slash = strrchr(key, '/');
	*ret_place = (struct filesystem_place){
		.directory = filesystem->root,
		.lock = -1,
		.name = slash ? slash + 1 : key,
	};
	if (!slash)
		return CAIRN_OK;
	char path[CAIRN_KEY_MAX + 1];
	size_t length = (size_t)(slash - key);
	memcpy(path, key, length);
	path[length] = '\0';
	int directory = filesystem_open(filesystem->root, path, O_RDONLY | O_DIRECTORY);
	/* Whoever removes an empty directory may do so between the making and the opening. */
	for (int i = 0; directory < 0 && errno == ENOENT && make && i < MAKE_ATTEMPTS; i++) {
		if (make_directories(filesystem->root, path) == 0 || errno == ENOENT)
			directory = filesystem_open(filesystem->root, path, O_RDONLY | O_DIRECTORY);
	}
	if (directory < 0) {
		int error = errno == ENOTDIR && !make ? ENOENT : errno;
		return filesystem_fail(filesystem, call, error, "opening the directory of", key);
	}
	ret_place->directory = directory;
	return CAIRN_OK;
}

void filesystem_leave(const struct filesystem_store *filesystem, struct filesystem_place *place)
{
	if (place->lock >= 0)
		(void)close(place->lock);
	if (place->directory != filesystem->root)
		(void)close(place->directory);
}

void filesystem_lock_name(const char *name, char ret_name[NAME_MAX + 1])
{
	(void)snprintf(ret_name, NAME_MAX + 1, ".%s.lock", name);
}

static int open_lock(int directory, const char *name)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int lock = openat(directory, name, O_RDONLY | O_CREAT | flags, 0755);
	/* Another user's, or a read-only directory: O_CREAT is refused though it exists. */
	if (lock < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
		int error = errno;
		lock = openat(directory, name, O_RDONLY | flags);
		if (lock < 0 && errno == ENOENT)
			errno = error;
	}
	return lock;
}

/* NFS makes byte-range locks of flock, and those want a file that is open for writing. */
static int reopen_lock(int directory, const char *name, int *lock)
{
	int writable = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (writable < 0)
		return -1;
	(void)close(*lock);
	*lock = writable;
	return 0;
}

static int wait_lock(struct cairn_call *call, const char *key, const char *name, int turn,
		     int64_t *pause)
{
	int status;
	if (turn < LOCK_SPINS) {
		(void)sched_yield();
		status = cairn_call_check(call, key);
	} else {
		status = cairn_call_sleep(call, cairn_clock() + *pause);
		*pause = *pause * 2 < LOCK_PAUSE_MAX ? *pause * 2 : LOCK_PAUSE_MAX;
	}
	if (status == CAIRN_TIMEOUT)
		return cairn_error_set(&call->error, CAIRN_TIMEOUT,
				       "%s: another process has held its lock file %s until the "
				       "deadline; nothing was written",
				       key, name);
	return status;
}

int filesystem_lock(struct filesystem_store *filesystem, struct cairn_call *call, const char *key,
		    struct filesystem_place *place)
{
	char name[NAME_MAX + 1];
	filesystem_lock_name(place->name, name);
	int lock = open_lock(place->directory, name);
	if (lock < 0)
		return filesystem_fail(filesystem, call, errno, "opening the lock file of", key);
	place->lock = lock;
	int64_t pause = LOCK_PAUSE_MIN;
	bool reopened = false;
	for (int turn = 0; flock(place->lock, LOCK_EX | LOCK_NB) != 0; turn++) {
		int error = errno;
		if (error == EBADF && !reopened &&
		    reopen_lock(place->directory, name, &place->lock) == 0) {
			reopened = true;
			continue;
		}
		if (error != EWOULDBLOCK && error != EINTR)
			return filesystem_fail(filesystem, call, error, "locking", key);
		int status = wait_lock(call, key, name, turn, &pause);
		if (status)
			return status;
	}
	return CAIRN_OK;
}
