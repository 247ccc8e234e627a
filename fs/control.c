/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "leases.h"

static const char *const names[] = { "status.json", "metrics", "config.json", "log" };
static const char *const operations[CAIRN_OPERATION_COUNT] = {
	[CAIRN_OPERATION_GET] = "get",	     [CAIRN_OPERATION_PUT] = "put",
	[CAIRN_OPERATION_DELETE] = "delete", [CAIRN_OPERATION_LIST] = "list",
	[CAIRN_OPERATION_PREFIX] = "prefix",
};

const char *control_name(size_t index)
{
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

bool control_knows(const char *name)
{
	for (size_t i = 0; control_name(i); i++)
		if (strcmp(control_name(i), name) == 0)
			return true;
	return false;
}

static int append_json(json_t *value, struct cairn_buffer *out)
{
	char *text = value ? json_dumps(value, JSON_INDENT(2)) : NULL;
	int status = text ? cairn_buffer_printf(out, "%s\n", text) : CAIRN_NO_MEMORY;
	free(text);
	json_decref(value);
	return status;
}

static json_t *requests(struct filesystem *fs)
{
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	json_t *all = json_object();
	cairn_trace_read(fs->store, counts);
	for (int i = 0; i < CAIRN_OPERATION_COUNT; i++)
		json_object_set_new(all, operations[i],
				    json_pack("{s:I, s:I, s:I, s:I}", "calls",
					      (json_int_t)counts[i].calls, "failures",
					      (json_int_t)counts[i].failures, "microseconds",
					      (json_int_t)counts[i].microseconds, "bytes",
					      (json_int_t)counts[i].bytes));
	return all;
}

static int status_json(struct filesystem *fs, struct cairn_buffer *out)
{
	unsigned held = 0, waiting = 0;
	char mounted[CAIRN_TIMESTAMP_SIZE];
	int status = cairn_timestamp_format(fs->mounted, mounted);
	if (status)
		return status;
	leases_count(fs->leases, &held, &waiting);
	return append_json(
		json_pack("{s:s, s:s, s:s, s:b, s:s, s:i, s:i, s:I, s:I, s:o}", "store",
			  fs->store->name, "kind", fs->store->capabilities.kind, "mountpoint",
			  fs->options.mountpoint, "read_only", fs->options.ro, "mounted_at",
			  mounted, "leases_held", (int)held, "locks_waiting", (int)waiting,
			  "inodes", (json_int_t)inodes_count(fs->inodes), "staging_bytes",
			  (json_int_t)staging_used(fs->staging), "requests", requests(fs)),
		out);
}

static int config_json(struct filesystem *fs, struct cairn_buffer *out)
{
	const struct options *options = &fs->options;
	char umask_text[8];
	snprintf(umask_text, sizeof(umask_text), "%03o", (unsigned)options->umask);
	return append_json(json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:i, s:i, s:s, s:f, s:f, s:f, "
				     "s:s, s:I, s:s?}",
				     "version", CAIRN_VERSION, "store", fs->store->name,
				     "mountpoint", options->mountpoint, "ro", options->ro, "raw",
				     options->raw, "allow_other", options->allow_other, "uid",
				     (int)options->uid, "gid", (int)options->gid, "umask",
				     umask_text, "timeout", (double)options->timeout / 1e6,
				     "claim_settle", (double)options->claim_settle / 1e6,
				     "lease_ttl", (double)options->lease_ttl / 1e6, "cache_dir",
				     options->cache_dir, "staging_max",
				     (json_int_t)options->staging_max, "staging", options->staging),
			   out);
}

static int metrics(struct filesystem *fs, struct cairn_buffer *out)
{
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	unsigned held = 0, waiting = 0;
	cairn_trace_read(fs->store, counts);
	leases_count(fs->leases, &held, &waiting);
	int status = cairn_buffer_printf(
		out,
		"# HELP cairnfs_leases_held Leases that this mount holds.\n"
		"# TYPE cairnfs_leases_held gauge\ncairnfs_leases_held %u\n"
		"# HELP cairnfs_locks_waiting Lock requests that wait.\n"
		"# TYPE cairnfs_locks_waiting gauge\ncairnfs_locks_waiting %u\n"
		"# HELP cairnfs_staging_bytes Bytes in staging files.\n"
		"# TYPE cairnfs_staging_bytes gauge\ncairnfs_staging_bytes %llu\n"
		"# HELP cairnfs_inodes Inodes that the kernel knows.\n"
		"# TYPE cairnfs_inodes gauge\ncairnfs_inodes %zu\n",
		held, waiting, (unsigned long long)staging_used(fs->staging),
		inodes_count(fs->inodes));
	static const struct {
		const char *name, *help;
		size_t at;
		double scale;
	} series[] = {
		{ "requests_total", "Calls to the store.",
		  offsetof(struct cairn_trace_count, calls), 1 },
		{ "request_failures_total", "Calls that failed.",
		  offsetof(struct cairn_trace_count, failures), 1 },
		{ "request_seconds_total", "Time spent in calls to the store.",
		  offsetof(struct cairn_trace_count, microseconds), 1e-6 },
		{ "request_bytes_total", "Bytes read and written.",
		  offsetof(struct cairn_trace_count, bytes), 1 },
	};
	for (size_t s = 0; s < sizeof(series) / sizeof(series[0]) && !status; s++) {
		status = cairn_buffer_printf(out,
					     "# HELP cairnfs_%s %s\n# TYPE cairnfs_%s counter\n",
					     series[s].name, series[s].help, series[s].name);
		for (int i = 0; i < CAIRN_OPERATION_COUNT && !status; i++) {
			uint64_t value;
			memcpy(&value, (const char *)&counts[i] + series[s].at, sizeof(value));
			status = cairn_buffer_printf(out, "cairnfs_%s{operation=\"%s\"} %.15g\n",
						     series[s].name, operations[i],
						     (double)value * series[s].scale);
		}
	}
	return status;
}

int control_content(struct request *request, struct node *node, struct content **ret_content)
{
	struct filesystem *fs = request->fs;
	struct cairn_buffer bytes;
	cairn_buffer_init(&bytes, (size_t)16 << 20);
	int status = strcmp(node->key, "status.json") == 0   ? status_json(fs, &bytes)
		     : strcmp(node->key, "config.json") == 0 ? config_json(fs, &bytes)
		     : strcmp(node->key, "metrics") == 0     ? metrics(fs, &bytes)
							     : log_read(fs->log, &bytes);
	if (!status && !(*ret_content = content_new(&bytes)))
		status = CAIRN_NO_MEMORY;
	cairn_buffer_release(&bytes);
	return cairn_status_errno(status);
}

int control_attributes(struct request *request, struct node *node, struct stat *ret_stat)
{
	struct filesystem *fs = request->fs;
	struct content *content = NULL;
	int error = control_content(request, node, &content);
	*ret_stat = (struct stat){
		.st_ino = node->inode,
		.st_mode = S_IFREG | (0444 & ~fs->options.umask),
		.st_nlink = 1,
		.st_uid = fs->options.uid,
		.st_gid = fs->options.gid,
		.st_size = content ? (off_t)content->bytes.size : 0,
		.st_blksize = 4096,
	};
	clock_gettime(CLOCK_REALTIME, &ret_stat->st_mtim);
	ret_stat->st_atim = ret_stat->st_ctim = ret_stat->st_mtim;
	content_unref(content);
	return error;
}
