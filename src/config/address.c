/* SPDX-License-Identifier: Apache-2.0 */
/* One function per form. Only literal addresses: nothing here waits for a name server. */
#include "config/address.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/text.h"
#include "io/address.h"
#include "io/peer.h"

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

static int parse_tcp(const char *text, struct address *address, struct error *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&address->socket;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&address->socket;
	const char *colon = strrchr(text, ':');
	struct slice host = slice_between(text, colon != NULL ? colon : text);
	int family = text[0] == '[' ? AF_INET6 : AF_INET;
	unsigned char bytes[16];
	uint64_t port;

	if (colon == NULL || text_parse_u64(slice_str(colon + 1), &port) != 0 || port > 65535)
		return error_set(err, ERROR_INVALID,
				 "must end in ':' and a port from 0 to 65535, like 127.0.0.1:8808");
	if (family == AF_INET6 && host.n >= 2 && host.p[host.n - 1] == ']')
		host = slice_of(host.p + 1, host.n - 2);
	else if (slice_is_equal(host, SLICE_LIT("localhost")))
		host = SLICE_LIT("127.0.0.1");
	if (!peer_parse_bytes(family, host, bytes))
		return error_set(
			err, ERROR_INVALID,
			"'%.60s' is not an address to listen on; it must be an IPv4 address, an "
			"IPv6 address in brackets, 'localhost', 'unix:PATH' or 'systemd:NAME'",
			text);
	if (family == AF_INET6) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((in_port_t)port);
		memcpy(&v6->sin6_addr, bytes, sizeof(v6->sin6_addr));
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((in_port_t)port);
		memcpy(&v4->sin_addr, bytes, sizeof(v4->sin_addr));
	}
	address->kind = ADDRESS_TCP;
	address->socket_size = family == AF_INET6 ? sizeof(*v6) : sizeof(*v4);
	address->is_local = peer_is_loopback(peer_of_bytes(family, bytes, 0));
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

bool address_is_any(const char *address)
{
	return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* ---- the origin that clients are told ---- */

/* Whoever listens on all addresses is not reached by that one. */
static char *with_host(const struct config *config, const char *scheme, const char *address)
{
	const char *port = strrchr(address, ':');

	if (!address_is_any(address))
		return mem_printf("%s://%s", scheme, address);
	if (config->hosts.count > 0)
		return mem_printf("%s://%.*s%s", scheme, SLICE_ARG(config->hosts.items[0]), port);
	return mem_printf("%s://127.0.0.1%s", scheme, port);
}

static bool is_for_urls(const char *address)
{
	const char *port = strrchr(address, ':');

	return strncmp(address, "unix:", 5) != 0 && strncmp(address, "systemd:", 8) != 0 &&
	       port != NULL && strcmp(port, ":0") != 0;
}

char *origin_of_listener(const struct config *config, size_t i, int fd)
{
	const struct config_listen *listen = &config->listen[i];
	char address[ADDRESS_TEXT_BYTES];

	CHECK(i < config->listen_count);
	if (fd >= 0)
		address_format(fd, address);
	else
		snprintf(address, sizeof(address), "%s", listen->address);
	if (!is_for_urls(address))
		return NULL;
	return with_host(config, listen->tls_count > 0 ? "https" : "http", address);
}

char *origin_find(const struct config *config, const int *listeners)
{
	struct slice public_url = config->frontend.authorization.public_url;
	char *origin = NULL;

	if (public_url.n > 0)
		return mem_dup_slice(public_url);
	for (size_t i = 0; origin == NULL && i < config->listen_count; i++)
		origin = origin_of_listener(config, i, listeners != NULL ? listeners[i] : -1);
	return origin;
}

const char *origin_auth_mode(const struct config *config)
{
	static const char *const names[] = {
		[AUTHORIZATION_NONE] = "none",
		[AUTHORIZATION_ANONYMOUS] = "anonymous",
		[AUTHORIZATION_TOKEN] = "token",
		[AUTHORIZATION_OAUTH] = "oauth",
	};

	CHECK(config->frontend.authorization.mode < ARRAY_LEN(names));
	return names[config->frontend.authorization.mode];
}
