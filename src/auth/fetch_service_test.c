/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of the wire between gateway and fetcher, each against another end that does what it likes: a gateway that
 * was taken over, a fetcher that was, and one that dies. What both do together is verifier_test's.
 */
#include "auth/fetch_service.h"

#include <sys/socket.h>
#include <unistd.h>

#include "auth/document.h"
#include "auth/fake_issuer.h"
#include "auth/fake_signer.h"
#include "auth/fetch_client.h"
#include "auth/jwt.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "io/ipc.h"
#include "obs/log.h"

#define PATIENCE_MS 20000
#define BURST 60 /* questions for a document that may come at once */

/* A service or a client, and the other end of its wire. */
static struct {
	struct loop *loop;
	struct fake_issuer *issuer;
	struct fake_page *metadata;
	struct fake_page *keys;
	struct verifier_issuer_conf conf;
	struct credential_conf credential; /* of a server; none, if it has no grant */
	struct collector_conf collector;
	struct fetch_service *service;
	struct fetch_client *client;
	int fd; /* ours */
	bool has_ended;
	/* what came last */
	struct ipc_message message;
	struct buf body;
	uint32_t retry_after_s;
	/* of the client */
	struct inquiry inquiry;
	bool is_told;
	int status;
	size_t body_bytes;
	char error[128];
} world;

static void open_loop(void)
{
	struct error err;

	memset(&world, 0, sizeof(world));
	clock_update();
	world.loop = loop_new(&err);
	assert_non_null(world.loop);
	world.fd = -1;
}

static void on_end(void *arg)
{
	world.has_ended = true;
}

static void set_metadata(const char *issuer, const char *jwks_uri)
{
	char *text = mem_printf("{\"issuer\":\"%s\",\"jwks_uri\":\"%s\"}", issuer, jwks_uri);

	fake_page_set_body(world.metadata, text);
	free(text);
}

static void open_issuer(void)
{
	char *url;

	open_loop();
	world.issuer = fake_issuer_start(NULL);
	world.keys = fake_issuer_page(world.issuer, "/jwks");
	fake_page_set_body(world.keys, "keys");
	world.metadata = fake_issuer_page(world.issuer, "/.well-known/oauth-authorization-server");
	url = mem_printf("%s/jwks", world.issuer->origin);
	set_metadata(world.issuer->origin, url);
	free(url);
	world.conf = (struct verifier_issuer_conf){ .issuer = world.issuer->origin };
}

static void open_service(void)
{
	const struct verifier_conf issuers = { &world.conf, 1 };
	const struct credential_conf *const credentials[] = { &world.credential };
	const struct fetch_service_conf conf = { &issuers, credentials,
						 world.credential.grant != CREDENTIAL_NONE,
						 &world.collector };
	struct error err;
	int fds[2];

	assert_int_equal(ipc_pair(fds, &err), 0);
	world.fd = fds[1];
	world.service = fetch_service_new(world.loop, &conf, fds[0], on_end, NULL, &err);
	assert_non_null(world.service);
}

static int close_world(void **state)
{
	inquiry_cancel(&world.inquiry);
	fetch_client_free(&world.client);
	fetch_service_free(&world.service);
	fake_issuer_stop(&world.issuer);
	if (world.fd >= 0)
		close(world.fd);
	buf_fini(&world.body);
	loop_free(&world.loop);
	return 0;
}

/* ---- a gateway ---- */

static bool try_send(const struct ipc_message *message)
{
	struct error err;

	return ipc_send(world.fd, message, &err) == 0;
}

static bool try_ask(uint32_t id, uint32_t kind, uint32_t issuer, const char *etag,
		    const char *token)
{
	return try_send(&(struct ipc_message){ .type = IPC_ASK,
					       .ask = { id, kind, issuer, 0 },
					       .texts = { slice_str(etag), slice_str(token) } });
}

static void ask(uint32_t id, uint32_t kind, uint32_t issuer, const char *etag, const char *token)
{
	assert_true(try_ask(id, kind, issuer, etag, token));
}

