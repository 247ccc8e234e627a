/* SPDX-License-Identifier: MIT */
#ifndef SESSION_H
#define SESSION_H

#include "filesystem.h"

/*
 * Mount and serve until it is unmounted or SIGTERM, SIGINT or SIGHUP comes. `ready` is called once
 * the kernel has begun the session: the mount works. Returns 0, or -1 after a line on stderr or in
 * the log.
 */
int session_run(struct filesystem *fs, void (*ready)(void *context), void *context);

#endif
