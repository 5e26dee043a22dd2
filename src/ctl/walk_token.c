/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token: what it says of itself, who has signed it, and what the server says of it. Its claims are warnings, for
 * the server's configuration may take other audiences; an expired token, or one with a wrong signature, has failed.
 */
#include <stdlib.h>
#include <time.h>

#include "auth/document.h"
#include "auth/jwk.h"
#include "auth/jwt.h"
#include "auth/url.h"
#include "ctl/challenge.h"
#include "ctl/finding.h"
#include "ctl/walk.h"

#define SOON_S 60
#define IDS_BYTES 400 /* of the ids that are listed, about */

static void say(bool is_good, struct buf *text)
{
	finding_print(is_good ? "ok" : "warn", "token", text);
}

/* ---- claims ---- */

static void judge_issuer(const struct walk *walk, const json_t *claims)
{
	struct slice issuer = document_text(claims, "iss");
	bool is_good = document_lists(walk->issuers, issuer);
	struct buf text = { 0 };

	buf_printf(&text, "iss: %s", issuer.p != NULL ? issuer.p : "missing");
	if (!is_good)
		buf_append_str(&text, ", which is none of the resource's authorization servers");
	say(is_good, &text);
}

static bool names_resource(const struct walk *walk, const json_t *audience)
{
	const char *text = json_string_value(audience);

	return text != NULL && walk->resource != NULL &&
	       url_is_same_resource(slice_str(text), slice_str(walk->resource));
}

static void judge_audience(const struct walk *walk, const json_t *claims)
{
	const json_t *audience = json_object_get(claims, "aud");
	char *shown = audience != NULL ? json_dumps(audience, JSON_ENCODE_ANY) : NULL;
	bool is_good = names_resource(walk, audience);
	struct buf text = { 0 };

	for (size_t i = 0; i < json_array_size(audience); i++)
		is_good |= names_resource(walk, json_array_get(audience, i));
	buf_printf(&text, "aud: %s", shown != NULL ? shown : "missing");
	if (!is_good)
		buf_printf(&text,
			   ", not %s: it is for somebody else; the client must ask for it with "
			   "resource=, and the authorization server heed that",
			   walk->resource != NULL ? walk->resource : "the resource");
	say(is_good, &text);
	free(shown);
}

static void judge_time(struct walk *walk, const json_t *claims)
{
	const json_t *end = json_object_get(claims, "exp");
	const json_t *begin = json_object_get(claims, "nbf");
	double now_s = (double)time(NULL);
	double left_s = json_number_value(end) - now_s;
	double early_s = json_number_value(begin) - now_s;
	struct buf text = { 0 };

	if (!json_is_number(end)) {
		buf_append_str(&text, "exp: missing, so it would be good for ever");
		say(false, &text);
	} else if (left_s <= 0) {
		buf_printf(&text, "exp: it expired %.0f s ago; or this machine's clock is wrong",
			   -left_s);
		walk_fail(walk, "token", &text);
	} else {
		buf_printf(&text, "exp: good for another %.0f s", left_s);
		say(left_s > SOON_S, &text);
	}
	if (json_is_number(begin) && early_s > 0) {
		buf_printf(&text, "nbf: good only in %.0f s; or a clock is wrong", early_s);
		walk_fail(walk, "token", &text);
	}
}

/* Without those in the list, which is cut at spaces. */
static void append_missing(struct buf *out, struct slice asked, struct slice given)
{
	while (asked.n > 0) {
		struct slice scope = slice_cut(&asked, ' ');
		struct slice rest = given;
		bool is_there = scope.n == 0;

		while (rest.n > 0 && !is_there)
			is_there = slice_is_equal(slice_cut(&rest, ' '), scope);
		if (!is_there)
			buf_printf(out, "%s%.*s", out->len > 0 ? " " : "", SLICE_ARG(scope));
	}
}

/* `scope`, or the `scp` of some servers: a text or an array. */
static void append_scopes(struct buf *out, const json_t *claims)
{
	const json_t *scopes = json_object_get(claims, "scope");

	if (scopes == NULL)
		scopes = json_object_get(claims, "scp");
	if (json_is_string(scopes))
		buf_append_str(out, json_string_value(scopes));
	for (size_t i = 0; i < json_array_size(scopes); i++) {
		const char *scope = json_string_value(json_array_get(scopes, i));

		if (scope != NULL)
			buf_printf(out, "%s%s", i > 0 ? " " : "", scope);
	}
}

static void judge_scope(const struct walk *walk, const json_t *claims)
{
	struct buf missing = { 0 };
	struct buf given = { 0 };
	struct buf text = { 0 };

	append_scopes(&given, claims);
	if (walk->scope != NULL)
		append_missing(&missing, slice_str(walk->scope), buf_slice(&given));
	buf_printf(&text, "scope: %s", given.len > 0 ? buf_terminate(&given) : "none");
	if (missing.len > 0)
		buf_printf(&text, "; asked for and not there: %s", buf_terminate(&missing));
	say(missing.len == 0, &text);
	buf_fini(&missing);
	buf_fini(&given);
}

/* ---- the signature ---- */

/* The ids that the issuer's keys have. */
static void append_ids(struct buf *out, const json_t *document)
{
	const json_t *keys = json_object_get(document, "keys");
	size_t before = out->len;

	for (size_t i = 0; i < json_array_size(keys) && out->len < before + IDS_BYTES; i++) {
		const char *id = document_string(json_array_get(keys, i), "kid");

		if (id != NULL)
			buf_printf(out, "%s%s", out->len > before ? ", " : "", id);
	}
	if (out->len == before)
		buf_append_str(out, "none has an id");
}

