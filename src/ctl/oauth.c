/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a client's way to an MCP endpoint with authorization, and reports each step: the
 * challenge, the resource's metadata, the authorization servers, and what becomes of a token. It
 * does not log in. The token is sent only to the endpoint and never printed.
 *
 * The steps of the way, and their order: at the end the way to the resource's metadata,
 * before it what the steps ask for, an authorization server, and a token. RFC 9728, RFC 6750
 */
#include "ctl/commands.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "auth/document.h"
#include "auth/fetch.h"
#include "auth/jwt.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "config/variables.h"
#include "ctl/client.h"
#include "ctl/output.h"

/*
 * ---- challenge ----
 *
 * Word by word: one that is followed by `=` is a parameter of the scheme before it, any other is
 * a scheme.
 */

/* A server's challenge (WWW-Authenticate), as a client reads it. NULL: absent. RFC 9110 s11.6.1 */
struct challenge {
	bool is_bearer; /* there is a Bearer challenge; the rest is its parameters */
	bool is_first;  /* and it is the first challenge */
	char *resource_metadata;
	char *scope;
	char *error;
	char *error_description;
};

static void skip(struct slice *rest, const char *bytes)
{
	while (rest->n > 0 && *rest->p != '\0' && strchr(bytes, *rest->p) != NULL)
		*rest = slice_of(rest->p + 1, rest->n - 1);
}

static struct slice cut_word(struct slice *rest)
{
	struct slice word = slice_of(rest->p, 0);

	while (word.n < rest->n &&
	       (rest->p[word.n] == '\0' || strchr(" \t,=\"", rest->p[word.n]) == NULL))
		word.n++;
	CHECK(word.n <= rest->n);
	*rest = slice_of(rest->p + word.n, rest->n - word.n);
	return word;
}

/* A token, or what is quoted; an end without a quote ends that as well. */
static char *cut_value(struct slice *rest)
{
	at_end(buf_fini) struct buf text = { 0 };
	size_t i = 1;

	skip(rest, " \t=");
	if (rest->n == 0 || *rest->p != '"')
		return mem_dup_slice(cut_word(rest));
	for (; i < rest->n && rest->p[i] != '"'; i++) {
		if (rest->p[i] == '\\' && i + 1 < rest->n)
			i++;
		buf_append_char(&text, rest->p[i]);
	}
	i += i < rest->n;
	CHECK(i <= rest->n);
	*rest = slice_of(rest->p + i, rest->n - i);
	return mem_strdup(buf_terminate(&text));
}

/* Takes the value. The first of its name counts. */
static void take_parameter(struct challenge *challenge, struct slice name, char *value)
{
	const struct {
		const char *name;
		char **value;
	} known[] = {
		{ "resource_metadata", &challenge->resource_metadata },
		{ "scope", &challenge->scope },
		{ "error", &challenge->error },
		{ "error_description", &challenge->error_description },
	};

	CHECK(challenge->is_bearer && value != NULL);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (*known[i].value == NULL &&
		    slice_is_equal_nocase(name, slice_str(known[i].name))) {
			*known[i].value = value;
			return;
		}
	}
	free(value);
}

/* Parses all fields, joined by commas. Anything that is not a challenge is skipped. The caller ends the result. */
static void challenge_parse(struct slice field, struct challenge *challenge_r)
{
	struct slice rest = field;
	bool is_ours = false;
	size_t count = 0;

	*challenge_r = (struct challenge){ .is_bearer = false };
	while (rest.n > 0) {
		struct slice word;
		struct slice after;

		skip(&rest, " \t,=\"");
		word = cut_word(&rest);
		after = rest;
		skip(&after, " \t");
		if (after.n > 0 && *after.p == '=') {
			char *value = cut_value(&rest);

			if (is_ours)
				take_parameter(challenge_r, word, value);
			else
				free(value);
		} else if (word.n > 0) {
			is_ours = slice_is_equal_nocase(word, SLICE_LIT("Bearer"));
			challenge_r->is_bearer |= is_ours;
			challenge_r->is_first |= is_ours && count == 0;
			count++;
		}
	}
	CHECK(challenge_r->is_bearer || !challenge_r->is_first);
}

static void challenge_fini(struct challenge *challenge)
{
	free(challenge->resource_metadata);
	free(challenge->scope);
	free(challenge->error);
	free(challenge->error_description);
	*challenge = (struct challenge){ .is_bearer = false };
}

