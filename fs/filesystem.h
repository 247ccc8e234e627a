/* SPDX-License-Identifier: MIT */
#ifndef FILESYSTEM_H
#define FILESYSTEM_H

/* What the parts of the daemon share: the mount itself, one request, one open file. */

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cairn/cairn.h>

#include "inodes.h"
#include "lineage.h"
#include "log.h"
#include "options.h"
#include "reads.h"
#include "staging.h"
#include "waiters.h"

struct leases;

/* One mount. Its fields are set before the session runs and constant then; each part locks itself.
 */
struct filesystem {
	struct options options;
	struct cairn_store *store;
	struct fuse_session *session;
	struct inodes *inodes;
	struct staging *staging;
	struct reads *reads;
	struct log *log;
	struct waiters *waiters;
	struct leases *leases;
	int64_t mounted; /* microseconds since 1970 */
};

/* One FUSE request, on its handler's stack. */
struct request {
	fuse_req_t fuse;
	struct filesystem *fs;
	pid_t tid; /* the asking thread; 0 when it lives in another pid namespace */
	uid_t uid;
	gid_t gid;
	struct cairn_call
		call; /* deadline of the whole request; cancelled when the asker is dying */
	bool has_lineage;
	struct lineage lineage;
};

/* Returned by a view's operation that has kept the request, to be answered from the waiter pool. */
#define DEFERRED (-1)

void request_begin(struct request *request, fuse_req_t fuse);

/* The asker's lineage, read from /proc at the first call; count 0 when it is not known. */
const struct lineage *request_lineage(struct request *request);

/*
 * The errno for a failed engine call on `key`: logs call.error where DESIGN "Errors" wants a line.
 * `error` 0: the status's own errno (cairn_status_errno).
 */
int request_failed(struct request *request, const char *key, int status, int error);

/* The errno `error`, after one log line "VIEW/KEY: text: strerror". */
int request_refused(struct request *request, enum view view, const char *key, int error,
		    const char *format, ...) CAIRN_PRINTF(5, 6);

/* Bytes that a reader is shown: immutable, shared by count. */
struct content {
	atomic_uint references;
	struct cairn_buffer bytes;
};

struct content *content_new(struct cairn_buffer *steal_bytes);
struct content *content_ref(struct content *content);
void content_unref(struct content *content);

/* How far the text written through a handle has come (docs/, claims/, leases/). */
struct text {
	struct cairn_buffer bytes;
	struct cairn_json_scan scan;
	size_t scanned; /* bytes of `bytes` that were fed to scan */
	enum cairn_json_progress progress;
	size_t end; /* where the value ended, once progress is CAIRN_JSON_COMPLETE */
};

/*
 * One open file (a fuse_file_info's fh), counted: the kernel may release it as soon as it has the
 * answer that a handler is about to finish. `mutex` guards what a write or a flush changes.
 */
struct handle {
	atomic_uint references;
	struct node *node; /* pinned */
	enum view view;
	int flags;   /* as opened */
	pid_t opener; /* thread */
	uint64_t id; /* of the handle, never used again */
	pthread_mutex_t mutex;
	struct content *content; /* what a reader is shown; NULL: read by ranges, or nothing yet */
	struct cairn_version version; /* what was opened; etag "" when the key was absent */
	bool read_seen;		      /* a READ came: the version counts as read */

	/* writing */
	struct text text; /* JSON views: the new content */
	bool started;	  /* new content has begun */
	bool dirty;	  /* something is to be committed */
	bool refused;	     /* docs: a commit was: what the writer tries again is still the old edit */
	bool settled;	  /* claims: the value is set */
	int64_t created;  /* claims: cairn_clock before the put */
	struct staging_file
		*staging;	  /* counted: the file itself, or what gathers an object; or NULL */
	pid_t writer_tid;	  /* of the last write, whose lineage is known */
	struct lease_open *lease; /* leases/: what the descriptor is to the lease */
};

struct handle *handle_new(struct request *request, struct node *node, int flags);
/*
 * The asker is the process that opened the file: an error of its close is its own. Of others, that
 * share the descriptor, a close says nothing: more text may come.
 */
bool handle_opened_by(struct handle *handle, struct request *request);

struct handle *handle_ref(struct handle *handle);
void handle_unref(struct filesystem *fs, struct handle *handle);

/* The part of `content` that a READ of `size` bytes at `offset` gets. */
struct cairn_slice content_part(const struct content *content, size_t size, off_t offset);

#endif