/* False: nothing more for now. */
static bool take(void)
{
	struct error err;

	return ipc_recv(world.fd, &world.message, &err) == 1;
}

static void take_next(void)
{
	uint64_t end = clock_now_ms() + PATIENCE_MS;

	while (!take()) {
		assert_true(clock_now_ms() < end);
		loop_turn(world.loop, false);
	}
}

/* The whole answer to this question. Returns its status; what is not 0 comes with its body. */
static int answer_to(uint32_t id)
{
	struct ipc_message head;

	take_next();
	head = world.message;
	assert_int_equal(head.type, IPC_ANSWER);
	assert_int_equal(head.answer.id, id);
	snprintf(world.error, sizeof(world.error), "%.*s", (int)head.texts[0].n,
		 head.texts[0].n > 0 ? head.texts[0].p : "");
	world.body.len = 0;
	while (world.body.len < head.answer.body_bytes) {
		take_next();
		assert_int_equal(world.message.type, IPC_PART);
		assert_int_equal(world.message.part.id, id);
		buf_append_slice(&world.body, world.message.texts[0]);
	}
	assert_int_equal(world.body.len, head.answer.body_bytes);
	world.retry_after_s = head.answer.retry_after_s;
	return head.answer.status;
}

/* SEC-10: asked by number; where that is, the metadata say, and a fetcher that does not know them asks for them. */
static void documents_come_by_number(void **state)
{
	char *large = mem_zalloc(FAKE_BODY_BYTES);

	memset(large, 'k', FAKE_BODY_BYTES - 1);
	open_issuer();
	fake_page_set_body(world.keys, large);
	open_service();
	ask(1, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(1), 200);
	assert_int_equal(world.body.len, FAKE_BODY_BYTES - 1);
	assert_memory_equal(world.body.data, large, world.body.len);
	assert_int_equal(world.metadata->hits, 1);
	ask(2, FETCH_METADATA, 0, "", "");
	assert_int_equal(answer_to(2), 200);
	assert_string_equal(buf_terminate(&world.body), world.metadata->body);
	free(large);
}

/* A part of a field would say something else: it is left out, and the document is good all the same. */
static void long_fields_say_nothing(void **state)
{
	struct fake_page *page;
	char long_field[FETCH_FIELD_BYTES_MAX + 2];

	open_issuer();
	page = world.keys;
	open_service();
	for (int extra = 0; extra <= 1; extra++) {
		size_t n = FETCH_FIELD_BYTES_MAX + (size_t)extra;

		memset(long_field, 'x', n);
		memcpy(long_field, "max-age=9", strlen("max-age=9"));
		long_field[n] = '\0';
		snprintf(page->fields, sizeof(page->fields), "Cache-Control: %s\r\n", long_field);
		ask(1, FETCH_KEYS, 0, "", "");
		take_next();
		assert_int_equal(world.message.answer.status, 200);
		assert_int_equal(world.message.texts[1].n, extra == 0 ? n : 0);
		take_next();
		assert_true(slice_is_equal(world.message.texts[0], SLICE_LIT("keys")));
	}
}

/* SEC-10, AUTH-AS-02, AUTH-KEY-09: whoever asks, metadata of another issuer, or that lead away from TLS, lead nowhere. */
static void metadata_are_judged(void **state)
{
	char *url;

	open_issuer();
	url = mem_printf("%s/jwks", world.issuer->origin);
	open_service();
	set_metadata("https://id.example", url);
	ask(1, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(1), 0);
	set_metadata(world.issuer->origin, "http://id.example/jwks");
	ask(2, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(2), 0);
	assert_string_equal(world.error, "there is no usable metadata");
	ask(3, FETCH_METADATA, 0, "", "");
	assert_int_equal(answer_to(3), 0);
	assert_int_equal(world.keys->hits, 0);
	assert_int_equal(world.metadata->hits, 3);
	set_metadata(world.issuer->origin, url);
	ask(4, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(4), 200);
	free(url);
}

