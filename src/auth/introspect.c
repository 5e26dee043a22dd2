/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a document. Without an answer a token is never called bad: clients would drop good ones. */
#include "auth/introspect.h"

#include "auth/document.h"
#include "obs/log.h"

/* ---- the answer ---- */

json_t *introspect_read(struct slice body, const char *issuer, struct verdict *verdict_r)
{
	struct error err = { ERROR_NONE, "" };
	json_t *document = document_parse(body, &err);

	if (document == NULL) {
		verdict_set(verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE, "the answer: %.100s",
			    err.text);
		return NULL;
	}
	if (!json_is_true(json_object_get(document, "active")))
		verdict_set(verdict_r, VERDICT_INACTIVE, "the issuer says it is not active");
	else if (json_object_get(document, "iss") != NULL &&
		 !slice_is_equal(document_text(document, "iss"), slice_str(issuer)))
		verdict_set(verdict_r, VERDICT_UNKNOWN_ISSUER,
			    "the issuer answers that another issuer issued it");
	else
		return document;
	json_decref(document);
	return NULL;
}

/* An outage is logged once, at its beginning; as an error if our own credentials are refused. */
static void introspector_tell(struct introspector *introspector, const struct fetch_answer *answer)
{
	bool was_failing = introspector->is_failing;

	introspector->is_failing = true;
	if (was_failing)
		return;
	if (answer->status == 401 || answer->status == 403)
		LOG(INTROSPECTION_REFUSED, LOG_STR("issuer", introspector->issuer->name),
		    LOG_INT("status", answer->status));
	else
		LOG(INTROSPECTION_FAILED, LOG_STR("issuer", introspector->issuer->name),
		    LOG_INT("status", answer->status), LOG_STR("error", answer->error));
}

static void question_on_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct question *question = container_of(inquiry, struct question, inquiry);
	struct introspector *introspector = question->introspector;
	struct verdict verdict;
	json_t *claims = NULL;

	CHECK(introspector->running > 0);
	introspector->running--;
	verdict_set(&verdict, VERDICT_INTROSPECTION_UNAVAILABLE, "status %d; %.100s",
		    answer->status, answer->error);
	if (answer->status == 200) {
		verdict.kind = VERDICT_OK;
		claims = introspect_read(answer->body, introspector->issuer->name, &verdict);
	}
	if (verdict.kind == VERDICT_INTROSPECTION_UNAVAILABLE)
		introspector_tell(introspector, answer);
	else
		introspector->is_failing = false;
	question->on_done(question, claims, &verdict);
	json_decref(claims);
}

/* ---- asking ---- */

int introspector_ask(struct introspector *introspector, struct question *question,
		     struct slice token, struct verdict *verdict_r)
{
	const struct issuer *issuer = introspector->issuer;
	bool has_endpoint = introspector->has_endpoint ||
			    document_string(issuer->metadata, "introspection_endpoint") != NULL;
	size_t max = question->is_suspect ? INTROSPECTIONS_SUSPECT_MAX : INTROSPECTIONS_MAX;

	CHECK(introspector_is_on(introspector) && question->on_done != NULL);
	CHECK(!inquiry_is_running(&question->inquiry));
	if (!has_endpoint)
		return verdict_set(
			verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE,
			"the issuer's metadata has no introspection_endpoint, or was not found "
			"yet");
	if (introspector->running >= max)
		return verdict_set(verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE,
				   "%zu questions to the issuer are already under way",
				   introspector->running);
	introspector->running++;
	question->introspector = introspector;
	question->inquiry.on_done = question_on_answer;
	inquiry_start(issuer->client, &question->inquiry, FETCH_INTROSPECTION, issuer->number, NULL,
		      token);
	return 0;
}

void question_cancel(struct question *question)
{
	if (!inquiry_is_running(&question->inquiry))
		return;
	CHECK(question->introspector->running > 0);
	question->introspector->running--;
	inquiry_cancel(&question->inquiry);
}

void introspector_init(struct introspector *introspector, struct issuer *issuer,
		       const struct verifier_issuer_conf *conf)
{
	*introspector = (struct introspector){
		.issuer = issuer,
		.is_on = conf->client_id != NULL,
		.has_endpoint = conf->introspection_endpoint != NULL,
	};
}

void introspector_fini(struct introspector *introspector)
{
	CHECK(introspector->running == 0);
}

bool introspector_is_on(const struct introspector *introspector)
{
	return introspector->is_on;
}
