/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proxies append: the last element was written by the peer itself, the one before by whom that element
 * names, and so on. So elements are taken from the end as long as their writer is trusted. A field
 * that is not well-formed, or has too many elements, says nothing at all.
 */
#include "http/forwarded.h"

#define ELEMENTS_MAX 32

struct element {
	struct slice address;
	struct slice scheme;
	struct slice host;
};

static bool is_trusted(const struct http_trust *trust, const struct peer *peer)
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

/* The value at *at_r, without its quotes; p == NULL: malformed. Escapes are not needed by anybody. */
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

/* `name=value` at *at_r; false: malformed. */
static bool take_pair(struct slice text, size_t *at_r, struct element *element)
{
	size_t begin = skip_spaces(text, *at_r);
	size_t end = skip_word(text, begin);
	struct slice name = slice_of(text.p + begin, end - begin);
	struct slice value;

	if (name.n == 0 || end >= text.n || text.p[end] != '=')
		return false;
	*at_r = end + 1;
	value = take_value(text, at_r);
	if (value.p == NULL)
		return false;
	if (slice_is_equal_nocase(name, SLICE_LIT("for")))
		element->address = value;
	else if (slice_is_equal_nocase(name, SLICE_LIT("proto")))
		element->scheme = value;
	else if (slice_is_equal_nocase(name, SLICE_LIT("host")))
		element->host = value;
	*at_r = skip_spaces(text, *at_r);
	return true;
}

/* Returns the number of elements; 0: malformed, or too many. */
static size_t read_forwarded(struct slice text, struct element *elements)
{
	size_t count = 1;
	size_t at = 0;

	elements[0] = (struct element){ .address = { NULL, 0 } };
	while (take_pair(text, &at, &elements[count - 1])) {
		if (at == text.n)
			return count;
		if (text.p[at] == ',' && count < ELEMENTS_MAX)
			elements[count++] = (struct element){ .address = { NULL, 0 } };
		else if (text.p[at] != ';')
			return 0;
		at++;
	}
	return 0;
}

/* ---- X-Forwarded-*: a list of addresses; scheme and host of the nearest proxy's client ---- */

static struct slice last_of(struct slice list)
{
	struct slice last = { NULL, 0 };

	while (list.n > 0)
		last = slice_trim(slice_cut(&list, ','));
	return last;
}

static size_t read_x_forwarded(const struct http_request *request, struct element *elements)
{
	struct slice list = request->fields[HTTP_X_FORWARDED_FOR];
	size_t count = 0;

	while (list.n > 0 && count < ELEMENTS_MAX)
		elements[count++] =
			(struct element){ .address = slice_trim(slice_cut(&list, ',')) };
	if (list.n > 0)
		return 0;
	if (count == 0)
		elements[count++] = (struct element){ .address = { NULL, 0 } };
	/* They are not lists of the same length: every proxy passes on or replaces what it got. */
	for (size_t i = 0; i < count; i++) {
		elements[i].scheme = last_of(request->fields[HTTP_X_FORWARDED_PROTO]);
		elements[i].host = last_of(request->fields[HTTP_X_FORWARDED_HOST]);
	}
	return count;
}

/* ---- both ---- */

/* Returns false where the way back ends: nobody is named, or not by an address. */
static bool apply_element(const struct element *element, struct http_client *client)
{
	if (slice_is_equal_nocase(element->scheme, SLICE_LIT("https")))
		client->is_secure = true;
	else if (slice_is_equal_nocase(element->scheme, SLICE_LIT("http")))
		client->is_secure = false;
	client->host = element->host;
	return element->address.n > 0 && peer_parse(element->address, &client->peer);
}

void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct http_client *client)
{
	struct element elements[ELEMENTS_MAX];
	size_t count;

	if (!is_trusted(trust, &client->peer))
		return;
	count = http_has(request, HTTP_FORWARDED) ?
			read_forwarded(request->fields[HTTP_FORWARDED], elements) :
			read_x_forwarded(request, elements);
	while (count > 0 && is_trusted(trust, &client->peer)) {
		if (!apply_element(&elements[--count], client))
			return;
	}
}
