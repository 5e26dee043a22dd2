/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a request is from: the connection's peer, or, where that is a proxy that is trusted, whom it says
 * that it speaks for. From anybody else the same fields mean nothing. What they say of scheme and host is not
 * asked for: our addresses are those of the configuration. RFC 7239; DEF-07, SEC-15.
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

/* `client` is the connection's peer; it is replaced as far as it is a trusted proxy. */
void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct peer *client);

#endif