struct walk {
	const char *url;
	const char *token; /* or NULL */
	struct slice ca;   /* as in client_request */
	bool is_loopback;  /* the URL is loopback, so what it leads to may be as well */
	const char *ill;   /* the first failure, or NULL; see finding.h */
	bool is_static;    /* no OAuth is offered; tokens are distributed by hand */
	bool is_by_hand;   /* some authorization server does not register clients by itself */
	char *resource;    /* the resource that tokens must be for; NULL: not known */
	char *scope;       /* to be requested; NULL: not stated */
	json_t *issuers;   /* array of strings, or NULL */
	json_t *keys;      /* by issuer: those that could be read */
};

/* ---- questions that several steps ask ---- */

/*
 * Candidate number `at`, from 0, for the address of the document that belongs to `text`; owned by
 * the caller. NULL after the last.
 */
typedef char *walk_address_fn(const char *text, size_t at);

/*
 * GETs a JSON document. Returns a reference owned by the caller; or NULL, and appends the cause to
 * `why`. *is_down_r: nobody answered, so there is no point in trying other addresses there.
 */
static json_t *walk_get(const struct walk *walk, const char *url, struct buf *why, bool *is_down_r)
{
	struct error err = { ERROR_NONE, "" };
	at_end(client_reply_fini) struct client_reply answer = { .status = 0 };
	json_t *document = NULL;

	client_ask_web(&(struct client_request){ .target = url,
						 .method = "GET",
						 .accept = "application/json",
						 .ca = walk->ca,
						 .may_loopback = walk->is_loopback },
		       &answer);
	*is_down_r = answer.status == 0;
	if (answer.status == 0)
		buf_printf(why, "%s: %s", url, buf_terminate(&answer.error));
	else if (answer.status >= 300 && answer.status < 400)
		buf_printf(why, "%s: status %d, a redirect to %s, which clients do not follow", url,
			   answer.status, answer.location);
	else if (answer.status != 200)
		buf_printf(why, "%s: status %d", url, answer.status);
	else
		document = document_parse(buf_slice(&answer.body), &err);
	if (answer.status == 200 && document == NULL)
		buf_printf(why, "%s: it is not a JSON object (%s)", url, err.text);
	CHECK(document == NULL || answer.status == 200);
	return document;
}

/*
 * As walk_get, trying one address after the other; *address_r is the last one tried, owned by the
 * caller.
 */
static json_t *walk_get_first(const struct walk *walk, walk_address_fn *address_of,
			      const char *text, struct buf *why, char **address_r)
{
	json_t *document = NULL;
	bool is_down = false;
	char *address;

	*address_r = NULL;
	for (size_t at = 0; document == NULL && !is_down; at++) {
		address = address_of(text, at);
		if (address == NULL)
			break;
		if (at > 0)
			buf_append_str(why, "; ");
		document = walk_get(walk, address, why, &is_down);
		free(*address_r);
		*address_r = address;
	}
	return document;
}

/* Appends the texts of an array, separated by spaces. */
static void walk_append_texts(struct buf *out, const json_t *array)
{
	size_t before = out->len;

	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *text = json_string_value(json_array_get(array, i));

		if (text != NULL)
			buf_printf(out, "%s%s", out->len > before ? " " : "", text);
	}
}

/* ---- initialize ---- */

/* NULL if the text is no response. */
static json_t *parse_response(struct slice text)
{
	json_auto_t *message = document_parse(text, NULL);

	return json_object_get(message, "result") != NULL ||
			       json_object_get(message, "error") != NULL ?
		       json_incref(message) :
		       NULL;
}

static json_t *find_response(struct slice body)
{
	json_t *message = parse_response(body);

	while (message == NULL && body.n > 0) {
		struct slice line = slice_cut(&body, '\n');

		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (slice_has_prefix(line, SLICE_LIT("data:")))
			message = parse_response(slice_of(line.p + 5, line.n - 5));
	}
	return message;
}

static bool has_response(struct slice body)
{
	json_auto_t *message = find_response(body);

	return message != NULL;
}

