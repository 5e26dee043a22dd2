/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS from both sides: an OpenSSL client on a socket pair, and a wire. The test makes its
 * certificates. The clock is frozen unless moved.
 */
#include "io/tls.h"
#include "io/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "io/tls_server.h"
#include "io/wire.h"

#define START_MS UINT64_C(1000000)
#define BULK_BYTES (3 * 1024 * 1024)

struct made {
	char *certificate; /* PEM */
	char *key;
	X509 *x509;
	EVP_PKEY *pkey;
};

static struct loop *loop;
static struct tickets *tickets;
static struct made good, other;

/* ---- certificates ---- */

static char *take_pem(BIO *bio)
{
	char *data;
	long size = BIO_get_mem_data(bio, &data);
	char *text = mem_dup_slice(slice_of(data, (size_t)size));

	BIO_free(bio);
	return text;
}

static struct made make(const char *name, long days)
{
	struct made made = { .pkey = EVP_EC_gen("P-256"), .x509 = X509_new() };
	char *names = mem_printf("DNS:%s", name);
	X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, NULL, NID_subject_alt_name, names);
	BIO *certificate = BIO_new(BIO_s_mem());
	BIO *key = BIO_new(BIO_s_mem());

	X509_set_version(made.x509, 2);
	X509_gmtime_adj(X509_getm_notBefore(made.x509), -86400 * 5);
	X509_gmtime_adj(X509_getm_notAfter(made.x509), 86400 * days + 60);
	X509_set_pubkey(made.x509, made.pkey);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(made.x509), "CN", MBSTRING_ASC,
				   (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(made.x509, X509_get_subject_name(made.x509));
	X509_add_ext(made.x509, extension, -1);
	X509_EXTENSION_free(extension);
	free(names);
	assert_true(X509_sign(made.x509, made.pkey, EVP_sha256()) > 0);
	PEM_write_bio_X509(certificate, made.x509);
	PEM_write_bio_PrivateKey(key, made.pkey, NULL, NULL, 0, NULL, NULL);
	made.certificate = take_pem(certificate);
	made.key = take_pem(key);
	return made;
}

static void unmake(struct made *made)
{
	X509_free(made->x509);
	EVP_PKEY_free(made->pkey);
	free(made->certificate);
	free(made->key);
}

static struct tls_server *make_server(const struct made *made, const char *client_ca)
{
	const struct tls_pem pem = { slice_str(made->certificate), slice_str(made->key) };
	struct error err = { ERROR_NONE, "" };
	struct tls_server *server =
		tls_server_new(&(struct tls_conf){ .server_certificates = &pem,
						   .count = 1,
						   .client_ca = slice_str(client_ca),
						   .name = "test",
						   .tickets = tickets },
			       &err);

	assert_string_equal(err.text, "");
	assert_non_null(server);
	return server;
}

/* ---- the two sides ---- */

struct pair {
	SSL_CTX *context;
	SSL *client;
	int client_fd;
	int server_fd;
	struct tls *tls;
	SSL_SESSION *session; /* the last ticket received */
};

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct pair *pair = SSL_get_app_data(ssl);

	SSL_SESSION_free(pair->session);
	pair->session = session;
	return 1;
}

static void pair_open(struct pair *pair, struct tls_server *server, SSL_SESSION *session)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	*pair = (struct pair){ .client_fd = fds[0], .server_fd = fds[1] };
	pair->context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_session_cache_mode(pair->context,
				       SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(pair->context, on_session);
	pair->client = SSL_new(pair->context);
	SSL_set_app_data(pair->client, pair);
	SSL_set_fd(pair->client, fds[0]);
	SSL_set_connect_state(pair->client);
	if (session != NULL) {
		SSL_SESSION *copy =
			SSL_SESSION_dup(session); /* it is used up when a new one arrives */

		SSL_set_session(pair->client, copy);
		SSL_SESSION_free(copy);
	}
	pair->tls = tls_new(server, fds[1]);
}

static enum tls_step pair_shake(struct pair *pair)
{
	struct error err = { ERROR_NONE, "" };
	enum tls_step step = TLS_WANTS_READ;
	int client = 0;

	for (int i = 0; i < 10 && (client != 1 || step == TLS_WANTS_READ); i++) {
		client = SSL_do_handshake(pair->client);
		if (step == TLS_WANTS_READ)
			step = tls_handshake(pair->tls, &err);
	}
	return step;
}

