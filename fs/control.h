/* SPDX-License-Identifier: MIT */
#ifndef CONTROL_H
#define CONTROL_H

#include "filesystem.h"

/* .cairn/: status.json, metrics (Prometheus text), config.json (no secrets), log. Read-only. */

bool control_knows(const char *name);

/* The index-th file's name, NULL behind the last. */
const char *control_name(size_t index);

int control_attributes(struct request *request, struct node *node, struct stat *ret_stat);

/* What the file says now. 0 or an errno. */
int control_content(struct request *request, struct node *node, struct content **ret_content);

#endif
