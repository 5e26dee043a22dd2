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

static const char *verdict_of(bool is_good)
{
	return is_good ? "ok" : "warn";
}

/* ---- claims ---- */

static void judge_issuer(const struct walk *walk, const json_t *claims)
{
	struct slice issuer = document_text(claims, "iss");
	bool is_good = document_lists(walk->issuers, issuer);

	finding_print(verdict_of(is_good), "token", "iss: %s%s",
		      issuer.p != NULL ? issuer.p : "missing",
		      is_good ? "" : ", which is not one of the resource's authorization servers");
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
	char *text = audience != NULL ? json_dumps(audience, JSON_ENCODE_ANY) : NULL;
	const char *shown = text != NULL ? text : "missing";
	bool is_good = names_resource(walk, audience);

	for (size_t i = 0; i < json_array_size(audience); i++)
		is_good |= names_resource(walk, json_array_get(audience, i));
	if (is_good)
		finding_print("ok", "token", "aud: %s", shown);
	else
		finding_print(
			"warn", "token",
			"aud: %s, not %s: it is for somebody else; the client must ask for it with "
			"resource=, and the authorization server must honour that",
			shown, walk->resource != NULL ? walk->resource : "the resource");
	free(text);
}

static void judge_time(struct walk *walk, const json_t *claims)
{
	const json_t *end = json_object_get(claims, "exp");
	const json_t *begin = json_object_get(claims, "nbf");
	double now_s = (double)time(NULL);
	double left_s = json_number_value(end) - now_s;
	double early_s = json_number_value(begin) - now_s;

	if (!json_is_number(end))
		finding_print("warn", "token", "exp: missing, so it would never expire");
	else if (left_s <= 0)
		finding_fail(&walk->ill, "token",
			     "exp: it expired %.0f s ago; or this machine's clock is wrong",
			     -left_s);
	else
		finding_print(verdict_of(left_s > SOON_S), "token", "exp: good for another %.0f s",
			      left_s);
	if (json_is_number(begin) && early_s > 0)
		finding_fail(&walk->ill, "token",
			     "nbf: not valid for another %.0f s; or a clock is wrong", early_s);
}

/* `scope`, or the `scp` of some servers: a text or an array. */
static void judge_scope(const struct walk *walk, const json_t *claims)
{
	struct slice asked = walk->scope != NULL ? slice_str(walk->scope) : slice_of(NULL, 0);
	const json_t *scopes = json_object_get(claims, "scope");
	struct buf missing = { 0 };
	struct buf given = { 0 };

	if (scopes == NULL)
		scopes = json_object_get(claims, "scp");
	if (json_is_string(scopes))
		buf_append_str(&given, json_string_value(scopes));
	walk_append_texts(&given, scopes);
	while (asked.n > 0) {
		struct slice scope = slice_cut(&asked, ' ');
		struct slice rest = buf_slice(&given);
		bool is_there = scope.n == 0;

		while (rest.n > 0 && !is_there)
			is_there = slice_is_equal(slice_cut(&rest, ' '), scope);
		if (!is_there)
			buf_printf(&missing, " %.*s", SLICE_ARG(scope));
	}
	finding_print(verdict_of(missing.len == 0), "token", "scope: %s%s%s",
		      given.len > 0 ? buf_terminate(&given) : "none",
		      missing.len > 0 ? "; requested but missing:" : "", buf_terminate(&missing));
	buf_fini(&missing);
	buf_fini(&given);
}

/* ---- the signature ---- */

/* Says which keys the issuer has instead of the one that the token asks for. */
static void fail_without_key(struct walk *walk, const struct jwt *jwt, const json_t *document)
{
	const json_t *keys = json_object_get(document, "keys");
	struct slice id = jwt_key_id(jwt);
	const char *algorithm = jwt->algorithm->name;
	const char *others;
	struct buf ids = { 0 };
	bool is_there = false;

	for (size_t i = 0; i < json_array_size(keys); i++) {
		struct slice other = document_text(json_array_get(keys, i), "kid");

		is_there |= id.n > 0 && slice_is_equal(other, id);
		if (other.p != NULL && ids.len < IDS_BYTES)
			buf_printf(&ids, "%s%s", ids.len > 0 ? ", " : "", other.p);
	}
	others = ids.len > 0 ? buf_terminate(&ids) : "none has an id";
	if (is_there)
		finding_fail(&walk->ill, "token", "signature: the issuer's key %.*s is not for %s",
			     SLICE_ARG(id), algorithm);
	else if (id.n > 0)
		finding_fail(&walk->ill, "token",
			     "signature: its kid is %.*s, and the issuer has no such key: %s",
			     SLICE_ARG(id), others);
	else
		finding_fail(
			&walk->ill, "token",
			"signature: it has no kid, and there is not exactly one key for %s: %s",
			algorithm, others);
	buf_fini(&ids);
}

