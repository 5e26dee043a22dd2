/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a request is from: the connection's peer, or, where that is a proxy that is trusted, whom it says
 * that it speaks for. From anybody else the same fields mean nothing. RFC 7239; DEF-07.
 */
#ifndef MCPGATED_HTTP_FORWARDED_H
#define MCPGATED_HTTP_FORWARDED_H

#include <stdbool.h>
#include <stddef.h>

#include "http/parse.h"
#include "io/peer.h"

struct http_client {
	struct peer peer;
	bool is_secure; /* the client itself came with https, as far as we or the proxies know */
	struct slice
		host; /* what the client called us, if a trusted proxy says so; of the request's head */
};

struct http_trust {
	const struct peer_net *nets; /* whose fields are believed; borrowed */
	size_t count;
};

/* `client` is the connection's, with an empty host; it is replaced as far as it is a trusted proxy. */
void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct http_client *client);

#endif
