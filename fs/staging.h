/* SPDX-License-Identifier: MIT */
#ifndef STAGING_H
#define STAGING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cairn/store.h>

#include "inodes.h"
#include "lineage.h"

/*
 * Staging files: local to the mount, never in the bucket; they exist to be renamed or linked into
 * place (DESIGN "Staging files"). They lie unnamed on disk under cache_dir.
 */
struct staging;
struct staging_file;

/* What a staging file states of itself. Copied out and in whole; the table locks. */
struct staging_state {
	mode_t mode; /* S_IFREG and permission bits */
	uid_t uid;
	gid_t gid;
	char if_match[CAIRN_ETAG_SIZE]; /* user.cairn.if_match, or "" */
	char etag[CAIRN_ETAG_SIZE];	/* user.cairn.etag, carried along by cp -a, or "" */
	bool placed;			/* renamed into place: it takes no more writes */
};

/*
 * Files lie in `cache_dir` (made if missing), at most `max` bytes of them in all; `globs` are
 * further staging names, `:` between them, or NULL. CAIRN_ACCESS, CAIRN_NO_SPACE, CAIRN_IO.
 */
int staging_new(const char *cache_dir, uint64_t max, const char *globs,
		struct staging **ret_staging, struct cairn_error *error) CAIRN_MUST_USE;
void staging_free(struct staging *staging);

/* Is `name` a staging file's by its form? A name of the globs is only where no key has it. */
enum staging_name { STAGING_NO, STAGING_GLOB, STAGING_YES };
enum staging_name staging_name(struct staging *staging, const char *name);

/* The file `name` in the directory `prefix` of `view`, counted, or NULL. */
struct staging_file *staging_find(struct staging *staging, enum view view, const char *prefix,
				  const char *name);

/*
 * Make it, empty; 0 or an errno: EEXIST, ENOSPC, ENOMEM, or what opening it on disk failed with.
 * ret_file is counted.
 */
int staging_create(struct staging *staging, enum view view, const char *prefix, const char *name,
		   const struct staging_state *state, struct staging_file **ret_file);

/* A file without a name, that gathers what an object's writer writes. As staging_create. */
int staging_gather(struct staging *staging, struct staging_file **ret_file);

/* Give `file` the further name `name`; 0, EEXIST or ENOMEM. */
int staging_link(struct staging *staging, struct staging_file *file, enum view view,
		 const char *prefix, const char *name);

/* Remove a name; ENOENT when there is none. The file lives on while it is counted. */
int staging_unlink(struct staging *staging, enum view view, const char *prefix, const char *name);

/* Move a name, replacing what the new one was unless `exclusive` (EEXIST). 0, ENOENT, ENOMEM. */
int staging_rename(struct staging *staging, enum view view, const char *prefix, const char *name,
		   const char *new_prefix, const char *new_name, bool exclusive);

/* Call `each` with every name in the directory, until it returns false. The table is locked. */
void staging_list(struct staging *staging, enum view view, const char *prefix,
		  bool (*each)(void *context, const char *name, uint64_t id), void *context);

/* True when a name stands in or below the directory `prefix`. */
bool staging_below(struct staging *staging, enum view view, const char *prefix);

/*
 * Its content lives as long as it is counted: by its names, by open descriptors, by whoever works on
 * it. NULL is no file.
 */
struct staging_file *staging_ref(struct staging_file *file);
void staging_unref(struct staging_file *file);

/*
 * An inode only remembers the file: the kernel keeps it long after the content is gone. staging_use
 * counts the content again, NULL when it is gone.
 */
void staging_remember(struct staging_file *file);
void staging_forget(struct staging_file *file);
struct staging_file *staging_use(struct staging_file *file);

/* A number of its own, for inode numbers. */
uint64_t staging_id(const struct staging_file *file);

/* Its file on disk; the file's while it is counted. */
int staging_fd(const struct staging_file *file);

/* Write or cut, within the bound of all files. 0 or an errno (ENOSPC, EFBIG, EPERM once placed). */
int staging_write(struct staging_file *file, const void *data, size_t size, off_t offset);
int staging_truncate(struct staging_file *file, off_t size);

/* fstat with what it states of itself; st_ino is not set. */
int staging_stat(struct staging_file *file, struct stat *ret_stat);

/*
 * Its bytes, read whole into `out`, at most out->limit (EFBIG). 0 or an errno.
 */
int staging_read_all(struct staging_file *file, struct cairn_buffer *out);

struct staging_state staging_state(struct staging_file *file);
void staging_set_state(struct staging_file *file, const struct staging_state *state);

/* Who wrote last; count 0: nobody yet. */
void staging_set_writer(struct staging_file *file, const struct lineage *writer);
struct lineage staging_writer(struct staging_file *file);

/* Bytes on disk in all, for status. */
uint64_t staging_used(struct staging *staging);

#endif
