/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents about resources are made once, from the configuration alone: they are served even
 * while every issuer is down, and contain nothing from requests. The facade's document is a copy of
 * the issuer's current metadata, without what would not be true here.
 */
#include "endpoint/metadata.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "auth/assertion.h"
#include "auth/dpop.h"
#include "auth/verifier.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "endpoint/authorization.h"
#include "endpoint/origin.h"
#include "jsonrpc/write.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "router/digest.h"

/* ---- registration ---- */

/*
 * POST /register, for issuers that register nobody: every client gets the one public client that
 * was created there by hand. There is no secret and no state, and redirect URIs are those of the
 * configuration or lead to the client's own machine. The codes are protected by the issuer's exact
 * list of redirect URIs. RFC 7591 §3; AUTH-DCR-01 … -03.
 */

#define BODY_BYTES_MAX (16 * 1024)
#define NO_STORE ANSWER_CORS "Cache-Control: no-store\r\n"

struct registration {
	struct http_exchange exchange;
	const struct metadata *metadata;
};

/* http to a loopback address or localhost, with any port or none. AUTH-DCR-02, RFC 8252 §7.3 */
static bool is_loopback(struct slice uri)
{
	static const struct slice hosts[] = { SLICE("http://127.0.0.1"), SLICE("http://[::1]"),
					      SLICE("http://localhost") };

	for (size_t i = 0; i < uri.n; i++)
		if (uri.p[i] <= ' ' || uri.p[i] >= 0x7f || uri.p[i] == '#' || uri.p[i] == '\\')
			return false;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct slice rest = uri;
		struct slice port;
		uint64_t number;

		if (!slice_has_prefix(uri, hosts[i]))
			continue;
		rest = slice_of(uri.p + hosts[i].n, uri.n - hosts[i].n);
		if (rest.n == 0 || rest.p[0] == '/')
			return true;
		if (rest.p[0] != ':')
			return false;
		rest = slice_of(rest.p + 1, rest.n - 1);
		port = slice_cut(&rest, '/');
		return text_parse_u64(port, &number) == 0 && number >= 1 && number <= 65535;
	}
	return false;
}

static bool are_allowed(const struct metadata_conf *conf, const json_t *uris)
{
	for (size_t i = 0; i < json_array_size(uris); i++) {
		const json_t *uri = json_array_get(uris, i);
		struct slice text = slice_of(json_string_value(uri), json_string_length(uri));

		if (!json_is_string(uri) ||
		    (!slices_has(conf->redirect_uris, text) && !is_loopback(text)))
			return false;
	}
	return json_array_size(uris) > 0;
}

static void metadata_refuse(const struct answer *answer, int status, const char *error,
			    const char *why)
{
	at_end(mem_free) char *text =
		mem_printf("{\"error\":\"%s\",\"error_description\":\"%s\"}", error, why);

	answer_document(answer, status, SLICE_LIT(NO_STORE), slice_str(text));
}

static void register_client(const struct metadata_conf *conf, const struct answer *answer,
			    json_t *uris)
{
	json_auto_t *document =
		json_pack("{s:s%, s:O, s:s, s:[s,s], s:[s]}", "client_id", conf->client_id.p,
			  conf->client_id.n, "redirect_uris", uris, "token_endpoint_auth_method",
			  "none", "grant_types", "authorization_code", "refresh_token",
			  "response_types", "code");
	at_end(mem_free) char *text = json_dumps(document, JSON_COMPACT);

	CHECK(text != NULL);
	answer_document(answer, 201, SLICE_LIT(NO_STORE), slice_str(text));
}

