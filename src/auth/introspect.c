/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a form, reads a document. Without an answer a token is never called bad: clients would drop good ones. */
#include "auth/introspect.h"

#include <stdlib.h>

#include <openssl/evp.h>

#include "auth/document.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/mem.h"
#include "obs/log.h"

/* ---- the question ---- */

/* application/x-www-form-urlencoded, every doubtful byte as %XX. */
static void append_form(struct buf *out, struct slice text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._";

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c != '\0' && strchr(plain, c) != NULL)
			buf_append_char(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
}

/* A buffer that grows moves, and leaves copies of secrets behind that are not wiped. */
static void reserve_form(struct buf *buf, const char *client_id, const char *client_secret)
{
	buf_reserve(buf, (strlen(client_id) + strlen(client_secret)) * 3 + 64);
}

char *introspect_basic(const char *client_id, const char *client_secret)
{
	struct buf pair = { .data = NULL };
	unsigned char *encoded;
	char *text;
	int size;

	reserve_form(&pair, client_id, client_secret);
	append_form(&pair, slice_str(client_id));
	buf_append_char(&pair, ':');
	append_form(&pair, slice_str(client_secret));
	encoded = mem_alloc(pair.len / 3 * 4 + 8);
	size = EVP_EncodeBlock(encoded, (const unsigned char *)pair.data, (int)pair.len);
	text = mem_printf("Basic %.*s", size, (const char *)encoded);
	explicit_bzero(encoded, (size_t)size);
	free(encoded);
	buf_wipe(&pair);
	return text;
}

char *introspect_form(const char *client_id, const char *client_secret)
{
	struct buf form = { .data = NULL };
	char *text;

	reserve_form(&form, client_id, client_secret);
	buf_append_str(&form, "client_id=");
	append_form(&form, slice_str(client_id));
	buf_append_str(&form, "&client_secret=");
	append_form(&form, slice_str(client_secret));
	buf_append_char(&form, '&');
	text = mem_dup_slice(buf_slice(&form));
	buf_wipe(&form);
	return text;
}

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
			    "by the issuer's answer it is of another issuer");
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

static void question_on_answer(struct fetch *fetch, const struct fetch_answer *answer)
{
	struct question *question = container_of(fetch, struct question, fetch);
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

static void introspector_send(struct introspector *introspector, struct question *question,
			      const char *endpoint, struct slice token)
{
	const struct issuer *issuer = introspector->issuer;
	const char *own = introspector->form != NULL ? introspector->form : "";
	struct buf form = { .data = NULL };
	struct fetch_request request = {
		.url = endpoint,
		.credentials = introspector->credentials,
		.ca = issuer->ca,
		.address_filter = issuer->address_filter,
		.allow_http = issuer->allow_http,
	};

	/* Enough for all, so that it does not move, and is wiped as a whole. */
	buf_reserve(&form, strlen(own) + token.n * 3 + 64);
	buf_append_str(&form, own);
	buf_append_str(&form, "token=");
	append_form(&form, token);
	buf_append_str(&form, "&token_type_hint=access_token");
	request.form = buf_slice(&form);
	introspector->running++;
	question->introspector = introspector;
	question->fetch.on_done = question_on_answer;
	fetch_start(issuer->fetcher, &question->fetch, &request);
	buf_wipe(&form);
}

int introspector_ask(struct introspector *introspector, struct question *question,
		     struct slice token, struct verdict *verdict_r)
{
	const char *endpoint =
		introspector->endpoint != NULL ?
			introspector->endpoint :
			document_string(introspector->issuer->metadata, "introspection_endpoint");
	size_t max = question->is_suspect ? INTROSPECTIONS_SUSPECT_MAX : INTROSPECTIONS_MAX;

	CHECK(introspector_is_on(introspector) && question->on_done != NULL);
	CHECK(!fetch_is_running(&question->fetch));
	if (endpoint == NULL)
		return verdict_set(verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE,
				   "the issuer's metadata name no introspection_endpoint, or none "
				   "were found yet");
	if (introspector->running >= max)
		return verdict_set(verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE,
				   "%zu questions to the issuer are under way",
				   introspector->running);
	introspector_send(introspector, question, endpoint, token);
	return 0;
}

void question_cancel(struct question *question)
{
	if (!fetch_is_running(&question->fetch))
		return;
	CHECK(question->introspector->running > 0);
	question->introspector->running--;
	fetch_cancel(&question->fetch);
}

void introspector_init(struct introspector *introspector, struct issuer *issuer,
		       const struct verifier_issuer_conf *conf)
{
	const char *secret = conf->client_secret != NULL ? conf->client_secret : "";

	*introspector = (struct introspector){ .issuer = issuer };
	if (conf->client_id == NULL)
		return;
	if (conf->introspection_endpoint != NULL)
		introspector->endpoint = mem_strdup(conf->introspection_endpoint);
	if (conf->sends_secret_in_form)
		introspector->form = introspect_form(conf->client_id, secret);
	else
		introspector->credentials = introspect_basic(conf->client_id, secret);
}

static void free_secret(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

void introspector_fini(struct introspector *introspector)
{
	CHECK(introspector->running == 0);
	free_secret(introspector->credentials);
	free_secret(introspector->form);
	free(introspector->endpoint);
}

bool introspector_is_on(const struct introspector *introspector)
{
	return introspector->credentials != NULL || introspector->form != NULL;
}
