/* SPDX-License-Identifier: Apache-2.0 */
/* A table of networks; the first row that holds the address decides. An address in no row is public. */
#include "auth/address_filter.h"

#include <netinet/in.h>
#include <string.h>

#include "io/peer.h"

enum kind { PUBLIC, LOOPBACK, PRIVATE, NEVER };

/* clang-format off */
#define V4(bits, ...) { { .family = AF_INET, .address = { __VA_ARGS__ } }, bits }
#define V6(bits, ...) { { .family = AF_INET6, .address = { __VA_ARGS__ } }, bits }

static const struct {
	struct peer_net net;
	enum kind kind;
} networks[] = {
	{ V4(8, 0), NEVER },                                     /* this network */
	{ V4(8, 10), PRIVATE },
	{ V4(32, 100, 100, 100, 200), NEVER },                   /* a cloud's metadata */
	{ V4(10, 100, 64), PRIVATE },
	{ V4(8, 127), LOOPBACK },
	{ V4(32, 168, 63, 129, 16), NEVER },                     /* a cloud's own server, with a public address */
	{ V4(16, 169, 254), NEVER },                             /* link-local and most clouds' metadata */
	{ V4(12, 172, 16), PRIVATE },
	{ V4(32, 192, 0, 0, 192), NEVER },                       /* a cloud's metadata */
	{ V4(24, 192, 0, 0), NEVER },                            /* protocol assignments */
	{ V4(16, 192, 168), PRIVATE },
	{ V4(15, 198, 18), PRIVATE },                            /* laboratories */
	{ V4(3, 224), NEVER },                                   /* multicast, reserved, broadcast */
	{ V6(128, [15] = 1), LOOPBACK },                         /* ::1 */
	{ V6(96, 0), NEVER },                                    /* :: and ::a.b.c.d */
	{ V6(32, 0xFD, 0x00, 0x0E, 0xC2), NEVER },               /* a cloud's metadata and credentials */
	{ V6(128, 0xFD, 0x20, 0x00, 0xCE, [14] = 2, 0x54), NEVER },         /* and of another */
	{ V6(128, 0xFD, 0, 0, 0xC1, [12] = 0xA9, 0xFE, 0xA9, 0xFE), NEVER }, /* and of a third */
	{ V6(7, 0xFC), PRIVATE },
	{ V6(10, 0xFE, 0x80), NEVER },                           /* link-local */
	{ V6(10, 0xFE, 0xC0), PRIVATE },                         /* site-local, deprecated */
	{ V6(8, 0xFF), NEVER },                                  /* multicast */
	{ V6(32, 0x20, 0x01), NEVER },                           /* Teredo: hides an IPv4 address */
	{ V6(48, 0x00, 0x64, 0xFF, 0x9B, 0x00, 0x01), NEVER },   /* so does a NAT64 of one's own, RFC 8215 */
};

/* IPv6 networks that carry an IPv4 address, and where; besides ::ffff:a.b.c.d, which peer_of_sockaddr knows. */
static const struct {
	struct peer_net net;
	size_t at;
} carriers[] = {
	{ V6(96, 0x00, 0x64, 0xFF, 0x9B), 12 },                  /* 64:ff9b::a.b.c.d, NAT64 */
	{ V6(16, 0x20, 0x02), 2 },                               /* 2002:aabb:ccdd::, 6to4 */
};
/* clang-format on */

static enum kind kind_of(struct peer peer)
{
	if (peer.family == 0)
		return NEVER;
	for (size_t i = 0; i < ARRAY_LEN(carriers); i++) {
		struct peer inner = { .family = AF_INET };

		if (!peer_net_has(&carriers[i].net, &peer))
			continue;
		memcpy(inner.address, peer.address + carriers[i].at, 4);
		peer = inner;
	}
	for (size_t i = 0; i < ARRAY_LEN(networks); i++)
		if (peer_net_has(&networks[i].net, &peer))
			return networks[i].kind;
	return PUBLIC;
}

bool address_filter_allows(const struct address_filter *address_filter,
			   const struct sockaddr *address)
{
	struct sockaddr_storage copy = { 0 };
	enum kind kind;

	memcpy(&copy, address,
	       address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(*address));
	kind = kind_of(peer_of_sockaddr(&copy));
	return kind == PUBLIC ||
	       (kind == LOOPBACK && (address_filter->loopback || address_filter->private)) ||
	       (kind == PRIVATE && address_filter->private);
}