/* AUTH-KEY-09: what the metadata do not say any more is not known any more. */
static void metadata_may_take_back(void **state)
{
	char *url, *bare;

	open_issuer();
	open_service();
	url = mem_printf("%s/jwks", world.issuer->origin);
	bare = mem_printf("{\"issuer\":\"%s\"}", world.issuer->origin);
	ask(1, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(1), 200);
	fake_page_set_body(world.metadata, bare);
	ask(2, FETCH_METADATA, 0, "", "");
	assert_int_equal(answer_to(2), 200);
	ask(3, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(3), 0);
	assert_string_equal(world.error, "the metadata does not say where");
	assert_int_equal(world.keys->hits, 1);
	set_metadata(world.issuer->origin, url);
	ask(4, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(4), 200);
	free(url);
	free(bare);
}

/* SEC-10, SEC-61 */
static void what_is_no_question_is_not_asked(void **state)
{
	static const struct {
		uint32_t kind, issuer;
		const char *etag, *token;
	} rows[] = {
		{ FETCH_KEYS, 1, "", "" },
		{ FETCH_KEYS, UINT32_MAX, "", "" },
		{ FETCH_KIND_COUNT, 0, "", "" },
		{ UINT32_MAX, 0, "", "" },
		{ FETCH_KEYS, 0, "\"a\"\r\nX: y", "" },
		{ FETCH_KEYS, 0, "", "token" },
		{ FETCH_METADATA, 0, "\"a\"", "" },
		{ FETCH_METADATA, 0, "", "token" },
		{ FETCH_INTROSPECTION, 0, "", "" },
		{ FETCH_INTROSPECTION, 0, "", "token" }, /* we have no client_id there */
	};

	open_issuer();
	open_service();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ask(100 + (uint32_t)i, rows[i].kind, rows[i].issuer, rows[i].etag, rows[i].token);
		assert_int_equal(answer_to(100 + (uint32_t)i), 0);
		assert_true(world.error[0] != '\0');
	}
	assert_int_equal(world.metadata->hits + world.keys->hits + world.issuer->other_hits, 0);
}

/* SEC-61: it is not talked to any more. */
static void nonsense_ends_the_service(void **state)
{
	open_issuer();
	open_service();
	assert_true(try_send(&(struct ipc_message){ .type = IPC_ANSWER, .answer.id = 1 }));
	while (!world.has_ended)
		loop_turn(world.loop, false);
	fetch_service_free(&world.service);
	close(world.fd);
	world.has_ended = false;
	open_service();
	assert_int_equal(send(world.fd, "short", 5, 0), 5);
	while (!world.has_ended)
		loop_turn(world.loop, false);
}

/* SEC-10: at a time, and in a time. */
static void questions_are_bounded(void **state)
{
	char *url;

	open_issuer();
	url = mem_printf("%s/jwks", world.issuer->origin);
	world.conf.jwks_uri = url;
	open_service();
	world.keys->mode = FAKE_HANG;
	ask(1, FETCH_KEYS, 0, "", "");
	ask(2, FETCH_KEYS, 0, "", "");
	assert_int_equal(answer_to(2), 0);
	assert_string_equal(world.error, "too many questions to it are already under way");
	assert_true(try_send(&(struct ipc_message){ .type = IPC_CANCEL, .cancel = { 1 } }));
	world.keys->mode = FAKE_OK;
	for (uint32_t id = 3; id < BURST + 2; id++) {
		ask(id, FETCH_KEYS, 0, "", "");
		assert_int_equal(answer_to(id), 200);
	}
	for (uint32_t id = 100; world.keys->hits < 2 * BURST; id++) {
		ask(id, FETCH_KEYS, 0, "", "");
		if (answer_to(id) == 0)
			break;
	}
	assert_string_equal(world.error, "it has been asked too often");
	free(url);
}

/* SEC-61: of who asks and does not listen nothing grows. */
static void who_does_not_listen_is_not_heard(void **state)
{
	uint32_t asked = 0;
	uint32_t answered = 0;
	bool is_full = false;

	open_issuer();
	open_service();
	while (!is_full) {
		assert_true(asked < 1000000);
		is_full = !try_ask(asked, FETCH_KEYS, 7, "", "");
		asked += !is_full;
		loop_turn(world.loop, false);
	}
	for (int i = 0; i < 100; i++)
		loop_turn(world.loop, false);
	assert_false(try_ask(asked, FETCH_KEYS, 7, "", ""));
	while (answered < asked)
		assert_int_equal(answer_to(answered++), 0);
}