/* Only an issuer of the resource was asked for its keys. */
static void judge_signature(struct walk *walk, const struct jwt *jwt)
{
	const char *issuer = document_string(jwt->claims, "iss");
	const json_t *document = issuer != NULL ? json_object_get(walk->keys, issuer) : NULL;
	struct slice id = jwt_key_id(jwt);
	struct slice shown = id.n > 0 ? id : SLICE_LIT("without id");
	struct error err = { ERROR_NONE, "" };
	const struct jwk *key;
	struct jwk_set set;

	CHECK(jwt->algorithm != NULL); /* the header has been checked */
	if (document == NULL || jwk_set_parse(document, ALGORITHM_ALL, &set, &err) < 0) {
		finding_print("warn", "token",
			      "signature: not checked, because there are no keys of its issuer");
		return;
	}
	key = jwk_set_find(&set, id, jwt->algorithm);
	if (key == NULL)
		fail_without_key(walk, jwt, document);
	else if (jwt_is_signed_by(jwt, key->key))
		finding_print("ok", "token", "signature: %s by the issuer's key %.*s",
			      jwt->algorithm->name, SLICE_ARG(shown));
	else
		finding_fail(&walk->ill, "token",
			     "signature: %s by the issuer's key %.*s, and it is wrong: the token "
			     "was changed, or the key was replaced under the same id",
			     jwt->algorithm->name, SLICE_ARG(shown));
	jwk_set_fini(&set);
}

/* Causes are not printed where they could quote the token. */
static void examine_claims(struct walk *walk)
{
	struct verdict verdict;
	struct jwt jwt;

	if (jwt_parse(slice_str(walk->token), &jwt, &verdict) < 0) {
		finding_print("ok", "token",
			      "it is not a JWT, so only the servers know what is in it");
		return;
	}
	judge_issuer(walk, jwt.claims);
	if (jwt_check_header(&jwt, ALGORITHM_ALL, jwt_access_token_types, &verdict) < 0)
		finding_fail(&walk->ill, "token", "%s; is it an access token?", verdict.cause);
	else
		judge_signature(walk, &jwt);
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
		buf_append_str(text, "401: the server does not accept this token");
	else if (answer->status == 403 && challenge.error != NULL)
		buf_append_str(text, "403: the token is good, but not for this");
	else if (answer->status == 403)
		buf_append_str(text, "403: the owner of this token may not use this server");
	else if (answer->status == 503)
		buf_append_str(
			text,
			"503: the server cannot check the token now; perhaps it cannot reach the "
			"authorization server");
	else
		buf_printf(text, "status %d, and no answer to initialize", answer->status);
	if (challenge.error != NULL)
		buf_printf(text, " (%s%s%s)", challenge.error,
			   challenge.error_description != NULL ? ": " : "",
			   challenge.error_description != NULL ? challenge.error_description : "");
	if (answer->status == 403 && challenge.scope != NULL)
		buf_printf(text, "; it needs the scope %s", challenge.scope);
	challenge_fini(&challenge);
}

void walk_token(struct walk *walk)
{
	struct web_answer answer;
	struct buf text = { 0 };
	json_t *result = NULL;

	CHECK(walk->token != NULL);
	if (!walk->is_static) /* else the server alone knows what it is */
		examine_claims(walk);
	walk_initialize(walk, walk->token, &answer);
	if (answer.status == 200)
		result = walk_result(&answer);
	if (result != NULL) {
		walk_print_server("answer", "with this token: ", result);
	} else {
		if (answer.status == 0)
			buf_append_slice(&text, buf_slice(&answer.error));
		else
			explain_refusal(&answer, &text);
		finding_fail(&walk->ill, "answer", "%s", buf_terminate(&text));
		buf_fini(&text);
	}
	json_decref(result);
	web_answer_fini(&answer);
}
