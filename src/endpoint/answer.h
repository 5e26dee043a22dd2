/* SPDX-License-Identifier: Apache-2.0 */
/* Complete answers of the MCP endpoint: JSON-RPC errors, empty answers, common header fields. */
#ifndef MCPGATED_ENDPOINT_ANSWER_H
#define MCPGATED_ENDPOINT_ANSWER_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "http/conn.h"
#include "jsonrpc/msg.h"
#include "obs/reason.h"

/* What an answer's header fields depend on. All borrowed. */
struct answer {
	struct http_conn *conn;
	struct slice origin;        /* of the request, if allowed; or empty */
	struct slice session;       /* id, or empty */
	unsigned int retry_after_s; /* with 503 and 429; 0: not known */
};

/* Appends the resulting header lines: CORS, the session id. FRONT-HTTP-14. */
void answer_append_fields(struct buf *out, const struct answer *answer);

/* For http_exchange on_room, of exchanges that write nothing or their whole answer at once. */
void answer_ignore_room(struct http_exchange *exchange);

/* Sends no body; `fields` are additional header lines. */
void answer_empty(const struct answer *answer, int status, struct slice fields);
/* Sends JSON that is not JSON-RPC, with additional header lines. */
void answer_document(const struct answer *answer, int status, struct slice fields,
		     struct slice body);
/* Sends a JSON-RPC error; `id` as written, or empty; `data` JSON text, or empty. */
void answer_error(const struct answer *answer, int status, struct slice id, int code,
		  struct slice message, struct slice data);

/* The header line that lets any web page read an answer. AUTH-PRM-08 */
#define ANSWER_CORS "Access-Control-Allow-Origin: *\r\n"
/*
 * Answers a preflight or rejects the method (405), at an address that any web page may read.
 * AUTH-PRM-07, -08
 */
void answer_other_method(const struct answer *answer, enum http_method method, const char *methods,
			 const char *headers);
/* Sends 405 with the allowed methods, e.g. "GET, OPTIONS". FRONT-HTTP-01 */
void answer_not_allowed(const struct answer *answer, const char *methods);

/* Appends a JSON-RPC error response with the text and data of a reason. requirements.md §19. */
void answer_append_reason(struct buf *out, struct slice id, enum reason reason, const char *server);
/* Sends it with the HTTP status of the reason (200 if it has none), and with Retry-After if 503. */
void answer_reason(const struct answer *answer, struct slice id, enum reason reason,
		   const char *server);

/* Appends the error for lost events, of the request `id` (empty: of no request). FRONT-RES-07 */
void answer_append_expired(struct buf *out, struct slice id);

/* ---- egress ---- */

/*
 * The single exit: here a response or another server message becomes bytes for its client, whatever
 * the front and format. Checks, changes or suppression at the last step belong here.
 */

/*
 * Sends a response, the concatenation of the parts, as a complete JSON answer with this HTTP
 * status.
 */
void egress_send(const struct answer *answer, int status, const struct slice *parts, size_t count);
/* Appends a response to the array that answers a batch. */
void egress_append_element(struct buf *array, struct slice message);
/* Sends the array, which must not be empty, as a complete JSON answer. */
void egress_send_array(const struct answer *answer, struct buf *array);
/* Appends a message as a stream event; `id` may be empty. */
void egress_append_event(struct buf *out, struct slice id, struct slice message);

/*
 * Joins the parts into one message, for a stream or the rest of its batch. The caller owns a
 * reference.
 */
struct msg *egress_join(const struct slice *parts, size_t count);

#endif
