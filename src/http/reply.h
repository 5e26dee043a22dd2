/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the head of a response (RFC 9112 §4, RFC 9110 §15), and events of a stream. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct http_reply;

/* What tells the client where the body ends. */
enum reply_end {
	REPLY_END_NONE,   /* there is no body, or the connection ends with it */
	REPLY_END_LENGTH, /* Content-Length */
	REPLY_END_CHUNK,  /* Transfer-Encoding: chunked */
};

/*
 * Appends the head with the current Date and the final empty line. length: of the body, for
 * REPLY_END_LENGTH; is_last: Connection: close.
 */
void reply_append_head(struct buf *out, const struct http_reply *reply, enum reply_end end,
		       uint64_t length, bool is_last);

/* ---- events ---- */

/* Server-sent events. WHATWG HTML §9.2; FRONT-SSE-02. */

/* The header fields of every event stream, each ending with CRLF. FRONT-HTTP-12. */
extern const struct slice sse_fields;

/*
 * Appends a `message` event with an id (empty: none). The data must contain no raw CR or LF; the
 * message path has replaced them.
 */
void sse_append_message(struct buf *out, struct slice id, struct slice data);
/*
 * Appends an event with an id and empty data, so that a client can resume even before the first
 * message. FRONT-SSE-03
 */
void sse_append_priming(struct buf *out, struct slice id, uint64_t retry_ms);
/*
 * Appends the first event of HTTP+SSE, which names the URI for messages. With an id (empty: none),
 * the client can reconnect and is told after which time. FRONT-OLD-01
 */
void sse_append_endpoint(struct buf *out, struct slice uri, struct slice id, uint64_t retry_ms);
/* Appends a comment line, to keep the connection alive. FRONT-HTTP-13. */
void sse_append_comment(struct buf *out);
