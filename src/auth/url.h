/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of issuers and resources: parsing and comparing what is needed; and which addresses may be
 * connected to. Not a general parser for RFC
 * 3986: unusual URLs are refused.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/slice.h"

/* What stands before the path of a unix socket; behind that, `#`, and the path of requests. */
#define URL_OF_SOCKET "unix://"

struct url {
	struct slice scheme; /* as written */
	struct slice host;   /* as written; an IPv6 address with its brackets */
	struct slice port;   /* digits, empty if there is none */
	struct slice tail;   /* path, query, fragment; empty or from the first `/`, `?` or `#` on */
};

/*
 * Parses `scheme://host[:port][tail]`. Refused: user information, an empty host, a port that is not
 * a number, characters that are not visible ASCII. Returns 0, or -1. All slices point into the
 * text.
 */
int url_parse(struct slice text, struct url *url_r) must_check;

bool url_is_https(const struct url *url);
/* 127.0.0.0/8, [::1] or localhost: by spelling, without resolving anything. */
bool url_is_loopback(const struct url *url);
/* Whether it is a URL of HTTP, with TLS or without. */
bool url_is_http(const struct url *url);
/* Whether others can read what goes there: another machine, without TLS. */
bool url_is_exposed(const struct url *url);
/* Its port as written, else that of its scheme. */
struct slice url_port(const struct url *url);

/*
 * Whether the URL can be an issuer (or a jwks_uri, an introspection endpoint): https, or http to a
 * loopback address or "localhost"; no user, query or fragment. Returns 0, or -1 and err.
 * AUTH-CFG-01
 */
int url_check_ours(struct slice text, struct error *err) must_check;

/*
 * Whether an audience names the resource. In URLs, scheme and host are case-insensitive, the
 * default port equals no port, one `/` at the end of a path without a query is ignored, and the
 * rest is compared bytewise. Anything else is compared bytewise. AUTH-AUD-01, 03, 05
 */
bool url_is_same_resource(struct slice audience, struct slice resource);

/* Whether scheme, host and port are the same; the default port equals no port. RFC 6454 §5 */
bool url_has_same_origin(struct slice one, struct slice other);

/*
 * Whether two URLs are the same request target as DPoP compares them: scheme, host and port as
 * above, the path bytewise (an absent path is `/`). `given` must have neither query nor fragment;
 * those of `own` are ignored. RFC 9449 s4.3 (9)
 */
bool url_is_target(struct slice given, struct slice own);

/* ---- addresses ---- */

/*
 * Which addresses a fetch may connect to. Judged on the address that the socket connects to, so that a name
 * that resolves differently later (rebinding) gains nothing. SEC-10, AUTH-KEY-09
 */

struct address_filter {
	bool loopback; /* 127.0.0.0/8, ::1 */
	bool private; /* loopback too, and the private ranges of RFC 1918, RFC 4193, RFC 6598, RFC 2544 */
};

/*
 * Never: link-local (where clouds keep their metadata), the metadata addresses that lie elsewhere,
 * multicast, reserved and unspecified addresses, and anything but IPv4 and IPv6. An IPv4 address inside
 * an IPv6 one (mapped, NAT64, 6to4) is judged as itself.
 */
bool address_filter_allows(const struct address_filter *address_filter,
			   const struct sockaddr *address);
