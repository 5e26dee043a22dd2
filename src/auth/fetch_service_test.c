/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of the wire between gateway and fetcher, each against another end that does what it likes: a gateway that
 * was taken over, a fetcher that was, and one that dies. What both do together is verifier_test's.
 */
#include "auth/fetch_service.h"

#include <sys/socket.h>
#include <unistd.h>

#include "auth/fake_issuer.h"
#include "auth/fetch_client.h"
#include "auth/fetch_wire.h"
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
	struct collector_conf collector;
	struct fetch_service *service;
	struct fetch_client *client;
	int fd; /* ours */
	bool has_ended;
	/* what came last */
	char packet[FETCH_PACKET_BYTES_MAX];
	struct fetch_frame frame;
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
	const struct fetch_service_conf conf = { &issuers, &world.collector };
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

/* As fetch_wire sends them, told by its own description: ten numbers of 32 bits, then the texts. */
static bool try_ask(uint32_t type, uint32_t id, uint32_t kind, uint32_t issuer, const char *etag,
		    const char *token)
{
	const uint32_t numbers[10] = {
		type, id, kind, issuer, 0, 0, 0, (uint32_t)strlen(etag), (uint32_t)strlen(token), 0
	};
	struct buf packet = { 0 };
	ssize_t n;

	buf_append(&packet, numbers, sizeof(numbers));
	buf_append_str(&packet, etag);
	buf_append_str(&packet, token);
	n = send(world.fd, packet.data, packet.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_fini(&packet);
	return n > 0;
}

static void ask(uint32_t id, uint32_t kind, uint32_t issuer, const char *etag, const char *token)
{
	assert_true(try_ask(FETCH_ASK, id, kind, issuer, etag, token));
}

/* False: nothing more for now. */
static bool take(void)
{
	ssize_t n = recv(world.fd, world.packet, sizeof(world.packet), MSG_DONTWAIT);

	if (n <= 0)
		return false;
	assert_true(fetch_wire_unpack(slice_of(world.packet, (size_t)n), &world.frame));
	return true;
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
	struct fetch_frame head;

	take_next();
	head = world.frame;
	assert_int_equal(head.type, FETCH_ANSWER);
	assert_int_equal(head.id, id);
	snprintf(world.error, sizeof(world.error), "%.*s", (int)head.texts[0].n,
		 head.texts[0].n > 0 ? head.texts[0].p : "");
	world.body.len = 0;
	while (world.body.len < head.body_bytes) {
		take_next();
		assert_int_equal(world.frame.type, FETCH_PART);
		assert_int_equal(world.frame.id, id);
		buf_append_slice(&world.body, world.frame.texts[0]);
	}
	assert_int_equal(world.body.len, head.body_bytes);
	world.retry_after_s = head.retry_after_s;
	return head.status;
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
		struct fetch_frame head;

		memset(long_field, 'x', n);
		memcpy(long_field, "max-age=9", strlen("max-age=9"));
		long_field[n] = '\0';
		snprintf(page->fields, sizeof(page->fields), "Cache-Control: %s\r\n", long_field);
		ask(1, FETCH_KEYS, 0, "", "");
		take_next();
		head = world.frame;
		assert_int_equal(head.status, 200);
		assert_int_equal(head.texts[1].n, extra == 0 ? n : 0);
		take_next();
		assert_true(slice_is_equal(world.frame.texts[0], SLICE_LIT("keys")));
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
	assert_true(try_ask(FETCH_ANSWER, 1, 0, 0, "", ""));
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

/* SEC-61: what a frame says of itself is all of it. */
static void frames_are_whole(void **state)
{
	uint32_t numbers[16] = { FETCH_ANSWER, 7, 0, 0, 200, 0, 0, 4, 8, 12 };
	struct slice packet = slice_of((const char *)numbers, 10 * 4 + 24);
	struct fetch_frame frame;

	assert_true(fetch_wire_unpack(packet, &frame));
	assert_int_equal(frame.id, 7);
	assert_int_equal(frame.texts[0].n, 4);
	assert_ptr_equal(frame.texts[2].p, packet.p + 10 * 4 + 12);
	assert_int_equal(frame.texts[2].n, 12);
	for (size_t n = 0; n < sizeof(numbers); n++)
		if (n != packet.n)
			assert_false(fetch_wire_unpack(slice_of(packet.p, n), &frame));
	numbers[7] = UINT32_MAX;
	assert_false(fetch_wire_unpack(packet, &frame));
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
	assert_true(try_ask(FETCH_CANCEL, 1, 0, 0, "", ""));
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
		is_full = !try_ask(FETCH_ASK, asked, FETCH_KEYS, 7, "", "");
		asked += !is_full;
		loop_turn(world.loop, false);
	}
	for (int i = 0; i < 100; i++)
		loop_turn(world.loop, false);
	assert_false(try_ask(FETCH_ASK, asked, FETCH_KEYS, 7, "", ""));
	while (answered < asked)
		assert_int_equal(answer_to(answered++), 0);
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

static void send_frame(uint32_t type, uint32_t id, uint32_t body_bytes, const char *text)
{
	const uint32_t numbers[10] = { type,
				       id,
				       type == FETCH_ASK ? FETCH_SPANS : 0,
				       0,
				       0,
				       body_bytes,
				       0,
				       (uint32_t)strlen(text) };
	struct buf packet = { 0 };

	buf_append(&packet, numbers, sizeof(numbers));
	buf_append_str(&packet, text);
	assert_int_equal(send(world.fd, packet.data, packet.len, MSG_NOSIGNAL), packet.len);
	buf_fini(&packet);
	loop_turn(world.loop, false);
}

/* SEC-70: to the endpoint of the configuration, with its headers, as JSON, when all of it is there. */
static void spans_go_to_the_collector(void **state)
{
	struct fake_page *page = open_collector();

	page->status = 503;
	snprintf(page->fields, sizeof(page->fields), "Retry-After: 7\r\n");
	send_frame(FETCH_ASK, 5, 7, "");
	send_frame(FETCH_PART, 5, 0, "{\"a\"");
	assert_int_equal(page->hits, 0);
	send_frame(FETCH_PART, 5, 0, ":1}");
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
	send_frame(FETCH_ASK, 6, 1, "");
	send_frame(FETCH_PART, 6, 0, "x");
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
		send_frame(FETCH_ASK, 10 + i, wrong[i], "");
		assert_int_equal(answer_to(10 + i), 0);
		assert_string_equal(world.error, "there is no collector, or nothing to send to it");
	}
	send_frame(FETCH_ASK, 6, 3, "");
	send_frame(FETCH_PART, 7, 0, "abc"); /* of what nobody has announced */
	send_frame(FETCH_PART, 6, 0, "xyz");
	assert_int_equal(answer_to(6), 200);
	assert_non_null(strstr(page->request, "\r\n\r\nxyz"));
	page->hits = 0;
	send_frame(FETCH_ASK, 1, 3, "");
	send_frame(FETCH_ASK, 2, 3, "");
	assert_int_equal(answer_to(2), 0);
	assert_string_equal(world.error, "spans are already being sent");
	send_frame(FETCH_PART, 2, 0, "abc"); /* of what was refused */
	send_frame(FETCH_CANCEL, 1, 0, "");
	send_frame(FETCH_PART, 1, 0, "abc");
	send_frame(FETCH_ASK, 3, 3, "");
	send_frame(FETCH_PART, 3, 0, "abc");
	assert_int_equal(answer_to(3), 200);
	assert_int_equal(page->hits, 1);
	send_frame(FETCH_ASK, 4, 3, "");
	send_frame(FETCH_PART, 4, 0, "abcd");
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
	send_frame(FETCH_ASK, 1, 1, "");
	assert_int_equal(answer_to(1), 0);
	assert_string_equal(world.error, "there is no collector, or nothing to send to it");
	fetch_service_free(&world.service);
	close(world.fd);
	world.collector = (struct collector_conf){ .endpoint = private, .plaintext = true };
	open_service();
	send_frame(FETCH_ASK, 2, 1, "");
	send_frame(FETCH_PART, 2, 0, "x");
	assert_int_equal(answer_to(2), 0);
	assert_non_null(strstr(world.error, "allow_private"));
	fetch_service_free(&world.service);
	close(world.fd);
	world.collector = (struct collector_conf){ .endpoint = elsewhere, .plaintext = true };
	open_service();
	send_frame(FETCH_ASK, 3, 1, "");
	send_frame(FETCH_PART, 3, 0, "x");
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

static void answer(uint32_t id, uint32_t type, uint32_t body_bytes, const char *first)
{
	const uint32_t numbers[10] = { type,
				       id,
				       0,
				       0,
				       type == FETCH_ANSWER ? 200 : 0,
				       body_bytes,
				       0,
				       (uint32_t)strlen(first) };
	struct buf packet = { 0 };

	buf_append(&packet, numbers, sizeof(numbers));
	buf_append_str(&packet, first);
	assert_int_equal(send(world.fd, packet.data, packet.len, 0), packet.len);
	buf_fini(&packet);
	loop_turn(world.loop, false);
}

static void take_question(void)
{
	take_next();
	assert_int_equal(world.frame.type, FETCH_ASK);
	assert_int_equal(world.frame.kind, FETCH_KEYS);
	assert_int_equal(world.frame.issuer, 3);
	assert_true(slice_is_equal(world.frame.texts[0], SLICE_LIT("\"v1\"")));
}

static void an_answer_comes_in_parts(void **state)
{
	open_client();
	inquire();
	take_question();
	answer(world.frame.id + 1, FETCH_ANSWER, 0, ""); /* to a question that nobody has */
	answer(world.frame.id, FETCH_ANSWER, 7, "");
	answer(world.frame.id, FETCH_PART, 0, "abc");
	assert_false(world.is_told);
	answer(world.frame.id, FETCH_PART, 0, "defg");
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
	answer(world.frame.id, FETCH_ANSWER, 0, "");
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
	id = world.frame.id;
	inquiry_cancel(&world.inquiry);
	take_next();
	assert_int_equal(world.frame.type, FETCH_CANCEL);
	assert_int_equal(world.frame.id, id);
	answer(id, FETCH_ANSWER, 0, "");
	assert_false(world.is_told);
	inquire();
	take_question();
	assert_int_not_equal(world.frame.id, id);
	answer(world.frame.id, FETCH_ANSWER, 0, "");
	assert_true(world.is_told);
}

/* SEC-61: one that was taken over can lie about what it fetched, and no more. */
static void a_fetcher_that_lies(void **state)
{
	static const struct {
		uint32_t type, body_bytes;
		const char *next; /* part; NULL: none */
	} rows[] = {
		{ FETCH_ANSWER, FETCH_BODY_BYTES_MAX + 1, NULL },
		{ FETCH_ANSWER, UINT32_MAX, NULL },
		{ FETCH_ANSWER, 2, "abc" },
		{ FETCH_PART, 0, NULL },
		{ FETCH_ASK, 0, NULL },
		{ 77, 0, NULL },
	};

	open_client();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		inquire();
		take_question();
		answer(world.frame.id, rows[i].type, rows[i].body_bytes, "");
		if (rows[i].next != NULL)
			answer(world.frame.id, FETCH_PART, 0, rows[i].next);
		assert_true(world.is_told);
		assert_int_equal(world.status, 0);
		assert_int_equal(recv(world.fd, world.packet, 1, MSG_DONTWAIT), 0);
		connect_client();
	}
}

/* SEC-61: a status is one of HTTP's, or 0; those who ask compare it. */
static void no_status_is_negative(void **state)
{
	uint32_t numbers[10] = { FETCH_ANSWER, 0, 0, 0, UINT32_MAX };

	open_client();
	inquire();
	take_question();
	numbers[1] = world.frame.id;
	assert_int_equal(send(world.fd, numbers, sizeof(numbers), 0), sizeof(numbers));
	loop_turn(world.loop, false);
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
	id = world.frame.id;
	clock_freeze(clock_now_ms() + INQUIRY_MS + 1);
	loop_turn(world.loop, false);
	assert_true(world.is_told);
	assert_string_equal(world.error, "no answer in time");
	take_next();
	assert_int_equal(world.frame.type, FETCH_CANCEL);
	assert_int_equal(world.frame.id, id);
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
		TEST(documents_come_by_number),
		TEST(metadata_are_judged),
		TEST(metadata_may_take_back),
		TEST(what_is_no_question_is_not_asked),
		TEST(nonsense_ends_the_service),
		TEST(frames_are_whole),
		TEST(long_fields_say_nothing),
		TEST(questions_are_bounded),
		TEST(who_does_not_listen_is_not_heard),
		TEST(spans_go_to_the_collector),
		TEST(spans_are_bounded),
		TEST(spans_go_nowhere_else),
		TEST(an_answer_comes_in_parts),
		TEST(a_fetcher_that_dies),
		TEST(a_question_is_taken_back),
		TEST(a_fetcher_that_lies),
		TEST(no_status_is_negative),
		TEST(a_fetcher_that_is_silent),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, prepare, NULL);
}
