/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the head of an HTTP/1.x request: strictly, in one pass, into slices. Only a copy of a
 * request allocates. RFC 9112 §2 to §6 without any of its leniencies; design/stack.md §3, threats.md SEC-20 …
 * SEC-33.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/* Known methods; all others are HTTP_OTHER (501). */
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

/* Indexes of fields[]: the rows of field.def. */
enum http_field {
#define X(id, letter, name) HTTP_##id,
#include "http/field.def"
	HTTP_FIELD_COUNT
};
extern const struct slice http_field_names[HTTP_FIELD_COUNT];

enum http_body { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED };

struct http_request {
	enum http_method method;
	struct slice method_name;
	struct slice target; /* as sent */
	struct slice path;   /* before '?'; percent-encoding not decoded; of a URL, its path */
	struct slice query;  /* after '?', or empty with p == NULL */
	int minor_version;   /* HTTP/1.0 or 1.1 */
	bool keep_alive;     /* by version and Connection */
	bool expects_continue;
	/* has a forwarding field that is not in `fields`; only its presence matters */
	bool has_proxy_field;
	enum http_body body;
	uint64_t content_length; /* with HTTP_BODY_LENGTH */
	uint32_t seen;           /* bit per http_field: present */
	/*
	 * bit per http_field: more than once. Readers join the values of Accept only if it is not
	 * repeated; repeated list fields that nobody here reads are accepted
	 */
	uint32_t repeated;
	/*
	 * One value of each, trimmed: the first, unless stated otherwise. Host is the authority of
	 * the target if that is a URL.
	 */
	struct slice fields[HTTP_FIELD_COUNT];
	/*
	 * The header lines from the first to the last Mcp-Param-*, including others in between; p
	 * == NULL: none.
	 */
	struct slice params;
};

static inline bool http_has(const struct http_request *request, enum http_field field)
{
	return request->seen & 1u << field;
}

/*
 * Cuts the next Mcp-Param-* field off the lines in *rest_r, which is initially request->params.
 * Returns its name without this prefix, as sent, and its trimmed value; false if there are no more.
 * MOD-HDR-04
 */
bool http_next_param(struct slice *rest_r, struct slice *name_r, struct slice *value_r);

/*
 * Likewise the next name of an Mcp-Param-* field, whole and as sent, in the list of names *rest_r:
 * the value of Access-Control-Request-Headers. FRONT-HTTP-14
 */
bool http_next_asked_param(struct slice *rest_r, struct slice *name_r);

/*
 * Copies the request so that it outlives the head: the slices of *copy_r point into the returned
 * memory of *size_r bytes, which the caller owns. It may contain credentials: overwrite it before
 * freeing it.
 */
char *http_request_copy(const struct http_request *request, struct http_request *copy_r,
			size_t *size_r);

struct http_parse_limits {
	size_t line_max;   /* request line without CRLF; 414 if exceeded */
	size_t head_max;   /* whole head with its final CRLF; 431 if exceeded */
	size_t fields_max; /* number of field lines; 431 if exceeded */
};

/*
 * Parses a request head at the beginning of `in`.
 *
 * Returns   > 0   the length of the head in bytes; *request_r is filled with slices of `in`
 *             0   incomplete, no error so far; call again with the same bytes and more.
 *                 *seen (initially 0, kept by the caller) stores how far the end was searched,
 *                 so that a head that trickles in is not scanned from the start each time
 *            -1   rejected: *status_r is the HTTP status (400, 414, 417, 431, 501, 505) and
 *                 *reason_r a short text for people (a literal)
 *
 * An incomplete head is rejected as soon as its size exceeds a limit. One leading CRLF is skipped.
 * Content-Length over UINT64_MAX or 19 digits is 400; Expect values other than 100-continue are
 * 417. The result does not depend on how the bytes are split over calls.
 */
long http_parse_head(struct slice in, const struct http_parse_limits *limits, size_t *seen,
		     struct http_request *request_r, int *status_r, const char **reason_r)
	must_check;

/* The value of the first parameter with this name, not decoded. False if there is none. */
bool http_query_find(struct slice query, struct slice name, struct slice *value_r);

/*
 * Whether the media range list `accept` accepts `type`, e.g. "text/event-stream": by an exact
 * match, "text/" + "*" or "*" + "/" + "*", with q other than 0. RFC 9110 §12.5.1.
 */
bool http_accepts(struct slice accept, const char *type);
/*
 * Whether the client accepts the type. True also without Accept, and if Accept is repeated.
 * FRONT-HTTP-03
 */
bool http_request_accepts(const struct http_request *request, const char *type);

/* http_request_accepts for the two types that this program sends. */
struct http_accepted {
	bool json;   /* application/json */
	bool events; /* text/event-stream */
};
struct http_accepted http_request_accepted(const struct http_request *request);
/*
 * Whether `value` is the media type `type`, ignoring case. Parameters are allowed; a charset must
 * be utf-8. FRONT-HTTP-06.
 */
bool http_is_media_type(struct slice value, const char *type);

/* ---- bodies ---- */

/*
 * Decodes a request body, by length or chunked, up to a maximum size; no I/O. RFC 9112 §6, §7;
 * SEC-21, SEC-29. Chunk extensions and trailers are rejected.
 */

struct http_body_reader {
	enum http_body coding;
	int place;         /* what the next byte belongs to: enum body_place of body.c */
	uint64_t left;     /* bytes left of the body or of the chunk */
	uint64_t total;    /* payload bytes read */
	uint64_t max;      /* limit of total */
	uint64_t overhead; /* framing bytes read */
	unsigned int digits;
};

/* Prepares for the body that `request` announces. Returns 0, or 413 if its length exceeds max. */
int http_body_init(struct http_body_reader *reader, const struct http_request *request,
		   uint64_t max);

/* Whether the whole body has been read; true also if none was announced. */
bool http_body_is_complete(const struct http_body_reader *reader);

enum http_body_status { HTTP_BODY_MORE, HTTP_BODY_DONE, HTTP_BODY_BAD };

/*
 * Takes bytes off the front of *in and returns the next run of payload in *payload_r (a slice of
 * in, possibly empty). HTTP_BODY_MORE: call again while *in is not empty, then with more bytes.
 * HTTP_BODY_DONE: the body is complete, including the payload of this call; what remains in *in
 * belongs to the next request. HTTP_BODY_BAD: *status_r is 400 or 413, and the connection must be
 * closed. Chunk sizes are checked before the data of the chunk is read; framing of more than 16 KiB
 * + 4 x payload is 400.
 */
enum http_body_status http_body_read(struct http_body_reader *reader, struct slice *in,
				     struct slice *payload_r, int *status_r) must_check;
