/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/store_url.h"

#include <string.h>
#include <sys/un.h>

#include "auth/url.h"
#include "base/slice.h"

#define DEFAULT_PORT "6379"

static const struct {
	const char *scheme;
	bool is_tls;
} schemes[] = { { "valkey", false }, { "redis", false }, { "valkeys", true }, { "rediss", true } };

static int copy(char *out, size_t size, struct slice text, struct error *err)
{
	if (text.n == 0 || text.n >= size)
		return error_set(err, ERROR_INVALID, "has a name that is too long");
	memcpy(out, text.p, text.n);
	out[text.n] = '\0';
	return 0;
}

int store_url_parse(const char *text, struct store_url *url_r, struct error *err)
{
	static const char form[] = "must be valkey://HOST:PORT, valkeys://HOST:PORT (with TLS), "
				   "redis:// or rediss:// likewise, or unix:///PATH";
	struct url url;
	size_t i = 0;

	*url_r = (struct store_url){ .is_unix = strncmp(text, URL_OF_SOCKET "/",
							strlen(URL_OF_SOCKET "/")) == 0 };
	if (url_r->is_unix) {
		struct slice path = slice_str(text + strlen(URL_OF_SOCKET));

		if (path.n >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
			return error_set(err, ERROR_INVALID, "has a path that is too long");
		return copy(url_r->host, sizeof(url_r->host), path, err);
	}
	if (url_parse(slice_str(text), &url) < 0)
		return error_set(err, ERROR_INVALID, "%s", form);
	while (i < ARRAY_LEN(schemes) &&
	       !slice_is_equal_nocase(url.scheme, slice_str(schemes[i].scheme)))
		i++;
	if (i == ARRAY_LEN(schemes) ||
	    (url.tail.n > 0 && !slice_is_equal(url.tail, SLICE_LIT("/"))))
		return error_set(err, ERROR_INVALID, "%s", form);
	url_r->is_tls = schemes[i].is_tls;
	if (url.host.p[0] == '[')
		url.host = slice_of(url.host.p + 1, url.host.n - 2);
	return copy(url_r->port, sizeof(url_r->port),
		    url.port.n > 0 ? url.port : SLICE_LIT(DEFAULT_PORT), err) < 0 ?
		       -1 :
		       copy(url_r->host, sizeof(url_r->host), url.host, err);
}

bool store_url_is_exposed(const struct store_url *url)
{
	const struct url as_url = { .host = slice_str(url->host) };
	bool is_here = url->is_unix || url_is_loopback(&as_url) || strcmp(url->host, "::1") == 0;

	return !is_here && !url->is_tls;
}