/* Sends initialize, with the token or without. The caller owns the answer. */
static void walk_initialize(const struct walk *walk, const char *token,
			    struct client_reply *answer_r)
{
	json_auto_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1,
					 "method", "initialize", "params", mcp_client_hello());
	at_end(mem_free) char *text = json_dumps(message, JSON_COMPACT);
	struct client_request question = { .target = walk->url,
					   .method = "POST",
					   .body = slice_str(text),
					   .token = token,
					   .ca = walk->ca,
					   .may_loopback = walk->is_loopback,
					   .is_enough = has_response };
	at_end(client_reply_fini) struct client_reply ignored = { .status = 0 };

	client_ask_web(&question, answer_r);
	if (answer_r->status == 200 && answer_r->session != NULL) {
		question.method = "DELETE"; /* nothing stays behind */
		question.body = slice_of(NULL, 0);
		question.session = answer_r->session;
		question.is_enough = NULL;
		client_ask_web(&question, &ignored);
	}
}

/*
 * The result of initialize in the answer's body, JSON or events; owned by the caller. NULL: there
 * is none.
 */
static json_t *walk_result(const struct client_reply *answer)
{
	json_auto_t *message = find_response(buf_slice(&answer->body));
	json_t *result = json_object_get(message, "result");

	return document_string(result, "protocolVersion") != NULL ? json_incref(result) : NULL;
}

/*
 * Prints an ok finding that says which server answered, from the `result` of initialize; the text
 * begins with `before`.
 */
static void walk_print_server(const char *what, const char *before, const json_t *result)
{
	const json_t *info = json_object_get(result, "serverInfo");
	const char *name = document_string(info, "name");
	const char *version = document_string(info, "version");

	finding_print("ok", what, "%s%s %s, revision %s", before, name != NULL ? name : "?",
		      version != NULL ? version : "?", document_string(result, "protocolVersion"));
}

/*
 * ---- an authorization server ----
 *
 * One authorization server: its metadata, what a client needs there, its keys. RFC 8414, RFC 
 * 7636, RFC 7591
 */

#define KINDS_MAX 8

/* NULL: there is none, and that was said. */
static json_t *examine_metadata(struct walk *walk, const char *issuer)
{
	struct error err = { ERROR_NONE, "" };
	at_end(buf_fini) struct buf why = { 0 };
	json_t *document = NULL;
	at_end(mem_free) char *address = NULL;

	if (url_check_ours(slice_str(issuer), &err) < 0) {
		finding_fail(&walk->ill, "issuer", "%s: %s", issuer, err.text);
		return NULL;
	}
	document = walk_get_first(walk, issuer_metadata_url, issuer, &why, &address);
	if (document == NULL) {
		finding_fail(&walk->ill, "issuer", "%s", buf_terminate(&why));
	} else if (issuer_metadata_check(document, issuer, &err) < 0) {
		finding_fail(&walk->ill, "issuer", "the metadata of %s cannot be used: %s", issuer,
			     err.text);
		json_decref(document);
		document = NULL;
	} else {
		finding_print("ok", "issuer", "%s", issuer);
	}
	return document;
}

/* ---- what a client needs ---- */

static void examine_endpoints(struct walk *walk, const json_t *document)
{
	static const char *const names[] = { "authorization_endpoint", "token_endpoint" };
	const json_t *types = json_object_get(document, "response_types_supported");
	at_end(buf_fini) struct buf bad = { 0 }, good = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *address = document_string(document, names[i]);
		struct url url;

		if (address == NULL)
			buf_printf(&bad, "%sthere is no %s", bad.len > 0 ? "; " : "", names[i]);
		else if (url_parse(slice_str(address), &url) < 0 || url_is_exposed(&url))
			buf_printf(&bad, "%sthe %s is not an https URL: %s",
				   bad.len > 0 ? "; " : "", names[i], address);
		else
			buf_printf(&good, "%s%s", good.len > 0 ? ", " : "", address);
	}
	if (!document_lists(types, SLICE_LIT("code")))
		buf_printf(&bad, "%sresponse_types_supported does not list code",
			   bad.len > 0 ? "; " : "");
	if (bad.len > 0)
		finding_fail(&walk->ill, "endpoints", "%s", buf_terminate(&bad));
	else
		finding_print("ok", "endpoints", "%s", buf_terminate(&good));
}

static void examine_pkce(struct walk *walk, const json_t *document)
{
	const json_t *methods = json_object_get(document, "code_challenge_methods_supported");

	if (document_lists(methods, SLICE_LIT("S256")))
		finding_print("ok", "pkce", "S256");
	else
		finding_fail(&walk->ill, "pkce",
			     "code_challenge_methods_supported %s; MCP clients give up without it",
			     methods != NULL ? "does not list S256" : "is missing");
}

