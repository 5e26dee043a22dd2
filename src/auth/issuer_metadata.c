/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses are made of the configured name alone, never of what a document says of itself. */
#include "auth/issuer_metadata.h"

#include <stdlib.h>

#include "auth/document.h"
#include "auth/url.h"
#include "base/mem.h"

char *issuer_metadata_url(const char *issuer, size_t at)
{
	struct url url;
	char *text = NULL;
	char *path;
	int origin;

	if (url_parse(slice_str(issuer), &url) < 0)
		return NULL;
	origin = (int)(strlen(issuer) - url.tail.n);
	path = mem_dup_slice(url.tail);
	if (url.tail.n > 0 && path[url.tail.n - 1] == '/')
		path[url.tail.n - 1] = '\0';
	if (at == 0)
		text = mem_printf("%.*s/.well-known/oauth-authorization-server%s", origin, issuer,
				  path);
	else if (at == 1)
		text = mem_printf("%.*s/.well-known/openid-configuration%s", origin, issuer, path);
	else if (at == 2 && path[0] != '\0')
		text = mem_printf("%.*s%s/.well-known/openid-configuration", origin, issuer, path);
	free(path);
	return text;
}

int issuer_metadata_check(const json_t *document, const char *issuer, struct error *err)
{
	static const char *const addresses[] = { "jwks_uri", "introspection_endpoint" };
	struct slice name = document_text(document, "issuer");
	struct error why = { ERROR_NONE, "" };
	struct url own;

	if (!slice_is_equal(name, slice_str(issuer)))
		return error_set(err, ERROR_INVALID, "it is for another issuer, `%.*s`",
				 name.n < 128 ? (int)name.n : 128, name.n > 0 ? name.p : "");
	if (url_parse(slice_str(issuer), &own) < 0)
		return error_set(err, ERROR_INVALID, "the issuer is not a URL");
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		struct slice text = document_text(document, addresses[i]);
		struct url url;

		if (json_object_get(document, addresses[i]) == NULL)
			continue;
		if (url_parse(text, &url) < 0 || (url_is_https(&own) && !url_is_https(&url)) ||
		    (!url_is_https(&url) && url_check_ours(text, &why) < 0))
			return error_set(err, ERROR_INVALID, "its `%s` is not an https URL",
					 addresses[i]);
	}
	return 0;
}
