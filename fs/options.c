/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

const char options_help[] =
	"usage: cairnfs DIR-OR-URL MOUNTPOINT [-o OPTION[,OPTION...]] [-f]\n"
	"       cairnfs MOUNTPOINT ...     the bucket from CAIRNDB_STORAGE_TYPE, "
	"CAIRNDB_STORAGE_PATH\n"
	"\n"
	"Mounts a CairnDB bucket: claims/ leases/ docs/ objects/ .cairn/\n"
	"\n"
	"  -f                 stay in the foreground, log to stderr\n"
	"  -h, --help         this text\n"
	"  -V, --version      the version\n"
	"  -o ro              read-only\n"
	"  -o uid=N,gid=N     owner of every key (default: the mounting user)\n"
	"  -o umask=OCTAL     taken from the modes 0666 and 0777 (default 022)\n"
	"  -o allow_other     let other users in; the kernel checks owner and mode\n"
	"  -o raw             objects/ shows the engine's own prefixes too, for backup and repair\n"
	"  -o timeout=S       seconds an operation may take (default 30)\n"
	"  -o claim_settle=S  seconds in which a claim's value may follow its creation (default "
	"5)\n"
	"  -o lease_ttl=S     seconds a lock stays held without a renewal (default 60)\n"
	"  -o cache_dir=DIR   where staging files lie (default /var/cache/cairnfs, or under\n"
	"                     $XDG_CACHE_HOME)\n"
	"  -o staging_max=N   bytes that staging files may take, with K, M or G (default 1G)\n"
	"  -o staging=GLOBS   further names of staging files, with `:` between them\n"
	"\n"
	"Unmount with `fusermount3 -u MOUNTPOINT`, or umount as root. Exit status: 0 mounted (or, "
	"with\n"
	"-f, unmounted), 1 the mount failed, 2 usage.\n";

/* The option's values as text, before they are checked. */
struct raw {
	struct options *options;
	char *uid, *gid, *umask, *timeout, *claim_settle, *lease_ttl, *staging_max;
	int allow_other, raw;
	char *positional[2];
	int positionals;
	const char *wrong;
};

#define TEXT(name)                                                                                 \
	{                                                                                          \
#name "=%s", offsetof(struct raw, name), 0                                         \
	}

enum {
	KEY_HELP = 1,
	KEY_VERSION,
	KEY_FOREGROUND,
	KEY_RO,
	KEY_PASS,
	KEY_IGNORE,
	KEY_CACHE_DIR,
	KEY_STAGING
};

static const struct fuse_opt table[] = {
	TEXT(uid),
	TEXT(gid),
	TEXT(umask),
	TEXT(timeout),
	TEXT(claim_settle),
	TEXT(lease_ttl),
	TEXT(staging_max),
	{ "allow_other", offsetof(struct raw, allow_other), 1 },
	{ "raw", offsetof(struct raw, raw), 1 },
	FUSE_OPT_KEY("cache_dir=", KEY_CACHE_DIR),
	FUSE_OPT_KEY("staging=", KEY_STAGING),
	FUSE_OPT_KEY("-h", KEY_HELP),
	FUSE_OPT_KEY("--help", KEY_HELP),
	FUSE_OPT_KEY("-V", KEY_VERSION),
	FUSE_OPT_KEY("--version", KEY_VERSION),
	FUSE_OPT_KEY("-f", KEY_FOREGROUND),
	FUSE_OPT_KEY("ro", KEY_RO),
	FUSE_OPT_KEY("nosuid", KEY_PASS),
	FUSE_OPT_KEY("nodev", KEY_PASS),
	FUSE_OPT_KEY("noexec", KEY_PASS),
	FUSE_OPT_KEY("noatime", KEY_PASS),
	/* What mount(8) and fstab pass along. */
	FUSE_OPT_KEY("rw", KEY_IGNORE),
	FUSE_OPT_KEY("dev", KEY_IGNORE),
	FUSE_OPT_KEY("suid", KEY_IGNORE),
	FUSE_OPT_KEY("exec", KEY_IGNORE),
	FUSE_OPT_KEY("atime", KEY_IGNORE),
	FUSE_OPT_KEY("relatime", KEY_IGNORE),
	FUSE_OPT_KEY("async", KEY_IGNORE),
	FUSE_OPT_KEY("auto", KEY_IGNORE),
	FUSE_OPT_KEY("noauto", KEY_IGNORE),
	FUSE_OPT_KEY("user", KEY_IGNORE),
	FUSE_OPT_KEY("nouser", KEY_IGNORE),
	FUSE_OPT_KEY("users", KEY_IGNORE),
	FUSE_OPT_KEY("nofail", KEY_IGNORE),
	FUSE_OPT_KEY("_netdev", KEY_IGNORE),
	FUSE_OPT_KEY("defaults", KEY_IGNORE),
	FUSE_OPT_KEY("default_permissions", KEY_IGNORE),
	FUSE_OPT_KEY("x-", KEY_IGNORE),
	FUSE_OPT_END,
};

static int set_text(char **at, const char *text)
{
	free(*at);
	*at = strdup(text);
	return *at ? 0 : -1;
}