static bool has_id(const json_t *document, struct slice id)
{
	const json_t *keys = json_object_get(document, "keys");

	CHECK(id.n > 0);
	for (size_t i = 0; i < json_array_size(keys); i++)
		if (slice_is_equal(document_text(json_array_get(keys, i), "kid"), id))
			return true;
	return false;
}

static void explain_no_key(const struct jwt *jwt, const json_t *document, struct buf *text)
{
	struct slice id = jwt_key_id(jwt);

	if (id.n > 0 && has_id(document, id)) {
		buf_printf(text, "signature: the issuer's key %.*s is not for %s", SLICE_ARG(id),
			   jwt->algorithm->name);
		return;
	}
	if (id.n > 0)
		buf_printf(text, "signature: its kid is %.*s, and the issuer has no such key: ",
			   SLICE_ARG(id));
	else
		buf_printf(text, "signature: it has no kid, and not just one key is for %s: ",
			   jwt->algorithm->name);
	append_ids(text, document);
}

static bool is_signed(const struct jwt *jwt, const struct jwk_set *set, const json_t *document,
		      struct buf *text)
{
	struct slice id = jwt_key_id(jwt);
	const struct jwk *key = jwk_set_find(set, id, jwt->algorithm);

	CHECK(jwt->algorithm != NULL); /* the header has been checked */
	if (key == NULL) {
		explain_no_key(jwt, document, text);
		return false;
	}
	buf_printf(text, "signature: %s by the issuer's key %.*s", jwt->algorithm->name,
		   id.n > 0 ? (int)id.n : 10, id.n > 0 ? id.p : "without id");
	if (jwt_is_signed_by(jwt, key->key))
		return true;
	buf_append_str(text, ", and it is wrong: the token was changed, or the key was replaced "
			     "under the same id");
	return false;
}

/* Only an issuer of the resource was asked for its keys. */
static void judge_signature(struct walk *walk, const struct jwt *jwt)
{
	const char *issuer = document_string(jwt->claims, "iss");
	const json_t *document = issuer != NULL ? json_object_get(walk->keys, issuer) : NULL;
	struct error err = { ERROR_NONE, "" };
	struct jwk_set set;
	struct buf text = { 0 };

	if (document == NULL || jwk_set_parse(document, ALGORITHM_ALL, &set, &err) < 0) {
		buf_append_str(&text, "signature: not looked at, for lack of keys of its issuer");
		say(false, &text);
		return;
	}
	if (is_signed(jwt, &set, document, &text))
		say(true, &text);
	else
		walk_fail(walk, "token", &text);
	jwk_set_fini(&set);
}

/* Causes are not printed where they could quote the token. */
static void examine_claims(struct walk *walk)
{
	struct verdict verdict;
	struct buf text = { 0 };
	struct jwt jwt;

	if (jwt_parse(slice_str(walk->token), &jwt, &verdict) < 0) {
		buf_append_str(&text, "it is no JWT, so only the servers know what is in it");
		say(true, &text);
		return;
	}
	judge_issuer(walk, jwt.claims);
	if (jwt_check_header(&jwt, ALGORITHM_ALL, jwt_access_token_types, &verdict) < 0) {
		buf_printf(&text, "%s; is it an access token?", verdict.cause);
		walk_fail(walk, "token", &text);
	} else {
		judge_signature(walk, &jwt);
	}
	judge_audience(walk, jwt.claims);
	judge_time(walk, jwt.claims);
	judge_scope(walk, jwt.claims);
	jwt_fini(&jwt);
}

/* ---- what the server says ---- */

static void explain_refusal(const struct web_answer *answer, struct buf *text)
{
	struct challenge challenge;

	CHECK(answer->status != 0);
	challenge_parse(buf_slice(&answer->challenge), &challenge);
	if (answer->status == 401)
		buf_append_str(text, "401: the server does not take this token");
	else if (answer->status == 403 && challenge.error != NULL)
		buf_append_str(text, "403: the token is good, but not for this");
	else if (answer->status == 403)
		buf_append_str(text, "403: whose token this is may not come in");
	else if (answer->status == 503)
		buf_append_str(text, "503: the server cannot tell now; it may not reach the "
				     "authorization server");
	else
		buf_printf(text, "status %d, and no answer to initialize", answer->status);
	if (challenge.error != NULL)
		buf_printf(text, " (%s%s%s)", challenge.error,
			   challenge.error_description != NULL ? ": " : "",
			   challenge.error_description != NULL ? challenge.error_description : "");
	if (answer->status == 403 && challenge.scope != NULL)
		buf_printf(text, "; it takes the scope %s", challenge.scope);
	challenge_fini(&challenge);
}

void walk_token(struct walk *walk)
{
	struct web_answer answer;
	struct buf text = { 0 };
	json_t *result = NULL;

	CHECK(walk->token != NULL);
	examine_claims(walk);
	walk_initialize(walk, walk->token, &answer);
	if (answer.status == 200)
		result = walk_result(&answer);
	if (result != NULL) {
		buf_append_str(&text, "with this token: ");
		walk_describe(result, &text);
		finding_print("ok", "answer", &text);
	} else {
		if (answer.status == 0)
			buf_append_slice(&text, buf_slice(&answer.error));
		else
			explain_refusal(&answer, &text);
		walk_fail(walk, "answer", &text);
	}
	json_decref(result);
	web_answer_fini(&answer);
}