/* ---- tokens for servers ---- */

#define EXCHANGE_FORM                                                                 \
	"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"        \
	"&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token" \
	"&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"

static struct fake_page *open_token_endpoint(enum credential_grant grant)
{
	static struct slice scopes[] = { SLICE("a:b"), SLICE("c") };
	static char url[128];

	open_issuer();
	snprintf(url, sizeof(url), "%s/token", world.issuer->origin);
	world.credential = (struct credential_conf){
		.grant = grant,
		.at = { .issuer = world.issuer->origin, .client_id = "me", .client_secret = "s&t" },
		.token_endpoint = url,
		.scopes = { scopes, ARRAY_LEN(scopes) },
		.resource = "https://wiki.example/mcp",
	};
	open_service();
	return fake_issuer_page(world.issuer, "/token");
}

/* BACK-URL-10: RFC 6749 s4.4, RFC 8707 */
static void a_token_of_our_own(void **state)
{
	struct fake_page *page = open_token_endpoint(CREDENTIAL_CLIENT);

	fake_page_set_body(
		page, "{\"access_token\":\"t.1\",\"token_type\":\"bearer\",\"expires_in\":60}");
	ask(1, FETCH_TOKEN, 0, "", "");
	assert_int_equal(answer_to(1), 200);
	assert_string_equal(buf_terminate(&world.body), "t.1");
	assert_int_equal(world.retry_after_s, 60);
	assert_non_null(strstr(page->request, "\r\nAuthorization: Basic bWU6cyUyNnQ=\r\n"));
	assert_non_null(strstr(page->request,
			       "\r\n\r\ngrant_type=client_credentials&scope=a%3Ab%20c"
			       "&resource=https%3A%2F%2Fwiki.example%2Fmcp"));
	assert_int_equal(world.metadata->hits, 0);
}

/* BACK-URL-10: RFC 8693 s2.1 */
static void a_token_for_another_one(void **state)
{
	struct fake_page *page = open_token_endpoint(CREDENTIAL_EXCHANGE);

	fake_page_set_body(page, "{\"access_token\":\"t\",\"token_type\":\"Bearer\"}");
	ask(1, FETCH_TOKEN, 0, "", "a+b");
	assert_int_equal(answer_to(1), 200);
	assert_int_equal(world.retry_after_s, 300); /* it does not say */
	assert_non_null(
		strstr(page->request, "\r\n\r\n" EXCHANGE_FORM "&subject_token=a%2Bb&scope="));
}

/* BACK-URL-10: what becomes a header field, and what is told, is what it may be. */
static void what_is_no_token(void **state)
{
	static const struct {
		int status;
		const char *body, *error;
	} rows[] = {
		{ 200, "{\"access_token\":\"t\"}", "its answer is no bearer token" },
		{ 200, "{\"access_token\":\"t\",\"token_type\":\"DPoP\"}",
		  "its answer is no bearer token" },
		{ 200, "{\"access_token\":\"a b\",\"token_type\":\"Bearer\"}",
		  "the token in its answer is none" },
		{ 200, "{\"access_token\":\"a\\nb\",\"token_type\":\"Bearer\"}",
		  "the token in its answer is none" },
		{ 200, "{\"access_token\":\"\",\"token_type\":\"Bearer\"}",
		  "the token in its answer is none" },
		{ 200, "{\"token_type\":\"Bearer\"}", "the token in its answer is none" },
		{ 400, "{\"error\":\"invalid_grant\",\"error_description\":\"s&t\"}",
		  "it refused: invalid_grant" },
		{ 400, "{\"error\":\"s&t is wrong\"}", "it answered with status 400" },
		{ 503, "", "it answered with status 503" },
	};
	struct fake_page *page = open_token_endpoint(CREDENTIAL_CLIENT);

	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		page->status = rows[i].status;
		fake_page_set_body(page, rows[i].body);
		ask(i, FETCH_TOKEN, 0, "", "");
		assert_int_equal(answer_to(i), 0);
		assert_string_equal(world.error, rows[i].error);
	}
	page->status = 200;
	fake_page_set_body(page, "not JSON");
	ask(100, FETCH_TOKEN, 0, "", "");
	assert_int_equal(answer_to(100), 0);
	assert_true(world.error[0] != '\0');
	/* However long it is said to be good. */
	fake_page_set_body(page,
			   "{\"access_token\":\"t\",\"token_type\":\"Bearer\",\"expires_in\":9e9}");
	ask(101, FETCH_TOKEN, 0, "", "");
	assert_int_equal(answer_to(101), 200);
	assert_int_equal(world.retry_after_s, 24 * 3600);
}

