/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "view.h"

/* The longest name that every kernel takes in a directory's listing (FUSE_NAME_MAX). */
#define NAME_SHOWN_MAX 1024

struct staged {
	char *name;
	uint64_t id;
};

struct directory {
	pthread_mutex_t mutex;
	bool taken;    /* there is a listing */
	bool consumed; /* some of it was given out: offset 0 takes another */
	struct cairn_listing listing;
	bool detailed; /* `details` is there */
	struct cairn_listing
		details; /* where names alone are cheaper: sizes and times, when asked for */
	struct staged *staged;
	size_t staged_count;
};

int directory_open(struct directory **ret_directory)
{
	struct directory *directory = calloc(1, sizeof(*directory));
	if (!directory)
		return ENOMEM;
	pthread_mutex_init(&directory->mutex, NULL);
	cairn_listing_init(&directory->listing);
	cairn_listing_init(&directory->details);
	*ret_directory = directory;
	return 0;
}

static void drop(struct directory *directory)
{
	cairn_listing_release(&directory->listing);
	cairn_listing_release(&directory->details);
	for (size_t i = 0; i < directory->staged_count; i++)
		free(directory->staged[i].name);
	free(directory->staged);
	directory->staged = NULL;
	directory->staged_count = 0;
	directory->taken = directory->consumed = directory->detailed = false;
}

void directory_free(struct directory *directory)
{
	drop(directory);
	pthread_mutex_destroy(&directory->mutex);
	free(directory);
}

static bool add_staged(void *context, const char *name, uint64_t id)
{
	struct directory *directory = context;
	struct staged *staged =
		realloc(directory->staged, (directory->staged_count + 1) * sizeof(*staged));
	if (!staged)
		return false;
	directory->staged = staged;
	staged[directory->staged_count] = (struct staged){ .name = strdup(name), .id = id };
	return staged[directory->staged_count].name && ++directory->staged_count;
}

/* All pages of one level below `prefix`, behind what ret_listing has. */
static int list(struct request *request, const char *prefix, bool names_only,
		struct cairn_listing *ret_listing)
{
	struct cairn_listing page;
	cairn_listing_init(&page);
	int status;
	do {
		struct cairn_list_options options = { .delimited = true,
						      .names_only = names_only,
						      .token = ret_listing->token };
		status = cairn_store_list(request->fs->store, &request->call, prefix, &options,
					  &page);
		if (!status)
			status = cairn_listing_append(ret_listing, &page);
	} while (!status && ret_listing->token);
	cairn_listing_release(&page);
	return status;
}

static int take(struct request *request, struct directory *directory, struct node *node)
{
	drop(directory);
	if (node->type == NODE_DIRECTORY) {
		staging_list(request->fs->staging, node->view, node->key, add_staged, directory);
		int status = list(request, node->key, request->fs->store->capabilities.local,
				  &directory->listing);
		if (status == CAIRN_NOT_FOUND)
			status = 0; /* a directory that went while it was open is empty */
		if (status)
			return request_failed(request, node->key, status, 0);
	}
	directory->taken = true;
	return 0;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct cairn_entry *)a)->key, ((const struct cairn_entry *)b)->key);
}

static const struct cairn_entry *find(const struct cairn_listing *listing, char *key)
{
	struct cairn_entry wanted = { .key = key };
	return listing->count
		       ? bsearch(&wanted, listing->entries, listing->count, sizeof(wanted), by_key)
		       : NULL;
}

/* The file name of a listed key, into `ret_name` (cleared first). False: it is not shown. */
static bool entry_name(struct request *request, struct directory *directory, struct node *node,
		       const struct cairn_entry *entry, struct cairn_buffer *ret_name)
{
	const char *segment = entry->key + strlen(node->key);
	size_t size = strlen(segment);
	bool raw = request->fs->options.raw && node->view == VIEW_OBJECTS;
	if (!raw && cairn_key_reserved(entry->key))
		return false;
	if (!entry->is_prefix && !size && !entry->size)
		return false; /* the directory's own placeholder */
	cairn_buffer_clear(ret_name);
	if (cairn_name_encode((struct cairn_slice){ segment, size - entry->is_prefix }, ret_name))
		return false;
	if (entry->is_prefix && !request->fs->store->capabilities.real_directories) {
		char object[CAIRN_KEY_MAX + 2];
		snprintf(object, sizeof(object), "%.*s", (int)strlen(entry->key) - 1, entry->key);
		const struct cairn_entry *beside = find(&directory->listing, object);
		if (beside && !beside->is_prefix && cairn_buffer_append(ret_name, "%", 1))
			return false;
	}
	return ret_name->size <= NAME_SHOWN_MAX;
}

