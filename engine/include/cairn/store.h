/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_STORE_H
#define CAIRN_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A store is a conditional key-value service: the bucket. Keys are NUL-terminated bytes relative
 * to the bucket (or its prefix). Every call blocks, is thread-safe, and can take long, time out
 * or end with an unknown outcome; it ends within the call's deadline.
 */
struct cairn_store;

/* What a call may take, and what went wrong in it. Zero value: the store's own timeout. */
struct cairn_call {
	int64_t deadline;                  /* CLOCK_MONOTONIC in microseconds; 0: now + the store's timeout */
	bool (*cancelled)(void *context);  /* polled while waiting; true ends the call. May be NULL */
	void *context;
	struct cairn_error error;          /* set by whatever failed last */
	int64_t retry_after;               /* private: microseconds that a server asked to be left alone */
};

/* CLOCK_MONOTONIC in microseconds. */
CAIRN_EXPORT int64_t cairn_clock(void);

/*
 * Sleep until `until` (cairn_clock time). Returns 0, CAIRN_TIMEOUT when the call's deadline came
 * first, CAIRN_CANCELLED when cancelled() says so (looked at every 20 ms). Sets call->error.
 */
CAIRN_EXPORT int cairn_call_sleep(struct cairn_call *call, int64_t until) CAIRN_MUST_USE;

/* Bytes of an etag with its NUL. Etags are opaque: compared, never read (FORMAT "Writing rules"). */
#define CAIRN_ETAG_SIZE 128

/* Bytes of a nonce with its NUL. */
#define CAIRN_NONCE_SIZE 64

/* One version of an object. */
struct cairn_version {
	char etag[CAIRN_ETAG_SIZE];
	char nonce[CAIRN_NONCE_SIZE]; /* of the put that wrote it; "" where none is known */
	uint64_t size;                /* bytes of the whole object */
	int64_t modified;             /* last write, microseconds since 1970 by the store's clock */
	int64_t age;                  /* microseconds since then by the store's clock, at least 0 */
};

struct cairn_object {
	struct cairn_version version;
	struct cairn_buffer data; /* owned; release with cairn_object_release */
};

/* Make `object` empty, so that it can be passed to a get, or released. */
CAIRN_EXPORT void cairn_object_init(struct cairn_object *object);
CAIRN_EXPORT void cairn_object_release(struct cairn_object *object);

struct cairn_get_options {
	const char *if_none_match; /* CAIRN_UNCHANGED while the object still has this etag */
	const char *if_match;      /* CAIRN_CONFLICT when the object has another etag */
	uint64_t offset;           /* first byte wanted */
	uint64_t length;           /* bytes wanted, 0: to the end; fewer come at the object's end */
	uint64_t max_size;         /* an object larger than this comes without data (size tells); 0: no limit */
	bool no_data;              /* the version alone */
};

struct cairn_put_options {
	const char *if_match; /* CAIRN_CONFLICT unless the object has this etag (absent: too) */
	bool if_absent;       /* CAIRN_EXISTS if there is an object. At most one of the two */
	/*
	 * The put's nonce (FORMAT hazard 1). "": the store chooses one. It is written here before
	 * anything is sent, so that it is known when the answer is lost; a put that is sent again
	 * passes the same one. NULL: the caller does not care.
	 */
	char *nonce; /* CAIRN_NONCE_SIZE bytes of the caller */
	/*
	 * Of if_absent: the key is never written again (claim, commit, marker, snapshot), so finding
	 * another's object after an ambiguous attempt proves that ours was never there: CAIRN_EXISTS.
	 * False (a lease, a doc): ours may have been there and been replaced since: CAIRN_UNKNOWN.
	 */
	bool immutable;
};

struct cairn_delete_options {
	const char *if_match; /* CAIRN_CONFLICT unless the object has this etag (absent: too) */
};

/* One line of a listing. `key` of a common prefix ends in `/`. */
struct cairn_entry {
	char *key;
	char *etag;       /* NULL where the store's listings have none (a directory bucket) */
	uint64_t size;
	int64_t modified; /* microseconds since 1970 */
	bool is_prefix;
};

