/* SPDX-License-Identifier: MIT */
#ifndef CAIRNFS_READS_H
#define CAIRNFS_READS_H

#include "lineage.h"

/*
 * What processes have read, so that a replacement can tell which version it was based on: rule 2 of
 * DESIGN.md, docs/. Thread-safe. Holds 64 reads a key and 16,384 in all; what is forgotten makes a
 * replacement refused, not blind. Keys carry the view's name, as the caller likes.
 *
 * The base is the read that is nearest to the writer: whose lowest common ancestor with it is
 * lowest. Not counted:
 * - a read under a child of that ancestor which still lives: another job's;
 * - a read that an earlier attempt used, or that was tangled. It also hides every farther read (a
 *   retry that did not read again shall not borrow one of another job), but one that a process of
 *   the writer's own line made itself afterwards.
 */
struct reads;

#define READS_VERSION_SIZE 128 /* a version is an opaque string of up to 127 bytes */
#define READS_ABSENT	   "" /* the version of a key that is not there, as who unlinked it knows */

/* NULL without memory. */
struct reads *reads_new(void);
void reads_free(struct reads *reads);

/*
 * lineage->chain[0] has read this version. Its last read counts: an earlier one of it is replaced,
 * used or not. Without a lineage (count 0) nothing happens.
 */
void reads_record(struct reads *reads, const char *key, const struct lineage *reader,
		  const char *version);

enum reads_base {
	READS_NONE,    /* nothing that counts was read */
	READS_VERSION, /* ret_version is what the content was based on */
	READS_TANGLED, /* equally near readers read different versions: it cannot be told */
	READS_REFUSED, /* what was read was refused (reads_refuse), and nothing has been read since */
};

/*
 * The base of a replacement, in favour of the writer; of the renamer when the writer has no kin
 * among the reads. Either may be NULL or empty. What made the base is used by this attempt,
 * whatever becomes of it, and what was tangled counts no more: the next attempt has to read again.
 *
 * Blocks up to 250 ms when the answer hangs on a reader that is still alive, and once a reader:
 * `jq . k | sponge k`, jq closes its output before it exits.
 */
enum reads_base reads_base(struct reads *reads, const char *key, const struct lineage *writer,
			   const struct lineage *renamer, char ret_version[READS_VERSION_SIZE]);

/* The same choice for `asker`, at once and without using it up. False for none and for tangled. */
bool reads_peek(struct reads *reads, const char *key, const struct lineage *asker,
		char ret_version[READS_VERSION_SIZE]);

/*
 * What `asker` has, or just had, as its base is used up by something that was refused: until it or
 * its kin reads again, its base is READS_REFUSED.
 */
void reads_refuse(struct reads *reads, const char *key, const struct lineage *asker);

/* Forgets all reads of the key. */
void reads_forget(struct reads *reads, const char *key);

#endif
