/* SPDX-License-Identifier: MIT */
#include "filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view.h"

/*
 * An interrupt comes for every signal, and what a handled one interrupts must go on: a write given
 * up half-way has an unknown outcome. A fatal signal is pending as SIGKILL in every thread.
 */
static bool dying(pid_t tid)
{
	char path[48], text[2048];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return tid > 0;
	ssize_t size = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	const char *pending = strstr(text, "\nSigPnd:");
	return pending && (strtoull(pending + 8, NULL, 16) & (1u << (9 - 1)));
}

static bool request_cancelled(void *context)
{
	const struct request *request = context;
	return fuse_req_interrupted(request->fuse) && dying(request->tid);
}

void request_begin(struct request *request, fuse_req_t fuse)
{
	const struct fuse_ctx *asker = fuse_req_ctx(fuse);
	struct filesystem *fs = fuse_req_userdata(fuse);
	*request = (struct request){
		.fuse = fuse,
		.fs = fs,
		.tid = asker->pid,
		.uid = asker->uid,
		.gid = asker->gid,
		.call = { .deadline = cairn_clock() + fs->options.timeout,
			  .cancelled = request_cancelled,
			  .context = request },
	};
}

const struct lineage *request_lineage(struct request *request)
{
	if (!request->has_lineage)
		lineage_of(request->tid, &request->lineage);
	request->has_lineage = true;
	return &request->lineage;
}

/* The errors of DESIGN "Errors" that leave a line in the log. */
static bool wants_line(int error)
{
	switch (error) {
	case EIO:
	case ETIMEDOUT:
	case EACCES:
	case EBUSY:
	case ESTALE:
	case EINVAL:
	case EFBIG:
	case ENAMETOOLONG:
	case ENOSPC:
	case ENOMEM:
		return true;
	default:
		return false;
	}
}

int request_failed(struct request *request, const char *key, int status, int error)
{
	if (!error)
		error = cairn_status_errno(status);
	if (wants_line(error))
		log_line(request->fs->log, "%s: %s (pid %d): %s", key,
			 request->call.error.text[0] ? request->call.error.text
						     : cairn_status_name(status),
			 (int)request->tid, strerror(error));
	return error;
}

int request_refused(struct request *request, enum view view, const char *key, int error,
		    const char *format, ...)
{
	char text[400];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	const struct view_ops *ops = view_ops(view);
	log_line(request->fs->log, "%s/%s: %s (pid %d): %s", ops ? ops->name : "", key, text,
		 (int)request->tid, strerror(error));
	return error;
}

struct content *content_new(struct cairn_buffer *steal_bytes)
{
	struct content *content = malloc(sizeof(*content));
	if (!content)
		return NULL;
	content->references = 1;
	content->bytes = *steal_bytes;
	cairn_buffer_init(steal_bytes, steal_bytes->limit);
	return content;
}

struct content *content_ref(struct content *content)
{
	content->references++;
	return content;
}

void content_unref(struct content *content)
{
	if (!content || --content->references)
		return;
	cairn_buffer_release(&content->bytes);
	free(content);
}

struct cairn_slice content_part(const struct content *content, size_t size, off_t offset)
{
	struct cairn_slice part = { .data = NULL };
	if (!content || offset < 0 || (uint64_t)offset >= content->bytes.size)
		return part;
	size_t left = content->bytes.size - (size_t)offset;
	part.data = content->bytes.data + offset;
	part.size = size < left ? size : left;
	return part;
}

struct handle *handle_new(struct request *request, struct node *node, int flags)
{
	static atomic_uint_fast64_t next_id = 1;
	struct handle *handle = calloc(1, sizeof(*handle));
	if (!handle)
		return NULL;
	handle->references = 1;
	handle->opener = request->tid;
	handle->node = node;
	handle->view = node->view;
	handle->flags = flags;
	handle->id = next_id++;
	pthread_mutex_init(&handle->mutex, NULL);
	text_init(&handle->text);
	inodes_pin(request->fs->inodes, node);
	return handle;
}

bool handle_opened_by(struct handle *handle, struct request *request)
{
	struct lineage opener;
	const struct lineage *asker = request_lineage(request);
	if (handle->opener == request->tid)
		return true;
	lineage_of(handle->opener, &opener);
	return opener.count && asker->count && opener.chain[0].pid == asker->chain[0].pid;
}

struct handle *handle_ref(struct handle *handle)
{
	handle->references++;
	return handle;
}

void handle_unref(struct filesystem *fs, struct handle *handle)
{
	if (--handle->references)
		return;
	inodes_unpin(fs->inodes, handle->node);
	content_unref(handle->content);
	text_release(&handle->text);
	staging_unref(handle->staging);
	pthread_mutex_destroy(&handle->mutex);
	free(handle);
}