static void pair_close(struct pair *pair)
{
	tls_free(&pair->tls);
	SSL_SESSION_free(pair->session);
	/* otherwise the session counts as broken */
	SSL_set_shutdown(pair->client, SSL_SENT_SHUTDOWN);
	SSL_free(pair->client);
	SSL_CTX_free(pair->context);
	close(pair->client_fd);
	close(pair->server_fd);
	ERR_clear_error();
}

static int setup(void **state)
{
	struct error err;

	clock_freeze(START_MS);
	loop = loop_new(&err);
	tickets = tickets_new();
	return loop != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	tickets_free(&tickets);
	loop_free(&loop);
	return 0;
}

/* ---- servers ---- */

static void test_checks_name_what_is_wrong(void **state)
{
	struct slice certificate = slice_str(good.certificate);
	struct error err = { ERROR_NONE, "" };
	bool is_valid_yet = false;
	int days = 0;

	assert_int_equal(pem_check_certificate(certificate, &days, &is_valid_yet, &err), 0);
	assert_int_equal(days, 3);
	assert_true(is_valid_yet);
	assert_int_equal(pem_check_key(certificate, slice_str(good.key), &err), 0);
	assert_int_equal(pem_check_key(certificate, slice_str(other.key), &err), -1);
	assert_string_equal(err.text, "the key does not belong to the certificate");
	assert_int_equal(pem_check_key(certificate, certificate, &err), -1);
	assert_non_null(strstr(err.text, "no private key"));
	assert_int_equal(pem_check_certificate(slice_str(good.key), &days, &is_valid_yet, &err),
			 -1);
	assert_non_null(strstr(err.text, "no certificate"));
	certificate.n -= 40;
	assert_int_equal(pem_check_authorities(certificate, &err), -1);
	assert_int_equal(pem_check_authorities(SLICE_LIT(""), &err), -1);
	assert_int_equal(pem_check_authorities(slice_str(other.certificate), &err), 0);
}

static void test_bad_server_says_which_part(void **state)
{
	const struct tls_pem pems[] = {
		{ slice_str(good.certificate), slice_str(good.key) },
		{ slice_str(other.certificate), slice_str(good.key) },
	};
	struct tls_conf conf = {
		.server_certificates = pems, .count = 2, .name = "x", .tickets = tickets
	};
	struct error err = { ERROR_NONE, "" };

	assert_null(tls_server_new(&conf, &err));
	assert_string_equal(err.text, "key: the key does not belong to the certificate");
	conf.count = 1;
	conf.client_ca = SLICE_LIT("x");
	assert_null(tls_server_new(&conf, &err));
	assert_non_null(strstr(err.text, "client_ca: holds no certificate"));
}

static void test_servers_know_when_their_certificates_expire(void **state)
{
	const struct tls_pem pems[] = { { slice_str(good.certificate), slice_str(good.key) },
					{ slice_str(other.certificate), slice_str(other.key) } };
	const struct tls_conf conf = {
		.server_certificates = pems, .count = 2, .name = "x", .tickets = tickets
	};
	struct error err = { ERROR_NONE, "" };
	struct tls_server *server = tls_server_new(&conf, &err);
	uint64_t now_ms = clock_wall_ms(), day_ms = 86400000;

	assert_non_null(server);
	for (size_t i = 0; i < 2; i++)
		assert_in_range(tls_server_not_after_ms(server, i), now_ms + 3 * day_ms,
				now_ms + 4 * day_ms);
	assert_int_equal(tls_server_not_after_ms(server, 2), 0);
	tls_server_unref(&server);
}

/* ---- resumption ---- */

static bool resumes(struct tls_server *server, SSL_SESSION *session)
{
	struct pair pair;
	bool is_reused;
	char byte;

	pair_open(&pair, server, session);
	assert_int_equal(pair_shake(&pair), TLS_DONE);
	assert_int_equal(SSL_read(pair.client, &byte, 1), -1); /* only tickets */
	is_reused = SSL_session_reused(pair.client);
	pair_close(&pair);
	return is_reused;
}

static SSL_SESSION *get_session(struct tls_server *server)
{
	struct pair pair;
	SSL_SESSION *session;
	char byte;

	pair_open(&pair, server, NULL);
	assert_int_equal(pair_shake(&pair), TLS_DONE);
	assert_int_equal(SSL_read(pair.client, &byte, 1), -1);
	session = pair.session;
	pair.session = NULL;
	assert_non_null(session);
	pair_close(&pair);
	return session;
}

