/* SPDX-License-Identifier: Apache-2.0 */
/* The address at the other end of a connection, as bytes, and ranges of addresses. */
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

/* An address of AF_INET or AF_INET6, in network order; IPv4 mapped into IPv6 becomes IPv4. */
struct peer peer_of_bytes(int family, const void *bytes, uint16_t port);
/* What is no internet address becomes all zeros. */
struct peer peer_of_sockaddr(const struct sockaddr_storage *address);

/* Of this machine alone: 127.0.0.0/8 or ::1. */
bool peer_is_loopback(struct peer peer);

/* An address of the family, without a port, as such bytes. False: anything else. */
bool peer_parse_bytes(int family, struct slice text, unsigned char bytes_r[16]);
/*
 * Understands `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`, as
 * proxies write them. False: anything else; *peer_r is not touched.
 */
bool peer_parse(struct slice text, struct peer *peer_r);

/* Addresses that begin with the same bits. */
struct peer_net {
	struct peer first;
	unsigned int bits;
};

/* `192.0.2.1`, `192.0.2.0/24`, `2001:db8::/32`, or `unix`: every peer without an address. */
bool peer_net_parse(struct slice text, struct peer_net *net_r);
bool peer_net_has(const struct peer_net *net, const struct peer *peer);

/* Room for what peer_format writes. */
#define PEER_TEXT_BYTES 56
/* `192.0.2.1`, `2001:db8::1`, without port; `local` for a peer without an address. */
void peer_format(const struct peer *peer, char text_r[PEER_TEXT_BYTES]);

#endif
