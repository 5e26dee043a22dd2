/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host that a request is meant for, and the web page that it comes from. Names are compared,
 * never resolved: a page that rebinds its own name to this address still sends its own name. The
 * port counts, because other services on this machine may serve strangers' pages. FRONT-SEC-01,
 * -02, SEC-01, SEC-23.
 */
#pragma once

#include "base/slice.h"
#include "http/parse.h"

struct frontend_conf;

/* Why the Host header is refused, and the status to send; NULL: it is one of ours, or absent. */
const char *origin_check_host(const struct frontend_conf *conf, const struct http_request *request,
			      int *status_r);
/*
 * Why the Origin header is refused (403). NULL: allowed (*origin_r), or absent. has_tls: the
 * connection's.
 */
const char *origin_check(const struct frontend_conf *conf, const struct http_request *request,
			 bool has_tls, struct slice *origin_r);

/* The `https://host[:port]` of a URL with or without a path; borrowed from it. */
struct slice origin_of(struct slice url);
/* The rest of the URL, with its slash; or empty. */
struct slice origin_path_of(struct slice url);
/*
 * The requested path without the prefix of public_url, whether or not a proxy has already stripped
 * it. Borrowed from it.
 */
struct slice origin_own_path(struct slice public_url, struct slice path);
/* The host of an authority, without the port. Empty if invalid. */
struct slice origin_host_of(struct slice authority);
