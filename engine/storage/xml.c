/* SPDX-License-Identifier: MIT */
#include "storage/xml.h"

#include <expat.h>
#include <limits.h>

#define DEPTH_MAX     16
#define PATH_MAX_SIZE 512
#define TEXT_MAX      ((size_t)64 * 1024)

struct reading {
	const struct cairn_xml_handler *handler;
	XML_Parser parser;
	char path[PATH_MAX_SIZE];
	size_t ends[DEPTH_MAX]; /* where the path of each open element ends */
	size_t depth;
	struct cairn_buffer text; /* of the innermost element */
	int status;
	const char *reason;
};

static void stop(struct reading *reading, int status, const char *reason)
{
	if (!reading->status) {
		reading->status = status;
		reading->reason = reason;
	}
	(void)XML_StopParser(reading->parser, XML_FALSE);
}

static void XMLCALL element_begins(void *context, const XML_Char *name, const XML_Char **attributes)
{
	struct reading *reading = context;
	const char *local = strrchr(name, ':');
	size_t at = reading->depth ? reading->ends[reading->depth - 1] : 0;
	(void)attributes;
	if (reading->status)
		return;
	int length = snprintf(reading->path + at, sizeof(reading->path) - at, at ? "/%s" : "%s",
			      local ? local + 1 : name);
	if (reading->depth == DEPTH_MAX || length < 0 ||
	    (size_t)length >= sizeof(reading->path) - at) {
		stop(reading, CAIRN_CORRUPT, "its elements nest too deep");
		return;
	}
	reading->ends[reading->depth++] = at + (size_t)length;
	cairn_buffer_clear(&reading->text);
	int status = CAIRN_OK;
	if (reading->handler->begin)
		status = reading->handler->begin(reading->handler->context, reading->path);
	if (status)
		stop(reading, status, NULL);
}

static void XMLCALL element_ends(void *context, const XML_Char *name)
{
	struct reading *reading = context;
	(void)name;
	if (reading->status)
		return;
	int status = reading->handler->end(reading->handler->context, reading->path,
					   cairn_buffer_slice(&reading->text));
	if (status)
		stop(reading, status, NULL);
	cairn_buffer_clear(&reading->text);
	reading->depth--;
	reading->path[reading->depth ? reading->ends[reading->depth - 1] : 0] = '\0';
}

static void XMLCALL text_comes(void *context, const XML_Char *text, int length)
{
	struct reading *reading = context;
	if (reading->status)
		return;
	int status = cairn_buffer_append(&reading->text, text, (size_t)length);
	if (status == CAIRN_TOO_BIG)
		stop(reading, CAIRN_CORRUPT, "one of its texts is too long");
	else if (status)
		stop(reading, status, NULL);
}

/* Entities can only be declared in a document type, which no answer of a store has. */
static void XMLCALL doctype_begins(void *context, const XML_Char *name, const XML_Char *system,
				   const XML_Char *public, int has_subset)
{
	(void)name;
	(void)system;
	(void)public;
	(void)has_subset;
	stop(context, CAIRN_CORRUPT, "it has a document type");
}

int cairn_xml_read(struct cairn_slice xml, const struct cairn_xml_handler *handler,
		   struct cairn_error *error)
{
	struct reading reading = { .handler = handler };
	reading.parser = XML_ParserCreate(NULL);
	if (!reading.parser)
		return cairn_error_set(error, CAIRN_NO_MEMORY, "XML: out of memory");
	cairn_buffer_init(&reading.text, TEXT_MAX);
	XML_SetUserData(reading.parser, &reading);
	XML_SetElementHandler(reading.parser, element_begins, element_ends);
	XML_SetCharacterDataHandler(reading.parser, text_comes);
	XML_SetStartDoctypeDeclHandler(reading.parser, doctype_begins);
	enum XML_Status parsed = XML_STATUS_ERROR;
	if (xml.size && xml.size <= INT_MAX)
		parsed = XML_Parse(reading.parser, xml.data, (int)xml.size, XML_TRUE);
	int status = reading.status;
	if (!status && parsed != XML_STATUS_OK) {
		enum XML_Error code = XML_GetErrorCode(reading.parser);
		status = code == XML_ERROR_NO_MEMORY ? CAIRN_NO_MEMORY : CAIRN_CORRUPT;
		reading.reason = code == XML_ERROR_NONE ? "it is empty" : XML_ErrorString(code);
	}
	if (status && reading.reason)
		(void)cairn_error_set(error, status, "XML: %s", reading.reason);
	XML_ParserFree(reading.parser);
	cairn_buffer_release(&reading.text);
	return status;
}