static void registration_on_body(struct http_exchange *exchange, struct slice body)
{
	struct registration *registration = container_of(exchange, struct registration, exchange);
	const struct answer answer = { .conn = exchange->conn };
	struct loop *loop = http_conn_loop(exchange->conn);
	const struct metadata *metadata = registration->metadata;
	json_auto_t *request = body.n <= BODY_BYTES_MAX ?
				       json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, NULL) :
				       NULL;
	json_t *uris = json_object_get(request, "redirect_uris");

	if (!metadata_has_client(metadata)) /* a reload has taken it away since the head came */
		metadata_refuse(&answer, 404, "not_found", "No client is handed out here any more");
	else if (request == NULL)
		metadata_refuse(&answer, 400, "invalid_client_metadata",
				"The body must be a JSON object of at most 16 KiB");
	else if (!are_allowed(&metadata->conf, uris))
		metadata_refuse(
			&answer, 400, "invalid_redirect_uri",
			"Each redirect URI must be an allowed one, or http to a loopback address");
	else
		register_client(&metadata->conf, &answer, uris);
	loop_defer_free(loop, registration);
}

static void registration_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	free(container_of(exchange, struct registration, exchange));
}

static const struct http_exchange_ops registration_ops = {
	.on_body = registration_on_body,
	.on_gone = registration_on_gone,
};

/* Registers the client that the body describes. `metadata` is borrowed. */
static struct http_exchange *registration_new(const struct metadata *metadata,
					      struct http_conn *conn,
					      const struct http_request *http)
{
	const struct answer answer = { .conn = conn };
	struct registration *registration;

	if (http->method != HTTP_POST) {
		answer_other_method(&answer, http->method, "POST, OPTIONS",
				    "Content-Type, Accept, MCP-Protocol-Version");
		return NULL;
	}
	if (http->body == HTTP_BODY_LENGTH && http->content_length > BODY_BYTES_MAX) {
		metadata_refuse(&answer, 400, "invalid_client_metadata",
				"The body must be a JSON object of at most 16 KiB");
		return NULL;
	}
	registration = mem_zalloc(sizeof(*registration));
	registration->exchange.ops = &registration_ops;
	registration->metadata = metadata;
	return &registration->exchange;
}

/* ---- documents ---- */

#define RESOURCE_PREFIX "/.well-known/oauth-protected-resource"
#define CACHEABLE ANSWER_CORS "Cache-Control: public, max-age=3600\r\n"

struct metadata_document {
	char *path;
	char *text;
};

/* ---- documents about resources: RFC 9728 §2 ---- */

/*
 * No member is null or empty: clients that validate the document would look elsewhere then.
 * AUTH-PRM-03 … -06
 */
static char *make_document(const struct authorization_conf *auth,
			   const struct metadata_resource *resource)
{
	struct slice id = resource->resource, scopes = resource->scopes;
	json_t *issuers = json_array();
	json_t *words = scopes.n > 0 ? json_array() : NULL;
	json_t *proofs = auth->dpop != AUTHORIZATION_DPOP_OFF ? json_array() : NULL;
	json_t *must_prove = auth->dpop == AUTHORIZATION_DPOP_REQUIRED ? json_true() : NULL;
	json_auto_t *document = NULL;
	char *text;

	for (size_t i = 0; i < auth->issuers.count; i++)
		json_array_append_new(issuers, json_string(auth->issuers.items[i].issuer));
	while (scopes.n > 0) {
		struct slice word = slice_cut(&scopes, ' ');

		json_array_append_new(words, json_stringn(word.p, word.n));
	}
	for (size_t i = 0; proofs != NULL && dpop_algorithms[i] != NULL; i++)
		json_array_append_new(proofs, json_string(dpop_algorithms[i]));
	document =
		json_pack("{s:s%, s:o, s:o*, s:[s], s:o*, s:o*}", "resource", id.p, id.n,
			  "authorization_servers", issuers, "scopes_supported", words,
			  "bearer_methods_supported", "header", "dpop_signing_alg_values_supported",
			  proofs, "dpop_bound_access_tokens_required", must_prove);
	text = json_dumps(document, JSON_COMPACT);
	CHECK(text != NULL);
	return text;
}