/* REL-50, SEC-34: a new certificate does not end sessions; an old ticket key does. */
static void test_tickets_outlive_certificates_not_their_time(void **state)
{
	struct tls_server *server = make_server(&good, "");
	struct tls_server *renewed = make_server(&other, "");
	SSL_SESSION *session = get_session(server);

	assert_true(resumes(server, session));
	assert_true(resumes(renewed, session));
	clock_freeze(START_MS + TICKET_KEY_MS + 1);
	SSL_SESSION_free(get_session(server)); /* a new key was made; the old one still decrypts */
	assert_true(resumes(renewed, session));
	clock_freeze(START_MS + 2 * TICKET_KEY_MS + 1);
	assert_false(resumes(renewed, session));
	SSL_SESSION_free(session);
	tls_server_unref(&server);
	tls_server_unref(&renewed);
}

/* A session made without a client certificate is not resumed where one is required. */
static void test_sessions_are_bound_to_authorities(void **state)
{
	struct tls_server *open = make_server(&good, "");
	struct tls_server *closed = make_server(&good, other.certificate);
	SSL_SESSION *session = get_session(open);
	struct pair pair;

	pair_open(&pair, closed, session);
	assert_int_equal(pair_shake(&pair), TLS_FAILED);
	pair_close(&pair);
	SSL_SESSION_free(session);
	tls_server_unref(&open);
	tls_server_unref(&closed);
}

/* A session made while the client's certificate was still valid; the caller owns it. */
static SSL_SESSION *get_old_session(struct tls_server *server, const struct made *client,
				    int version)
{
	SSL *ssl = tls_server_make_ssl(server);
	SSL_SESSION *session;
	struct pair pair;
	char byte;
	int done = 0;

	pair_open(&pair, server, NULL);
	SSL_use_certificate(pair.client, client->x509);
	SSL_use_PrivateKey(pair.client, client->pkey);
	SSL_set_max_proto_version(pair.client, version);
	SSL_set_fd(ssl, pair.server_fd);
	SSL_set_accept_state(ssl);
	X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), time(NULL) - 86400 * 3);
	for (int i = 0; i < 10 && done != 1; i++) {
		SSL_do_handshake(pair.client);
		done = SSL_do_handshake(ssl);
	}
	assert_int_equal(done, 1);
	assert_int_equal(SSL_do_handshake(pair.client), 1);
	assert_int_equal(SSL_read(pair.client, &byte, 1), -1);
	session = SSL_SESSION_dup(pair.session);
	SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(ssl);
	pair_close(&pair);
	return session;
}

/* Repeated resumption does not outlast the client's certificate. AUTH-POP-04 */
static void test_sessions_end_with_the_clients_certificate(void **state)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	struct made past = make("past.test", -1);
	struct tls_server *server = make_server(&good, past.certificate);

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		SSL_SESSION *session = get_old_session(server, &past, versions[i]);
		struct pair pair;

		pair_open(&pair, server, session);
		SSL_use_certificate(pair.client, past.x509);
		SSL_use_PrivateKey(pair.client, past.pkey);
		assert_int_equal(pair_shake(&pair), TLS_FAILED);
		pair_close(&pair);
		SSL_SESSION_free(session);
	}
	tls_server_unref(&server);
	unmake(&past);
}

/* Sessions with a valid client certificate are resumed. */
static void test_sessions_with_a_certificate_are_resumed(void **state)
{
	struct tls_server *server = make_server(&good, other.certificate);
	unsigned char expected[TLS_THUMBPRINT_BYTES], seen[TLS_THUMBPRINT_BYTES];
	struct pair pair;
	SSL_SESSION *session;
	char byte;

	pair_open(&pair, server, NULL);
	SSL_use_certificate(pair.client, other.x509);
	SSL_use_PrivateKey(pair.client, other.pkey);
	assert_int_equal(pair_shake(&pair), TLS_DONE);
	assert_int_equal(SSL_read(pair.client, &byte, 1), -1);
	session = SSL_SESSION_dup(pair.session);
	pair_close(&pair);
	pair_open(&pair, server, session);
	assert_int_equal(pair_shake(&pair), TLS_DONE);
	assert_true(SSL_session_reused(pair.client));
	assert_true(tls_peer_thumbprint(pair.tls, seen));
	X509_digest(other.x509, EVP_sha256(), expected, NULL);
	assert_memory_equal(seen, expected, sizeof(seen));
	pair_close(&pair);
	SSL_SESSION_free(session);
	tls_server_unref(&server);
}

