/* SPDX-License-Identifier: MIT */
#include "leases_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

/* What an open has looked up, its first read shows; a descriptor's attributes are no older. */
#define FRESH ((int64_t)1000 * 1000)

int lease_document(struct request *request, const char *name,
		   struct cairn_lease_document *ret_document)
{
	cairn_lease_document_init(ret_document);
	int status = cairn_lease_read(request->fs->store, &request->call, name, ret_document);
	return status == CAIRN_NOT_FOUND ? ENOENT
	       : status			 ? request_failed(request, name, status, 0)
					 : 0;
}

bool lease_document_holds(const struct cairn_lease_document *document)
{
	return document->held && document->deadline > cairn_timestamp_now();
}

void lease_state_version(struct cairn_slice state, char ret_version[LEASE_STATE_VERSION])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	(void)SHA256((const unsigned char *)(state.data ? state.data : ""), state.size, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(ret_version + 2 * i, 3, "%02x", digest[i]);
}

/* A state as a reader is shown it: with a newline. NULL without memory. */
static struct content *content_of(struct cairn_slice state)
{
	struct cairn_buffer bytes;
	cairn_buffer_init(&bytes, CAIRN_JSON_MAX + 1);
	struct content *content = NULL;
	if (cairn_buffer_append(&bytes, state.data, state.size) == 0 &&
	    cairn_buffer_append(&bytes, "\n", 1) == 0)
		content = content_new(&bytes);
	cairn_buffer_release(&bytes);
	return content;
}

static struct cairn_slice state_of(const struct content *content)
{
	struct cairn_slice state = cairn_buffer_slice(&content->bytes);
	state.size -= state.size > 0;
	return state;
}

static int leases_show(struct cairn_object *object, struct cairn_buffer *ret_bytes,
		       struct cairn_error *error)
{
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	int status = cairn_lease_parse("", cairn_buffer_slice(&object->data), &document, error);
	if (!status)
		status = cairn_buffer_append(ret_bytes, document.state.data, document.state.size);
	if (!status)
		status = cairn_buffer_append(ret_bytes, "\n", 1);
	cairn_lease_document_release(&document);
	return cairn_status_errno(status);
}

/* Opening */

static int leases_open(struct request *request, struct handle *handle, struct fuse_file_info *file)
{
	(void)file;
	int error = lease_open_new(request, handle, false);
	if (error)
		return error;
	struct node_facts facts = inodes_facts(request->fs->inodes, handle->node);
	handle->content = inodes_content(request->fs->inodes, handle->node);
	handle->lease->fetched = facts.looked_up;
	/* For one open: another, through /proc/self/fd, has no look-up of its own. */
	inodes_keep(request->fs->inodes, handle->node, NULL);
	return 0;
}

/* Nothing is made until a lock is taken. */
static int leases_create(struct request *request, const char *key, struct handle *handle)
{
	int status = cairn_key_check(key, &request->call.error);
	return status ? request_failed(request, key, status, 0)
		      : lease_open_new(request, handle, true);
}

/* Reading */

static void key_of_reads(const char *key, char ret_name[CAIRN_KEY_MAX + 8])
{
	(void)snprintf(ret_name, CAIRN_KEY_MAX + 8, "leases/%s", key);
}

/* Whoever asks knows the state that `content` shows. */
static void record(struct request *request, struct lease_key *key, const struct lease_open *open,
		   struct content *content)
{
	char name[CAIRN_KEY_MAX + 8], version[LEASE_STATE_VERSION];
	const struct lineage *asker = request_lineage(request);
	key_of_reads(key->name, name);
	lease_state_version(state_of(content), version);
	reads_record(request->fs->reads, name, asker, version);
	pthread_mutex_lock(&key->mutex);
	struct lease_period *period = lease_period_of(key, asker, open);
	struct content *before = NULL;
	if (period) {
		before = period->base;
		period->base = content_ref(content);
	}
	pthread_mutex_unlock(&key->mutex);
	content_unref(before);
}