/* What follows the well-known path: for the root, nothing. */
static struct slice behind_well_known(struct slice path)
{
	return slice_is_equal(path, SLICE_LIT("/")) ? slice_of(path.p, 0) : path;
}

/* ---- our own keys: RFC 7517 s5 ---- */

#define KEYS_TYPE "application/jwk-set+json"
/* From a change of the key on: what its last token has left, and how far the server's clock may be behind. */
#define KEY_KEPT_MS ((ASSERTION_S + 60) * 1000ull)

/* Puts the key in use: one that is there, or in the place of none, or of the one that ends first. */
static void keys_use(struct metadata *metadata, struct slice jwk)
{
	struct metadata_key *place = metadata->keys;

	/* A private key stays where it is. */
	CHECK(jwk.n == 0 || jwk.p[0] == '{');
	for (size_t i = 0; i < METADATA_KEYS_MAX; i++)
		if (metadata->keys[i].until_ms == UINT64_MAX)
			metadata->keys[i].until_ms = clock_now_ms() + KEY_KEPT_MS;
	for (size_t i = 0; i < METADATA_KEYS_MAX; i++) {
		struct metadata_key *key = &metadata->keys[i];

		if (key->jwk != NULL && slice_is_equal(slice_str(key->jwk), jwk)) {
			place = key;
			break;
		}
		if (key->until_ms < place->until_ms)
			place = key;
	}
	if (jwk.n == 0)
		return;
	free(place->jwk);
	*place = (struct metadata_key){ mem_dup_slice(jwk), UINT64_MAX };
}

/* The set, which is empty without a key; false then. */
static bool append_keys(const struct metadata *metadata, struct buf *out)
{
	size_t begin;

	buf_append_str(out, "{\"keys\":[");
	begin = out->len;
	for (size_t i = 0; i < METADATA_KEYS_MAX; i++) {
		const struct metadata_key *key = &metadata->keys[i];

		if (key->jwk == NULL || clock_now_ms() >= key->until_ms)
			continue;
		write_comma(out);
		buf_append_str(out, key->jwk);
	}
	buf_append_str(out, "]}");
	return out->len > begin + 2;
}

/* ---- whole ---- */

static void make_documents(struct metadata *metadata, const struct metadata_conf *conf,
			   const struct authorization_conf *auth)
{
	metadata->conf = *conf;
	metadata->auth = auth;
	keys_use(metadata, conf->own_key);
	if (conf->resource_count == 0)
		return;
	metadata->documents = mem_zalloc(conf->resource_count * sizeof(*metadata->documents));
	for (size_t i = 0; i < conf->resource_count; i++) {
		const struct metadata_resource *resource = &conf->resources[i];

		metadata->documents[i] = (struct metadata_document){
			.path = mem_printf(RESOURCE_PREFIX "%.*s",
					   SLICE_ARG(behind_well_known(resource->path))),
			.text = make_document(auth, resource),
		};
	}
}

static void free_documents(struct metadata *metadata)
{
	for (size_t i = 0; i < metadata->conf.resource_count; i++) {
		free(metadata->documents[i].path);
		free(metadata->documents[i].text);
	}
	free(metadata->documents);
	metadata->documents = NULL;
}

void metadata_init(struct metadata *metadata, const struct metadata_conf *conf,
		   const struct authorization_conf *auth)
{
	*metadata = (struct metadata){ .documents = NULL };
	make_documents(metadata, conf, auth);
}

void metadata_renew(struct metadata *metadata, const struct metadata_conf *conf,
		    const struct authorization_conf *auth)
{
	free_documents(metadata);
	make_documents(metadata, conf, auth);
}

void metadata_fini(struct metadata *metadata)
{
	free_documents(metadata);
	for (size_t i = 0; i < METADATA_KEYS_MAX; i++)
		free(metadata->keys[i].jwk);
	*metadata = (struct metadata){ .documents = NULL };
}

