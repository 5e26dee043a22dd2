/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each proxy appends an element that names the address it got the request from. So the last element was
 * written by the connection's peer, the one before it by the address that the last one names, and so on.
 * Elements are read from the end as long as their writer is trusted. What stands before them, however much
 * and however malformed, was written by the client and is never looked at. A malformed element names
 * nobody, and reading ends there.
 */
#include "http/forwarded.h"

bool http_trust_has(const struct http_trust *trust, const struct peer *peer)
{
	for (size_t i = 0; i < trust->count; i++) {
		if (peer_net_has(&trust->nets[i], peer))
			return true;
	}
	return false;
}

/* ---- Forwarded: elements of pairs, whose values may be quoted ---- */

static size_t skip_spaces(struct slice text, size_t at)
{
	while (at < text.n && (text.p[at] == ' ' || text.p[at] == '\t'))
		at++;
	return at;
}

/* A run of bytes that end neither a name nor an unquoted value. */
static size_t skip_word(struct slice text, size_t at)
{
	while (at < text.n && memchr(" \t,;=\"", text.p[at], 7) == NULL)
		at++;
	return at;
}

/* The value at *at_r, without its quotes; p == NULL: malformed, which includes escapes: no proxy writes them. */
static struct slice take_value(struct slice text, size_t *at_r)
{
	size_t begin = *at_r;
	const char *end;

	if (begin >= text.n || text.p[begin] != '"') {
		*at_r = skip_word(text, begin);
		return slice_of(text.p + begin, *at_r - begin);
	}
	begin++;
	end = memchr(text.p + begin, '"', text.n - begin);
	if (end == NULL || memchr(text.p + begin, '\\', (size_t)(end - text.p) - begin) != NULL)
		return (struct slice){ NULL, 0 };
	*at_r = (size_t)(end - text.p) + 1;
	return slice_between(text.p + begin, end);
}

/* `name=value` at *at_r, of which only `for` matters; false: malformed. */
static bool take_pair(struct slice text, size_t *at_r, struct slice *address_r)
{
	size_t begin = skip_spaces(text, *at_r);
	size_t end = skip_word(text, begin);
	struct slice name = slice_of(text.p + begin, end - begin);
	struct slice value;

	CHECK(*at_r <= text.n);
	if (name.n == 0 || end >= text.n || text.p[end] != '=')
		return false;
	*at_r = end + 1;
	value = take_value(text, at_r);
	if (value.p == NULL)
		return false;
	if (slice_is_equal_nocase(name, SLICE_LIT("for")))
		*address_r = value;
	*at_r = skip_spaces(text, *at_r);
	return true;
}

/* The address of an element; p == NULL: malformed, or none. */
static struct slice read_element(struct slice text)
{
	struct slice address = { NULL, 0 };
	size_t at = 0;

	while (take_pair(text, &at, &address)) {
		if (at == text.n)
			return address;
		if (text.p[at++] != ';')
			break;
	}
	return (struct slice){ NULL, 0 };
}

/* ---- lists ---- */

/* Cuts the last element off; none is left when p is NULL. No proxy writes a comma within one. */
static struct slice take_last(struct slice *list)
{
	const char *comma = list->n > 0 ? memrchr(list->p, ',', list->n) : NULL;
	struct slice last = *list;

	*list = (struct slice){ NULL, 0 };
	if (comma != NULL) {
		*list = slice_between(last.p, comma);
		last = slice_between(comma + 1, last.p + last.n);
	}
	return slice_trim(last);
}

/* X-Forwarded-For goes first: nearly every proxy writes it, and most pass on a Forwarded that the client made up. */
void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct peer *client)
{
	bool has_pairs =
		http_has(request, HTTP_FORWARDED) && !http_has(request, HTTP_X_FORWARDED_FOR);
	struct slice list = request->fields[has_pairs ? HTTP_FORWARDED : HTTP_X_FORWARDED_FOR];

	while (list.n > 0 && http_trust_has(trust, client)) {
		struct slice last = take_last(&list);

		if (!peer_parse(has_pairs ? read_element(last) : last, client))
			return; /* it names no address */
	}
}

bool http_is_forwarded(const struct http_request *request)
{
	return http_has(request, HTTP_FORWARDED) || http_has(request, HTTP_X_FORWARDED_FOR) ||
	       request->has_proxy_field;
}