/* SEC-10, SEC-61: a server's issuer is asked for nothing else, with what its grant wants; issuers of callers give no tokens. */
static void tokens_are_asked_for_by_number(void **state)
{
	static const struct {
		uint32_t kind, number;
		const char *token;
	} rows[] = {
		{ FETCH_TOKEN, 1, "" },          { FETCH_TOKEN, UINT32_MAX, "" },
		{ FETCH_TOKEN, 0, "t" },         { FETCH_KEYS, 1, "" },
		{ FETCH_METADATA, 1, "" },       { FETCH_INTROSPECTION, 1, "t" },
		{ FETCH_INTROSPECTION, 0, "t" },
	};
	struct fake_page *page = open_token_endpoint(CREDENTIAL_CLIENT);

	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		ask(i, rows[i].kind, rows[i].number, "", rows[i].token);
		assert_int_equal(answer_to(i), 0);
		assert_true(world.error[0] != '\0');
	}
	assert_int_equal(page->hits + world.metadata->hits + world.keys->hits +
				 world.issuer->other_hits,
			 0);
	fake_page_set_body(page, "{\"access_token\":\"t\",\"token_type\":\"Bearer\"}");
	ask(100, FETCH_TOKEN, 0, "", "");
	assert_int_equal(answer_to(100), 200);
}

/* BACK-URL-11, SEC-80: what is signed is about somebody, for the server of that number, and nobody is asked for it. */
static void a_token_that_we_sign(void **state)
{
	static const struct {
		uint32_t kind, number;
		const char *token;
	} rows[] = {
		{ FETCH_TOKEN, 0, "" },
		{ FETCH_TOKEN, 0, "{\"iss\":\"https://evil.example\"}" },
		{ FETCH_TOKEN, 0, "a.b.c" },
		{ FETCH_TOKEN, 1, "{\"sub\":\"anna\"}" },
		{ FETCH_METADATA, 1, "" },
		{ FETCH_INTROSPECTION, 1, "{\"sub\":\"anna\"}" },
	};
	struct fake_signer signer;
	struct verdict verdict;
	struct jwt jwt;
	char *pem;

	fake_signer_init(&signer, "ES256", NULL);
	pem = fake_signer_pem(&signer, 1);
	open_issuer();
	world.credential = (struct credential_conf){
		.grant = CREDENTIAL_ASSERTION,
		.assertion = { SLICE_LIT("https://gw.example"), "https://wiki.example", pem },
	};
	open_service();
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		ask(i, rows[i].kind, rows[i].number, "", rows[i].token);
		assert_int_equal(answer_to(i), 0);
		assert_true(world.error[0] != '\0');
	}
	ask(100, FETCH_TOKEN, 0, "", "{\"sub\":\"anna\"}");
	assert_int_equal(answer_to(100), 200);
	assert_int_equal(world.retry_after_s, ASSERTION_S);
	assert_int_equal(jwt_parse(buf_slice(&world.body), &jwt, &verdict), 0);
	assert_int_equal(jwt_check_header(&jwt, ALGORITHM_ALL, jwt_access_token_types, &verdict),
			 0);
	assert_true(jwt_is_signed_by(&jwt, signer.key));
	assert_string_equal(document_string(jwt.claims, "iss"), "https://gw.example");
	assert_string_equal(document_string(jwt.claims, "aud"), "https://wiki.example");
	assert_int_equal(world.metadata->hits + world.keys->hits + world.issuer->other_hits, 0);
	jwt_fini(&jwt);
	fake_signer_fini(&signer);
	free(pem);
}