/*
 * There is a document at the root only if there is a single resource, or one at the root: otherwise
 * nobody could tell which one is meant. AUTH-PRM-02, -12
 */
static const struct metadata_document *find_document(const struct metadata *metadata,
						     struct slice path)
{
	const struct slice well_known = SLICE(RESOURCE_PREFIX);
	struct slice prefix = origin_path_of(metadata->auth->public_url);
	struct slice rest;

	/* The path of public_url may follow, as in the identifier of the resource: RFC 9728 §3.1 */
	rest = slice_has_prefix(path, well_known) ?
		       slice_of(path.p + well_known.n, path.n - well_known.n) :
		       slice_of(NULL, 0);
	if (prefix.n > 0 && slice_has_prefix(rest, prefix)) {
		rest = slice_of(rest.p + prefix.n, rest.n - prefix.n);
		for (size_t i = 0; i < metadata->conf.resource_count; i++)
			if (slice_is_equal(rest,
					   behind_well_known(metadata->conf.resources[i].path)))
				return &metadata->documents[i];
	}
	if (metadata->conf.resource_count == 1 && slice_is_equal(path, SLICE_LIT(RESOURCE_PREFIX)))
		return &metadata->documents[0];
	for (size_t i = 0; i < metadata->conf.resource_count; i++)
		if (slice_is_equal(path, slice_str(metadata->documents[i].path)))
			return &metadata->documents[i];
	return NULL;
}

/* ---- the facade for clients of 2025-03-26 ---- */

/*
 * Where to go and how; nothing that promises what the issuer does only under its own name.
 * AUTH-FAC-01, -02
 */
static const struct {
	const char *name;
	bool is_openid; /* for clients that look only for OpenID's document */
} copied[] = {
	{ "authorization_endpoint", false },
	{ "token_endpoint", false },
	{ "registration_endpoint", false },
	{ "revocation_endpoint", false },
	{ "scopes_supported", false },
	{ "response_types_supported", false },
	{ "response_modes_supported", false },
	{ "grant_types_supported", false },
	{ "token_endpoint_auth_methods_supported", false },
	{ "client_id_metadata_document_supported", false },
	{ "service_documentation", false },
	{ "ui_locales_supported", false },
	{ "jwks_uri", true },
	{ "subject_types_supported", true },
	{ "id_token_signing_alg_values_supported", true },
};

static json_t *make_facade(const struct metadata *metadata, const json_t *issuer, bool is_openid)
{
	struct slice ours = metadata->auth->public_url;
	json_t *document = json_pack("{s:s%}", "issuer", ours.p, ours.n);

	for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
		json_t *value = json_object_get(issuer, copied[i].name);

		if (value != NULL && !json_is_null(value) && (is_openid || !copied[i].is_openid))
			json_object_set(document, copied[i].name, value);
	}
	if (json_object_get(document, "response_types_supported") == NULL)
		json_object_set_new(document, "response_types_supported", json_pack("[s]", "code"));
	json_object_set_new(document, "code_challenge_methods_supported", json_pack("[s]", "S256"));
	if (metadata->conf.client_id.n > 0)
		json_object_set_new(document, "registration_endpoint",
				    json_sprintf("%.*s/register", SLICE_ARG(ours)));
	return document;
}

static void answer_facade(const struct metadata *metadata, const struct answer *answer,
			  bool is_openid)
{
	const json_t *issuer = verifier_metadata(metadata->auth->verifier, 0);
	json_auto_t *document = NULL;
	at_end(mem_free) char *text = NULL;

	if (issuer == NULL) { /* after a 404, clients would try /authorize here. AUTH-FAC-04 */
		answer_document(answer, 503,
				SLICE_LIT(ANSWER_CORS "Cache-Control: no-store\r\n"
						      "Retry-After: 5\r\n"),
				SLICE_LIT("{\"error\":\"temporarily_unavailable\"}"));
		return;
	}
	document = make_facade(metadata, issuer, is_openid);
	text = json_dumps(document, JSON_COMPACT);
	CHECK(text != NULL);
	answer_document(answer, 200, SLICE_LIT(ANSWER_CORS "Cache-Control: public, max-age=60\r\n"),
			slice_str(text));
}

