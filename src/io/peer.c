/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as bytes; inet_ntop writes them. */
#include "io/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

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