/* ---- spans ---- */

static struct fake_page *open_collector(void)
{
	static struct fetch_field fields[] = { { (char *)"X-Key", (char *)"secret" },
					       { (char *)"x-tenant", (char *)"a" } };
	static char endpoint[128];

	open_issuer();
	snprintf(endpoint, sizeof(endpoint), "%s/v1/traces", world.issuer->origin);
	world.collector = (struct collector_conf){ .endpoint = endpoint,
						   .headers = { fields, ARRAY_LEN(fields) } };
	open_service();
	return fake_issuer_page(world.issuer, "/v1/traces");
}

static void announce_spans(uint32_t id, uint32_t body_bytes)
{
	assert_true(try_send(&(struct ipc_message){ .type = IPC_ASK,
						    .ask = { id, FETCH_SPANS, 0, body_bytes } }));
	loop_turn(world.loop, false);
}

static void send_part(uint32_t id, const char *text)
{
	assert_true(try_send(&(struct ipc_message){
		.type = IPC_PART, .part = { id }, .texts = { slice_str(text) } }));
	loop_turn(world.loop, false);
}

/* SEC-70: to the endpoint of the configuration, with its headers, as JSON, when all of it is there. */
static void spans_go_to_the_collector(void **state)
{
	struct fake_page *page = open_collector();

	page->status = 503;
	snprintf(page->fields, sizeof(page->fields), "Retry-After: 7\r\n");
	announce_spans(5, 7);
	send_part(5, "{\"a\"");
	assert_int_equal(page->hits, 0);
	send_part(5, ":1}");
	assert_int_equal(answer_to(5), 503);
	assert_int_equal(page->hits, 1);
	assert_non_null(strstr(page->request, "POST /v1/traces HTTP/1.1\r\n"));
	assert_non_null(strstr(page->request, "\r\nX-Key: secret\r\n"));
	assert_non_null(strstr(page->request, "\r\nx-tenant: a\r\n"));
	assert_non_null(strstr(page->request, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(page->request, "\r\n\r\n{\"a\":1}"));
	assert_int_equal(world.retry_after_s, 7);
	page->status = 200;
	page->fields[0] = '\0';
	fake_page_set_body(page, "{}");
	announce_spans(6, 1);
	send_part(6, "x");
	assert_int_equal(answer_to(6), 200);
	assert_int_equal(world.retry_after_s, 0);
	assert_int_equal(world.body.len, 2);
}

/* SEC-70: a body at a time, of bounded size; and one that is taken back is gone. */
static void spans_are_bounded(void **state)
{
	static const uint32_t wrong[] = { 0, COLLECTOR_BODY_BYTES_MAX + 1, UINT32_MAX };
	struct fake_page *page = open_collector();

	for (uint32_t i = 0; i < ARRAY_LEN(wrong); i++) {
		announce_spans(10 + i, wrong[i]);
		assert_int_equal(answer_to(10 + i), 0);
		assert_string_equal(world.error, "there is no collector, or nothing to send to it");
	}
	announce_spans(6, 3);
	send_part(7, "abc"); /* of what nobody has announced */
	send_part(6, "xyz");
	assert_int_equal(answer_to(6), 200);
	assert_non_null(strstr(page->request, "\r\n\r\nxyz"));
	page->hits = 0;
	announce_spans(1, 3);
	announce_spans(2, 3);
	assert_int_equal(answer_to(2), 0);
	assert_string_equal(world.error, "spans are already being sent");
	send_part(2, "abc"); /* of what was refused */
	assert_true(try_send(&(struct ipc_message){ .type = IPC_CANCEL, .cancel = { 1 } }));
	send_part(1, "abc");
	announce_spans(3, 3);
	send_part(3, "abc");
	assert_int_equal(answer_to(3), 200);
	assert_int_equal(page->hits, 1);
	announce_spans(4, 3);
	send_part(4, "abcd");
	while (!world.has_ended)
		loop_turn(world.loop, false);
	assert_int_equal(page->hits, 1);
}

/* SEC-10, SEC-70: a collector at a private address needs leave, and without one there is nowhere to send. */
static void spans_go_nowhere_else(void **state)
{
	static char elsewhere[] = "http://localhost.localdomain.invalid:1/v1/traces";
	static char private[] = "http://10.255.255.1:1/v1/traces";

	open_issuer();
	open_service();
	announce_spans(1, 1);
	assert_int_equal(answer_to(1), 0);
	assert_string_equal(world.error, "there is no collector, or nothing to send to it");
	fetch_service_free(&world.service);
	close(world.fd);
	world.collector = (struct collector_conf){ .endpoint = private, .plaintext = true };
	open_service();
	announce_spans(2, 1);
	send_part(2, "x");
	assert_int_equal(answer_to(2), 0);
	assert_non_null(strstr(world.error, "allow_private"));
	fetch_service_free(&world.service);
	close(world.fd);
	world.collector = (struct collector_conf){ .endpoint = elsewhere, .plaintext = true };
	open_service();
	announce_spans(3, 1);
	send_part(3, "x");
	assert_int_equal(answer_to(3), 0);
	assert_true(world.error[0] != '\0');
}

/* ---- a fetcher ---- */

static void on_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	assert_false(world.is_told);
	world.is_told = true;
	world.status = answer->status;
	world.body_bytes = answer->body.n;
	snprintf(world.error, sizeof(world.error), "%s", answer->error);
}

