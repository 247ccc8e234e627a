/* SPDX-License-Identifier: MIT */
#include "storage/filesystem_private.h"

#include <cairn/key.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* How many entries pass between looks at the deadline. */
#define CHECK_EVERY 4096

/* A listing under way. */
struct walk {
	struct filesystem_store *filesystem;
	struct cairn_call *call;
	const struct cairn_list_options *options;
	const char *after; /* only keys behind this one; "": all */
	size_t wanted;	   /* so many entries are enough; SIZE_MAX: all */
	struct cairn_listing *listing;
};

static int no_memory(const struct walk *walk)
{
	return cairn_call_no_memory(walk->call, "listing");
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct cairn_entry *)a)->key, ((const struct cairn_entry *)b)->key);
}

static unsigned char type_of(int directory, const struct dirent *entry)
{
	struct stat found;
	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	/* Some filesystems do not tell. */
	if (fstatat(directory, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_UNKNOWN;
	return IFTODT(found.st_mode);
}

/* Must this name be looked at? Keys are cut off that the store could not get. */
static bool name_wanted(const char *name, size_t size, bool directory, struct cairn_slice head,
			struct cairn_slice filter)
{
	if (size < filter.size || memcmp(name, filter.data, filter.size) != 0)
		return false;
	if (!directory && size > FILESYSTEM_NAME_MAX)
		return false;
	return head.size + size + directory <= CAIRN_KEY_MAX;
}

/* Is there anything behind `after` at this key, or below it when it is a directory's? */
static bool is_behind(const struct walk *walk, const char *key, bool directory)
{
	if (strcmp(key, walk->after) > 0)
		return true;
	return directory && !walk->options->delimited &&
	       strncmp(walk->after, key, strlen(key)) == 0;
}

static int add_name(const struct walk *walk, struct cairn_listing *level, struct cairn_slice head,
		    char *name, size_t size, bool directory)
{
	struct cairn_entry *entry;
	/* The name is the dirent's own, with room behind its NUL being nobody's business: a
	 * directory's slash takes the NUL's place. */
	if (directory)
		name[size] = '/';
	struct cairn_slice tail = { name, size + directory };
	if (cairn_listing_add(level, head, tail, NULL, &entry))
		return no_memory(walk);
	entry->is_prefix = directory;
	if (!is_behind(walk, entry->key, directory))
		level->count--;
	return CAIRN_OK;
}

/* All names of one directory that begin with `filter`, as keys behind `head`, sorted. */
static int read_level(const struct walk *walk, DIR *stream, struct cairn_slice head,
		      struct cairn_slice filter, struct cairn_listing *level)
{
	unsigned seen = 0;
	for (;;) {
		errno = 0;
		struct dirent *entry = readdir(stream);
		if (!entry && errno == 0)
			break;
		if (!entry)
			return filesystem_fail(walk->filesystem, walk->call, errno, "listing",
					       head.size ? head.data : "the bucket");
		if (++seen % CHECK_EVERY == 0) {
			int status = cairn_call_check(walk->call, "listing");
			if (status)
				return status;
		}
		if (entry->d_name[0] == '.')
			continue;
		size_t size = strlen(entry->d_name);
		unsigned char type = type_of(dirfd(stream), entry);
		bool directory = type == DT_DIR;
		if ((!directory && type != DT_REG) ||
		    !name_wanted(entry->d_name, size, directory, head, filter))
			continue;
		int status = add_name(walk, level, head, entry->d_name, size, directory);
		if (status)
			return status;
	}
	if (level->count > 1)
		qsort(level->entries, level->count, sizeof(*level->entries), compare_entries);
	return CAIRN_OK;
}

/* Size and time, where they are wanted. ret_gone: it has vanished since it was read. */
static int stat_entry(const struct walk *walk, int directory, struct cairn_slice head,
		      struct cairn_entry *entry, bool *ret_gone)
{
	struct stat found;
	*ret_gone = false;
	if (walk->options->names_only || entry->is_prefix)
		return CAIRN_OK;
	if (fstatat(directory, entry->key + head.size, &found, AT_SYMLINK_NOFOLLOW) == 0) {
		struct cairn_version version;
		filesystem_version(&found, &version);
		entry->size = version.size;
		entry->modified = version.modified;
		return CAIRN_OK;
	}
	*ret_gone = errno == ENOENT;
	return *ret_gone ? CAIRN_OK
			 : filesystem_fail(walk->filesystem, walk->call, errno, "listing",
					   entry->key);
}

/* One level of a tree: the level itself becomes the listing. */
static int list_delimited(const struct walk *walk, DIR *stream, struct cairn_slice head,
			  struct cairn_slice filter)
{
	struct cairn_listing *listing = walk->listing;
	int status = read_level(walk, stream, head, filter, listing);
	size_t kept = 0;
	for (size_t i = 0; !status && i < listing->count && kept < walk->wanted; i++) {
		bool gone;
		status = stat_entry(walk, dirfd(stream), head, &listing->entries[i], &gone);
		if (!status && !gone)
			listing->entries[kept++] = listing->entries[i];
	}
	listing->count = kept;
	return status;
}

static int list_tree(const struct walk *walk, int directory, struct cairn_slice head,
		     struct cairn_slice filter);

static int descend(const struct walk *walk, int directory, struct cairn_slice head, const char *key)
{
	int below =
		openat(directory, key + head.size, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return CAIRN_OK; /* removed or replaced since it was read */
	if (below < 0)
		return filesystem_fail(walk->filesystem, walk->call, errno, "listing", key);
	return list_tree(walk, below, cairn_slice_of(key), (struct cairn_slice){ "", 0 });
}

static int add_object(const struct walk *walk, int directory, struct cairn_slice head,
		      struct cairn_entry *entry)
{
	bool gone;
	int status = stat_entry(walk, directory, head, entry, &gone);
	if (status || gone)
		return status;
	struct cairn_entry *added;
	if (cairn_listing_add(walk->listing, cairn_slice_of(entry->key), (struct cairn_slice){ 0 },
			      NULL, &added))
		return no_memory(walk);
	added->size = entry->size;
	added->modified = entry->modified;
	return CAIRN_OK;
}

/* Every key below `directory`, which is closed, in order: a directory counts as its name and `/`.
 */
static int list_tree(const struct walk *walk, int directory, struct cairn_slice head,
		     struct cairn_slice filter)
{
	DIR *stream = fdopendir(directory);
	if (!stream) {
		int error = errno;
		(void)close(directory);
		return filesystem_fail(walk->filesystem, walk->call, error, "listing", head.data);
	}
	if (walk->options->delimited) {
		int status = list_delimited(walk, stream, head, filter);
		(void)closedir(stream);
		return status;
	}
	struct cairn_listing level;
	cairn_listing_init(&level);
	int status = read_level(walk, stream, head, filter, &level);
	for (size_t i = 0; !status && i < level.count; i++) {
		if (walk->listing->count >= walk->wanted)
			break;
		struct cairn_entry *entry = &level.entries[i];
		status = entry->is_prefix ? descend(walk, dirfd(stream), head, entry->key)
					  : add_object(walk, dirfd(stream), head, entry);
	}
	cairn_listing_release(&level);
	(void)closedir(stream);
	return status;
}

/* Could a key begin so? Where it could not, nothing is listed. */
static bool prefix_possible(const char *prefix)
{
	return prefix[0] != '.' && prefix[0] != '/' && !strstr(prefix, "/.") &&
	       !strstr(prefix, "//") && strlen(prefix) <= CAIRN_KEY_MAX;
}

int filesystem_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		    const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	struct filesystem_store *filesystem = (struct filesystem_store *)store;
	const char *after = options->start_after ? options->start_after : "";
	if (options->token && strcmp(options->token, after) > 0)
		after = options->token;
	struct walk walk = {
		.filesystem = filesystem,
		.call = call,
		.options = options,
		.after = after,
		/* One more tells whether there are more. */
		.wanted = options->max && options->max < SIZE_MAX ? options->max + 1 : SIZE_MAX,
		.listing = ret_listing,
	};
	if (!prefix_possible(prefix))
		return CAIRN_OK;
	const char *slash = strrchr(prefix, '/');
	struct cairn_slice head = { prefix, slash ? (size_t)(slash + 1 - prefix) : 0 };
	char path[CAIRN_KEY_MAX + 1] = ".";
	if (head.size) {
		memcpy(path, prefix, head.size);
		path[head.size] = '\0';
	} else {
		/* A deleted directory can still be opened as itself. */
		int gone = filesystem_check_root(filesystem, call, "listing", "the root");
		if (gone)
			return gone;
	}
	int directory = filesystem_open(filesystem->root, path, O_RDONLY | O_DIRECTORY);
	if (directory < 0) {
		int status = filesystem_fail(filesystem, call, errno, "listing", prefix);
		bool nothing = status == CAIRN_NOT_FOUND || status == CAIRN_INVALID ||
			       status == CAIRN_NAME_TOO_LONG;
		return nothing ? CAIRN_OK : status;
	}
	int status = list_tree(&walk, directory, head, cairn_slice_of(prefix + head.size));
	if (!status && ret_listing->count >= walk.wanted &&
	    cairn_listing_cut(ret_listing, options->max))
		status = no_memory(&walk);
	return status;
}
