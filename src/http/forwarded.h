/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which client sent a request: the connection's peer or, if that is a trusted proxy, the address that it names.
 * From anybody else the same fields mean nothing. What they say of scheme and host is not used: our addresses
 * are those of the configuration. RFC 7239; DEF-07, SEC-15.
 */
#ifndef MCPGATED_HTTP_FORWARDED_H
#define MCPGATED_HTTP_FORWARDED_H

#include <stddef.h>

#include "http/parse.h"
#include "io/peer.h"

struct http_trust {
	const struct peer_net *nets; /* whose fields are believed; borrowed */
	size_t count;
};

bool http_trust_has(const struct http_trust *trust, const struct peer *peer);

/* `client` is the connection's peer; it is replaced as far as it is a trusted proxy. */
void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct peer *client);
/* Whether a proxy has written any of its fields (Forwarded, X-Forwarded-*, X-Real-IP, Via, CF-* …): clients do not. SEC-69 */
bool http_is_forwarded(const struct http_request *request);

#endif