static int option(void *data, const char *argument, int key, struct fuse_args *rest)
{
	struct raw *raw = data;
	struct options *options = raw->options;
	switch (key) {
	case KEY_HELP:
		options->help = true;
		return 0;
	case KEY_VERSION:
		options->version = true;
		return 0;
	case KEY_FOREGROUND:
		options->foreground = true;
		return 0;
	case KEY_RO:
		options->ro = true;
		return fuse_opt_add_opt(&options->mount_options, "ro");
	case KEY_PASS:
		return fuse_opt_add_opt(&options->mount_options, argument);
	case KEY_IGNORE:
		return 0;
	case KEY_CACHE_DIR:
		return set_text(&options->cache_dir, strchr(argument, '=') + 1);
	case KEY_STAGING:
		return set_text(&options->staging, strchr(argument, '=') + 1);
	case FUSE_OPT_KEY_NONOPT:
		if (raw->positionals < 2)
			return set_text(&raw->positional[raw->positionals++], argument);
		fprintf(stderr, "cairnfs: too many arguments: '%s' (see cairnfs --help)\n",
			argument);
		return -1;
	default:
		(void)rest;
		if (strncmp(argument, "x-", 2) == 0 || strncmp(argument, "comment=", 8) == 0)
			return 0;
		fprintf(stderr, "cairnfs: unknown option '%s' (see cairnfs --help)\n", argument);
		return -1;
	}
}

static bool number(const char *name, const char *text, int base, uint64_t max, uint64_t *ret)
{
	if (!text)
		return true;
	char *end = NULL;
	errno = 0;
	unsigned long long value = strtoull(text, &end, base);
	uint64_t scale = 1;
	if (base == 10 && end > text && *end && strchr("KMG", *end) && !end[1])
		scale = UINT64_C(1) << (*end == 'K' ? 10 : *end == 'M' ? 20 : 30), end++;
	if (errno || end == text || *end || *text == '-' || value > max / scale) {
		fprintf(stderr, "cairnfs: option %s=%s: not a number that fits\n", name, text);
		return false;
	}
	*ret = value * scale;
	return true;
}

static bool seconds(const char *name, const char *text, int64_t *ret)
{
	if (!text)
		return true;
	char *end = NULL;
	double value = strtod(text, &end);
	if (end == text || *end || !(value >= 0.001 && value <= 1e9)) {
		fprintf(stderr, "cairnfs: option %s=%s: not a number of seconds, 0.001 or more\n",
			name, text);
		return false;
	}
	*ret = (int64_t)(value * 1e6);
	return true;
}

static bool check(struct raw *raw)
{
	struct options *options = raw->options;
	uint64_t uid = getuid(), gid = getgid(), umask_bits = 022;
	options->timeout = 30 * 1000000;
	options->claim_settle = 5 * 1000000;
	options->lease_ttl = 60 * 1000000;
	options->staging_max = UINT64_C(1) << 30;
	if (!number("uid", raw->uid, 10, UINT32_MAX - 1, &uid) ||
	    !number("gid", raw->gid, 10, UINT32_MAX - 1, &gid) ||
	    !number("umask", raw->umask, 8, 0777, &umask_bits) ||
	    !number("staging_max", raw->staging_max, 10, INT64_MAX, &options->staging_max) ||
	    !seconds("timeout", raw->timeout, &options->timeout) ||
	    !seconds("claim_settle", raw->claim_settle, &options->claim_settle) ||
	    !seconds("lease_ttl", raw->lease_ttl, &options->lease_ttl))
		return false;
	options->uid = (uid_t)uid;
	options->gid = (gid_t)gid;
	options->umask = (mode_t)umask_bits;
	options->allow_other = raw->allow_other;
	options->raw = raw->raw;
	return true;
}

/* Where staging files lie when nothing is said; as root a place of the system's. */
static int default_cache_dir(struct options *options)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (options->cache_dir)
		return 0;
	int done = -1;
	if (geteuid() == 0)
		done = asprintf(&options->cache_dir, "/var/cache/cairnfs");
	else if (cache && *cache == '/')
		done = asprintf(&options->cache_dir, "%s/cairnfs", cache);
	else if (home && *home == '/')
		done = asprintf(&options->cache_dir, "%s/.cache/cairnfs", home);
	else
		fprintf(stderr,
			"cairnfs: no HOME to keep staging files under; state -o cache_dir=DIR\n");
	if (done < 0)
		options->cache_dir = NULL;
	return done < 0 ? -1 : 0;
}

static int positionals(struct raw *raw)
{
	struct options *options = raw->options;
	if (!raw->positionals) {
		fprintf(stderr, "cairnfs: no mountpoint given (see cairnfs --help)\n");
		return -1;
	}
	const char *mountpoint = raw->positional[raw->positionals - 1];
	if (raw->positionals == 2 && set_text(&options->where, raw->positional[0]) != 0)
		return -1;
	/* The mountpoint itself may be a dead mount, which cannot be resolved: make it absolute
	 * only. */
	char here[PATH_MAX];
	if (*mountpoint == '/')
		return set_text(&options->mountpoint, mountpoint);
	if (!getcwd(here, sizeof(here)) ||
	    asprintf(&options->mountpoint, "%s/%s", here, mountpoint) < 0) {
		options->mountpoint = NULL;
		fprintf(stderr, "cairnfs: mountpoint %s: %s\n", mountpoint, strerror(errno));
		return -1;
	}
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	*ret_options = (struct options){ 0 };
	struct raw raw = { .options = ret_options };
	struct fuse_args arguments = FUSE_ARGS_INIT(argc, argv);
	int failed = fuse_opt_parse(&arguments, &raw, table, option);
	if (!failed && !ret_options->help && !ret_options->version)
		failed = !check(&raw) || positionals(&raw) != 0 ||
			 default_cache_dir(ret_options) != 0;
	fuse_opt_free_args(&arguments);
	char *texts[] = { raw.uid,	   raw.gid,	      raw.umask,
			  raw.timeout,	   raw.claim_settle,  raw.lease_ttl,
			  raw.staging_max, raw.positional[0], raw.positional[1] };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	return failed ? 2 : 0;
}

void options_release(struct options *options)
{
	free(options->where);
	free(options->mountpoint);
	free(options->cache_dir);
	free(options->staging);
	free(options->mount_options);
}
