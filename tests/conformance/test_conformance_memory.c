/* SPDX-License-Identifier: MIT */
#include "conformance.h"

static int make(void *context, struct cairn_store **ret_store)
{
	(void)context;
	return cairn_memory_store_new(ret_store);
}

int main(void)
{
	const struct conformance_target target = { .name = "memory", .make = make };
	return conformance_run(&target);
}
