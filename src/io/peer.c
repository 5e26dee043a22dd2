/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as bytes; inet_ntop and inet_pton know their texts. */
#include "io/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void peer_set_v6(struct peer *peer, const struct in6_addr *address)
{
	if (IN6_IS_ADDR_V4MAPPED(address)) {
		peer->family = AF_INET;
		memcpy(peer->address, address->s6_addr + 12, 4);
		return;
	}
	peer->family = AF_INET6;
	memcpy(peer->address, address->s6_addr, 16);
}

struct peer peer_of_sockaddr(const struct sockaddr_storage *address)
{
	struct peer peer = { 0 };
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (address->ss_family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		peer.family = AF_INET;
		peer.port = ntohs(v4.sin_port);
		memcpy(peer.address, &v4.sin_addr, 4);
	} else if (address->ss_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		peer.port = ntohs(v6.sin6_port);
		peer_set_v6(&peer, &v6.sin6_addr);
	}
	return peer;
}

void peer_format(const struct peer *peer, char text_r[PEER_TEXT_BYTES])
{
	if (peer->family == 0 ||
	    inet_ntop(peer->family, peer->address, text_r, PEER_TEXT_BYTES) == NULL)
		snprintf(text_r, PEER_TEXT_BYTES, "local");
}

/* An address alone. */
static bool parse_address(struct slice text, struct peer *peer_r)
{
	char terminated[INET6_ADDRSTRLEN];
	struct peer peer = { .family = AF_INET };
	struct in6_addr v6;

	if (text.n == 0 || text.n >= sizeof(terminated) || memchr(text.p, '\0', text.n) != NULL)
		return false;
	snprintf(terminated, sizeof(terminated), "%.*s", SLICE_ARG(text));
	if (inet_pton(AF_INET, terminated, peer.address) != 1) {
		if (inet_pton(AF_INET6, terminated, &v6) != 1)
			return false;
		peer = (struct peer){ 0 };
		peer_set_v6(&peer, &v6);
	}
	*peer_r = peer;
	return true;
}

static bool parse_port(struct slice text, uint16_t *port_r)
{
	uint64_t port;

	if (text_parse_u64(text, &port) != 0 || port > 65535)
		return false;
	*port_r = (uint16_t)port;
	return true;
}

bool peer_parse(struct slice text, struct peer *peer_r)
{
	const char *close = text.n > 0 && text.p[0] == '[' ? memchr(text.p, ']', text.n) : NULL;
	const char *colon = text.n > 0 ? memchr(text.p, ':', text.n) : NULL;
	struct slice address = text;
	struct slice port = { NULL, 0 };
	struct peer peer;

	if (close != NULL) {
		address = slice_between(text.p + 1, close);
		port = slice_between(close + 1, text.p + text.n);
		if (port.n > 0 && port.p[0] != ':')
			return false;
	} else if (colon != NULL && colon == memrchr(text.p, ':', text.n)) {
		address = slice_between(text.p, colon);
		port = slice_between(colon, text.p + text.n);
	}
	if (!parse_address(address, &peer))
		return false;
	if (port.n > 0 && !parse_port(slice_of(port.p + 1, port.n - 1), &peer.port))
		return false;
	*peer_r = peer;
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
