/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a connection: an address as bytes, and ranges of addresses. */
#ifndef MCPGATED_IO_PEER_H
#define MCPGATED_IO_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/slice.h"

/* All zeros is a peer without an address, like one on a unix socket. */
struct peer {
	uint16_t family; /* AF_INET, AF_INET6, or 0 */
	uint16_t port;   /* 0: unknown */
	unsigned char address[16];
};

/* IPv4 mapped into IPv6 becomes IPv4; what is no internet address becomes all zeros. */
struct peer peer_of_sockaddr(const struct sockaddr_storage *address);

/* Room for what peer_format writes. */
#define PEER_TEXT_BYTES 56
/* `192.0.2.1`, `2001:db8::1`, without port; `local` for a peer without an address. */
void peer_format(const struct peer *peer, char text_r[PEER_TEXT_BYTES]);

#endif
