/* SPDX-License-Identifier: Apache-2.0 */
/* A page that we could have served ourselves may send requests to us; others must be configured. */
#include "endpoint/origin.h"

#include "base/text.h"
#include "endpoint/frontend.h"

struct slice origin_host_of(struct slice authority)
{
	const char *end;

	if (authority.n > 0 && authority.p[0] == '[') {
		end = memchr(authority.p, ']', authority.n);
		return end != NULL ? slice_between(authority.p, end + 1) : slice_of(NULL, 0);
	}
	return slice_cut(&authority, ':');
}

struct slice origin_of(struct slice url)
{
	const char *host = url.n > 0 ? memmem(url.p, url.n, "://", 3) : NULL;
	const char *end;
	const char *path;

	if (host == NULL)
		return url;
	host += 3;
	end = url.p + url.n;
	path = memchr(host, '/', (size_t)(end - host));
	return slice_between(url.p, path != NULL ? path : end);
}

struct slice origin_path_of(struct slice url)
{
	size_t n = origin_of(url).n;

	return slice_of(url.p + n, url.n - n);
}

struct slice origin_own_path(struct slice public_url, struct slice path)
{
	struct slice prefix = origin_path_of(public_url);

	if (prefix.n > 0 && path.n > prefix.n && path.p[prefix.n] == '/' &&
	    slice_has_prefix(path, prefix))
		return slice_of(path.p + prefix.n, path.n - prefix.n);
	return path;
}

/* name[:port], with a valid port number. SEC-23 */
static bool is_authority(struct slice authority)
{
	struct slice host = origin_host_of(authority);
	struct slice rest;
	uint64_t port;

	if (host.n == 0)
		return false;
	rest = slice_of(authority.p + host.n, authority.n - host.n);
	if (rest.n == 0)
		return true;
	return rest.p[0] == ':' && text_parse_u64(slice_of(rest.p + 1, rest.n - 1), &port) == 0 &&
	       port <= 65535;
}

/* Includes the colon; empty: the default port of the scheme. */
static struct slice origin_port_of(struct slice authority)
{
	size_t host = origin_host_of(authority).n;

	return slice_of(authority.p + host, authority.n - host);
}

/* What follows the scheme, which is http or https; empty: the scheme is another one. */
static struct slice authority_of(struct slice origin)
{
	static const struct slice schemes[] = { SLICE("http://"), SLICE("https://") };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (slice_has_prefix(origin, schemes[i]))
			return slice_of(origin.p + schemes[i].n, origin.n - schemes[i].n);
	return slice_of(NULL, 0);
}

/*
 * Whether origin is one of the configured ones, that of public_url, or a name of ours with the port
 * that the request is for. Another port of the same host is another program, which may serve
 * anybody's page; so is the other scheme, if no port is named. On a connection without TLS, only
 * public_url tells whether a proxy in front has TLS.
 */
static bool is_allowed(const struct frontend_conf *conf, struct slice origin, struct slice host,
		       bool has_tls)
{
	struct slice own = origin_of(conf->authorization.public_url);
	struct slice authority = authority_of(origin);

	if (slices_has_nocase(conf->origins, origin) ||
	    (own.n > 0 && slice_is_equal_nocase(own, origin)))
		return true;
	if (!is_authority(authority) || (has_tls && !slice_has_prefix(origin, SLICE_LIT("https:"))))
		return false;
	if (own.n > 0 && slice_is_equal_nocase(authority_of(own), authority))
		return false; /* its scheme is the other one */
	return slices_has_nocase(conf->hosts, origin_host_of(authority)) &&
	       slice_is_equal(origin_port_of(authority), origin_port_of(host));
}

const char *origin_check_host(const struct frontend_conf *conf, const struct http_request *request,
			      int *status_r)
{
	struct slice host = request->fields[HTTP_HOST];

	if (!http_has(request, HTTP_HOST))
		return NULL;
	if (!is_authority(host)) {
		*status_r = 400;
		return "Bad request: the Host header is no host and port";
	}
	if (!slices_has_nocase(conf->hosts, origin_host_of(host))) {
		*status_r = 403;
		return "Forbidden: this Host is not served here; add it to `hosts` of the configuration, or "
		       "where there is none with --host NAME";
	}
	return NULL;
}

const char *origin_check(const struct frontend_conf *conf, const struct http_request *request,
			 bool has_tls, struct slice *origin_r)
{
	struct slice origin = request->fields[HTTP_ORIGIN];

	if (!http_has(request, HTTP_ORIGIN))
		return NULL;
	/* origin_check_host has found that the Host is one of ours. */
	if (!is_allowed(conf, origin, request->fields[HTTP_HOST], has_tls))
		return "Forbidden: this Origin is not allowed: a page in a browser calls; add it to `origins` of the "
		       "configuration, if it may";
	*origin_r = origin;
	return NULL;
}