static void examine_registration(struct walk *walk, const json_t *document)
{
	static const char documents[] = "by client id metadata documents";
	bool has_documents =
		json_is_true(json_object_get(document, "client_id_metadata_document_supported"));
	const char *endpoint = document_string(document, "registration_endpoint");

	walk->is_by_hand |= !has_documents && endpoint == NULL;
	if (endpoint != NULL)
		finding_print("ok", "register", "%s%sdynamic, at %s",
			      has_documents ? documents : "", has_documents ? ", or " : "",
			      endpoint);
	else if (has_documents)
		finding_print("ok", "register", "%s", documents);
	else
		finding_print("warn", "register",
			      "neither dynamic nor %s: each client must be registered there by "
			      "hand, and given its id",
			      documents);
}

/* ---- keys ---- */

struct kind {
	const char *name;
	size_t count;
};

static void count_kind(struct kind kinds[KINDS_MAX], const json_t *key)
{
	const char *name = document_string(key, "crv");

	if (name == NULL)
		name = document_string(key, "kty");
	if (name == NULL)
		name = "without a kind";
	for (size_t i = 0; i < KINDS_MAX; i++) {
		if (kinds[i].name == NULL)
			kinds[i].name = name;
		if (strcmp(kinds[i].name, name) == 0) {
			kinds[i].count++;
			return;
		}
	}
}

static void judge_keys(struct walk *walk, const char *issuer, json_t *document)
{
	const json_t *keys = json_object_get(document, "keys");
	struct kind kinds[KINDS_MAX] = { { NULL, 0 } };
	struct error err = { ERROR_NONE, "" };
	at_end(jwk_set_fini) struct jwk_set set = { .count = 0 };
	at_end(buf_fini) struct buf text = { 0 };

	if (jwk_set_parse(document, ALGORITHM_ALL, &set, &err) < 0) {
		finding_fail(&walk->ill, "keys", "no key can be used: %s", err.text);
		return;
	}
	buf_printf(&text, "%zu", json_array_size(keys));
	for (size_t i = 0; i < json_array_size(keys); i++)
		count_kind(kinds, json_array_get(keys, i));
	for (size_t i = 0; i < KINDS_MAX && kinds[i].name != NULL; i++)
		buf_printf(&text, "%s %zu %s", i > 0 ? "," : ":", kinds[i].count, kinds[i].name);
	if (set.skipped > 0)
		buf_printf(&text, "; %zu cannot verify tokens", set.skipped);
	finding_print("ok", "keys", "%s", buf_terminate(&text));
	json_object_set(walk->keys, issuer, document);
}

static void walk_issuer(struct walk *walk, const char *issuer)
{
	json_auto_t *document = examine_metadata(walk, issuer);
	const char *address = document_string(document, "jwks_uri");
	at_end(buf_fini) struct buf why = { 0 };
	json_auto_t *keys = NULL;
	bool is_down;

	if (document == NULL)
		return;
	examine_endpoints(walk, document);
	examine_pkce(walk, document);
	examine_registration(walk, document);
	if (address == NULL) {
		finding_print(
			"warn", "keys",
			"no jwks_uri: its tokens can be checked only by asking it (introspection)");
	} else {
		keys = walk_get(walk, address, &why, &is_down);
		if (keys == NULL)
			finding_fail(&walk->ill, "keys", "%s", buf_terminate(&why));
		else
			judge_keys(walk, issuer, keys);
	}
}

/*
 * ---- a token ----
 *
 * A token: what it says of itself, who has signed it, and what the server says of it. Its
 * claims are warnings, for the server's configuration may take other audiences; an expired
 * token, or one with a wrong signature, has failed.
 */

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
	at_end(mem_free) char *text =
		audience != NULL ? json_dumps(audience, JSON_ENCODE_ANY) : NULL;
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
	at_end(buf_fini) struct buf missing = { 0 }, given = { 0 };

	if (scopes == NULL)
		scopes = json_object_get(claims, "scp");
	if (json_is_string(scopes))
		buf_append_str(&given, json_string_value(scopes));
	walk_append_texts(&given, scopes);
	while (asked.n > 0) {
		struct slice scope = slice_cut(&asked, ' ');

		if (scope.n > 0 && !slice_has_part(buf_slice(&given), ' ', scope))
			buf_printf(&missing, " %.*s", SLICE_ARG(scope));
	}
	finding_print(verdict_of(missing.len == 0), "token", "scope: %s%s%s",
		      given.len > 0 ? buf_terminate(&given) : "none",
		      missing.len > 0 ? "; requested but missing:" : "", buf_terminate(&missing));
}