static void test_thumbprint_is_that_of_the_clients_certificate(void **state)
{
	struct tls_server *server = make_server(&good, other.certificate);
	unsigned char expected[TLS_THUMBPRINT_BYTES], seen[TLS_THUMBPRINT_BYTES];
	struct pair pair;

	pair_open(&pair, server, NULL);
	SSL_use_certificate(pair.client, other.x509);
	SSL_use_PrivateKey(pair.client, other.pkey);
	assert_int_equal(pair_shake(&pair), TLS_DONE);
	assert_true(tls_peer_thumbprint(pair.tls, seen));
	X509_digest(other.x509, EVP_sha256(), expected, NULL);
	assert_memory_equal(seen, expected, sizeof(seen));
	pair_close(&pair);
	tls_server_unref(&server);
	server = make_server(&good, "");
	pair_open(&pair, server, NULL);
	tls_server_unref(&server); /* the connection keeps its reference */
	assert_int_equal(pair_shake(&pair), TLS_DONE);
	assert_false(tls_peer_thumbprint(pair.tls, seen));
	pair_close(&pair);
}

/* ---- the wire ---- */

struct reader {
	struct wire wire;
	struct buf in;
	size_t at_most; /* per read; 0: no limit */
	int calls;
	ssize_t last;
	const char *out;
	size_t left;
};

static void on_readable(struct wire *wire)
{
	struct reader *reader = container_of(wire, struct reader, wire);
	size_t size = reader->at_most > 0 ? reader->at_most : LOOP_BUFFER_BYTES;
	char *into = buf_reserve(&reader->in, size);

	reader->calls++;
	reader->last = wire_read(wire, into, size);
	if (reader->last > 0)
		reader->in.len += (size_t)reader->last;
	if (reader->last == 0 || reader->last == WIRE_BROKEN)
		wire_watch_reading(wire, false);
}

static void on_writable(struct wire *wire)
{
	struct reader *reader = container_of(wire, struct reader, wire);
	/* Odd sizes, to be joined. */
	size_t first = reader->left < 1001 ? reader->left : 1001;
	const struct iovec parts[] = { { (void *)(uintptr_t)reader->out, first },
				       { (void *)(uintptr_t)reader->out, 0 },
				       { (void *)(uintptr_t)(reader->out + first),
					 reader->left - first } };
	ssize_t n = wire_write(wire, parts, 3);

	assert_true(n >= 0);
	reader->out += n;
	reader->left -= (size_t)n;
	wire_watch_writing(wire, reader->left > 0);
}

static const struct wire_ops reader_ops = { on_readable, on_writable };

static void reader_open(struct reader *reader, struct pair *pair, struct tls_server *server)
{
	pair_open(pair, server, NULL);
	assert_int_equal(pair_shake(pair), TLS_DONE);
	*reader = (struct reader){ .at_most = 0 };
	wire_init(&reader->wire, loop, pair->server_fd, &reader_ops);
	wire_set_tls(&reader->wire, pair->tls);
	pair->tls = NULL;
	wire_watch_reading(&reader->wire, true);
}

static void reader_close(struct reader *reader, struct pair *pair)
{
	wire_close(&reader->wire);
	buf_fini(&reader->in);
	pair->server_fd = -1;
	pair_close(pair);
}

/* stack.md §4: data that OpenSSL has decrypted is read although the socket has none. */
static void test_no_byte_stays_in_the_library(void **state)
{
	struct tls_server *server = make_server(&good, "");
	struct reader reader;
	struct pair pair;

	reader_open(&reader, &pair, server);
	reader.at_most = 7;
	assert_int_equal(SSL_write(pair.client, "0123456789012345678901234567890123456789", 40),
			 40);
	assert_int_equal(SSL_write(pair.client, "abc", 3), 3);
	for (int i = 0; i < 20; i++)
		loop_turn(loop, false);
	assert_int_equal(reader.in.len, 43);
	/* Reading is switched off with data left; the data comes when it is switched on again. */
	assert_int_equal(SSL_write(pair.client, "0123456789", 10), 10);
	reader.calls = 0;
	while (reader.calls == 0)
		loop_turn(loop, false);
	wire_watch_reading(&reader.wire, false);
	for (int i = 0; i < 5; i++)
		loop_turn(loop, false);
	reader.calls = 0;
	wire_watch_reading(&reader.wire, true);
	for (int i = 0; i < 5; i++)
		loop_turn(loop, false);
	assert_int_equal(reader.in.len, 53);
	reader_close(&reader, &pair);
	tls_server_unref(&server);
}