/* The descriptor's own period, counted, if it is locked; or NULL. */
static struct lease_period *period_through(struct lease_open *open)
{
	struct lease_key *key = open->key;
	pthread_mutex_lock(&key->mutex);
	struct lease_grant *grant = lease_grant_through(key, open);
	struct lease_period *period = grant ? lease_period_ref(grant->period) : NULL;
	pthread_mutex_unlock(&key->mutex);
	return period;
}

static enum lease_end ended(struct lease_period *period)
{
	pthread_mutex_lock(&period->key->mutex);
	enum lease_end end = lease_period_ended(period);
	pthread_mutex_unlock(&period->key->mutex);
	return end;
}

static int refuse_lost(struct request *request, struct lease_period *period, const char *what)
{
	return request_refused(request, VIEW_LEASES, period->key->name, ESTALE,
			       "%s: epoch %" PRId64 " was %s", what,
			       cairn_lease_epoch(period->lease),
			       ended(period) == LEASE_RELEASED ? "released" : "lost");
}

/* The document is not that of the period any more. `document` NULL: it went. */
static bool is_other_period(struct lease_period *period,
			    const struct cairn_lease_document *document)
{
	return !document || !document->held ||
	       document->epoch != cairn_lease_epoch(period->lease) ||
	       !cairn_slice_equal(cairn_buffer_slice(&document->holder),
				  cairn_slice_of(cairn_lease_holder(period->lease)));
}

/* Read the state anew for the handle. `period` (may be NULL) is that of its lock. */
static int fetch(struct request *request, struct handle *handle, struct lease_period *period)
{
	const char *key = handle->node->key;
	struct cairn_lease_document document;
	struct content *content = NULL;
	int64_t now = cairn_clock();
	int error = lease_document(request, key, &document);
	if (period && (!error || error == ENOENT) && ended(period) == LEASE_RUNS &&
	    is_other_period(period, error ? NULL : &document)) {
		lease_period_lost(period, NULL);
		error = refuse_lost(request, period, "read");
	}
	if (!error && !(content = content_of(cairn_buffer_slice(&document.state))))
		error = ENOMEM;
	if (!error) {
		const struct node_facts facts = { .size = content->bytes.size,
						  .modified = document.version.modified,
						  .age = document.version.age,
						  .looked_up = now };
		inodes_renew(request->fs->inodes, handle->node, &facts, content);
	}
	if (!error || error == ENOENT) {
		content_unref(handle->content);
		handle->content = content; /* NULL: nothing was made yet, and nothing is shown */
		handle->lease->fetched = now;
		error = 0;
	}
	cairn_lease_document_release(&document);
	return error;
}

static int leases_read(struct request *request, struct handle *handle, size_t size, off_t offset,
		       struct cairn_slice *ret_part)
{
	struct lease_open *open = handle->lease;
	struct lease_period *period = period_through(open);
	int error = 0;
	if (period && ended(period) == LEASE_LOST)
		error = refuse_lost(request, period, "read");
	bool fresh = !handle->read_seen && handle->content && !open->locked &&
		     cairn_clock() - open->fetched < FRESH;
	if (!error && offset == 0) {
		open->locked = false;
		if (!fresh)
			error = fetch(request, handle, period);
		if (!error && handle->content)
			record(request, open->key, open, handle->content);
		handle->read_seen = true;
	}
	if (!error)
		*ret_part = content_part(handle->content, size, offset);
	lease_period_unref(period);
	return error;
}

int leases_refresh(struct request *request, struct node *node)
{
	struct node_facts facts = inodes_facts(request->fs->inodes, node);
	int64_t now = cairn_clock();
	if (now - facts.looked_up < FRESH)
		return 0;
	struct cairn_version version;
	struct content *content = NULL;
	int error = view_fetch(request, VIEW_LEASES, node->key, NULL, &version, &content);
	facts = (struct node_facts){ .looked_up = now };
	if (!error)
		facts = (struct node_facts){ .size = content ? content->bytes.size : version.size,
					     .modified = version.modified,
					     .age = version.age,
					     .looked_up = now };
	if (!error || error == ENOENT)
		inodes_renew(request->fs->inodes, node, &facts, content);
	content_unref(content);
	return error == ENOENT ? 0 : error;
}

