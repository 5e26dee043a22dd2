/* SPDX-License-Identifier: Apache-2.0 */
/* A page that is served by a host of ours may send requests to us; any other must be configured. */
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

/* name[:port], with a port that exists. SEC-23 */
static bool is_authority(struct slice authority)
{
	struct slice host = origin_host_of(authority);
	struct slice rest = slice_of(authority.p + host.n, authority.n - host.n);
	uint64_t port;

	if (host.n == 0)
		return false;
	if (rest.n == 0)
		return true;
	return rest.p[0] == ':' && text_parse_u64(slice_of(rest.p + 1, rest.n - 1), &port) == 0 &&
	       port <= 65535;
}

/* One of the configured origins, or a page of a host that we are ourselves. */
static bool is_allowed(const struct frontend_conf *conf, struct slice origin)
{
	static const struct slice schemes[] = { SLICE("http://"), SLICE("https://") };

	if (slices_has_nocase(conf->origins, origin))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct slice rest;

		if (!slice_has_prefix(origin, schemes[i]))
			continue;
		rest = slice_of(origin.p + schemes[i].n, origin.n - schemes[i].n);
		return is_authority(rest) && slices_has_nocase(conf->hosts, origin_host_of(rest));
	}
	return false;
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
		return "Forbidden: this Host is not served here (see the hosts option)";
	}
	return NULL;
}

const char *origin_check(const struct frontend_conf *conf, const struct http_request *request,
			 struct slice *origin_r)
{
	struct slice origin = request->fields[HTTP_ORIGIN];

	if (!http_has(request, HTTP_ORIGIN))
		return NULL;
	if (!is_allowed(conf, origin))
		return "Forbidden: this Origin is not allowed (see the origins option)";
	*origin_r = origin;
	return NULL;
}
