/* SPDX-License-Identifier: Apache-2.0 */
/* Whole answers of the MCP endpoint: errors as JSON-RPC objects, empty ones, common fields. */
#ifndef MCPGATED_ENDPOINT_ANSWER_H
#define MCPGATED_ENDPOINT_ANSWER_H

#include "base/buf.h"
#include "base/slice.h"
#include "http/conn.h"
#include "obs/reason.h"

/* What the fields of an answer depend on. Everything borrowed. */
struct answer {
	struct http_conn *conn;
	struct slice origin;        /* allowed, of the request; or empty */
	struct slice session;       /* id, or empty */
	unsigned int retry_after_s; /* with 503 and 429; 0: nobody knows */
};

/* The field lines that follow from it: CORS, the session id. FRONT-HTTP-14. */
void answer_append_fields(struct buf *out, const struct answer *answer);

/* on_room of an exchange that writes nothing, or its whole answer at once. */
void answer_ignore_room(struct http_exchange *exchange);

/* Sends a JSON body made of parts. */
void answer_json(const struct answer *answer, int status, const struct slice *parts, size_t count);
/* Sends no body; `fields` are further field lines. */
void answer_empty(const struct answer *answer, int status, struct slice fields);
/* Sends JSON that is no JSON-RPC, with further field lines. */
void answer_document(const struct answer *answer, int status, struct slice fields,
		     struct slice body);
/* Sends a JSON-RPC error; `id` as it was written or empty, `data` JSON text or empty. */
void answer_error(const struct answer *answer, int status, struct slice id, int code,
		  struct slice message, struct slice data);

/* The field line that lets any web page read an answer. AUTH-PRM-08 */
#define ANSWER_CORS "Access-Control-Allow-Origin: *\r\n"
/* Answers a preflight, else refuses the method (405), at an address that any web page may read. AUTH-PRM-07, -08 */
void answer_other_method(const struct answer *answer, enum http_method method, const char *methods,
			 const char *headers);
/* Sends 405 with the methods that may be used instead, e.g. "GET, OPTIONS". FRONT-HTTP-01 */
void answer_not_allowed(const struct answer *answer, const char *methods);

/* The error text and data of a reason, as one JSON-RPC error response. requirements.md §19. */
void answer_append_reason(struct buf *out, struct slice id, enum reason reason, const char *server);
/* Sends it with the status of its row (200 if it has none), and Retry-After with 503. */
void answer_reason(const struct answer *answer, struct slice id, enum reason reason,
		   const char *server);

/* The error that says that events were lost, of the request `id` (empty: of none). FRONT-RES-07 */
void answer_append_expired(struct buf *out, struct slice id);

#endif
