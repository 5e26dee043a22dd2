/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of issuers and resources: taking apart what we need, comparing what must be compared. Not a
 * general reader of RFC 3986: what is unusual is refused.
 */
#ifndef MCPGATED_AUTH_URL_H
#define MCPGATED_AUTH_URL_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

struct url {
	struct slice scheme; /* as written */
	struct slice host;   /* as written; an IPv6 address with its brackets */
	struct slice port;   /* digits, empty if there is none */
	struct slice tail;   /* path, query, fragment; empty or from the first `/`, `?` or `#` on */
};

/*
 * Takes `scheme://host[:port][tail]` apart. Refused: a user, an empty host, a port that is no number, characters
 * that are not visible ASCII. Returns 0, or -1. All slices are of the text.
 */
int url_parse(struct slice text, struct url *url_r) must_check;

bool url_is_https(const struct url *url);
/* 127.0.0.0/8, [::1] or localhost: by its spelling, nothing is resolved. */
bool url_is_loopback(const struct url *url);

/*
 * Whether the URL may be an issuer (or a jwks_uri, an introspection endpoint): https, or http to a loopback
 * address or "localhost"; no user, query or fragment. On failure err says what is wrong. AUTH-CFG-01
 */
int url_check_ours(struct slice text, struct error *err) must_check;

/*
 * Whether an audience names the resource. URLs: scheme and host without case, the default port is no
 * port, one `/` at the end of a path without query does not count, the rest by its bytes; anything else by its
 * bytes. AUTH-AUD-01, 03, 05
 */
bool url_is_same_resource(struct slice audience, struct slice resource);

/*
 * Whether two URLs are the same request target as DPoP compares them: scheme, host and port as above, path
 * by its bytes (an absent one is `/`); `given` has neither query nor fragment, those of `own` do not
 * count. RFC 9449 s4.3 (9)
 */
bool url_is_target(struct slice given, struct slice own);

#endif
