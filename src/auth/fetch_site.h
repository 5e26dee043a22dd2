/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One issuer as the program that fetches knows it: its addresses, our credentials there, whom it is reached by. Where
 * a question goes is decided here alone: by the configuration, else by the issuer's metadata, which are fetched and
 * judged here, too. Whoever asks may be anybody: how much is under way and how often is bounded.
 * AUTH-AS-01 to 03, AUTH-OPQ-01, SEC-10
 */
#ifndef MCPGATED_AUTH_FETCH_SITE_H
#define MCPGATED_AUTH_FETCH_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/client_auth.h"
#include "auth/fetch.h"
#include "auth/verifier.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"

struct site_question;
typedef void site_done_fn(struct site_question *question, const struct fetch_answer *answer);

/* Embedded by its owner, which sets on_done; zeroed otherwise. */
struct site_question {
	site_done_fn *on_done;
	struct fetch_site *site; /* private; NULL when nothing is under way */
	struct list link;        /* private, as all below: while it waits for metadata */
	struct fetch fetch;
	enum fetch_kind kind;
	char *etag;
	struct buf token;
};

struct fetch_site {
	char *issuer;
	struct fetcher *fetcher;
	char *own_ca;
	struct slice ca;
	struct address_filter address_filter;
	bool allow_http;
	char *configured_urls[FETCH_KIND_COUNT]; /* NULL: the metadata's */
	char *found_urls[FETCH_KIND_COUNT];      /* NULL: not found (yet) */
	bool may_introspect;
	struct client_auth client_auth; /* if it may */

	struct fetch discovery;
	size_t candidate;    /* which of the places is being asked */
	bool is_failing;     /* it has been logged that there are no metadata */
	struct list waiting; /* questions for or with the metadata */

	size_t under_way[FETCH_KIND_COUNT];
	uint64_t spent_ms[FETCH_KIND_COUNT]; /* until when the questions so far use up their rate */
};

/* Copies what it keeps of conf. */
int fetch_site_init(struct fetch_site *site, struct loop *loop,
		    const struct verifier_issuer_conf *conf, struct error *err) must_check;
/* No question may be under way. */
void fetch_site_fini(struct fetch_site *site);

/*
 * Fetches; on_done comes later, exactly once, from the loop, unless site_question_cancel comes first; it may free the
 * question. etag and token: as of inquiry_start. Returns 0, or -1 and err: it is too much, or nothing that is asked for.
 */
int fetch_site_ask(struct fetch_site *site, struct site_question *question, enum fetch_kind kind,
		   struct slice etag, struct slice token, struct error *err) must_check;
/* Also if nothing is under way. */
void site_question_cancel(struct site_question *question);

#endif
