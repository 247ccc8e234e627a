/* SPDX-License-Identifier: MIT */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the command line says; each name is the option's. Strings are owned. */
struct options {
	char *where;	  /* directory or URL; NULL: from the environment */
	char *mountpoint; /* absolute */
	bool foreground;
	bool help, version;
	bool ro;
	bool raw; /* objects/ shows the reserved prefixes too */
	bool allow_other;
	uid_t uid; /* owner of every key, default the mounting user */
	gid_t gid;
	mode_t umask;	      /* taken from 0666 and 0777, default 022 */
	int64_t timeout;      /* microseconds an operation may take, default 30 s */
	int64_t claim_settle; /* microseconds, default 5 s */
	int64_t lease_ttl;    /* microseconds, default 60 s */
	char *cache_dir;      /* default /var/cache/cairnfs, or under $XDG_CACHE_HOME */
	uint64_t staging_max; /* bytes, default 1 GiB */
	char *staging;	      /* further staging names: globs with `:` between them, or NULL */
	char *mount_options;  /* for the kernel: "ro,nosuid,…" */
};

/*
 * Parse argv. Returns 0, or 2 after one line on stderr that says what is wrong. `ret_options` must
 * be released in either case.
 */
int options_parse(int argc, char **argv, struct options *ret_options);
void options_release(struct options *options);

/* The text of --help. */
extern const char options_help[];

#endif
