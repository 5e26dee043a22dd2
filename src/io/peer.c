/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in binary; inet_ntop and inet_pton convert them. */
#include "io/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct peer peer_of_bytes(int family, const void *bytes, uint16_t port)
{
	struct peer peer = { .family = (uint16_t)family, .port = port };
	struct in6_addr v6;

	CHECK(family == AF_INET || family == AF_INET6);
	if (family == AF_INET) {
		memcpy(peer.address, bytes, 4);
		return peer;
	}
	memcpy(&v6, bytes, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6))
		return peer_of_bytes(AF_INET, v6.s6_addr + 12, port);
	memcpy(peer.address, bytes, 16);
	return peer;
}

struct peer peer_of_sockaddr(const struct sockaddr_storage *address)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (address->ss_family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		return peer_of_bytes(AF_INET, &v4.sin_addr, ntohs(v4.sin_port));
	}
	if (address->ss_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		return peer_of_bytes(AF_INET6, &v6.sin6_addr, ntohs(v6.sin6_port));
	}
	return (struct peer){ 0 };
}

bool peer_is_loopback(struct peer peer)
{
	static const unsigned char v6[16] = { [15] = 1 };

	return (peer.family == AF_INET && peer.address[0] == IN_LOOPBACKNET) ||
	       (peer.family == AF_INET6 && memcmp(peer.address, v6, sizeof(v6)) == 0);
}

static uint64_t number_of(const unsigned char *bytes, size_t count)
{
	uint64_t number = 0;

	for (size_t i = 0; i < count; i++)
		number = number << 8 | bytes[i];
	return number;
}

/*
 * IPv4 addresses get keys that, as IPv6 prefixes, are reserved and unused (RFC 4291 §2.4). All
 * further steps are invertible, so different keys stay different.
 */
uint64_t peer_key(const struct peer *peer, uint64_t seed)
{
	uint64_t number = peer->family == AF_INET ?
				  (uint64_t)1 << 32 | number_of(peer->address, 4) :
				  number_of(peer->address, 8);

	number ^= seed;
	number = (number ^ number >> 33) * 0xff51afd7ed558ccdu;
	number = (number ^ number >> 33) * 0xc4ceb9fe1a85ec53u;
	return number ^ number >> 33;
}

/* Some clients' addresses are written on every request, and inet_ntop is slow. */
static void format_ipv4(const unsigned char address[4], char text_r[PEER_TEXT_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; i < 4; i++) {
		if (i > 0)
			text_r[n++] = '.';
		n += text_format_u64(address[i], text_r + n);
	}
	text_r[n] = '\0';
}

void peer_format(const struct peer *peer, char text_r[PEER_TEXT_BYTES])
{
	if (peer->family == AF_INET)
		format_ipv4(peer->address, text_r);
	else if (peer->family == 0 ||
		 inet_ntop(peer->family, peer->address, text_r, PEER_TEXT_BYTES) == NULL)
		snprintf(text_r, PEER_TEXT_BYTES, "local");
}

bool peer_parse_bytes(int family, struct slice text, unsigned char bytes_r[16])
{
	char terminated[INET6_ADDRSTRLEN];

	if (text.n >= sizeof(terminated))
		return false;
	snprintf(terminated, sizeof(terminated), "%.*s", SLICE_ARG(text));
	return strlen(terminated) == text.n && inet_pton(family, terminated, bytes_r) == 1;
}

/* Parses an address without a port. */
static bool parse_address(struct slice text, struct peer *peer_r)
{
	int family = text.n > 0 && memchr(text.p, ':', text.n) != NULL ? AF_INET6 : AF_INET;
	unsigned char bytes[16];

	if (!peer_parse_bytes(family, text, bytes))
		return false;
	*peer_r = peer_of_bytes(family, bytes, 0);
	return true;
}

bool peer_parse(struct slice text, struct peer *peer_r)
{
	const char *close = text.n > 0 && text.p[0] == '[' ? memchr(text.p, ']', text.n) : NULL;
	const char *colon = text.n > 0 ? memchr(text.p, ':', text.n) : NULL;
	struct slice address = text;
	struct slice port = { NULL, 0 };
	uint64_t number = 0;

	if (close != NULL) {
		address = slice_between(text.p + 1, close);
		port = slice_between(close + 1, text.p + text.n);
		if (port.n > 0 && port.p[0] != ':')
			return false;
	} else if (colon != NULL && colon == memrchr(text.p, ':', text.n)) {
		address = slice_between(text.p, colon);
		port = slice_between(colon, text.p + text.n);
	}
	if (port.n > 0 &&
	    (text_parse_u64(slice_of(port.p + 1, port.n - 1), &number) != 0 || number > 65535))
		return false;
	if (!parse_address(address, peer_r))
		return false;
	peer_r->port = (uint16_t)number;
	return true;
}

bool peer_net_parse(struct slice text, struct peer_net *net_r)
{
	struct slice address = slice_cut(&text, '/');
	struct peer_net net = { .bits = 0 };
	uint64_t bits;

	if (text.p == NULL && slice_is_equal(address, SLICE_LIT("unix"))) {
		*net_r = net;
		return true;
	}
	if (!parse_address(address, &net.first))
		return false;
	net.bits = net.first.family == AF_INET ? 32 : 128;
	if (text.p != NULL) {
		if (text_parse_u64(text, &bits) != 0 || bits > net.bits)
			return false;
		net.bits = (unsigned int)bits;
	}
	*net_r = net;
	return true;
}

bool peer_net_has(const struct peer_net *net, const struct peer *peer)
{
	unsigned int bytes = net->bits / 8, rest = net->bits % 8;

	CHECK(bytes <= sizeof(net->first.address));
	if (net->first.family != peer->family ||
	    memcmp(net->first.address, peer->address, bytes) != 0)
		return false;
	return rest == 0 || ((net->first.address[bytes] ^ peer->address[bytes]) >> (8 - rest)) == 0;
}
