/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients get, as bytes: complete answers (JSON-RPC errors, empty answers, common header
 * fields), refusals, and streams of events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/grant.h"
#include "base/buf.h"
#include "base/slice.h"
#include "http/conn.h"
#include "io/loop.h"
#include "jsonrpc/write.h"
#include "obs/reason.h"
#include "policy/rights.h"
#include "policy/rule.h"
#include "session/stream.h"

/* What an answer's header fields depend on. All borrowed. */
struct answer {
	struct http_conn *conn;
	struct slice origin;        /* of the request, if allowed; or empty */
	struct slice session;       /* id, or empty */
	unsigned int retry_after_s; /* with 503 and 429; 0: not known */
	const char *type;           /* of the body; NULL: application/json */
};

/* Appends the resulting header lines: CORS, the session id. FRONT-HTTP-14. */
void answer_append_fields(struct buf *out, const struct answer *answer);

/* Sends no body; `fields` are additional header lines. */
void answer_empty(const struct answer *answer, int status, struct slice fields);
/* Sends JSON that is not JSON-RPC, with additional header lines. */
void answer_document(const struct answer *answer, int status, struct slice fields,
		     struct slice body);

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

/* ---- refusals ---- */

/* Why a client is refused, and how it is told. requirements.md §19, oauth.md §4. */

struct endpoint;
struct frontend;
struct principal;

enum refusal_form {
	REFUSAL_CHALLENGE, /* status, WWW-Authenticate, a small JSON body */
	REFUSAL_ERROR,     /* a JSON-RPC error of the gateway */
	REFUSAL_REASON,    /* the one of a row in reason.def */
};

struct refusal {
	enum refusal_form form;
	int status;
	const char *description; /* of a challenge: one of a few fixed texts. AUTH-CH-03 */
	struct slice id;         /* of the refused request, as written; or empty */
	/*
	 * The requests are refused, but not the POST that brought them: HTTP+SSE accepts the body
	 * and sends each request's error on the stream.
	 */
	bool is_in_band;
	const struct principal *who; /* borrowed; NULL: not known */
	struct rule rule;            /* the one that caused it; or none */
	/* REFUSAL_CHALLENGE: */
	const char *error;               /* NULL: no credential was presented */
	char cause[VERDICT_CAUSE_BYTES]; /* for the operator: why the token is not good; or empty */
	struct scope_set scopes;         /* to be requested; empty: none are named */
	bool is_final;                   /* no token would help, so there is no challenge */
	bool is_failure;                 /* no well-behaved client presents this. AUTH-CH-11 */
	bool is_for_result;              /* the challenge goes into a call's result. AUTH-SCP-11 */
	bool is_for_modern;              /* whose results name their type */
	unsigned int retry_after_s;      /* with 429 */
	/* REFUSAL_ERROR: */
	int code;
	struct slice version; /* the requested one, which is not served; or empty */
	bool is_legacy_claim; /* as in revision_append_supported */
	const char *data;     /* JSON text, or NULL */
	/* REFUSAL_REASON: */
	enum reason reason;
};

/* The reason in one word, for its record; `otherwise` is used for REFUSAL_ERROR. */
const char *refusal_word(const struct refusal *refusal, const char *otherwise);
/*
 * Sends it as a complete HTTP answer, which echoes only the request's id, its version, and what is
 * in `answer`.
 */
void refusal_send(const struct refusal *refusal, const struct frontend *frontend,
		  const struct endpoint *endpoint, const struct answer *answer);
/* Appends an in-band refusal, as the JSON-RPC error of the request `id`. */
void refusal_append(const struct refusal *refusal, const struct endpoint *endpoint, struct slice id,
		    struct buf *out);
/* Refuses a request by its header. Returns NULL, for on_request. */
struct http_exchange *refusal_send_head(const struct answer *answer, int status, const char *why);
/* Likewise by a field of it, whose value the operator's log has, and the answer has not. */
struct http_exchange *refusal_send_field(const struct answer *answer, int status, const char *why,
					 struct slice value);

/* ---- event streams ---- */

/*
 * Writes a stream of messages to a connection as server-sent events: pulls as much as the
 * connection has room for, keeps it alive while idle, and ends one that is too old, so that its
 * client reconnects for the rest. FRONT-SSE-02, -03, -05, FRONT-GET-05, FRONT-HTTP-12, -13.
 */

/* Room for the longest event id. */
#define EVENT_ID_BYTES 64

/* The stream to write, and the position in it. */
struct event_source {
	struct stream *stream;
	uint32_t epoch;
	uint64_t number; /* of the stream within its session */
	uint64_t after;  /* as for stream_attach */
	bool has_no_ids; /* nobody will resume it */
	/* HTTP+SSE: its client's id, used instead of epoch and number; else empty */
	struct slice client;
	bool is_primed; /* begin with an event with an id and no data. FRONT-SSE-03, -04 */
	bool is_known;  /* the client can resume without loss, or need not */
	uint64_t retry_ms;
	uint64_t max_age_ms; /* of the connection; 0: unlimited */
	uint64_t keepalive_ms;
};

/* Embedded in an exchange that answers with events. */
struct event_writer {
	struct stream_reader reader;
	struct http_exchange *exchange;
	struct timer keepalive;
	struct timer age;
	uint64_t keepalive_ms;
	struct event_source source; /* that it was attached to */
	bool is_known;              /* as in the source; or an event was written */
	bool is_old;                /* to be closed once is_known */
	/*
	 * The stream has ended, or the writer has left it (REASON_CONNECTION_AGE); the response has
	 * been ended.
	 */
	void (*on_end)(struct event_writer *writer, enum reason reason);
};

/* Makes event_writer_stop safe before event_writer_start. */
void event_writer_init(struct event_writer *writer);
/*
 * Begins the response on the exchange's connection, with `fields` besides those of every event
 * stream, and then reads the source. Returns false, with nothing begun, if stream_attach refuses.
 */
bool event_writer_start(struct event_writer *writer, struct http_exchange *exchange,
			const struct event_source *source, struct slice fields) must_check;
/*
 * The same in two steps: begins the response, so that the caller may write to it; then, once, reads
 * the source. event_writer_attach returns false if stream_attach refuses.
 */
void event_writer_begin(struct event_writer *writer, struct http_exchange *exchange,
			uint64_t keepalive_ms, struct slice fields);
bool event_writer_attach(struct event_writer *writer, const struct event_source *source) must_check;
/* For the exchange's on_room: there is room again. */
void event_writer_on_room(struct event_writer *writer);
/* The connection is gone: detaches from the stream, without calling on_end. */
void event_writer_stop(struct event_writer *writer);

/*
 * Formats the event id of a message in a session's stream, into `out` of EVENT_ID_BYTES.
 * FRONT-RES-01
 */
struct slice event_id_format(uint32_t epoch, uint64_t stream, uint64_t number, char *out);
/* Parses such an id into epoch, number and after of *source_r; -1: not one of ours. FRONT-RES-01 */
int event_id_parse(struct slice id, struct event_source *source_r) must_check;
/*
 * The same for HTTP+SSE: the client's id, SESSION_ID_LENGTH random characters, and the number.
 * FRONT-OLD-04
 */
struct slice event_id_of_client(struct slice client, uint64_t number, char *out);
int event_id_parse_of_client(struct slice id, char *client_r, uint64_t *number_r) must_check;
