/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes a request body, by length or chunked, up to a maximum size; no I/O. RFC 9112 §6, §7;
 * SEC-21, SEC-29. Chunk extensions and trailers are rejected.
 */
#ifndef MCPGATED_HTTP_BODY_H
#define MCPGATED_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/parse.h"

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

#endif
