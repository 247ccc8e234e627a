/* SPDX-License-Identifier: MIT */
#include "scripted_server.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS_MAX	256
#define CONNECTIONS_MAX 256
#define REQUEST_SIZE	((size_t)256 * 1024)

struct connection {
	struct scripted_server *server;
	pthread_t thread;
	int fd;
};

struct scripted_server {
	int listener;
	char url[64];
	pthread_t thread;
	pthread_mutex_t lock;
	/* Under lock. */
	bool stopping;
	const char *const *answers;
	size_t answer_count;
	char *requests[REQUESTS_MAX];
	size_t request_count;
	/* The accepting thread's, until it has ended. */
	struct connection connections[CONNECTIONS_MAX];
	size_t connection_count;
};

static bool is_stopping(struct scripted_server *server)
{
	(void)pthread_mutex_lock(&server->lock);
	bool stopping = server->stopping;
	(void)pthread_mutex_unlock(&server->lock);
	return stopping;
}

/* Wait for bytes. False: the server stops. */
static bool readable(struct scripted_server *server, int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	while (!is_stopping(server))
		if (poll(&wait, 1, 20) > 0)
			return true;
	return false;
}

/* How many bytes the request has in all, once its head is there; 0 before. */
static size_t whole_size(const char *request)
{
	const char *end = strstr(request, "\r\n\r\n");
	const char *length = strcasestr(request, "\r\ncontent-length:");
	if (!end)
		return 0;
	size_t head = (size_t)(end - request) + 4;
	return head + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
}

static char *read_request(struct connection *connection)
{
	char *request = calloc(1, REQUEST_SIZE);
	size_t size = 0;
	while (readable(connection->server, connection->fd)) {
		ssize_t got = recv(connection->fd, request + size, REQUEST_SIZE - 1 - size, 0);
		if (got <= 0)
			break;
		size += (size_t)got;
		request[size] = '\0';
		if (whole_size(request) && size >= whole_size(request))
			return request;
	}
	free(request);
	return NULL;
}

/* Keep the request, give its answer. */
static const char *answer_of(struct scripted_server *server, char *request)
{
	(void)pthread_mutex_lock(&server->lock);
	size_t index = server->request_count;
	if (index < REQUESTS_MAX)
		server->requests[server->request_count++] = request;
	else
		free(request);
	const char *answer = "";
	if (server->answer_count)
		answer = server->answers[index < server->answer_count ? index
								      : server->answer_count - 1];
	(void)pthread_mutex_unlock(&server->lock);
	return answer;
}

static void *serve(void *argument)
{
	struct connection *connection = argument;
	char *request, byte;
	while ((request = read_request(connection))) {
		const char *answer = answer_of(connection->server, request);
		if (!answer) {
			while (readable(connection->server, connection->fd) &&
			       recv(connection->fd, &byte, 1, 0) > 0)
				continue;
			break;
		}
		bool closes = *answer == '!' || !*answer;
		const char *bytes = answer + (*answer == '!');
		(void)!send(connection->fd, bytes, strlen(bytes), MSG_NOSIGNAL);
		if (closes)
			break;
	}
	(void)shutdown(connection->fd, SHUT_RDWR);
	return NULL;
}

static void *accept_all(void *argument)
{
	struct scripted_server *server = argument;
	while (readable(server, server->listener) && server->connection_count < CONNECTIONS_MAX) {
		struct connection *connection = &server->connections[server->connection_count];
		connection->server = server;
		connection->fd = accept(server->listener, NULL, NULL);
		if (connection->fd < 0)
			continue;
		if (pthread_create(&connection->thread, NULL, serve, connection))
			(void)close(connection->fd);
		else
			server->connection_count++;
	}
	return NULL;
}

struct scripted_server *scripted_server_start(void)
{
	struct scripted_server *server = calloc(1, sizeof(*server));
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	assert_non_null(server);
	server->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(server->listener >= 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(server->listener, 64), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
	(void)snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d",
		       ntohs(address.sin_port));
	(void)pthread_mutex_init(&server->lock, NULL);
	assert_int_equal(pthread_create(&server->thread, NULL, accept_all, server), 0);
	return server;
}

void scripted_server_stop(struct scripted_server *server)
{
	(void)pthread_mutex_lock(&server->lock);
	server->stopping = true;
	(void)pthread_mutex_unlock(&server->lock);
	(void)pthread_join(server->thread, NULL);
	for (size_t i = 0; i < server->connection_count; i++) {
		(void)pthread_join(server->connections[i].thread, NULL);
		(void)close(server->connections[i].fd);
	}
	(void)close(server->listener);
	for (size_t i = 0; i < server->request_count; i++)
		free(server->requests[i]);
	(void)pthread_mutex_destroy(&server->lock);
	free(server);
}

const char *scripted_server_url(const struct scripted_server *server)
{
	return server->url;
}

void scripted_server_say(struct scripted_server *server, const char *const *answers, size_t count)
{
	(void)pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < server->request_count; i++)
		free(server->requests[i]);
	server->request_count = 0;
	server->answers = answers;
	server->answer_count = count;
	(void)pthread_mutex_unlock(&server->lock);
}

size_t scripted_server_count(struct scripted_server *server)
{
	(void)pthread_mutex_lock(&server->lock);
	size_t count = server->request_count;
	(void)pthread_mutex_unlock(&server->lock);
	return count;
}

const char *scripted_server_request(struct scripted_server *server, size_t index)
{
	assert_true(index < scripted_server_count(server));
	return server->requests[index];
}

char *scripted_server_header(struct scripted_server *server, size_t index, const char *name)
{
	const char *request = scripted_server_request(server, index);
	const char *end = strstr(request, "\r\n\r\n");
	char line[128];
	(void)snprintf(line, sizeof(line), "\r\n%s: ", name);
	const char *at = strstr(request, line);
	if (!at || at > end)
		return NULL;
	at += strlen(line);
	return strndup(at, strcspn(at, "\r"));
}
