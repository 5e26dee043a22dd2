/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a request, by length or in chunks, with a cap: a decoder without I/O.
 * RFC 9112 §6, §7; SEC-21, SEC-29. Chunk extensions and trailers are refused.
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
	int place;         /* what the next byte is: enum body_place of body.c */
	uint64_t left;     /* of the body or of the chunk */
	uint64_t total;    /* payload bytes seen */
	uint64_t max;      /* cap of total */
	uint64_t overhead; /* framing bytes seen */
	unsigned int digits;
};

/* For the body that `request` announces. Returns 0, or 413 if its length is already over max. */
int http_body_init(struct http_body_reader *reader, const struct http_request *request,
		   uint64_t max);

/* Whether the whole body has been read; also where none was announced. */
bool http_body_is_complete(const struct http_body_reader *reader);

enum http_body_status { HTTP_BODY_MORE, HTTP_BODY_DONE, HTTP_BODY_BAD };

/*
 * Takes bytes off the front of *in and returns the next run of payload in *payload_r (a slice of in,
 * maybe empty). HTTP_BODY_MORE: call again while *in is not empty, then with more bytes.
 * HTTP_BODY_DONE: the body is complete (the payload of this call counts); what is left in *in belongs
 * to the next request. HTTP_BODY_BAD: *status_r is 400 or 413 (checked before the data of a chunk is
 * read; framing over 16 KiB + 4 x payload is 400); close the connection.
 */
enum http_body_status http_body_read(struct http_body_reader *reader, struct slice *in,
				     struct slice *payload_r, int *status_r) must_check;

#endif
