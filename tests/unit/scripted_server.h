/* SPDX-License-Identifier: MIT */
#ifndef SCRIPTED_SERVER_H
#define SCRIPTED_SERVER_H

/* An HTTP server on loopback that says what the test wrote down, one answer for each request. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct scripted_server;

/* Start with an empty script on a free port. */
struct scripted_server *scripted_server_start(void);

/* Ends it and every connection. */
void scripted_server_stop(struct scripted_server *server);

/* "http://127.0.0.1:PORT", good until the stop. */
const char *scripted_server_url(const struct scripted_server *server);

/*
 * Forget the requests and answer the next ones so, the last one again and again. Bytes of a whole
 * answer, which leave the connection open; "!" before it: and then close; "" : close without a
 * byte; NULL: wait until the client leaves.
 */
void scripted_server_say(struct scripted_server *server, const char *const *answers, size_t count);

/* How many requests have come, and the bytes of one with its body. */
size_t scripted_server_count(struct scripted_server *server);
const char *scripted_server_request(struct scripted_server *server, size_t index);

/* The value of a request's header (the name as it is sent), malloc; NULL without one. */
char *scripted_server_header(struct scripted_server *server, size_t index, const char *name);

#endif
