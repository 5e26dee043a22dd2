/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /register, for issuers that register nobody: every client gets the one public client that
 * was created there by hand. There is no secret and no state, and redirect URIs are those of the
 * configuration or lead to the client's own machine. The codes are protected by the issuer's exact
 * list of redirect URIs. RFC 7591 §3; AUTH-DCR-01 … -03.
 */
#include <jansson.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "endpoint/metadata.h"

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

static void refuse(const struct answer *answer, int status, const char *error, const char *why)
{
	char *text = mem_printf("{\"error\":\"%s\",\"error_description\":\"%s\"}", error, why);

	answer_document(answer, status, SLICE_LIT(NO_STORE), slice_str(text));
	free(text);
}

static void register_client(const struct metadata_conf *conf, const struct answer *answer,
			    json_t *uris)
{
	json_t *document =
		json_pack("{s:s%, s:O, s:s, s:[s,s], s:[s]}", "client_id", conf->client_id.p,
			  conf->client_id.n, "redirect_uris", uris, "token_endpoint_auth_method",
			  "none", "grant_types", "authorization_code", "refresh_token",
			  "response_types", "code");
	char *text = json_dumps(document, JSON_COMPACT);

	CHECK(text != NULL);
	answer_document(answer, 201, SLICE_LIT(NO_STORE), slice_str(text));
	free(text);
	json_decref(document);
}

static void registration_on_body(struct http_exchange *exchange, struct slice body)
{
	struct registration *registration = container_of(exchange, struct registration, exchange);
	const struct answer answer = { .conn = exchange->conn };
	struct loop *loop = http_conn_loop(exchange->conn);
	const struct metadata *metadata = registration->metadata;
	json_t *request = body.n <= BODY_BYTES_MAX ?
				  json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, NULL) :
				  NULL;
	json_t *uris = json_object_get(request, "redirect_uris");

	if (!metadata_has_client(metadata)) /* a reload has taken it away since the head came */
		refuse(&answer, 404, "not_found", "No client is handed out here any more");
	else if (request == NULL)
		refuse(&answer, 400, "invalid_client_metadata",
		       "The body must be a JSON object of at most 16 KiB");
	else if (!are_allowed(&metadata->conf, uris))
		refuse(&answer, 400, "invalid_redirect_uri",
		       "Each redirect URI must be an allowed one, or http to a loopback address");
	else
		register_client(&metadata->conf, &answer, uris);
	json_decref(request);
	loop_defer_free(loop, registration);
}

static void registration_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
	free(container_of(exchange, struct registration, exchange));
}

static const struct http_exchange_ops registration_ops = {
	.on_body = registration_on_body,
	.on_room = answer_ignore_room,
	.on_gone = registration_on_gone,
};

struct http_exchange *registration_new(const struct metadata *metadata, struct http_conn *conn,
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
		refuse(&answer, 400, "invalid_client_metadata",
		       "The body must be a JSON object of at most 16 KiB");
		return NULL;
	}
	registration = mem_zalloc(sizeof(*registration));
	registration->exchange.ops = &registration_ops;
	registration->metadata = metadata;
	return &registration->exchange;
}