struct cairn_list_options {
	bool delimited;          /* cut keys behind the first `/` after the prefix: one level of a tree */
	bool names_only;         /* size, modified and etag are not needed and may be missing */
	const char *start_after; /* only entries whose key, as listed, is behind this one. NULL: all */
	const char *token;       /* continues a listing: the page's ret token. NULL: from the start */
	size_t max;              /* at most so many entries; 0: as many as the store gives at once */
};

/*
 * One page of a listing, in byte order of the keys. The listing owns the entries and their keys and
 * etags (which lie in few big chunks): an entry may be left out by moving others over it, its
 * strings are never freed one by one.
 */
struct cairn_listing {
	struct cairn_entry *entries;
	size_t count;
	char *token; /* owned, malloc; NULL when the listing is complete */
	size_t capacity;                    /* private: room in entries */
	struct cairn_listing_chunk *chunks; /* private: the memory of keys and etags */
};

CAIRN_EXPORT void cairn_listing_init(struct cairn_listing *listing);
CAIRN_EXPORT void cairn_listing_release(struct cairn_listing *listing);

/*
 * Move the entries of `page` behind those of `listing`, and its token in place of listing's.
 * `page` is empty afterwards, `listing` releases all. CAIRN_NO_MEMORY: both are as before.
 */
CAIRN_EXPORT int cairn_listing_append(struct cairn_listing *listing, struct cairn_listing *page)
	CAIRN_MUST_USE;

/* What a store is and can do; constant after the probe. */
struct cairn_capabilities {
	const char *kind;          /* "directory", "memory", "s3" */
	bool delete_if_match;      /* conditional deletes are honoured */
	bool content_etags;        /* equal content has an equal etag (FORMAT hazard 5) */
	bool real_directories;     /* no object beside its own prefix, no empty, `.`, `..` or dot segments */
	bool local;                /* a call costs microseconds, not a round trip */
	bool listing_etags;        /* listings tell etags */
	bool read_only;
};

/* Room in the store, in bytes, as statvfs tells it. UINT64_MAX total: not known. */
struct cairn_space {
	uint64_t total;
	uint64_t available;
};

/*
 * The operations of a store. Called through the functions below, which check arguments.
 * None is NULL. Each returns 0 or an enum cairn_status and describes a failure in call->error.
 */
struct cairn_store_ops {
	int (*get)(struct cairn_store *store, struct cairn_call *call, const char *key,
		   const struct cairn_get_options *options, struct cairn_object *ret_object);
	int (*put)(struct cairn_store *store, struct cairn_call *call, const char *key,
		   struct cairn_slice data, const struct cairn_put_options *options,
		   struct cairn_version *ret_version);
	int (*remove)(struct cairn_store *store, struct cairn_call *call, const char *key,
		      const struct cairn_delete_options *options);
	int (*list)(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		    const struct cairn_list_options *options, struct cairn_listing *ret_listing);
	int (*prefix_exists)(struct cairn_store *store, struct cairn_call *call, const char *prefix);
	int (*prefix_make)(struct cairn_store *store, struct cairn_call *call, const char *prefix);
	int (*prefix_remove)(struct cairn_store *store, struct cairn_call *call, const char *prefix);
	int (*space)(struct cairn_store *store, struct cairn_call *call, struct cairn_space *ret_space);
	void (*free)(struct cairn_store *store);
};

/* The head of every store; a backend embeds it as its first member. A stacked store owns `below`. */
struct cairn_store {
	const struct cairn_store_ops *ops;
	struct cairn_capabilities capabilities;
	int64_t timeout;           /* microseconds a call may take when it states no deadline */
	char name[256];            /* for messages: "directory /srv/bucket" */
	struct cairn_store *below; /* the store under a stacked one, or NULL */
};

/*
 * Read `key`. On 0 ret_object (initialised; earlier data is released) has version and data.
 * Returns 0, CAIRN_NOT_FOUND, CAIRN_UNCHANGED, CAIRN_CONFLICT, or a failure. A prefix is no
 * object: CAIRN_NOT_FOUND. With an offset at or beyond the end the data is empty.
 */
CAIRN_EXPORT int cairn_store_get(struct cairn_store *store, struct cairn_call *call,
				 const char *key, const struct cairn_get_options *options,
				 struct cairn_object *ret_object) CAIRN_MUST_USE;

