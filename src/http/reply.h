/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the head of a response. RFC 9112 §4, RFC 9110 §15. */
#ifndef MCPGATED_HTTP_REPLY_H
#define MCPGATED_HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct reply_head {
	int status;
	const char *content_type;   /* NULL: no such field */
	const struct slice *fields; /* concatenated, they are complete header lines, or empty */
	size_t field_count;
	bool has_length; /* Content-Length: length */
	bool is_chunked; /* Transfer-Encoding: chunked */
	bool is_last;    /* Connection: close */
	uint64_t length;
};

/* Appends the head with the current Date and the final empty line. */
void reply_append_head(struct buf *out, const struct reply_head *head);
/* "Not Found" for 404; "Unknown" for a status that we never send. */
const char *reply_status_text(int status);

#endif