static void connect_client(void)
{
	struct error err;
	int fds[2];

	if (world.fd >= 0)
		close(world.fd);
	assert_int_equal(ipc_pair(fds, &err), 0);
	world.fd = fds[1];
	fetch_client_connect(world.client, fds[0]);
}

static void inquire(void)
{
	world.is_told = false;
	world.inquiry = (struct inquiry){ .on_done = on_answer };
	inquiry_start(world.client, &world.inquiry, FETCH_KEYS, 3, "\"v1\"", slice_of(NULL, 0));
}

static void open_client(void)
{
	open_loop();
	world.client = fetch_client_new(world.loop);
	connect_client();
}

static void answer(uint32_t id, int status, uint32_t body_bytes)
{
	assert_true(try_send(&(struct ipc_message){ .type = IPC_ANSWER,
						    .answer = { id, status, body_bytes, 0 } }));
	loop_turn(world.loop, false);
}

static void take_question(void)
{
	take_next();
	assert_int_equal(world.message.type, IPC_ASK);
	assert_int_equal(world.message.ask.kind, FETCH_KEYS);
	assert_int_equal(world.message.ask.issuer, 3);
	assert_true(slice_is_equal(world.message.texts[0], SLICE_LIT("\"v1\"")));
}

static void an_answer_comes_in_parts(void **state)
{
	open_client();
	inquire();
	take_question();
	answer(world.message.ask.id + 1, 200, 0); /* to a question that nobody has */
	answer(world.message.ask.id, 200, 7);
	send_part(world.message.ask.id, "abc");
	assert_false(world.is_told);
	send_part(world.message.ask.id, "defg");
	assert_true(world.is_told);
	assert_int_equal(world.status, 200);
	assert_int_equal(world.body_bytes, 7);
}

/* REL-43: what was asked ends; what is asked while there is nobody waits for the next one. */
static void a_fetcher_that_dies(void **state)
{
	open_client();
	inquire();
	take_question();
	close(world.fd);
	world.fd = -1;
	loop_turn(world.loop, false);
	assert_true(world.is_told);
	assert_int_equal(world.status, 0);
	assert_true(world.error[0] != '\0');
	inquire();
	loop_turn(world.loop, false);
	assert_false(world.is_told);
	connect_client();
	take_question();
	answer(world.message.ask.id, 200, 0);
	assert_true(world.is_told);
	assert_int_equal(world.status, 200);
}

