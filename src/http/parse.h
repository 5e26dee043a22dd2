/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP/1.x request: strict, one pass, slices out, no allocation, no I/O.
 * RFC 9112 §2 to §6 less every leniency; design/stack.md §3, threats.md SEC-20 … SEC-33.
 */
#ifndef MCPGATED_HTTP_PARSE_H
#define MCPGATED_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/* Methods that are known; all others are HTTP_OTHER (501). */
enum http_method {
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_DELETE,
	HTTP_OPTIONS,
	HTTP_PUT,
	HTTP_PATCH,
	HTTP_OTHER
};

/* Rows of fields[]: those of field.def, in its order. */
enum http_field {
#define X(id, letter, name) HTTP_##id,
#include "http/field.def"
#undef X
	HTTP_FIELD_COUNT
};
extern const struct slice http_field_names[HTTP_FIELD_COUNT];

enum http_body { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED };

struct http_request {
	enum http_method method;
	struct slice method_name;
	struct slice target; /* as sent */
	struct slice path;   /* before '?'; percent-encoding not decoded */
	struct slice query;  /* after '?', or empty with p == NULL */
	int minor_version;   /* HTTP/1.0 or 1.1 */
	bool keep_alive;     /* by version and Connection */
	bool expects_continue;
	bool has_proxy_field; /* one that is not in `fields`, and only matters by being there */
	enum http_body body;
	uint64_t content_length; /* with HTTP_BODY_LENGTH */
	uint32_t seen;           /* bit per http_field: present */
	uint32_t repeated; /* bit per http_field: more than once. Accept is joined by its readers
				    only if it is not repeated; repeats of lists that nobody here reads pass */
	struct slice fields[HTTP_FIELD_COUNT]; /* one value of each, without outer white space: the
						    first, where not said otherwise */
	/* The lines from the first Mcp-Param-* to the last, others between them; p == NULL: there is none. */
	struct slice params;
};

static inline bool http_has(const struct http_request *request, enum http_field field)
{
	return request->seen & 1u << field;
}

/*
 * Cuts the next Mcp-Param-* off the lines *rest_r, at first those of request->params: its name without this prefix, as it
 * was sent, and its value without outer white space. False: there is no more. MOD-HDR-04
 */
bool http_next_param(struct slice *rest_r, struct slice *name_r, struct slice *value_r);

/*
 * A copy that outlives the head: *copy_r's slices lie in the returned memory, which is the caller's, of
 * *size_r bytes. It may hold credentials: overwrite it before it is freed.
 */
char *http_request_copy(const struct http_request *request, struct http_request *copy_r,
			size_t *size_r);

struct http_parse_limits {
	size_t line_max;   /* request line, CRLF not counted: over it 414 */
	size_t head_max;   /* whole head, final CRLF counted: over it 431 */
	size_t fields_max; /* field lines: over it 431 */
};

/*
 * Parses a request head at the beginning of `in`.
 *
 * Returns   > 0   the head's length in bytes; *request_r is filled with slices of `in`
 *             0   incomplete: nothing is wrong so far; call again with more bytes behind the same ones.
 *                 *seen (0 at first, kept by the caller) remembers how far the end was sought, so
 *                 that a trickled head is not searched from its start each time
 *            -1   refused: *status_r is the HTTP status (400, 414, 417, 431, 501, 505) and
 *                 *reason_r a short text for people (a literal)
 * An incomplete head is refused as soon as it is known to be wrong in size. One leading CRLF is
 * skipped. Content-Length over UINT64_MAX or 19 digits is 400; other Expect values are 417.
 * Any split of the same bytes gives the same result.
 */
long http_parse_head(struct slice in, const struct http_parse_limits *limits, size_t *seen,
		     struct http_request *request_r, int *status_r, const char **reason_r)
	must_check;

/* The value of the first parameter of this name, not decoded; false: there is none. */
bool http_query_find(struct slice query, struct slice name, struct slice *value_r);

/*
 * Whether the media range list `accept` takes `type`, e.g. "text/event-stream": exact, "text/" + "*" or
 * "*" + "/" + "*", with q other than 0. RFC 9110 §12.5.1.
 */
bool http_accepts(struct slice accept, const char *type);
/* Whether the client takes it: so it is without Accept, or with one that is spread over several fields. FRONT-HTTP-03 */
bool http_request_accepts(const struct http_request *request, const char *type);

/* The same for the two types that this program sends. */
struct http_accepted {
	bool json;   /* application/json */
	bool events; /* text/event-stream */
};
struct http_accepted http_request_accepted(const struct http_request *request);
/*
 * Whether `value` is the media type `type` in any case, with parameters allowed; a charset parameter
 * must be utf-8. FRONT-HTTP-06.
 */
bool http_is_media_type(struct slice value, const char *type);

#endif