/* Writing */

/* A state to be replaced, and by what. */
struct replacement {
	const char *base; /* the version of the state that is replaced; NULL: any */
	struct cairn_slice state;
};

static int replace(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		   struct cairn_error *error)
{
	const struct replacement *replacement = context;
	char version[LEASE_STATE_VERSION];
	lease_state_version(current, version);
	if (replacement->base && strcmp(version, replacement->base) != 0)
		return cairn_error_set(error, CAIRN_CONFLICT,
				       "the state has been written by somebody else since it was "
				       "read; read it again and retry");
	int status =
		cairn_buffer_append(ret_next, replacement->state.data, replacement->state.size);
	return status ? cairn_error_set(error, status, "the new state: %s",
					cairn_status_name(status))
		      : 0;
}

/* The state is `content` now, by the asker's own hand. */
static void written(struct request *request, struct handle *handle, struct lease_period *period,
		    struct content *content)
{
	struct lease_key *key = period->key;
	struct content *before = NULL;
	char name[CAIRN_KEY_MAX + 8], version[LEASE_STATE_VERSION];
	key_of_reads(key->name, name);
	lease_state_version(state_of(content), version);
	reads_record(request->fs->reads, name, request_lineage(request), version);
	/* A holder that never read goes on replacing. */
	pthread_mutex_lock(&key->mutex);
	if (period->base) {
		before = period->base;
		period->base = content_ref(content);
	}
	pthread_mutex_unlock(&key->mutex);
	content_unref(before);
	const struct node_facts facts = { .size = content->bytes.size,
					  .modified = cairn_timestamp_now(),
					  .looked_up = cairn_clock() };
	inodes_renew(request->fs->inodes, handle->node, &facts, content);
}

/* One complete value becomes the state. */
static int commit(struct request *request, struct handle *handle, struct lease_period *period,
		  struct cairn_slice value)
{
	struct lease_key *key = period->key;
	struct cairn_buffer canonical;
	char base[LEASE_STATE_VERSION];
	cairn_buffer_init(&canonical, CAIRN_JSON_MAX);
	int status = cairn_json_canonical(value.data, value.size, &canonical, &request->call.error);
	struct replacement replacement = { .state = cairn_buffer_slice(&canonical) };
	pthread_mutex_lock(&key->mutex);
	struct content *read = period->base ? content_ref(period->base) : NULL;
	bool holds = lease_period_holds(period, NULL);
	pthread_mutex_unlock(&key->mutex);
	if (read) {
		lease_state_version(state_of(read), base);
		replacement.base = base;
	}
	content_unref(read);
	/* Past its deadline, it holds again if nobody took over. */
	if (!status && !holds)
		status = lease_period_renew(period, &request->call, false);
	if (!status)
		status = cairn_lease_update_state(period->lease, &request->call, replace,
						  &replacement);
	if (status == CAIRN_LOST)
		lease_period_lost(period, NULL);
	int error = status == CAIRN_CONFLICT ? EBUSY : cairn_status_errno(status);
	if (status)
		error = request_failed(request, key->name, status, error);
	struct content *content = error ? NULL : content_of(cairn_buffer_slice(&canonical));
	if (content)
		written(request, handle, period, content);
	content_unref(content);
	cairn_buffer_release(&canonical);
	return error;
}

/* What is behind the value at the text's beginning stays, as the beginning of the next. */
static int drop_value(struct text *text)
{
	struct text rest;
	text_init(&rest);
	int error =
		text_write(&rest, text->bytes.data + text->end, text->bytes.size - text->end, 0);
	if (!error) {
		struct text before = *text;
		*text = rest;
		rest = before;
	}
	text_release(&rest);
	return error;
}