/* ---- the signature ---- */

/* Says which keys the issuer has instead of the one that the token asks for. */
static void fail_without_key(struct walk *walk, const struct jwt *jwt, const json_t *document)
{
	const json_t *keys = json_object_get(document, "keys");
	struct slice id = jwt_key_id(jwt);
	const char *algorithm = jwt->algorithm->name;
	const char *others;
	at_end(buf_fini) struct buf ids = { 0 };
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
}

/* Only an issuer of the resource was asked for its keys. */
static void judge_signature(struct walk *walk, const struct jwt *jwt)
{
	const char *issuer = document_string(jwt->claims, "iss");
	const json_t *document = issuer != NULL ? json_object_get(walk->keys, issuer) : NULL;
	struct slice id = jwt_key_id(jwt);
	struct slice shown = id.n > 0 ? id : SLICE_LIT("without id");
	const struct jwk *key;
	at_end(jwk_set_fini) struct jwk_set set = { .count = 0 };

	CHECK(jwt->algorithm != NULL); /* the header has been checked */
	if (document == NULL || jwk_set_parse(document, ALGORITHM_ALL, &set, NULL) < 0) {
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
}

/* Causes are not printed where they could quote the token. */
static void examine_claims(struct walk *walk)
{
	struct verdict verdict;
	at_end(jwt_fini) struct jwt jwt = { .header = NULL };

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
}

/* ---- what the server says ---- */

static void explain_refusal(const struct client_reply *answer, struct buf *text)
{
	struct challenge challenge;

	CHECK(answer->status != 0);
	challenge_parse(buf_slice(&answer->challenge), &challenge);
	if (answer->status == 401)
		buf_append_str(text, "401: the server does not accept this token");
	else if (answer->status == 403)
		buf_printf(text, "403: the %s",
			   challenge.error != NULL ? "token is good, but not for this" :
						     "owner of this token may not use this server");
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

static void walk_token(struct walk *walk)
{
	at_end(client_reply_fini) struct client_reply answer = { .status = 0 };
	at_end(buf_fini) struct buf text = { 0 };
	json_auto_t *result = NULL;

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
	}
}

#define CA_BYTES_MAX (1024 * 1024)
#define ISSUERS_MAX 8
#define WELL_KNOWN "/.well-known/oauth-protected-resource"

/* ---- what the user gives ---- */

/* https, or http to loopback; no fragment. */
static int check_url(const char *text, struct error *err)
{
	struct url url;

	if (url_parse(slice_str(text), &url) < 0)
		return error_set(err, ERROR_INVALID,
				 "--oauth takes the URL of an MCP endpoint, like https://host/mcp");
	if (strchr(text, '#') != NULL)
		return error_set(err, ERROR_INVALID, "the URL must have no fragment (#)");
	if (url_is_https(&url) ||
	    (slice_is_equal_nocase(url.scheme, SLICE_LIT("http")) && url_is_loopback(&url)))
		return 0;
	return error_set(err, ERROR_INVALID,
			 "the URL must begin with https://; http:// is for loopback only");
}

/* The certificates in the file, as PEM, followed by those that the system trusts; the caller's. */
static char *read_ca(const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	at_end(mem_free) char *text = mem_zalloc(CA_BYTES_MAX + 1);
	char *both = NULL;
	struct slice trusted;

	if (file != NULL) {
		text[fread(text, 1, CA_BYTES_MAX, file)] = '\0';
		fclose(file);
	}
	if (file == NULL)
		error_set_errno(err, "cannot open the file of certificates");
	else if (strstr(text, "-----BEGIN CERTIFICATE-----") == NULL)
		error_set(err, ERROR_INVALID, "%.100s contains no certificate in PEM form", path);
	else if (fetch_prepare(err) == 0) {
		trusted = fetch_system_ca();
		both = mem_printf("%s\n%.*s", text, SLICE_ARG(trusted));
	}
	return both;
}

/* ---- without a token ---- */

/* Neither 401 nor MCP without a token. */
static void explain_status(struct walk *walk, const struct client_reply *answer)
{
	const char *hint;
	int status = answer->status;

	CHECK(status != 0 && status != 401);
	if (status == 200) {
		finding_fail(
			&walk->ill, "challenge",
			"this is not an MCP server: status 200, %s, but no answer to initialize; "
			"is the path right?",
			answer->type[0] != '\0' ? answer->type : "no Content-Type");
		return;
	}
	if (status >= 300 && status < 400)
		hint = "clients do not follow redirects; give them the address ";
	else if (status == 403)
		hint = "without a token clients must get 401 with a challenge, or they never ask "
		       "for one; or else the host or address is refused";
	else if (status >= 500)
		hint = "the server, or a proxy in front of it, has a problem";
	else
		hint = "this is not an MCP server that accepts POST; is the path right?";
	finding_fail(&walk->ill, "challenge", "status %d instead of 401 or 200: %s%s", status, hint,
		     status >= 300 && status < 400 ? answer->location : "");
}

static void say_challenge(const struct challenge *challenge)
{
	at_end(buf_fini) struct buf text = { 0 };
	const char *verdict = "warn";

	CHECK(challenge->is_bearer || !challenge->is_first);
	if (!challenge->is_bearer) {
		buf_append_str(
			&text,
			"401, but WWW-Authenticate has no Bearer challenge; clients must guess "
			"where the metadata is");
	} else if (challenge->resource_metadata == NULL) {
		buf_append_str(&text, "401, but no resource_metadata in WWW-Authenticate; clients "
				      "must guess where the metadata is");
	} else {
		buf_printf(&text, "401, and the metadata is at %s", challenge->resource_metadata);
		verdict = challenge->is_first ? "ok" : "warn";
		if (!challenge->is_first)
			buf_append_str(
				&text,
				"; but some clients read only the first challenge, which is not "
				"Bearer");
	}
	if (challenge->scope != NULL)
		buf_printf(&text, "; scope: %s", challenge->scope);
	if (challenge->error != NULL)
		buf_printf(&text, "; without a token there should be no error (%s)",
			   challenge->error);
	finding_print(verdict, "challenge", "%s", buf_terminate(&text));
}

/* Some clients ask so whether there is authorization at all. */
static void examine_probe(const struct walk *walk)
{
	at_end(client_reply_fini) struct client_reply answer = { .status = 0 };

	client_ask_web(&(struct client_request){ .target = walk->url,
						 .method = "GET",
						 .accept = "text/event-stream",
						 .ca = walk->ca,
						 .may_loopback = walk->is_loopback },
		       &answer);
	if (answer.status != 401)
		finding_print("warn", "challenge",
			      "GET without a token gets %d, not 401: clients that probe like this "
			      "(mcp-remote) assume that no token is needed",
			      answer.status);
}

/* Returns whether there is more of the way, and then the address of the metadata or NULL. */
static bool examine_challenge(struct walk *walk, char **address_r)
{
	struct challenge challenge;
	at_end(client_reply_fini) struct client_reply answer = { .status = 0 };
	json_auto_t *result = NULL;
	bool goes_on;
	struct url url;

	walk_initialize(walk, NULL, &answer);
	goes_on = answer.status == 401;
	if (answer.status == 0) {
		finding_fail(&walk->ill, "connect", "%s", buf_terminate(&answer.error));
	} else {
		bool has_tls = url_parse(slice_str(walk->url), &url) == 0 && url_is_https(&url);

		finding_print("ok", "connect", "%s, %s", answer.address,
			      has_tls ? "by TLS; the certificate is good" : "without TLS");
	}
	if (answer.status == 200)
		result = walk_result(&answer);
	if (result != NULL) {
		walk_print_server("challenge", "no authorization is required: ", result);
	} else if (goes_on) {
		challenge_parse(buf_slice(&answer.challenge), &challenge);
		say_challenge(&challenge);
		examine_probe(walk);
		*address_r = challenge.resource_metadata;
		walk->is_static = challenge.is_bearer && *address_r == NULL;
		CHECK(walk->scope == NULL);
		walk->scope = challenge.scope;
		challenge.resource_metadata = NULL;
		challenge.scope = NULL;
		challenge_fini(&challenge);
	} else if (answer.status != 0) {
		explain_status(walk, &answer);
	}
	return goes_on;
}

/* ---- the resource's metadata ---- */

/* Where clients look without a challenge: number 0 with the path, 1 without; the caller's; NULL after the last. */
static char *metadata_address(const char *text, size_t at)
{
	struct url url;
	struct slice rest;
	struct slice path;

	if (url_parse(slice_str(text), &url) < 0 || at > 1)
		return NULL;
	rest = url.tail;
	path = slice_cut(&rest, '?');
	if (path.n > 0 && path.p[path.n - 1] == '/')
		path.n--;
	if (at == 1 && path.n == 0)
		return NULL;
	return mem_printf("%.*s%s%.*s", (int)(strlen(text) - url.tail.n), text, WELL_KNOWN,
			  at == 0 ? (int)path.n : 0, path.n > 0 ? path.p : "");
}

static struct slice server_part(struct slice text)
{
	struct url url;

	return url_parse(text, &url) < 0 ? slice_of(text.p, 0) :
					   slice_of(text.p, text.n - url.tail.n);
}

/*
 * NULL, or in which way the resource is neither the URL nor what it lies below: as clients compare, to whom a slash
 * at the end of the resource alone is a path that is not the URL's.
 */
static const char *difference(struct slice resource, struct slice url)
{
	struct slice a = server_part(resource);
	struct slice b = server_part(url);
	struct slice path = slice_of(resource.p + a.n, resource.n - a.n);
	struct slice own = slice_of(url.p + b.n, url.n - b.n);

	if (a.n == 0)
		return "it is not a URL";
	if (!url_is_same_resource(a, b))
		return "scheme, host or port differ (public_url in the server's configuration?)";
	if (slice_is_equal(path, SLICE_LIT("/")) || slice_is_equal(path, own))
		return NULL;
	if (path.n > 0 && path.p[path.n - 1] == '/') {
		path.n--;
		if (slice_is_equal(path, own))
			return "the slash at its end is one too many";
	}
	if (slice_has_prefix(own, path) &&
	    (own.n == path.n || own.p[path.n] == '/' || own.p[path.n] == '?'))
		return NULL;
	return "the paths differ";
}

static void judge_resource(struct walk *walk, json_t *document, const char *address)
{
	const char *resource = document_string(document, "resource");
	const char *empty = NULL;
	const char *differs;
	const char *name;
	json_t *value;

	/* Clients check the form of the document, and look elsewhere if it is wrong, without a word. */
	json_object_foreach(document, name, value)
	{
		if (json_is_null(value) && empty == NULL)
			empty = name;
	}
	if (resource == NULL) {
		finding_fail(&walk->ill, "resource", "%s names no `resource`", address);
		return;
	}
	if (empty != NULL) {
		finding_fail(&walk->ill, "resource",
			     "%s has a `%s` that is null; clients refuse the whole document",
			     address, empty);
		return;
	}
	CHECK(walk->resource == NULL);
	walk->resource = mem_strdup(resource);
	differs = difference(slice_str(resource), slice_str(walk->url));
	if (differs != NULL)
		finding_fail(&walk->ill, "resource",
			     "%s is for the resource %s, not for %s: %s; clients refuse it",
			     address, resource, walk->url, differs);
	else if (url_is_same_resource(slice_str(resource), slice_str(walk->url)))
		finding_print("ok", "resource", "%s, by %s", resource, address);
	else
		finding_print(
			"warn", "resource",
			"%s, by %s; but some clients accept only a resource that is exactly the "
			"URL they were given",
			resource, address);
}

static void judge_servers(struct walk *walk, const json_t *document)
{
	json_t *servers = json_object_get(document, "authorization_servers");
	size_t count = json_array_size(servers);

	for (size_t i = 0; i < count; i++) {
		if (!json_is_string(json_array_get(servers, i)))
			count = 0;
	}
	if (count == 0) {
		finding_fail(
			&walk->ill, "servers",
			"`authorization_servers` is empty, so there is nowhere to get a token");
		return;
	}
	CHECK(walk->issuers == NULL);
	walk->issuers = json_incref(servers);
	if (count > ISSUERS_MAX)
		finding_print("warn", "servers",
			      "%zu authorization servers; only the first %d are checked", count,
			      ISSUERS_MAX);
	else
		finding_print("ok", "servers", "%zu authorization server%s", count,
			      count == 1 ? "" : "s");
}

/* At the address that the challenge has given, or where clients look without one. */
static void examine_resource(struct walk *walk, const char *given)
{
	at_end(buf_fini) struct buf scopes = { 0 }, why = { 0 };
	at_end(mem_free) char *found = NULL;
	json_auto_t *document = NULL;
	bool is_down;

	if (given != NULL)
		document = walk_get(walk, given, &why, &is_down);
	else
		document = walk_get_first(walk, metadata_address, walk->url, &why, &found);
	walk->is_static = walk->is_static && document == NULL &&
			  strstr(buf_terminate(&why), ": status 404") != NULL;
	if (walk->is_static) {
		finding_print(
			"ok", "resource",
			"no OAuth is offered here; it uses static tokens, which its operator gives "
			"out (%s)",
			buf_terminate(&why));
	} else if (document == NULL) {
		finding_fail(&walk->ill, "resource", "%s", buf_terminate(&why));
	} else {
		judge_resource(walk, document, given != NULL ? given : found);
		judge_servers(walk, document);
	}
	/* Without a scope in the challenge clients ask for all that the metadata lists. */
	if (walk->scope == NULL)
		walk_append_texts(&scopes, json_object_get(document, "scopes_supported"));
	if (scopes.len > 0)
		walk->scope = mem_strdup(buf_terminate(&scopes));
}

/* ---- the whole ---- */

static void say_next(const struct walk *walk, bool asks)
{
	const char *of = walk->scope != NULL ? " with the scope " : "";
	const char *scope = walk->scope != NULL ? walk->scope : "";
	at_end(buf_fini) struct buf text = { 0 };

	if (walk->ill != NULL) {
		buf_printf(&text, "see to '%s' first", walk->ill);
		if (walk->is_static && strcmp(walk->ill, "answer") == 0)
			buf_append_str(&text, ": get a token from its operator");
		else if (strcmp(walk->ill, "answer") == 0 || strcmp(walk->ill, "token") == 0)
			buf_printf(&text,
				   ": get a token from one of its authorization servers%s%s%s%s",
				   walk->resource != NULL ? " for " : "",
				   walk->resource != NULL ? walk->resource : "", of, scope);
	} else if (walk->is_static && walk->token == NULL) {
		buf_append_str(&text,
			       "get a token from its operator, and try it with --token-file");
	} else if (!asks) {
		buf_append_str(&text, "nothing; clients get in without a token");
	} else if (walk->token != NULL) {
		buf_append_str(&text, "nothing; clients get in with a token like this");
	} else {
		buf_printf(&text, "%sget a token for %s%s%s, and try it with --token-file",
			   walk->is_by_hand ? "register the client at the authorization server; " :
					      "",
			   walk->resource, of, scope);
	}
	finding_advise(buf_slice(&text));
}

/* Returns 0 if a client gets, or can get, through; otherwise 1. */
static int examine(const char *url, const char *token, const char *ca)
{
	struct walk walk = { .url = url, .token = token };
	at_end(mem_free) char *address = NULL;
	struct url parts;
	bool asks;

	CHECK(url != NULL);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return 1;
	if (ca != NULL)
		walk.ca = slice_str(ca);
	walk.keys = json_object();
	walk.is_loopback = url_parse(slice_str(url), &parts) == 0 && url_is_loopback(&parts);
	finding_begin("url", url);
	asks = examine_challenge(&walk, &address);
	if (asks) {
		examine_resource(&walk, address);
		for (size_t i = 0; i < json_array_size(walk.issuers) && i < ISSUERS_MAX; i++)
			walk_issuer(&walk, json_string_value(json_array_get(walk.issuers, i)));
		if (walk.token != NULL)
			walk_token(&walk);
	}
	say_next(&walk, asks);
	free(walk.resource);
	free(walk.scope);
	json_decref(walk.issuers);
	json_decref(walk.keys);
	curl_global_cleanup();
	return walk.ill != NULL;
}

int oauth_run(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	at_end(secret_free) char *token = NULL;
	at_end(mem_free) char *ca = NULL;
	int ill = -1;

	if (line->token_file != NULL)
		token = line_read_token(line->token_file, &err);
	if (line->ca_file != NULL && err.kind == ERROR_NONE)
		ca = read_ca(line->ca_file, &err);
	if (err.kind == ERROR_NONE && check_url(line->url, &err) == 0)
		ill = examine(line->url, token, ca);
	if (ill < 0)
		return line_refuse_usage(err.text);
	return ill > 0 ? EXIT_FAILED : 0;
}