/*
 * Write `key` whole and durably. `options` and `ret_version` may be NULL. ret_version->age is 0.
 * Returns 0, CAIRN_EXISTS or CAIRN_CONFLICT (nothing written), CAIRN_BUSY (a server that answers
 * 409: two writers collided, neither may have won; send it again), CAIRN_UNKNOWN, or a failure.
 */
CAIRN_EXPORT int cairn_store_put(struct cairn_store *store, struct cairn_call *call,
				 const char *key, struct cairn_slice data,
				 const struct cairn_put_options *options,
				 struct cairn_version *ret_version) CAIRN_MUST_USE;

/*
 * Delete `key`; one that does not exist is no failure without a condition. `options` may be NULL.
 * A condition where capabilities.delete_if_match is false: CAIRN_UNSUPPORTED, nothing deleted.
 */
CAIRN_EXPORT int cairn_store_delete(struct cairn_store *store, struct cairn_call *call,
				    const char *key, const struct cairn_delete_options *options)
	CAIRN_MUST_USE;

/*
 * One page of the keys that begin with `prefix` ("" for all), objects and, when delimited, common
 * prefixes. A directory bucket lists an empty subdirectory as a common prefix too. Placeholders of
 * directories (the empty object `prefix/` itself) are listed undelimited, as any key.
 */
CAIRN_EXPORT int cairn_store_list(struct cairn_store *store, struct cairn_call *call,
				  const char *prefix, const struct cairn_list_options *options,
				  struct cairn_listing *ret_listing) CAIRN_MUST_USE;

/*
 * Does the prefix `prefix` (ends in `/`, or "": the bucket) stand, by a key below it or made?
 * 0 or CAIRN_NOT_FOUND.
 */
CAIRN_EXPORT int cairn_store_prefix_exists(struct cairn_store *store, struct cairn_call *call,
					   const char *prefix) CAIRN_MUST_USE;

/*
 * Make `prefix` (ends in `/`) stand without a key; exactly one caller wins (DESIGN "The tree").
 * Returns 0, CAIRN_EXISTS, CAIRN_NOT_FOUND where the prefix above does not stand and the store has
 * real directories, or a failure.
 */
CAIRN_EXPORT int cairn_store_prefix_make(struct cairn_store *store, struct cairn_call *call,
					 const char *prefix) CAIRN_MUST_USE;

/* Undo prefix_make. 0, CAIRN_NOT_FOUND, CAIRN_NOT_EMPTY, CAIRN_UNKNOWN, or a failure. */
CAIRN_EXPORT int cairn_store_prefix_remove(struct cairn_store *store, struct cairn_call *call,
					   const char *prefix) CAIRN_MUST_USE;

CAIRN_EXPORT int cairn_store_space(struct cairn_store *store, struct cairn_call *call,
				   struct cairn_space *ret_space) CAIRN_MUST_USE;

/* Free a store and those stacked under it. NULL is fine. No call may be under way. */
CAIRN_EXPORT void cairn_store_free(struct cairn_store *store);

/* How to open a store; the zero value is the default. */
struct cairn_store_options {
	int64_t timeout; /* microseconds for one call; 0: 30 s */
	bool read_only;  /* every write is CAIRN_READ_ONLY, nothing is created */
};

/*
 * Open the bucket that `where` names: a directory (made when its parent stands; as
 * cairn_filesystem_store_new) or s3://BUCKET/PREFIX?endpoint_url=…&region=…&profile=…&ca_bundle=…
 * with %XX for odd bytes, all but BUCKET optional; AWS's variables, files and services give the
 * rest and the credentials, and nothing is asked of the server yet. The result is the backend under
 * trace and retry.
 * NULL `where`: from the environment of the Python package (CAIRNDB_STORAGE_TYPE, filesystem by
 * default, with CAIRNDB_STORAGE_PATH; s3 with CAIRNDB_S3_BUCKET, CAIRNDB_STORAGE_PREFIX, _S3_REGION,
 * _S3_ENDPOINT_URL); CAIRN_INVALID with the variable's name when it is missing.
 */
