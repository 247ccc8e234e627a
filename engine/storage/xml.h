/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_XML_H
#define CAIRN_XML_H

/* Reading the XML that servers answer: small, foreign, and never trusted. */

#include <cairn/buffer.h>

struct cairn_xml_handler {
	/*
	 * An element began or ended. `path` is its name behind those around it, "List/Item/Key",
	 * without namespaces; `text` is its own text, empty where it has elements. A status other
	 * than 0 ends the reading. `begin` may be NULL.
	 */
	int (*begin)(void *context, const char *path);
	int (*end)(void *context, const char *path, struct cairn_slice text);
	void *context;
};

/*
 * Returns 0, the handler's status, CAIRN_CORRUPT (not well-formed, a document type and so entities,
 * deeper than 16 elements, a text over 64 KiB), described, or CAIRN_NO_MEMORY.
 */
int cairn_xml_read(struct cairn_slice xml, const struct cairn_xml_handler *handler,
		   struct cairn_error *error) CAIRN_MUST_USE;

#endif