/* The attributes and, with `plus`, the node of a listed key. */
static int entry_of(struct request *request, struct directory *directory, struct node *node,
		    const struct cairn_entry *entry, bool plus, struct fuse_entry_param *ret_entry)
{
	struct filesystem *fs = request->fs;
	*ret_entry = (struct fuse_entry_param){
		.attr = { .st_ino = inode_number(node->view, entry->key),
			  .st_mode = entry->is_prefix ? S_IFDIR : S_IFREG },
	};
	bool local = fs->store->capabilities.local;
	if (!plus || entry->is_prefix || (local && !directory->detailed))
		return 0;
	if (local)
		entry = find(&directory->details, entry->key);
	if (!entry)
		return 0; /* gone since: the kernel will ask */
	struct node_facts facts = { .size = entry->size, .modified = entry->modified };
	struct node *made =
		inodes_look_up(fs->inodes, NODE_LISTED, node->view, entry->key, "", &facts);
	if (!made)
		return ENOMEM;
	tree_entry(request, made, ret_entry);
	ret_entry->entry_timeout = 1.0;
	return 0;
}

/* The entry at `index` beside `.` and `..`: 0, ENOENT when it is not shown, ERANGE behind the last.
 */
static int entry_at(struct request *request, struct directory *directory, struct node *node,
		    size_t index, bool plus, struct cairn_buffer *ret_name,
		    struct fuse_entry_param *ret_entry)
{
	const char *name = NULL;
	enum node_type type = NODE_CONTROL;
	enum view view = VIEW_NONE;
	*ret_entry = (struct fuse_entry_param){ .attr = { .st_mode = S_IFREG } };
	if (node->type == NODE_DIRECTORY && index < directory->listing.count) {
		const struct cairn_entry *entry = &directory->listing.entries[index];
		if (!entry_name(request, directory, node, entry, ret_name))
			return ENOENT;
		return entry_of(request, directory, node, entry, plus, ret_entry);
	}
	if (node->type == NODE_DIRECTORY) {
		index -= directory->listing.count;
		if (index < directory->staged_count) {
			char id[32];
			name = directory->staged[index].name;
			snprintf(id, sizeof(id), "%llu",
				 (unsigned long long)directory->staged[index].id);
			ret_entry->attr.st_ino = inode_number(node->view, id);
		}
	} else if (node->type == NODE_ROOT) {
		name = tree_top_name(index, &type, &view);
		ret_entry->attr.st_mode = S_IFDIR;
		ret_entry->attr.st_ino = inode_number(view, "");
	} else {
		name = control_name(index);
		ret_entry->attr.st_ino = name ? inode_number(VIEW_NONE, name) : 0;
	}
	cairn_buffer_clear(ret_name);
	return !name ? ERANGE : cairn_buffer_append(ret_name, name, strlen(name)) ? ENOMEM : 0;
}

static size_t add(struct request *request, char *buffer, size_t size, const char *name,
		  const struct fuse_entry_param *entry, off_t next, bool plus)
{
	return plus ? fuse_add_direntry_plus(request->fuse, buffer, size, name, entry, next)
		    : fuse_add_direntry(request->fuse, buffer, size, name, &entry->attr, next);
}

static int read_locked(struct request *request, struct directory *directory, struct node *node,
		       char *buffer, size_t size, off_t offset, bool plus, size_t *ret_used)
{
	struct filesystem *fs = request->fs;
	int error = 0;
	if (!directory->taken || (offset == 0 && directory->consumed))
		error = take(request, directory, node);
	if (!error && plus && offset > 0 && node->type == NODE_DIRECTORY && !directory->detailed &&
	    fs->store->capabilities.local) {
		int status = list(request, node->key, false, &directory->details);
		directory->detailed = !status;
	}
	directory->consumed = true;
	struct cairn_buffer name;
	cairn_buffer_init(&name, 4 * CAIRN_KEY_MAX);
	size_t used = 0;
	for (; !error; offset++) {
		struct fuse_entry_param entry = { .attr = { .st_mode = S_IFDIR,
							    .st_ino = node->inode } };
		if (offset < 2)
			error = cairn_buffer_append((cairn_buffer_clear(&name), &name), "..",
						    (size_t)offset + 1)
					? ENOMEM
					: 0;
		else
			error = entry_at(request, directory, node, (size_t)offset - 2, plus, &name,
					 &entry);
		if (error == ENOENT) {
			error = 0;
			continue;
		}
		if (error)
			break;
		size_t needed = add(request, buffer + used, size - used, name.data, &entry,
				    offset + 1, plus);
		if (needed > size - used) {
			if (entry.ino)
				inodes_forget(fs->inodes, entry.ino, 1);
			break;
		}
		used += needed;
	}
	cairn_buffer_release(&name);
	*ret_used = used;
	return error == ERANGE || used ? 0 : error;
}

int directory_read(struct request *request, struct directory *directory, struct node *node,
		   char *buffer, size_t size, off_t offset, bool plus, size_t *ret_used)
{
	/* Readers of one open directory take turns: the listing may be fetched under the lock. */
	pthread_mutex_lock(&directory->mutex);
	int error = read_locked(request, directory, node, buffer, size, offset, plus, ret_used);
	pthread_mutex_unlock(&directory->mutex);
	return error;
}
