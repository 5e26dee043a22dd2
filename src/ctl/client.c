/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for as long as it takes: whoever is tired of it has Ctrl-C. */
#include "ctl/client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SYSTEM_SOCKET "/run/mcpgated/admin.sock"
#define READ_BYTES (64 * 1024)
#define REPLY_BYTES_MAX (256u * 1024 * 1024)

void client_find_socket(char path_r[CLIENT_PATH_BYTES])
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	if (dir != NULL &&
	    snprintf(path_r, CLIENT_PATH_BYTES, "%s/mcpgated/admin.sock", dir) <
		    CLIENT_PATH_BYTES &&
	    access(path_r, F_OK) == 0)
		return;
	snprintf(path_r, CLIENT_PATH_BYTES, "%s", SYSTEM_SOCKET);
}

static int client_connect(const char *path, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, ERROR_INVALID, "the path of the socket is too long: %.80s…",
				 path);
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set_errno(err, "socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	if (errno == ENOENT || errno == ECONNREFUSED)
		error_set(
			err, ERROR_SYSTEM,
			"no daemon answers at %.108s; is it running? If its admin.address is another "
			"one, name it with --socket",
			path);
	else if (errno == EACCES)
		error_set(err, ERROR_SYSTEM,
			  "%.120s is for the daemon's user and root alone; try it with sudo", path);
	else
		error_set_errno(err, "cannot connect to %.120s", path);
	close(fd);
	return -1;
}

static int send_all(int fd, struct slice data, struct error *err)
{
	while (data.n > 0) {
		ssize_t n = send(fd, data.p, data.n, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set_errno(err, "cannot send to the daemon");
		data = slice_of(data.p + n, data.n - (size_t)n);
	}
	return 0;
}

static int client_send(int fd, const struct client_request *request, struct error *err)
{
	struct buf text = { 0 };
	int result;

	buf_printf(&text, "%s %s HTTP/1.0\r\nHost: localhost\r\n%s", request->method,
		   request->target, request->fields != NULL ? request->fields : "");
	if (request->body.n > 0)
		buf_printf(&text, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			   request->body.n);
	buf_append_str(&text, "\r\n");
	buf_append_slice(&text, request->body);
	result = send_all(fd, buf_slice(&text), err);
	buf_fini(&text);
	return result;
}

/* Returns 1, 0 at the end, -1. */
static int receive(int fd, struct buf *into, struct error *err)
{
	ssize_t n;

	do
		n = recv(fd, buf_reserve(into, READ_BYTES), READ_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set_errno(err, "cannot read from the daemon");
	into->len += (size_t)n;
	if (into->len > REPLY_BYTES_MAX)
		return error_set(err, ERROR_LIMIT, "the daemon's answer does not end");
	return n > 0;
}

/* Parts the head from what came of the body. */
static int receive_head(int fd, struct client_reply *reply, struct error *err)
{
	const char *end;
	size_t used;
	int more;

	do {
		more = receive(fd, &reply->body, err);
		if (more < 0)
			return -1;
		end = memmem(reply->body.data, reply->body.len, "\r\n\r\n", 4);
	} while (end == NULL && more > 0);
	if (end == NULL ||
	    sscanf(buf_terminate(&reply->body), "HTTP/1.%*1[01] %3d", &reply->status) != 1)
		return error_set(err, ERROR_SYNTAX,
				 reply->body.len == 0 ?
					 "the daemon has closed the connection without an answer" :
					 "what answers at the socket is no mcpgated");
	used = (size_t)(end - reply->body.data) + 4;
	buf_append(&reply->head, reply->body.data, used);
	buf_consume(&reply->body, used);
	return 0;
}

static int client_begin(const struct client_request *request, struct client_reply *reply,
			struct error *err)
{
	int fd = client_connect(request->socket, err);

	*reply = (struct client_reply){ .status = 0 };
	if (fd < 0)
		return -1;
	if (client_send(fd, request, err) == 0 && receive_head(fd, reply, err) == 0)
		return fd;
	client_reply_fini(reply);
	close(fd);
	return -1;
}

static int receive_rest(int fd, struct client_reply *reply, struct error *err)
{
	int more;

	do
		more = receive(fd, &reply->body, err);
	while (more > 0);
	close(fd);
	if (more < 0)
		client_reply_fini(reply);
	return more;
}

int client_ask(const struct client_request *request, struct client_reply *reply_r,
	       struct error *err)
{
	int fd = client_begin(request, reply_r, err);

	return fd < 0 ? -1 : receive_rest(fd, reply_r, err);
}

struct slice client_reply_field(const struct client_reply *reply, const char *name)
{
	struct slice rest = buf_slice(&reply->head);

	while (rest.n > 0) {
		struct slice line = slice_cut(&rest, '\n');
		struct slice key;

		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		key = slice_cut(&line, ':');
		if (slice_is_equal_nocase(key, slice_str(name)))
			return slice_trim(line);
	}
	return (struct slice){ NULL, 0 };
}

void client_reply_fini(struct client_reply *reply)
{
	buf_fini(&reply->head);
	buf_fini(&reply->body);
}

/* Hands out the data lines that are whole: the daemon writes one for each event. */
static void take_events(struct buf *bytes, client_event_fn *on_event)
{
	static const struct slice prefix = SLICE("data: ");
	struct slice rest = buf_slice(bytes);
	const char *end;

	while (rest.n > 0 && (end = memchr(rest.p, '\n', rest.n)) != NULL) {
		struct slice line = slice_cut(&rest, '\n');

		if (slice_has_prefix(line, prefix))
			on_event(slice_of(line.p + prefix.n, line.n - prefix.n));
	}
	buf_consume(bytes, bytes->len - rest.n);
}

int client_follow(const struct client_request *request, client_event_fn *on_event,
		  struct error *err)
{
	struct client_reply reply;
	int fd = client_begin(request, &reply, err);
	int more = 1;

	if (fd < 0)
		return -1;
	if (reply.status != 200)
		more = error_set(err, ERROR_INVALID, "the daemon refuses with status %d",
				 reply.status);
	while (more > 0) {
		take_events(&reply.body, on_event);
		more = receive(fd, &reply.body, err);
	}
	close(fd);
	client_reply_fini(&reply);
	return more;
}
