/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables of networks; the first row that holds the address decides. An address in no row is public. */
#include "auth/address_filter.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"

enum kind { PUBLIC, LOOPBACK, PRIVATE, NEVER };

/* clang-format off */
static const struct {
	uint32_t network;
	unsigned int bits;
	enum kind kind;
} networks4[] = {
	{ 0x00000000,  8, NEVER },    /* 0.0.0.0/8, this network */
	{ 0x0A000000,  8, PRIVATE },  /* 10.0.0.0/8 */
	{ 0x646464C8, 32, NEVER },    /* 100.100.100.200, a cloud's metadata */
	{ 0x64400000, 10, PRIVATE },  /* 100.64.0.0/10 */
	{ 0x7F000000,  8, LOOPBACK }, /* 127.0.0.0/8 */
	{ 0xA83F8110, 32, NEVER },    /* 168.63.129.16, a cloud's own server, with a public address */
	{ 0xA9FE0000, 16, NEVER },    /* 169.254.0.0/16, link-local and most clouds' metadata */
	{ 0xAC100000, 12, PRIVATE },  /* 172.16.0.0/12 */
	{ 0xC00000C0, 32, NEVER },    /* 192.0.0.192, a cloud's metadata */
	{ 0xC0000000, 24, NEVER },    /* 192.0.0.0/24, protocol assignments */
	{ 0xC0A80000, 16, PRIVATE },  /* 192.168.0.0/16 */
	{ 0xC6120000, 15, PRIVATE },  /* 198.18.0.0/15, laboratories */
	{ 0xE0000000,  3, NEVER },    /* multicast, reserved, broadcast */
};

static const struct {
	unsigned char network[16];
	unsigned int bits;
	enum kind kind;
} networks6[] = {
	{ { [15] = 1 }, 128, LOOPBACK },                                 /* ::1 */
	{ { 0 }, 96, NEVER },                                            /* :: and ::a.b.c.d */
	{ { 0xFD, 0x00, 0x0E, 0xC2 }, 32, NEVER },                       /* a cloud's metadata and credentials */
	{ { 0xFC }, 7, PRIVATE },                                        /* fc00::/7 */
	{ { 0xFE, 0x80 }, 10, NEVER },                                   /* link-local */
	{ { 0xFE, 0xC0 }, 10, PRIVATE },                                 /* site-local, deprecated */
	{ { 0xFF }, 8, NEVER },                                          /* multicast */
	{ { 0x20, 0x01, 0x00, 0x00 }, 32, NEVER },                       /* Teredo: hides an IPv4 address */
	{ { 0x00, 0x64, 0xFF, 0x9B, 0x00, 0x01 }, 48, NEVER },           /* so does a NAT64 of one's own, RFC 8215 */
};

/* IPv6 networks that carry an IPv4 address, and where. */
static const struct {
	unsigned char network[12];
	unsigned int bits;
	size_t at;
} carriers[] = {
	{ { [10] = 0xFF, 0xFF }, 96, 12 },       /* ::ffff:a.b.c.d */
	{ { 0x00, 0x64, 0xFF, 0x9B }, 96, 12 },  /* 64:ff9b::a.b.c.d, NAT64 */
	{ { 0x20, 0x02 }, 16, 2 },               /* 2002:aabb:ccdd::, 6to4 */
};
/* clang-format on */

static enum kind kind_of_v4(uint32_t address)
{
	for (size_t i = 0; i < ARRAY_LEN(networks4); i++) {
		CHECK(networks4[i].bits > 0 && networks4[i].bits <= 32);
		if ((address ^ networks4[i].network) >> (32 - networks4[i].bits) == 0)
			return networks4[i].kind;
	}
	return PUBLIC;
}

static bool is_within(const unsigned char *address, const unsigned char *network, unsigned int bits)
{
	size_t whole = bits / 8;
	unsigned int mask = bits % 8 > 0 ? 0xFFu << (8 - bits % 8) & 0xFF : 0;

	CHECK(bits <= 128);
	return memcmp(address, network, whole) == 0 &&
	       (mask == 0 || ((address[whole] ^ network[whole]) & mask) == 0);
}

static enum kind kind_of_v6(const unsigned char address[16])
{
	for (size_t i = 0; i < ARRAY_LEN(carriers); i++) {
		uint32_t inner;

		if (!is_within(address, carriers[i].network, carriers[i].bits))
			continue;
		memcpy(&inner, address + carriers[i].at, sizeof(inner));
		return kind_of_v4(ntohl(inner));
	}
	for (size_t i = 0; i < ARRAY_LEN(networks6); i++) {
		if (is_within(address, networks6[i].network, networks6[i].bits))
			return networks6[i].kind;
	}
	return PUBLIC;
}

bool address_filter_allows(const struct address_filter *address_filter,
			   const struct sockaddr *address)
{
	enum kind kind = NEVER;
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (address->sa_family == AF_INET) {
		memcpy(&in, address, sizeof(in));
		kind = kind_of_v4(ntohl(in.sin_addr.s_addr));
	} else if (address->sa_family == AF_INET6) {
		memcpy(&in6, address, sizeof(in6));
		kind = kind_of_v6(in6.sin6_addr.s6_addr);
	}
	return kind == PUBLIC ||
	       (kind == LOOPBACK && (address_filter->loopback || address_filter->private)) ||
	       (kind == PRIVATE && address_filter->private);
}
