/* SPDX-License-Identifier: Apache-2.0 */
/* Why a client is refused, and how it is told. requirements.md §19, oauth.md §4. */
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
	const char *error;          /* NULL: no credential was presented */
	struct scope_set scopes;    /* to be requested; empty: none are named */
	bool is_final;              /* no token would help, so there is no challenge */
	bool is_failure;            /* no well-behaved client presents this. AUTH-CH-11 */
	bool is_for_result;         /* the challenge goes into a call's result. AUTH-SCP-11 */
	bool is_for_modern;         /* whose results name their type */
	unsigned int retry_after_s; /* with 429 */
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

#endif
