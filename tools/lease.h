/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_TOOLS_LEASE_H
#define CAIRN_TOOLS_LEASE_H

#include <cairn/lease.h>

#include "common.h"

/*
 * Print a period that this process has acquired or attached to: epoch, deadline and, when asked
 * for, the holder string; with --json the state, too. Returns the exit status.
 */
int lease_print(struct tool *tool, struct cairn_lease *lease, bool with_holder);

/* Re-enter the period of --holder. Returns -1 with a lease that the caller frees, or an exit
 * status. */
int lease_attach(struct tool *tool, bool writes, struct cairn_lease **ret_lease);

#endif
