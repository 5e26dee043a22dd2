/* SPDX-License-Identifier: Apache-2.0 */
/* The steps up to the resource's metadata, and their order. RFC 9728, RFC 6750 */
#include "ctl/oauth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "auth/document.h"
#include "auth/fetch.h"
#include "auth/url.h"
#include "base/mem.h"
#include "ctl/challenge.h"
#include "ctl/escape.h"
#include "ctl/finding.h"
#include "ctl/walk.h"

#define TOKEN_BYTES_MAX (64 * 1024)
#define CA_BYTES_MAX (1024 * 1024)
#define ISSUERS_MAX 8
#define WELL_KNOWN "/.well-known/oauth-protected-resource"

/* ---- what the user gives ---- */

int oauth_check_url(const char *text, struct error *err)
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

char *oauth_read_token(const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	char *text = mem_zalloc(TOKEN_BYTES_MAX + 1);
	size_t good = 0;
	size_t n;

	if (file == NULL) {
		free(text);
		error_set_errno(err, "cannot open the token file");
		return NULL;
	}
	setvbuf(file, NULL, _IONBF, 0); /* no second copy */
	n = fread(text, 1, TOKEN_BYTES_MAX, file);
	fclose(file);
	while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
		text[--n] = '\0';
	for (; good < n && text[good] > ' ' && text[good] < 0x7F; good++)
		;
	if (n > 0 && good == n)
		return text;
	explicit_bzero(text, n);
	free(text);
	error_set(err, ERROR_INVALID, "the token file must hold one token, and nothing else");
	return NULL;
}

char *oauth_read_ca(const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	char *text = mem_zalloc(CA_BYTES_MAX + 1);
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
	free(text);
	return both;
}

/* ---- without a token ---- */

/* Neither 401 nor MCP without a token. */
static void explain_status(struct walk *walk, const struct web_answer *answer)
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
	struct buf text = { 0 };
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
	buf_fini(&text);
}

/* Some clients ask so whether there is authorization at all. */
static void examine_probe(const struct walk *walk)
{
	const struct web_question question = { .url = walk->url,
					       .method = "GET",
					       .accept = "text/event-stream",
					       .ca = walk->ca,
					       .may_loopback = walk->is_loopback };
	struct web_answer answer;

	web_ask(&question, &answer);
	if (answer.status != 401)
		finding_print("warn", "challenge",
			      "GET without a token gets %d, not 401: clients that probe like this "
			      "(mcp-remote) assume that no token is needed",
			      answer.status);
	web_answer_fini(&answer);
}

/* Returns whether there is more of the way, and then the address of the metadata or NULL. */
static bool examine_challenge(struct walk *walk, char **address_r)
{
	struct challenge challenge;
	struct web_answer answer;
	json_t *result = NULL;
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
	json_decref(result);
	web_answer_fini(&answer);
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

static struct slice origin_of(struct slice text)
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
	struct slice a = origin_of(resource);
	struct slice b = origin_of(url);
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
	struct buf scopes = { 0 };
	struct buf why = { 0 };
	char *found = NULL;
	json_t *document;
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
	buf_fini(&scopes);
	buf_fini(&why);
	json_decref(document);
	free(found);
}

/* ---- the whole ---- */

static void say_next(const struct walk *walk, bool asks)
{
	const char *of = walk->scope != NULL ? " with the scope " : "";
	const char *scope = walk->scope != NULL ? walk->scope : "";
	struct buf text = { 0 };

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
	escape_print(stdout, "next: ", buf_slice(&text), "");
	buf_fini(&text);
}

int oauth_examine(const struct oauth_walk *oauth)
{
	struct walk walk = { .url = oauth->url, .token = oauth->token };
	char *address = NULL;
	struct url url;
	bool asks;

	CHECK(oauth->url != NULL);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return 1;
	if (oauth->ca != NULL)
		walk.ca = slice_str(oauth->ca);
	walk.keys = json_object();
	walk.is_loopback = url_parse(slice_str(oauth->url), &url) == 0 && url_is_loopback(&url);
	escape_print(stdout, "", slice_str(oauth->url), "");
	asks = examine_challenge(&walk, &address);
	if (asks) {
		examine_resource(&walk, address);
		for (size_t i = 0; i < json_array_size(walk.issuers) && i < ISSUERS_MAX; i++)
			walk_issuer(&walk, json_string_value(json_array_get(walk.issuers, i)));
		if (walk.token != NULL)
			walk_token(&walk);
	}
	say_next(&walk, asks);
	free(address);
	free(walk.resource);
	free(walk.scope);
	json_decref(walk.issuers);
	json_decref(walk.keys);
	curl_global_cleanup();
	return walk.ill != NULL;
}