/* Commit each value that is complete; `ended`: nothing more comes for now. */
static int commit_all(struct request *request, struct handle *handle, struct lease_period *period,
		      bool ended_here)
{
	struct text *text = &handle->text;
	int error = 0;
	while (!error && text->progress == CAIRN_JSON_COMPLETE) {
		error = commit(request, handle, period, text_value(text, false));
		if (!error)
			error = drop_value(text);
	}
	if (!error && text->progress == CAIRN_JSON_WRONG)
		error = request_refused(request, VIEW_LEASES, handle->node->key, EINVAL,
					"the text is not JSON");
	if (!error && ended_here && text->progress == CAIRN_JSON_OPEN_ENDED) {
		error = commit(request, handle, period, text_value(text, true));
		text_clear(text);
	}
	/* What fails at the write must not come again at the next. */
	if (error || text->progress == CAIRN_JSON_EMPTY)
		text_clear(text);
	return error;
}

static int leases_write(struct request *request, struct handle *handle, const char *data,
			size_t size, off_t offset)
{
	(void)offset; /* the descriptor's own, which says nothing about the state */
	struct lease_period *period = period_through(handle->lease);
	if (!period)
		return EPERM;
	int error = 0;
	if (ended(period) != LEASE_RUNS) {
		text_clear(&handle->text);
		error = refuse_lost(request, period, "write");
		goto out;
	}
	error = text_write(&handle->text, data, size, (off_t)handle->text.bytes.size);
	if (error) {
		(void)request_refused(request, VIEW_LEASES, handle->node->key, error,
				      "a state has at most %zu bytes", CAIRN_JSON_MAX);
		text_clear(&handle->text);
	} else {
		error = commit_all(request, handle, period, false);
	}
out:
	lease_period_unref(period);
	return error;
}

/* A state is replaced by a value, not cut. */
static int leases_truncate(struct request *request, struct node *node, struct handle *handle,
			   off_t size)
{
	(void)request;
	(void)node;
	if (!handle || size != 0)
		return EPERM;
	text_clear(&handle->text);
	return 0;
}

static int leases_flush(struct request *request, struct handle *handle)
{
	if (handle->text.progress == CAIRN_JSON_EMPTY)
		return 0;
	/* What was complete is committed: here is a number, or what another close may complete. */
	struct lease_period *period = period_through(handle->lease);
	int error = 0;
	if (period && ended(period) == LEASE_RUNS)
		error = commit_all(request, handle, period, true);
	lease_period_unref(period);
	return error;
}

static void leases_release(struct request *request, struct handle *handle)
{
	if (handle->text.progress != CAIRN_JSON_EMPTY)
		(void)request_refused(request, VIEW_LEASES, handle->node->key, EINVAL,
				      "closed with incomplete JSON, which is dropped");
	lease_unlock_all(request, handle->lease);
	lease_open_free(handle->lease);
}

/* Writing from outside */

/* The state that the staging file's makers read. 0 with ret_version, or an errno, logged. */
static int base_read(struct request *request, const char *key, const struct lineage *writer,
		     char ret_version[READS_VERSION_SIZE])
{
	char name[CAIRN_KEY_MAX + 8];
	key_of_reads(key, name);
	switch (reads_base(request->fs->reads, name, writer, request_lineage(request),
			   ret_version)) {
	case READS_VERSION:
		return 0;
	case READS_TANGLED:
		return request_refused(request, VIEW_LEASES, key, EBUSY,
				       "several processes near the writer have read different "
				       "states; read the state again, or state "
				       "user.cairn.if_match");
	case READS_REFUSED:
	case READS_NONE:
		break;
	}
	return request_refused(request, VIEW_LEASES, key, EBUSY,
			       "nothing shows which state the new one was made from; read the "
			       "state first, or state user.cairn.if_match");
}

/*
 * What a staging file replaces: the state that it states by its document's etag, any for `*`
 * (*ret_any), or the one that its makers read. ENOENT without a document.
 */