/* ---- server cards ---- */

#define CARD_SCHEMA "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
#define CARD_TYPE "application/mcp-server-card+json"

/* The host backwards, as in com.example.mcp/wiki; of an IPv6 address, what may not stand there is a '-'. */
static void append_card_name(struct buf *out, const struct metadata_card *card)
{
	struct slice origin = origin_of(card->public_url);
	struct slice host =
		origin_host_of(slice_between(strstr(origin.p, "://") + 3, origin.p + origin.n));

	while (host.n > 0) {
		size_t at = host.n;

		while (at > 0 && host.p[at - 1] != '.')
			at--;
		buf_append(out, host.p + at, host.n - at);
		if (at > 0)
			buf_append_char(out, '.');
		host.n = at > 0 ? at - 1 : 0;
	}
	for (size_t i = 0; i < out->len; i++)
		if (strchr("[]:", out->data[i]) != NULL)
			out->data[i] = '-';
	buf_append_char(out, '/');
	buf_append_slice(out, card->name);
}

static char *make_card(const struct metadata_card *card)
{
	at_end(buf_fini) struct buf name = { 0 }, url = { 0 }, versions = { 0 };
	json_auto_t *document = json_loadb(card->said.p, card->said.n, 0, NULL);
	char *text;

	append_card_name(&name, card);
	buf_append_slice(&url, card->public_url);
	buf_append_slice(&url, card->path);
	revision_append_served(&versions);
	json_object_set_new(document, "$schema", json_string(CARD_SCHEMA));
	json_object_set_new(document, "name", json_stringn(name.data, name.len));
	json_object_set_new(document, "remotes",
			    json_pack("[{s:s, s:s%, s:o}]", "type", "streamable-http", "url",
				      url.data, url.len, "supportedProtocolVersions",
				      json_loadb(versions.data, versions.len, 0, NULL)));
	text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
	CHECK(text != NULL);
	return text;
}

/* Whether If-None-Match has this tag, or * for any. RFC 9110 §13.1.2 */
static bool is_known_tag(const struct http_request *http, struct slice tag)
{
	struct slice field = http->fields[HTTP_IF_NONE_MATCH];

	return slice_is_equal(field, SLICE_LIT("*")) ||
	       (field.n > 0 && memmem(field.p, field.n, tag.p, tag.n) != NULL);
}

/* A document that may change at any time; caching: fields about that. */
static void answer_tagged(const struct answer *answer, const struct http_request *http,
			  const char *caching, struct slice text)
{
	at_end(buf_fini) struct buf fields = { 0 };
	char tag[2 * DIGEST_BYTES + 1];
	struct digest digest;

	digest_bytes(text, &digest);
	text_to_hex(digest.bytes, sizeof(digest.bytes), tag);
	tag[2 * DIGEST_BYTES] = '\0';
	buf_printf(&fields, "%sAccess-Control-Expose-Headers: ETag\r\nETag: \"%s\"\r\n", caching,
		   tag);
	if (http->method != HTTP_GET && http->method != HTTP_HEAD)
		answer_other_method(&(struct answer){ .conn = answer->conn }, http->method,
				    "GET, HEAD, OPTIONS", "Content-Type, If-None-Match");
	else if (is_known_tag(http, slice_str(tag)))
		answer_empty(answer, 304, buf_slice(&fields));
	else
		answer_document(answer, 200, buf_slice(&fields), text);
}

