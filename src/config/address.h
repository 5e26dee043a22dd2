/* SPDX-License-Identifier: Apache-2.0 */
/* Parses listen addresses and tells who can reach them, and by which URL. Resolves no names. */
#ifndef MCPGATED_CONFIG_ADDRESS_H
#define MCPGATED_CONFIG_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

enum address_kind { ADDRESS_TCP, ADDRESS_UNIX, ADDRESS_SYSTEMD };

struct address {
	enum address_kind kind;
	bool is_local; /* only from this machine; false for systemd, where it is unknown */
	struct sockaddr_storage socket; /* for TCP and unix; ready for bind */
	socklen_t socket_size;
	const char *name; /* systemd: the descriptor's name; unix: the path. Points into the text */
};

/*
 * Parses `IPV4:PORT`, `[IPV6]:PORT`, `localhost:PORT` (127.0.0.1), `unix:PATH` and `systemd:NAME`.
 * Port 0 is allowed. `text` is borrowed as long as *address_r is used.
 */
int address_parse(const char *text, struct address *address_r, struct error *err) must_check;

/* ---- the origin that clients are told: the part of a server's URL before the path ---- */

/*
 * public_url, or else the address of the first listener that is not a unix socket. For a listener
 * on all addresses it names the first of `hosts`, or loopback. `listeners` are the open sockets of
 * config->listen, which know their ports; NULL: use the configured ports. The caller frees the
 * result. NULL: there is none.
 */
char *origin_find(const struct config *config, const int *listeners);
/* The same for one listener; fd: its open socket, or -1. Also NULL for a unix socket. */
char *origin_of_listener(const struct config *config, size_t i, int fd);
/* The value of auth.mode: none, anonymous, token or oauth. */
const char *origin_auth_mode(const struct config *config);

/* Whether a listener's address is every address of this machine. */
bool address_is_any(const char *address);

#endif
