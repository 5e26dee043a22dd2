/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines which client sent a request: the peer of the connection or, if that is a trusted
 * proxy, the address that it reports. The fields are ignored from anybody else. Forwarded scheme
 * and host are not used: the configuration defines our own addresses. RFC 7239; DEF-07, SEC-15.
 */
#ifndef MCPGATED_HTTP_FORWARDED_H
#define MCPGATED_HTTP_FORWARDED_H

#include <stddef.h>

#include "http/parse.h"
#include "io/peer.h"

struct http_trust {
	const struct peer_net *nets; /* the trusted proxies; borrowed */
	size_t count;
};

bool http_trust_has(const struct http_trust *trust, const struct peer *peer);

/*
 * `client` is initially the peer of the connection. It is replaced by the forwarded address as long
 * as it is a trusted proxy.
 */
void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct peer *client);
/*
 * Whether the request has a field that proxies add (Forwarded, X-Forwarded-*, X-Real-IP, Via, CF-*
 * …) and clients do not. SEC-69
 */
bool http_is_forwarded(const struct http_request *request);

#endif