/* Whoever has no use for the answer any more says so, and what comes all the same is nobody's. */
static void a_question_is_taken_back(void **state)
{
	uint32_t id;

	open_client();
	inquire();
	take_question();
	id = world.message.ask.id;
	inquiry_cancel(&world.inquiry);
	take_next();
	assert_int_equal(world.message.type, IPC_CANCEL);
	assert_int_equal(world.message.cancel.id, id);
	answer(id, 200, 0);
	assert_false(world.is_told);
	inquire();
	take_question();
	assert_int_not_equal(world.message.ask.id, id);
	answer(world.message.ask.id, 200, 0);
	assert_true(world.is_told);
}

/* SEC-61: one that was taken over can lie about what it fetched, and no more. */
static void a_fetcher_that_lies(void **state)
{
	static const struct {
		uint32_t type, body_bytes;
		const char *next; /* part; NULL: none */
	} rows[] = {
		{ IPC_ANSWER, FETCH_BODY_BYTES_MAX + 1, NULL },
		{ IPC_ANSWER, UINT32_MAX, NULL },
		{ IPC_ANSWER, 2, "abc" },
		{ IPC_PART, 0, NULL },
		{ IPC_ASK, 0, NULL },
		{ 77, 0, NULL },
	};

	open_client();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ipc_message message = { .type = rows[i].type };
		char byte;

		inquire();
		take_question();
		message.answer.id = world.message.ask.id; /* the others have it there, too */
		if (rows[i].type == IPC_ANSWER)
			message.answer.status = 200, message.answer.body_bytes = rows[i].body_bytes;
		assert_true(try_send(&message));
		loop_turn(world.loop, false);
		if (rows[i].next != NULL)
			send_part(message.answer.id, rows[i].next);
		assert_true(world.is_told);
		assert_int_equal(world.status, 0);
		assert_int_equal(recv(world.fd, &byte, 1, MSG_DONTWAIT), 0);
		connect_client();
	}
}

/* SEC-61: a status is one of HTTP's, or 0; those who ask compare it. */
static void no_status_is_negative(void **state)
{
	open_client();
	inquire();
	take_question();
	answer(world.message.ask.id, -1, 0);
	assert_true(world.is_told);
	assert_int_equal(world.status, 0);
	assert_true(world.error[0] != '\0');
}

/* AUTH-KEY-07: silence ends, and whoever is silent hears so. The last test: the clock stands from here on. */
static void a_fetcher_that_is_silent(void **state)
{
	uint32_t id;

	open_client();
	inquire();
	take_question();
	id = world.message.ask.id;
	clock_freeze(clock_now_ms() + INQUIRY_MS + 1);
	loop_turn(world.loop, false);
	assert_true(world.is_told);
	assert_string_equal(world.error, "no answer in time");
	take_next();
	assert_int_equal(world.message.type, IPC_CANCEL);
	assert_int_equal(world.message.cancel.id, id);
}

static int prepare(void **state)
{
	struct error err;

	log_set(2, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return fetch_service_prepare(&err);
}

#define TEST(name) cmocka_unit_test_teardown(name, close_world)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(documents_come_by_number),  TEST(metadata_are_judged),
		TEST(metadata_may_take_back),    TEST(what_is_no_question_is_not_asked),
		TEST(nonsense_ends_the_service), TEST(long_fields_say_nothing),
		TEST(questions_are_bounded),     TEST(who_does_not_listen_is_not_heard),
		TEST(spans_go_to_the_collector), TEST(spans_are_bounded),
		TEST(spans_go_nowhere_else),     TEST(an_answer_comes_in_parts),
		TEST(a_fetcher_that_dies),       TEST(a_question_is_taken_back),
		TEST(a_fetcher_that_lies),       TEST(no_status_is_negative),
		TEST(a_token_of_our_own),        TEST(a_token_for_another_one),
		TEST(what_is_no_token),          TEST(tokens_are_asked_for_by_number),
		TEST(a_token_that_we_sign),      TEST(a_fetcher_that_is_silent),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, prepare, NULL);
}
