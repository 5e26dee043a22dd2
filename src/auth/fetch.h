/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a web server, of an issuer or of a trace collector: GET of a document, POST of a form
 * or of another body. One request, one answer of bounded size within a bounded time. Together with
 * curl_handle.h the only file of the daemon that knows libcurl. AUTH-KEY-01, AUTH-KEY-02, SEC-10
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/url.h"
#include "base/error.h"
#include "base/slice.h"
#include "io/loop.h"

/* What is wanted of an issuer; the last, of the collector of traces. */
enum fetch_kind {
	FETCH_METADATA,      /* the document, from the first of its places that has a good one */
	FETCH_KEYS,          /* from jwks_uri; with an etag the answer may be 304 */
	FETCH_INTROSPECTION, /* what it says about the token */
	/*
	 * a token for a server, made for the given one or of our own; the body of the answer is the token, and
	 * retry_after_s how long it is good
	 */
	FETCH_TOKEN,
	FETCH_KIND_COUNT,
	FETCH_SPANS = FETCH_KIND_COUNT, /* to be taken */
	/* Of mcpgated-store, which is asked in the same way: cluster/store_service.h. */
	FETCH_STORE_SAVED,
	FETCH_STORE_LOGGED,
	FETCH_STORE_TAKE,
	FETCH_STORE_DENY,
	FETCH_STORE_COUNT,
	FETCH_STORE_WATCH
};

/* Header fields and errors that are longer are left out, or cut. */
#define FETCH_FIELD_BYTES_MAX 256
#define FETCH_BODY_BYTES_MAX (256 * 1024)
#define FETCH_STORE_BODY_BYTES_MAX (4 * 1024 * 1024) /* of what mcpgated-store answers */
#define FETCH_CONNECT_MS 5000
#define FETCH_TOTAL_MS 10000

struct fetcher;
struct fetch;

struct fetch_answer {
	int status;        /* of HTTP, or 0: no complete answer, see `error` */
	const char *error; /* for the log */
	struct slice body; /* max. FETCH_BODY_BYTES_MAX; borrowed until the callback returns */
	struct slice cache_control; /* header fields, empty if absent; borrowed as well */
	struct slice etag;
	uint32_t retry_after_s; /* Retry-After; 0: absent. See FETCH_TOKEN */
};

typedef void fetch_done_fn(struct fetch *fetch, const struct fetch_answer *answer);

/* Embedded by its owner, which sets on_done; otherwise zeroed. */
struct fetch {
	fetch_done_fn *on_done;
	struct transfer *transfer; /* private; NULL when nothing is under way */
};

/* A header field to send with a request. */
struct fetch_field {
	char *name;
	char *value; /* may be secret */
};

struct fetch_fields {
	struct fetch_field *items;
	size_t count;
};

#define FETCH_FORM "application/x-www-form-urlencoded"

/*
 * Everything is borrowed only for the call of fetch_start, except ca, which is borrowed while the
 * fetch runs.
 */
struct fetch_request {
	const char *url;
	struct slice body;                 /* {NULL, 0}: GET */
	const char *media_type;            /* of the body */
	const struct fetch_fields *fields; /* NULL: none */
	const char *etag;                  /* If-None-Match, or NULL */
	const char *credentials;           /* value of Authorization, or NULL */
	struct slice ca;                   /* PEM; https is impossible without it */
	struct address_filter address_filter;
	bool allow_http;
};

/*
 * Call once per process, before it is confined: loads what the libraries would open or read later.
 */
int fetch_prepare(struct error *err) must_check;
/* The system's CA certificates as found by fetch_prepare; empty if none. */
struct slice fetch_system_ca(void);

struct fetcher *fetcher_new(struct loop *loop);
/* Pending fetches end without a callback. Accepts NULL. */
void fetcher_free(struct fetcher **fetcher);

/*
 * Begins a fetch; on_done is called later, exactly once, from the loop, unless fetch_cancel comes
 * first. It may start the next fetch and may free `fetch`.
 */
void fetch_start(struct fetcher *fetcher, struct fetch *fetch, const struct fetch_request *request);
/* Also valid if nothing is pending. */
void fetch_cancel(struct fetch *fetch);
bool fetch_is_running(const struct fetch *fetch);