void metadata_send_card(const struct metadata_card *card, struct http_conn *conn,
			const struct http_request *http)
{
	const struct answer answer = { .conn = conn, .type = CARD_TYPE };
	at_end(mem_free) char *text = make_card(card);

	answer_tagged(&answer, http, CACHEABLE, slice_str(text));
}

/* ---- requests ---- */

static const struct slice guessed[] = { SLICE("/authorize"), SLICE("/token"), SLICE("/register") };
static const struct slices guesses = { guessed, ARRAY_LEN(guessed) };

bool metadata_is_guess(struct slice path)
{
	/* The documents of a server, its issuer and OpenID's, before or behind its path. */
	static const struct slice documents[] = { SLICE("/.well-known/oauth-"),
						  SLICE("/.well-known/openid-configuration") };

	for (size_t i = 0; i < ARRAY_LEN(documents); i++)
		if (memmem(path.p, path.n, documents[i].p, documents[i].n) != NULL)
			return true;
	return slices_has(guesses, path);
}

/*
 * Clients parse every answer as JSON, even those to paths that they only guess. AUTH-PRM-10,
 * AUTH-FAC-06
 */
static void answer_missing(const struct answer *answer)
{
	answer_document(answer, 404, SLICE_LIT(ANSWER_CORS),
			SLICE_LIT("{\"error\":\"not_found\",\"error_description\":"
				  "\"There is no such document here\"}"));
}

static void answer_well_known(const struct metadata *metadata, const struct answer *answer,
			      const struct http_request *http, struct slice path)
{
	const struct metadata_document *document = find_document(metadata, path);
	bool is_openid = slice_is_equal(path, SLICE_LIT("/.well-known/openid-configuration"));
	enum metadata_facade facade = metadata->conf.facade;
	bool has_facade = facade == METADATA_FACADE_ON ||
			  (facade == METADATA_FACADE_AUTO && metadata->auth->issuers.count == 1);
	bool is_facade =
		has_facade &&
		(is_openid ||
		 slice_is_equal(path, SLICE_LIT("/.well-known/oauth-authorization-server")));

	if (document == NULL && !is_facade)
		answer_missing(answer);
	else if (http->method != HTTP_GET && http->method != HTTP_HEAD)
		answer_other_method(answer, http->method, "GET, HEAD, OPTIONS",
				    "MCP-Protocol-Version, Accept, Content-Type, Authorization");
	else if (document != NULL)
		answer_document(answer, 200, SLICE_LIT(CACHEABLE), slice_str(document->text));
	else
		answer_facade(metadata, answer, is_openid);
}

/*
 * A verifier that meets a key that it does not know asks again, and must not be told what was true before: no cache
 * answers without asking. BACK-URL-12
 */
static bool take_keys(const struct metadata *metadata, struct http_conn *conn,
		      const struct http_request *http)
{
	const struct answer answer = { .conn = conn, .type = KEYS_TYPE };
	at_end(buf_fini) struct buf text = { 0 };

	if (!append_keys(metadata, &text))
		return false;
	answer_tagged(&answer, http, ANSWER_CORS "Cache-Control: public, no-cache\r\n",
		      buf_slice(&text));
	return true;
}

bool metadata_take(const struct metadata *metadata, struct http_conn *conn,
		   const struct http_request *http, struct slice path,
		   struct http_exchange **exchange_r)
{
	const struct answer answer = { .conn = conn };

	*exchange_r = NULL;
	if (slice_is_equal(path, SLICE_LIT(METADATA_KEYS_PATH)) && take_keys(metadata, conn, http))
		return true;
	if (metadata->documents == NULL)
		return false;
	if (slice_has_prefix(path, SLICE_LIT("/.well-known/")))
		answer_well_known(metadata, &answer, http, path);
	else if (metadata_has_client(metadata) && slice_is_equal(path, SLICE_LIT("/register")))
		*exchange_r = registration_new(metadata, conn, http);
	else if (slices_has(guesses, path))
		answer_missing(&answer);
	else
		return false;
	return true;
}
