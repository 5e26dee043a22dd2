/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events as text. WHATWG HTML §9.2; FRONT-SSE-02. */
#ifndef MCPGATED_HTTP_SSE_H
#define MCPGATED_HTTP_SSE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* The header fields of every event stream, each ended by CRLF. FRONT-HTTP-12. */
extern const struct slice sse_fields;

/*
 * One `message` event: an id (empty: none) and the data, which holds no raw CR or LF (the message
 * path has replaced them).
 */
void sse_append_message(struct buf *out, struct slice id, struct slice data);
/* An event with an id and empty data, so that a client can resume before the first message. FRONT-SSE-03 */
void sse_append_priming(struct buf *out, struct slice id, uint64_t retry_ms);
/*
 * The event that begins HTTP+SSE: where messages are to be sent. With an id (empty: none) the client can come back, and is
 * told when. FRONT-OLD-01
 */
void sse_append_endpoint(struct buf *out, struct slice uri, struct slice id, uint64_t retry_ms);
/* A comment line, to keep the connection alive. FRONT-HTTP-13. */
void sse_append_comment(struct buf *out);

#endif
