/* SPDX-License-Identifier: Apache-2.0 */
/* One function per form. Only literal addresses: nothing here waits for a name server. */
#include "config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/text.h"

static int parse_unix(const char *path, struct address *address, struct error *err)
{
	struct sockaddr_un *socket = (struct sockaddr_un *)(void *)&address->socket;
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(socket->sun_path))
		return error_set(err, ERROR_INVALID,
				 "the path after 'unix:' must have 1 to %zu bytes",
				 sizeof(socket->sun_path) - 1);
	address->kind = ADDRESS_UNIX;
	address->is_local = true;
	address->name = path;
	address->socket_size = sizeof(*socket);
	socket->sun_family = AF_UNIX;
	memcpy(socket->sun_path, path, length + 1);
	return 0;
}

static int parse_v4(const char *host, in_port_t port, struct address *address)
{
	struct sockaddr_in *socket = (struct sockaddr_in *)(void *)&address->socket;
	const char *digits = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;

	if (inet_pton(AF_INET, digits, &socket->sin_addr) != 1)
		return -1;
	socket->sin_family = AF_INET;
	socket->sin_port = port;
	address->socket_size = sizeof(*socket);
	address->is_local = ntohl(socket->sin_addr.s_addr) >> 24 == 127;
	return 0;
}

static int parse_v6(const char *host, in_port_t port, struct address *address)
{
	struct sockaddr_in6 *socket = (struct sockaddr_in6 *)(void *)&address->socket;
	const struct in6_addr *in = &socket->sin6_addr;

	if (inet_pton(AF_INET6, host, &socket->sin6_addr) != 1)
		return -1;
	socket->sin6_family = AF_INET6;
	socket->sin6_port = port;
	address->socket_size = sizeof(*socket);
	address->is_local =
		IN6_IS_ADDR_LOOPBACK(in) || (IN6_IS_ADDR_V4MAPPED(in) && in->s6_addr[12] == 127);
	return 0;
}

static int parse_tcp(const char *text, struct address *address, struct error *err)
{
	char host[INET6_ADDRSTRLEN] = "";
	const char *colon = strrchr(text, ':');
	bool is_v6 = text[0] == '[';
	struct slice inner = slice_between(text, colon != NULL ? colon : text);
	uint64_t number;
	in_port_t port;

	if (colon == NULL || text_parse_u64(slice_str(colon + 1), &number) != 0 || number > 65535)
		return error_set(err, ERROR_INVALID,
				 "must end in ':' and a port from 0 to 65535, like 127.0.0.1:8808");
	port = htons((in_port_t)number);
	if (is_v6 && inner.n >= 2 && inner.p[inner.n - 1] == ']')
		inner = slice_of(inner.p + 1, inner.n - 2);
	if (inner.n < sizeof(host))
		memcpy(host, inner.p, inner.n);
	address->kind = ADDRESS_TCP;
	if ((is_v6 ? parse_v6(host, port, address) : parse_v4(host, port, address)) != 0)
		return error_set(
			err, ERROR_INVALID,
			"'%.60s' is no address to listen on; it must be an IPv4 address, an "
			"IPv6 address in brackets, 'localhost', 'unix:PATH' or "
			"'systemd:NAME'",
			text);
	return 0;
}

int address_parse(const char *text, struct address *address_r, struct error *err)
{
	CHECK(text != NULL);
	*address_r = (struct address){ 0 };
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text + 5, address_r, err);
	if (strncmp(text, "systemd:", 8) != 0)
		return parse_tcp(text, address_r, err);
	if (text[8] == '\0')
		return error_set(err, ERROR_INVALID,
				 "a name (FileDescriptorName=) must follow 'systemd:'");
	address_r->kind = ADDRESS_SYSTEMD;
	address_r->name = text + 8;
	return 0;
}
