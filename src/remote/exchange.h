/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange: one message to the server and what it answers, over HTTP; or the stream of the session;
 * or its end. Over its life it may have several connections, one after the other:
 *
 *	QUEUED ----> RUNNING ----> its end
 *	(for room)    |   ^ |
 *	              v   | +----> POSTED (the answer comes another way) ----> its end
 *	           DELAYED
 *	           (after a cut, to go on behind the last event; the stream, to be opened again)
 *
 * What an answer means is not known here: remote.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "auth/curl_handle.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/list.h"
#include "mcp/method.h"
#include "remote/event_reader.h"
#include "remote/tools.h"

/* Requests that run at a time; more wait. */
#define RUNNING_MAX 128
/* More is not taken from servers until the gateway has read. */
#define OUT_BYTES_MAX ((size_t)1 << 20)
#define LINGER_MS 2000

enum transport { TRANSPORT_UNKNOWN, TRANSPORT_STREAMABLE, TRANSPORT_HTTP_SSE };

struct remote {
	/* as told */
	char *url;
	struct url parts;
	struct buf ca;
	struct buf certificate, key; /* ours, as PEM; empty: none */
	const char *proxy;           /* NULL: none */
	struct address_filter address_filter;
	uint16_t port;      /* the only one that is connected to */
	const char *socket; /* a unix socket: the url is there; NULL: at its own address */
	size_t most;        /* bytes of one message */
	struct curl_slist *fields;
	bool gets_credential; /* from the gateway, while it runs */
	bool is_for_client;   /* not for a gateway: nobody else waits, or tries again */

	struct buf credential; /* the value of Authorization; empty: none */
	struct buf
		no_credential; /* why there is none that is needed; empty: there is, or none is */

	int signals; /* to read from */
	CURLM *multi;
	struct list exchanges;
	struct tools tools;       /* those of the lists that came by */
	uint64_t lists;           /* asked for by this program */
	size_t running;           /* POSTs */
	struct exchange *barrier; /* nothing is taken from stdin until it has ended; NULL: none */
	struct exchange *stream;  /* the GET; NULL: none */
	enum transport transport;
	char *post_url; /* NULL: url */
	struct buf session_id;
	struct buf revision; /* what initialize has agreed on; empty: nothing yet */

	server_event_fn *on_event; /* gets an exchange; starts and ends none that runs */

	struct buf in, out;
	struct buf refusal; /* of the POST, before HTTP+SSE was tried */
	bool has_endpoint;  /* HTTP+SSE: post_url is known */
	bool is_away;       /* the gateway has been told that the server does not work */
	bool is_unwelcome;  /* likewise, that it refuses the credential */
	bool was_reached;   /* the server has answered a request, in whatever way, since then */
	bool has_served;    /* something has been answered: there is a server */
	bool wants_stream;  /* the handshake is over */
	bool lacks_stream;  /* its credential was refused there: another one may be taken */
	bool is_in_over;
	uint64_t over_ms;       /* since then, if it is; else now */
	uint64_t away_until_ms; /* while the server cannot be reached; else 0 */
	bool is_ending;
};

enum state { STATE_QUEUED, STATE_RUNNING, STATE_DELAYED, STATE_POSTED };

struct exchange {
	struct list link;
	struct remote *remote;
	enum state state;
	const char *verb; /* "POST", "GET", "DELETE" */
	struct buf sent;
	size_t sent_bytes;  /* of it, so far */
	struct buf id;      /* of a request, as written; empty: nobody waits for an answer */
	unsigned int page;  /* of a list of our own, from 1 */
	struct buf cursor;  /* of a list of our own: of its next page, as written */
	struct buf cancels; /* the id that a notifications/cancelled names */
	enum method_id method;
	bool is_modern;
	bool is_safe;     /* it may be executed twice */
	bool is_own;      /* a list that this program asked for */
	bool was_refused; /* for its head, and waits for that list or has been sent again */
	bool is_resumed;  /* goes on with a GET behind the last event */
	unsigned int redirects;
	unsigned int resumes; /* in vain, in a row */
	uint64_t ids;         /* events with an id, when it was last resumed */

	uint64_t due_ms; /* if delayed */
	CURL *easy;      /* if running, else NULL. This and what follows: of one connection */
	struct curl_slist *fields;
	bool was_open; /* the stream: it has been, so it exists */
	bool has_room; /* one of RUNNING_MAX */
	bool has_head, is_events, is_answered, is_refused, is_too_big, is_paused;
	struct event_reader events;
	struct buf body;
	char error[CURL_ERROR_SIZE];
};

/* Of this verb; queued. It belongs to remote->exchanges until exchange_end. */
struct exchange *exchange_new(struct remote *remote, const char *verb);
/* Frees it, whatever its state. Not from within libcurl's callbacks while it runs. */
void exchange_end(struct exchange *exchange);
/* The request with this id; NULL: there is none. */
struct exchange *exchange_find(struct remote *remote, struct slice id);

/* Sends it, or a GET behind its last event if it is resumed. BACK-URL-01, -02, -04 */
void exchange_start(struct exchange *exchange);
/* Ends its connection, if it has one, and starts anew after this time. */
void exchange_start_later(struct exchange *exchange, uint64_t wait_ms);
/* Ends its connection; it waits for an answer that comes another way. */
void exchange_leave_posted(struct exchange *exchange);
/*
 * It has been answered, or taken: others may go on, whatever the server does with the rest of its
 * answer, which may linger until due_ms.
 */
void exchange_set_answered(struct exchange *exchange);

/* Of the connection: the status, 0 before there is one. */
long exchange_status(const struct exchange *exchange);
bool exchange_is_success(long status);
/* A status with which a server, or what stands before it, refuses whatever comes. BACK-URL-09 */
bool exchange_is_out_of_service(long status);
/* A refusal that another time may not meet. */
bool exchange_is_passing(long status);
/* Nothing has been sent on the connection, as there is none, or none with TLS. */
bool exchange_was_unreachable(const struct exchange *exchange, CURLcode code);
/* Finds out whether the answer is a stream of events; at its end, if nothing has come. */
void exchange_look_at_head(struct exchange *exchange);
/*
 * Whether more of its answer must wait: of answers that are incomplete, enough is held, and another is
 * larger, which goes on alone until it is whole.
 */
bool exchange_must_wait(const struct exchange *exchange);
