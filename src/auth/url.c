/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting and comparing; no percent-decoding, no dot segments: no issuer has a use for those. */
#include "auth/url.h"

#include <netinet/in.h>
#include <string.h>

#include "base/check.h"
#include "io/peer.h"

/* Up to the first byte of `any`. */
static struct slice url_cut_before(struct slice *rest, const char *any)
{
	struct slice part = *rest;

	for (size_t i = 0; i < rest->n; i++) {
		if (strchr(any, rest->p[i]) != NULL) {
			part.n = i;
			break;
		}
	}
	CHECK(part.n <= rest->n);
	*rest = slice_of(rest->p + part.n, rest->n - part.n);
	return part;
}

/* `host`, `host:port`, `[v6]`, `[v6]:port`. */
static int parse_authority(struct slice authority, struct url *url)
{
	struct slice rest = authority;
	const char *close;

	if (authority.n == 0 || memchr(authority.p, '@', authority.n) != NULL)
		return -1;
	if (authority.p[0] == '[') {
		close = memchr(authority.p, ']', authority.n);
		if (close == NULL)
			return -1;
		url->host = slice_between(authority.p, close + 1);
		rest = slice_between(close + 1, authority.p + authority.n);
	} else {
		url->host = url_cut_before(&rest, ":");
	}
	url->port = rest.n > 0 ? slice_of(rest.p + 1, rest.n - 1) : rest;
	for (size_t i = 0; i < url->port.n; i++)
		if (url->port.p[i] < '0' || url->port.p[i] > '9')
			return -1;
	if (url->host.n == 0 || url->port.n > 5)
		return -1;
	return rest.n > 0 && (rest.p[0] != ':' || url->port.n == 0) ? -1 : 0;
}

int url_parse(struct slice text, struct url *url_r)
{
	const char *colon = text.n > 0 ? memmem(text.p, text.n, "://", 3) : NULL;
	struct slice rest;

	if (colon == NULL || colon == text.p)
		return -1;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] > '~' || text.p[i] == '\\')
			return -1;
	url_r->scheme = slice_between(text.p, colon);
	rest = slice_between(colon + 3, text.p + text.n);
	if (parse_authority(url_cut_before(&rest, "/?#"), url_r) < 0)
		return -1;
	url_r->tail = rest;
	return 0;
}

bool url_is_https(const struct url *url)
{
	return slice_is_equal_nocase(url->scheme, SLICE_LIT("https"));
}

bool url_is_loopback(const struct url *url)
{
	struct slice host = url->host;

	if (slice_is_equal_nocase(host, SLICE_LIT("localhost")) ||
	    slice_is_equal(host, SLICE_LIT("[::1]")))
		return true;
	if (!slice_has_prefix(host, SLICE_LIT("127.")))
		return false;
	for (size_t i = 0; i < host.n; i++) {
		if (host.p[i] != '.' && (host.p[i] < '0' || host.p[i] > '9'))
			return false;
	}
	return true;
}

bool url_is_http(const struct url *url)
{
	return url_is_https(url) || slice_is_equal_nocase(url->scheme, SLICE_LIT("http"));
}

bool url_is_exposed(const struct url *url)
{
	return !url_is_https(url) && !url_is_loopback(url);
}

struct slice url_port(const struct url *url)
{
	if (url->port.n > 0)
		return url->port;
	return url_is_https(url) ? SLICE_LIT("443") : SLICE_LIT("80");
}

int url_check_ours(struct slice text, struct error *err)
{
	struct url url;

	if (url_parse(text, &url) < 0)
		return error_set(err, ERROR_INVALID,
				 "it is not a URL of the form https://host/path");
	if (url.tail.n > 0 && (memchr(url.tail.p, '?', url.tail.n) != NULL ||
			       memchr(url.tail.p, '#', url.tail.n) != NULL))
		return error_set(err, ERROR_INVALID, "it must have no query and no fragment");
	if (url_is_https(&url))
		return 0;
	if (!slice_is_equal_nocase(url.scheme, SLICE_LIT("http")))
		return error_set(err, ERROR_INVALID, "it must begin with https://");
	if (!url_is_loopback(&url))
		return error_set(err, ERROR_INVALID,
				 "http:// is for loopback addresses only; use https://");
	return 0;
}

/* ---- comparing ---- */

static bool is_same_origin(const struct url *a, const struct url *b)
{
	return slice_is_equal_nocase(a->scheme, b->scheme) &&
	       slice_is_equal_nocase(a->host, b->host) && slice_is_equal(url_port(a), url_port(b));
}

static struct slice without_final_slash(struct slice tail)
{
	if (tail.n > 0 && tail.p[tail.n - 1] == '/' && memchr(tail.p, '?', tail.n) == NULL)
		tail.n--;
	return tail;
}

bool url_is_same_resource(struct slice audience, struct slice resource)
{
	struct url a;
	struct url b;

	if (slice_is_equal(audience, resource))
		return true;
	return url_parse(audience, &a) == 0 && url_parse(resource, &b) == 0 &&
	       is_same_origin(&a, &b) &&
	       slice_is_equal(without_final_slash(a.tail), without_final_slash(b.tail));
}

static struct slice path_of(const struct url *url)
{
	struct slice rest = url->tail;
	struct slice path = url_cut_before(&rest, "?#");

	return path.n > 0 ? path : SLICE_LIT("/");
}

bool url_is_target(struct slice given, struct slice own)
{
	struct url a;
	struct url b;

	return url_parse(given, &a) == 0 && url_parse(own, &b) == 0 && is_same_origin(&a, &b) &&
	       (a.tail.n == 0 || slice_is_equal(a.tail, path_of(&a))) &&
	       slice_is_equal(path_of(&a), path_of(&b));
}

bool url_has_same_origin(struct slice one, struct slice other)
{
	struct url a, b;

	return url_parse(one, &a) == 0 && url_parse(other, &b) == 0 && is_same_origin(&a, &b);
}

/* ---- addresses ---- */

/* A table of networks; the first row that holds the address decides. An address in no row is public. */

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

static enum kind url_kind_of(struct peer peer)
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
	kind = url_kind_of(peer_of_sockaddr(&copy));
	return kind == PUBLIC ||
	       (kind == LOOPBACK && (address_filter->loopback || address_filter->private)) ||
	       (kind == PRIVATE && address_filter->private);
}