static int base_of(struct request *request, struct staging_file *file, const char *key,
		   const struct lineage *writer, bool *ret_any,
		   char ret_version[READS_VERSION_SIZE])
{
	struct base base;
	struct cairn_lease_document document;
	int error = view_stated_base(request, file, key, &base);
	if (error)
		return error;
	*ret_any = base.kind == BASE_ANY;
	if (*ret_any)
		return 0;
	error = lease_document(request, key, &document);
	if (!error && base.kind == BASE_UNSTATED)
		error = base_read(request, key, writer, ret_version);
	else if (!error && strcmp(document.version.etag, base.etag) != 0)
		error = request_refused(request, VIEW_LEASES, key, EBUSY,
					"%s; read it again and retry", base.why);
	else if (!error)
		lease_state_version(cairn_buffer_slice(&document.state), ret_version);
	cairn_lease_document_release(&document);
	return error;
}

/* A link needs the name to be free, and a lease is not made by it. */
static int refuse_link(struct request *request, const char *key)
{
	struct cairn_lease_document document;
	int error = lease_document(request, key, &document);
	cairn_lease_document_release(&document);
	return error ? error : EEXIST;
}

/* Who wrote and renamed, and the holder's kin in any case, know what stands there now. */
static void placed(struct request *request, const char *name, const struct lineage *writer,
		   struct cairn_slice state)
{
	const struct lineage *renamer = request_lineage(request);
	char reads_name[CAIRN_KEY_MAX + 8], version[LEASE_STATE_VERSION];
	key_of_reads(name, reads_name);
	lease_state_version(state, version);
	if (writer->count && renamer->count && writer->chain[0].pid == renamer->chain[0].pid &&
	    writer->chain[0].start == renamer->chain[0].start)
		reads_record(request->fs->reads, reads_name, renamer, version);
	struct lease_key *key = lease_key_get(request->fs, name, false);
	struct content *content = key ? content_of(state) : NULL, *before = NULL;
	if (content) {
		pthread_mutex_lock(&key->mutex);
		struct lease_period *period = lease_period_of(key, renamer, NULL);
		if (period && period->base) {
			before = period->base;
			period->base = content_ref(content);
		}
		pthread_mutex_unlock(&key->mutex);
	}
	content_unref(before);
	content_unref(content);
	if (key)
		lease_key_put(key);
}

static int leases_place(struct request *request, struct staging_file *file, const char *key,
			bool exclusive)
{
	if (exclusive)
		return refuse_link(request, key);
	struct lineage writer = staging_writer(file);
	struct cairn_buffer value;
	char version[READS_VERSION_SIZE];
	bool any = false;
	int error = view_staged_json(request, VIEW_LEASES, file, key, &value);
	if (!error)
		error = base_of(request, file, key, &writer, &any, version);
	if (!error) {
		struct replacement replacement = { .base = any ? NULL : version,
						   .state = cairn_buffer_slice(&value) };
		int status = cairn_lease_cooperative_write(request->fs->store, &request->call, key,
							   replace, &replacement, NULL);
		error = status == CAIRN_CONFLICT    ? EBUSY
			: status == CAIRN_NOT_FOUND ? ENOENT
						    : cairn_status_errno(status);
		if (status && error != ENOENT)
			error = request_failed(request, key, status, error);
	}
	if (!error)
		placed(request, key, &writer, cairn_buffer_slice(&value));
	cairn_buffer_release(&value);
	return error;
}

const struct view_ops leases_view = {
	.name = "leases",
	.json = true,
	.xattrs = (const char *const[]){ "user.cairn.etag", "user.cairn.epoch",
					 "user.cairn.deadline", "user.cairn.held", NULL },
	.show = leases_show,
	.open = leases_open,
	.create = leases_create,
	.read = leases_read,
	.write = leases_write,
	.truncate = leases_truncate,
	.flush = leases_flush,
	.release = leases_release,
	.unlink = view_refuse_unlink,
	.place = leases_place,
	.move = view_refuse_move,
	.getxattr = leases_getxattr,
	.setxattr = leases_setxattr,
	.mutable_nodes = true,
};
