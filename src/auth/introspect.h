/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking an issuer about a token: RFC 7662. How, and with which credentials, is fetch_site.h's. One question is one
 * inquiry; the verifier shares questions and remembers answers. AUTH-OPQ-02, 04
 */
#ifndef MCPGATED_AUTH_INTROSPECT_H
#define MCPGATED_AUTH_INTROSPECT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "auth/fetch_client.h"
#include "auth/issuer.h"
#include "auth/verdict.h"
#include "base/slice.h"

/* Questions to one issuer at a time, and how many of them may be for suspects. */
#define INTROSPECTIONS_MAX 64
#define INTROSPECTIONS_SUSPECT_MAX 32

struct introspector {
	struct issuer *issuer;
	bool is_on;
	bool has_endpoint; /* configured; else the metadata's */
	size_t running;
	bool is_failing; /* it has been logged that no answer comes */
};

struct question;
/*
 * claims   the answer, if the verdict is OK: the token is active and not of another issuer; borrowed.
 *          Otherwise NULL, and the verdict is INACTIVE, UNKNOWN_ISSUER or INTROSPECTION_UNAVAILABLE.
 */
typedef void question_done_fn(struct question *question, json_t *claims,
			      const struct verdict *verdict);

/* Embedded by its owner, which sets on_done and is_suspect; zeroed otherwise. */
struct question {
	question_done_fn *on_done;
	bool is_suspect;
	struct introspector *introspector; /* private */
	struct inquiry inquiry;            /* private */
};

/* The issuer is borrowed. */
void introspector_init(struct introspector *introspector, struct issuer *issuer,
		       const struct verifier_issuer_conf *conf);
void introspector_fini(struct introspector *introspector);
bool introspector_is_on(const struct introspector *introspector);

/*
 * Asks; on_done comes later, exactly once, unless question_cancel comes first; it may free the question.
 * Returns 0, or -1 and the verdict (INTROSPECTION_UNAVAILABLE) if the issuer cannot be asked now.
 */
int introspector_ask(struct introspector *introspector, struct question *question,
		     struct slice token, struct verdict *verdict_r) must_check;
void question_cancel(struct question *question);

/* ---- pure, for tests and fuzzers ---- */

/* The claims (the caller's) of an active token, or NULL and the verdict. */
json_t *introspect_read(struct slice body, const char *issuer, struct verdict *verdict_r)
	must_check;

#endif
