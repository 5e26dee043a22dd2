/* SPDX-License-Identifier: Apache-2.0 */
/* Counts before the tree is built; the grammar is jansson's. */
#include "auth/document.h"

#include <string.h>

#include "auth/url.h"
#include "base/mem.h"

/* From behind the opening quote to behind the closing one, or to the end. */
static const char *document_skip_string(const char *p, const char *end)
{
	while (p < end && *p != '"')
		p += *p == '\\' && end - p > 1 ? 2 : 1;
	return p < end ? p + 1 : end;
}

/* Counts correctly in all valid JSON. jansson refuses everything else, and its tree cannot grow larger before that. */
static int check_bounds(struct slice text, struct error *err)
{
	const char *end = text.p + text.n;
	size_t depth = 0;
	size_t values = 0; /* no fewer than the tree will have */

	if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
		return error_set(err, ERROR_SYNTAX, "it contains a NUL byte");
	for (const char *p = text.p; p < end;) {
		char c = *p++;

		if (c == '"')
			p = document_skip_string(p, end);
		values += c == '{' || c == '[' || c == ',' || c == ':';
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && depth > 0)
			depth--;
		if (depth > DOCUMENT_DEPTH_MAX || values > DOCUMENT_VALUES_MAX)
			return error_set(err, ERROR_LIMIT, "too many or too deeply nested values");
	}
	return 0;
}

json_t *document_parse(struct slice text, struct error *err)
{
	json_error_t why;
	json_auto_t *value = NULL;

	if (check_bounds(text, err) < 0)
		return NULL;
	value = json_loadb(text.n > 0 ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &why);
	if (value == NULL)
		error_set(err, ERROR_SYNTAX, "%s", why.text);
	else if (!json_is_object(value))
		error_set(err, ERROR_INVALID, "it is not a JSON object");
	return json_is_object(value) ? json_incref(value) : NULL;
}

struct slice document_text(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return slice_of(json_string_value(value), json_string_length(value));
}

const char *document_string(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

bool document_lists(const json_t *array, struct slice text)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);

		if (json_is_string(item) &&
		    slice_is_equal(slice_of(json_string_value(item), json_string_length(item)),
				   text))
			return true;
	}
	return false;
}

/* ---- metadata of issuers ---- */

/* Addresses are made of the configured name alone, never of what a document says of itself. */

char *issuer_metadata_url(const char *issuer, size_t at)
{
	struct url url;
	char *text = NULL;
	at_end(mem_free) char *path = NULL;
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
	return text;
}

int issuer_metadata_check(const json_t *document, const char *issuer, struct error *err)
{
	static const char *const addresses[] = { "jwks_uri", "introspection_endpoint",
						 "token_endpoint" };
	struct slice name = document_text(document, "issuer");
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
		    (!url_is_https(&url) && url_check_ours(text, NULL) < 0))
			return error_set(err, ERROR_INVALID, "its `%s` is not an https URL",
					 addresses[i]);
	}
	return 0;
}

json_t *issuer_metadata_read(struct slice text, const char *issuer, struct error *err)
{
	json_auto_t *document = document_parse(text, err);
	bool is_good = document != NULL && issuer_metadata_check(document, issuer, err) == 0;

	return is_good ? json_incref(document) : NULL;
}
