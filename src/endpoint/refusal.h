/* SPDX-License-Identifier: Apache-2.0 */
/* Why a client is refused something, and how it is told. requirements.md §19, oauth.md §4. */
#ifndef MCPGATED_ENDPOINT_REFUSAL_H
#define MCPGATED_ENDPOINT_REFUSAL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "obs/reason.h"
#include "policy/rule.h"
#include "policy/scopes.h"

struct answer;
struct endpoint;
struct frontend;
struct http_exchange;
struct principal;

enum refusal_form {
	REFUSAL_CHALLENGE, /* status, WWW-Authenticate, a small JSON body */
	REFUSAL_ERROR,     /* a JSON-RPC error of our own */
	REFUSAL_REASON,    /* that of a row of reason.def */
};

struct refusal {
	enum refusal_form form;
	int status;
	const char *description; /* of a challenge: one of a few fixed texts. AUTH-CH-03 */
	struct slice id;         /* of the request that is refused, as it was written; or empty */
	/*
	 * Requests are refused, and not what brought them: HTTP+SSE takes the body and tells it on the stream, to each
	 * of its requests.
	 */
	bool is_in_band;
	const struct principal *who; /* borrowed; NULL: not known */
	struct rule rule;            /* that says so; or none */
	/* REFUSAL_CHALLENGE: */
	const char *error;       /* NULL: nothing was presented */
	struct scope_set scopes; /* to be asked for; empty: none are named */
	bool is_final;           /* no token would help: there is no challenge */
	bool is_failure;    /* something was presented that no good client presents. AUTH-CH-11 */
	bool is_for_result; /* the result of a call holds the challenge. AUTH-SCP-11 */
	bool is_for_modern; /* which says what kind of result it is */
	unsigned int retry_after_s; /* with 429 */
	/* REFUSAL_ERROR: */
	int code;
	struct slice version; /* the one that was asked for and is not served; or empty */
	bool is_legacy_claim; /* as of revision_append_supported */
	const char *data;     /* JSON text, or NULL */
	/* REFUSAL_REASON: */
	enum reason reason;
};

/* Why, in one word, for the record of it; `otherwise`: of an error. */
const char *refusal_word(const struct refusal *refusal, const char *otherwise);
/* As a whole HTTP answer; nothing of the request is in it but the id, the version, and what is in `answer`. */
void refusal_send(const struct refusal *refusal, const struct frontend *frontend,
		  const struct endpoint *endpoint, const struct answer *answer);
/* One that is in band, as the JSON-RPC error of the request `id`. */
void refusal_append(const struct refusal *refusal, const struct endpoint *endpoint, struct slice id,
		    struct buf *out);
/* Refuses a request by its head. Returns NULL, for on_request. */
struct http_exchange *refusal_send_head(const struct answer *answer, int status, const char *why);

#endif
