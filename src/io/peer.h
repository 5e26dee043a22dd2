/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the other end of a connection, in binary, and address ranges. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/slice.h"

/* All zeros is a peer without an address, for example on a unix socket. */
struct peer {
	uint16_t family; /* AF_INET, AF_INET6, or 0 */
	uint16_t port;   /* 0: unknown */
	unsigned char address[16];
};

/*
 * From an AF_INET or AF_INET6 address in network byte order. IPv4-mapped IPv6 addresses become
 * IPv4.
 */
struct peer peer_of_bytes(int family, const void *bytes, uint16_t port);
/* Addresses of other families become all zeros. */
struct peer peer_of_sockaddr(const struct sockaddr_storage *address);

/* Whether the address is in 127.0.0.0/8 or is ::1. */
bool peer_is_loopback(struct peer peer);
/*
 * A key for tables by address. Of an IPv6 address only the first 64 bits count, since one user can
 * choose the rest freely. The key is scrambled with a secret, so that nobody can choose addresses
 * that collide in a table. Keys are equal only for equal addresses (IPv6: equal prefixes).
 */
uint64_t peer_key(const struct peer *peer, uint64_t seed);

/*
 * Parses an address of this family, without a port, into binary. Returns false for anything else.
 */
bool peer_parse_bytes(int family, struct slice text, unsigned char bytes_r[16]);
/*
 * Parses `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`, as
 * proxies write them. Returns false for anything else and leaves *peer_r alone.
 */
bool peer_parse(struct slice text, struct peer *peer_r);

/* The addresses that share the first `bits` bits. */
struct peer_net {
	struct peer first;
	unsigned int bits;
};

/*
 * Parses `192.0.2.1`, `192.0.2.0/24`, `2001:db8::/32`, or `unix`, which covers every peer without
 * an address. Returns false for anything else.
 */
bool peer_net_parse(struct slice text, struct peer_net *net_r);
bool peer_net_has(const struct peer_net *net, const struct peer *peer);

/* Room for what peer_format writes. */
#define PEER_TEXT_BYTES 56
/* Writes `192.0.2.1` or `2001:db8::1`, without the port; `local` for a peer without an address. */
void peer_format(const struct peer *peer, char text_r[PEER_TEXT_BYTES]);
