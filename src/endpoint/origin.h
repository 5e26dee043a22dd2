/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For which host a request is meant, and from which web page it comes. Names are compared, never resolved: a page
 * that rebinds its own name to this address still sends its own name. The port counts: what else listens on this machine
 * may serve pages of strangers. FRONT-SEC-01, -02, SEC-01, SEC-23.
 */
#ifndef MCPGATED_ENDPOINT_ORIGIN_H
#define MCPGATED_ENDPOINT_ORIGIN_H

#include "base/slice.h"
#include "http/parse.h"

struct frontend_conf;

/* Why the Host header is refused, and the status that says so; NULL: it is one of ours, or there is none. */
const char *origin_check_host(const struct frontend_conf *conf, const struct http_request *request,
			      int *status_r);
/* Why the Origin header is refused (403); NULL: it is allowed, *origin_r, or there is none. has_tls: the connection. */
const char *origin_check(const struct frontend_conf *conf, const struct http_request *request,
			 bool has_tls, struct slice *origin_r);

/* `https://host[:port]` of an address with a path, or without; borrowed from it. */
struct slice origin_of(struct slice url);
/* What stands behind that, with its slash; empty: nothing. */
struct slice origin_path_of(struct slice url);
/*
 * A path that was asked for, without what public_url has in front: be it that a proxy has taken that away before or not. Borrowed
 * from it.
 */
struct slice origin_own_path(struct slice public_url, struct slice path);
/* The host part of an authority: without port. Empty if it is none. */
struct slice origin_host_of(struct slice authority);

#endif