CAIRN_EXPORT int cairn_store_open(const char *where, const struct cairn_store_options *options,
				  struct cairn_store **ret_store, struct cairn_error *error)
	CAIRN_MUST_USE;

/*
 * The bucket in the directory `root` (FORMAT "Filesystem backend"), shared safely with Python
 * processes. `root`, log/ and snapshots/ in it are made if missing, unless read_only. options NULL:
 * defaults.
 */
CAIRN_EXPORT int cairn_filesystem_store_new(const char *root,
					    const struct cairn_store_options *options,
					    struct cairn_store **ret_store,
					    struct cairn_error *error) CAIRN_MUST_USE;

/* A bucket in memory, for tests: S3's key space (no real directories), content etags. */
CAIRN_EXPORT int cairn_memory_store_new(struct cairn_store **ret_store) CAIRN_MUST_USE;

/*
 * Sends again what ended ambiguously and finds out who won (S3 "Outcomes of a conditional PUT"):
 * unknown outcomes, timeouts of one attempt and 409s, with decorrelated jitter, until the call's
 * deadline. A false win and a false loss are impossible; what cannot be told is CAIRN_UNKNOWN.
 * Owns `below` on success.
 */
CAIRN_EXPORT int cairn_retry_store_new(struct cairn_store *below, struct cairn_store **ret_store)
	CAIRN_MUST_USE;

enum cairn_operation {
	CAIRN_OPERATION_GET,
	CAIRN_OPERATION_PUT,
	CAIRN_OPERATION_DELETE,
	CAIRN_OPERATION_LIST,
	CAIRN_OPERATION_PREFIX,
	CAIRN_OPERATION_COUNT, /* how many there are */
};

/* Counts of one operation at a trace store. */
struct cairn_trace_count {
	uint64_t calls;
	uint64_t failures;     /* neither 0 nor an answer (not found, exists, conflict, unchanged) */
	uint64_t microseconds; /* spent in all calls */
	uint64_t bytes;        /* of data read or written */
};

/* Counts every call to `below`, which it owns on success. */
CAIRN_EXPORT int cairn_trace_store_new(struct cairn_store *below, struct cairn_store **ret_store)
	CAIRN_MUST_USE;

/*
 * The counts of the first trace store at or under `store`; all zero when there is none.
 * ret_counts has CAIRN_OPERATION_COUNT entries, indexed by enum cairn_operation.
 */
CAIRN_EXPORT void cairn_trace_read(struct cairn_store *store,
				   struct cairn_trace_count *ret_counts);

/* What a fault store does to calls that a rule matches; for tests. */
struct cairn_fault_rule {
	unsigned operations;     /* bits 1u << enum cairn_operation; 0: all */
	const char *key_prefix;  /* only keys that begin so; NULL: all. Copied */
	unsigned skip;           /* matching calls let through first */
	unsigned times;          /* then so many are hit; 0: all */
	unsigned permille;       /* each with this chance of 1,000; 0: always */
	int64_t delay_before;    /* microseconds before the act */
	int64_t delay_after;     /* microseconds between the act and the answer */
	int status;              /* what the caller gets instead, 0: the true answer */
	bool act;                /* the act happens although `status` is answered: a lost answer */
};

/* Misbehaves by rule in front of `below`, which it owns on success. The first rule that hits counts. */
CAIRN_EXPORT int cairn_fault_store_new(struct cairn_store *below, uint64_t seed,
				       struct cairn_store **ret_store) CAIRN_MUST_USE;

/* Add a rule behind those there are, or forget all rules (rule NULL). Thread-safe. */
CAIRN_EXPORT int cairn_fault_rule_add(struct cairn_store *store,
				      const struct cairn_fault_rule *rule) CAIRN_MUST_USE;

/*
 * Does the store keep its preconditions (FORMAT hazard 7)? Put-if-absent twice, compare-and-swap
 * with a wrong etag and with the right one, a conditional delete, on a key of its own that is
 * deleted afterwards (the directory store, which is ours, is checked the same way).
 * Returns 0, CAIRN_UNSUPPORTED with the failed check in words, or the store's failure.
 */
CAIRN_EXPORT int cairn_store_probe(struct cairn_store *store, struct cairn_call *call)
	CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