static void test_bulk_arrives_unchanged(void **state)
{
	struct tls_server *server = make_server(&good, "");
	char *bulk = mem_alloc(BULK_BYTES), *seen = mem_alloc(BULK_BYTES);
	struct reader reader;
	struct pair pair;
	size_t got = 0;

	for (size_t i = 0; i < BULK_BYTES; i++)
		bulk[i] = (char)(i * 2654435761u >> 13);
	reader_open(&reader, &pair, server);
	reader.out = bulk;
	reader.left = BULK_BYTES;
	wire_watch_writing(&reader.wire, true);
	while (got < BULK_BYTES) {
		int n = SSL_read(pair.client, seen + got, (int)(BULK_BYTES - got));

		got += n > 0 ? (size_t)n : 0;
		loop_turn(loop, false);
	}
	assert_memory_equal(bulk, seen, BULK_BYTES);
	for (size_t sent = 0; sent < BULK_BYTES || reader.in.len < BULK_BYTES;) {
		int n = sent < BULK_BYTES ?
				SSL_write(pair.client, bulk + sent, (int)(BULK_BYTES - sent)) :
				0;

		sent += n > 0 ? (size_t)n : 0;
		loop_turn(loop, false);
	}
	assert_memory_equal(bulk, reader.in.data, BULK_BYTES);
	free(bulk);
	free(seen);
	reader_close(&reader, &pair);
	tls_server_unref(&server);
}

/* close_notify is an end of file; the end of TCP alone and forged bytes are errors. */
static void test_ends(void **state)
{
	static const char forged[] = "\x17\x03\x03\x00\x20zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz";
	struct tls_server *server = make_server(&good, "");

	for (int way = 0; way < 3; way++) {
		struct reader reader;
		struct pair pair;

		reader_open(&reader, &pair, server);
		assert_int_equal(SSL_write(pair.client, "last", 4), 4);
		if (way == 0)
			SSL_shutdown(pair.client);
		else if (way == 1)
			shutdown(pair.client_fd, SHUT_WR);
		else
			assert_int_equal(write(pair.client_fd, forged, 37), 37);
		for (int i = 0; i < 10; i++)
			loop_turn(loop, false);
		assert_int_equal(reader.in.len, 4);
		assert_int_equal(reader.last, way == 0 ? 0 : WIRE_BROKEN);
		if (way > 0)
			assert_int_equal(wire_write(&reader.wire, &(struct iovec){ "x", 1 }, 1),
					 WIRE_BROKEN);
		reader_close(&reader, &pair);
	}
	tls_server_unref(&server);
}

static void test_http_is_told_apart(void **state)
{
	struct tls_server *server = make_server(&good, "");
	struct error err = { ERROR_NONE, "" };
	struct pair pair;

	pair_open(&pair, server, NULL);
	assert_int_equal(write(pair.client_fd, "POST / HTTP/1.1\r\n\r\n", 19), 19);
	assert_int_equal(tls_handshake(pair.tls, &err), TLS_SPEAKS_HTTP);
	pair_close(&pair);
	pair_open(&pair, server, NULL);
	assert_int_equal(write(pair.client_fd, "\x16\x03\x01\xff\xffxxxxxx", 11), 11);
	assert_int_equal(tls_handshake(pair.tls, &err), TLS_FAILED);
	assert_string_not_equal(err.text, "");
	pair_close(&pair);
	tls_server_unref(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks_name_what_is_wrong),
		cmocka_unit_test_setup_teardown(test_bad_server_says_which_part, setup, teardown),
		cmocka_unit_test_setup_teardown(test_servers_know_when_their_certificates_expire,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_tickets_outlive_certificates_not_their_time,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_sessions_are_bound_to_authorities, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_sessions_end_with_the_clients_certificate,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_sessions_with_a_certificate_are_resumed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_thumbprint_is_that_of_the_clients_certificate,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_byte_stays_in_the_library, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bulk_arrives_unchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_http_is_told_apart, setup, teardown),
	};
	int failed;

	signal(SIGPIPE, SIG_IGN);
	tls_init();
	good = make("good.test", 3);
	other = make("other.test", 3);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unmake(&good);
	unmake(&other);
	return failed;
}
