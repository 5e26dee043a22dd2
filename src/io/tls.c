/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection. A read fills the caller's buffer from as many records as are available; a write
 * makes as few records as possible. Each direction may have to wait for the other one; this is
 * remembered, and io/wire asks for it. An end of the TCP stream without close_notify is an error,
 * not the end of the data: somebody may have truncated it.
 */
#include "io/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/mem.h"
#include "io/pem.h"
#include "io/tls_server.h"
#include "io/wire.h"

#define RECORD_BYTES (16 * 1024)

enum tls_input {
	TLS_INPUT_READY,   /* a complete record may be available */
	TLS_INPUT_DRAINED, /* the last read found no more records */
	TLS_INPUT_WAITS,   /* likewise, and the next read needs a write first */
	TLS_INPUT_CLOSED,  /* the peer has sent close_notify */
	TLS_INPUT_BROKEN,  /* reading and writing are impossible */
};

enum tls_output {
	TLS_OUTPUT_READY,
	TLS_OUTPUT_WAITS, /* the next write needs a read first */
	TLS_OUTPUT_SHUT,  /* we have sent close_notify */
};

struct tls {
	SSL *ssl;
	struct tls_server *server;
	enum tls_input input;
	enum tls_output output;
};

/* ---- where we connect ---- */

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

struct tls_client {
	SSL_CTX *context;
};

static int trust(SSL_CTX *context, struct slice ca, struct error *err)
{
	STACK_OF(X509) *all = pem_read_certificates(ca, err);
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	int result = all != NULL ? 0 : -1;

	for (int i = 0; result == 0 && i < sk_X509_num(all); i++)
		if (X509_STORE_add_cert(store, sk_X509_value(all, i)) != 1)
			result = pem_error(err, "cannot be used");
	sk_X509_pop_free(all, X509_free);
	return result;
}

struct tls_client *tls_client_new(struct slice ca, struct error *err)
{
	struct tls_client *client = mem_zalloc(sizeof(*client));

	client->context = SSL_CTX_new(TLS_client_method());
	CHECK(client->context != NULL);
	SSL_CTX_set_security_level(client->context, 2);
	CHECK(SSL_CTX_set_min_proto_version(client->context, TLS1_2_VERSION) == 1);
	SSL_CTX_set_verify(client->context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(client->context,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (ca.n > 0 ? trust(client->context, ca, err) < 0 :
		       SSL_CTX_load_verify_file(client->context, SYSTEM_CA) != 1) {
		if (ca.n == 0)
			error_set(err, ERROR_SYSTEM,
				  "the system has no CA certificates (package ca-certificates)");
		tls_client_free(&client);
	}
	ERR_clear_error();
	return client;
}

void tls_client_free(struct tls_client **client)
{
	if (*client == NULL)
		return;
	SSL_CTX_free((*client)->context);
	free(*client);
	*client = NULL;
}

struct tls *tls_connect(const struct tls_client *client, const char *host, int fd)
{
	struct tls *tls = mem_zalloc(sizeof(*tls));
	X509_VERIFY_PARAM *param;

	CHECK(fd >= 0);
	tls->ssl = SSL_new(client->context);
	CHECK(tls->ssl != NULL && SSL_set_fd(tls->ssl, fd) == 1);
	param = SSL_get0_param(tls->ssl);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (X509_VERIFY_PARAM_set1_ip_asc(param, host) != 1) {
		CHECK(X509_VERIFY_PARAM_set1_host(param, host, 0) == 1);
		CHECK(SSL_set_tlsext_host_name(tls->ssl, host) == 1);
	}
	ERR_clear_error();
	SSL_set_connect_state(tls->ssl);
	return tls;
}

/* ---- one connection ---- */

static bool tls_is_open(const struct tls *tls)
{
	return tls->input < TLS_INPUT_CLOSED;
}

struct tls *tls_new(struct tls_server *server, int fd)
{
	struct tls *tls = mem_zalloc(sizeof(*tls));

	CHECK(fd >= 0);
	tls->ssl = tls_server_make_ssl(server);
	tls->server = tls_server_ref(server);
	CHECK(SSL_set_fd(tls->ssl, fd) == 1);
	SSL_set_accept_state(tls->ssl);
	return tls;
}

void tls_shutdown(struct tls *tls)
{
	if (tls->output == TLS_OUTPUT_SHUT || tls->input == TLS_INPUT_BROKEN ||
	    !SSL_is_init_finished(tls->ssl))
		return;
	tls->output = TLS_OUTPUT_SHUT;
	ERR_clear_error();
	SSL_shutdown(tls->ssl);
	ERR_clear_error();
}

void tls_free(struct tls **tls)
{
	struct tls *t = *tls;

	*tls = NULL;
	if (t == NULL)
		return;
	tls_shutdown(t);
	SSL_free(t->ssl);
	if (t->server != NULL)
		tls_server_unref(&t->server);
	free(t);
}

/* It got the certificate, and then ended the handshake, with one of the alerts for that or without. */
static bool is_distrusted(const struct tls *tls, unsigned long code)
{
	int reason = ERR_GET_REASON(code);
	OSSL_HANDSHAKE_STATE state = SSL_get_state(tls->ssl);

	CHECK(tls->input == TLS_INPUT_BROKEN);
	if (ERR_GET_LIB(code) == ERR_LIB_SSL && (reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
						 reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
						 reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN))
		return true;
	return (code == 0 || (ERR_GET_LIB(code) == ERR_LIB_SSL &&
			      reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)) &&
	       state != TLS_ST_BEFORE && state != TLS_ST_SR_CLNT_HELLO;
}

static enum tls_step tls_fail_handshake(struct tls *tls, struct error *err)
{
	long verdict = SSL_get_verify_result(tls->ssl);
	unsigned long code = ERR_peek_last_error();

	tls->input = TLS_INPUT_BROKEN;
	if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
		return TLS_SPEAKS_HTTP;
	if (verdict != X509_V_OK)
		error_set(err, ERROR_INVALID, "the %s's certificate is not accepted: %s",
			  tls->server != NULL ? "client" : "server",
			  X509_verify_cert_error_string(verdict));
	else if (tls->server == NULL && code == 0)
		error_set(err, ERROR_SYSTEM, "the server ended the TLS handshake");
	else if (tls->server == NULL)
		pem_error(err, "no agreement");
	else if (is_distrusted(tls, code))
		error_set(
			err, ERROR_INVALID,
			code == 0 || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING ?
				"the client ended the TLS handshake after it got the certificate; "
				"perhaps it does not trust the certificate" :
				"the client ended the TLS handshake; it does not trust the "
				"certificate");
	else if (code == 0)
		error_set(err, ERROR_SYSTEM, "the client has gone");
	else
		pem_error(err, "no agreement");
	return TLS_FAILED;
}

enum tls_step tls_handshake(struct tls *tls, struct error *err)
{
	enum tls_step step;
	int result, error;

	CHECK(tls_is_open(tls) && tls->output != TLS_OUTPUT_SHUT);
	ERR_clear_error();
	result = SSL_do_handshake(tls->ssl);
	if (result == 1)
		return TLS_DONE;
	error = SSL_get_error(tls->ssl, result);
	step = error == SSL_ERROR_WANT_READ  ? TLS_WANTS_READ :
	       error == SSL_ERROR_WANT_WRITE ? TLS_WANTS_WRITE :
					       tls_fail_handshake(tls, err);
	ERR_clear_error();
	return step;
}

static void tls_note_read(struct tls *tls)
{
	int error = SSL_get_error(tls->ssl, 0);

	tls->input = error == SSL_ERROR_WANT_READ   ? TLS_INPUT_DRAINED :
		     error == SSL_ERROR_WANT_WRITE  ? TLS_INPUT_WAITS :
		     error == SSL_ERROR_ZERO_RETURN ? TLS_INPUT_CLOSED :
						      TLS_INPUT_BROKEN;
	ERR_clear_error();
}

ssize_t tls_read(struct tls *tls, void *out, size_t size)
{
	size_t total = 0;
	bool has_more = true;

	if (tls_is_open(tls))
		tls->input = TLS_INPUT_READY;
	while (has_more && total < size && tls->input == TLS_INPUT_READY) {
		size_t n = 0;

		ERR_clear_error();
		if (SSL_read_ex(tls->ssl, (char *)out + total, size - total, &n) != 1)
			tls_note_read(tls);
		total += n;
		/*
		 * After a full-size record the socket probably has the next one; otherwise let the
		 * loop wait.
		 */
		has_more = n == RECORD_BYTES || SSL_has_pending(tls->ssl);
	}
	if (total > 0)
		return (ssize_t)total;
	if (tls_is_open(tls))
		return WIRE_AGAIN;
	return tls->input == TLS_INPUT_CLOSED ? 0 : WIRE_BROKEN;
}

/* ---- writing ---- */

struct cursor {
	const struct iovec *parts;
	int count;
	size_t offset; /* within the first of them */
};

static void cursor_skip(struct cursor *at, size_t size)
{
	while (at->count > 0 && size >= at->parts->iov_len - at->offset) {
		size -= at->parts->iov_len - at->offset;
		at->parts++;
		at->count--;
		at->offset = 0;
	}
	CHECK(size == 0 || at->count > 0);
	at->offset += size;
}

/* The bytes of the next record: in place, or copied together. Empty: no more. */
static struct slice cursor_peek(const struct cursor *at)
{
	static char record[RECORD_BYTES];
	size_t offset = at->offset;
	size_t used = 0;

	for (int i = 0; i < at->count && used < sizeof(record); i++) {
		const char *from = (const char *)at->parts[i].iov_base + offset;
		size_t n = at->parts[i].iov_len - offset;
		size_t room = sizeof(record) - used;

		n = n < room ? n : room;
		if (used == 0 && (n == room || i + 1 == at->count))
			return slice_of(from, n);
		memcpy(record + used, from, n);
		used += n;
		offset = 0;
	}
	return slice_of(record, used);
}

ssize_t tls_write(struct tls *tls, const struct iovec *parts, int count)
{
	struct cursor at = { parts, count, 0 };
	size_t total = 0;
	struct slice record;

	CHECK(tls->output != TLS_OUTPUT_SHUT);
	tls->output = TLS_OUTPUT_READY;
	while (tls->input != TLS_INPUT_BROKEN && (record = cursor_peek(&at)).n > 0) {
		size_t n = 0;

		ERR_clear_error();
		if (SSL_write_ex(tls->ssl, record.p, record.n, &n) != 1) {
			int error = SSL_get_error(tls->ssl, 0);

			if (error == SSL_ERROR_WANT_READ)
				tls->output = TLS_OUTPUT_WAITS;
			else if (error != SSL_ERROR_WANT_WRITE)
				tls->input = TLS_INPUT_BROKEN;
			ERR_clear_error();
			break;
		}
		cursor_skip(&at, n);
		total += n;
	}
	return tls->input == TLS_INPUT_BROKEN ? WIRE_BROKEN : (ssize_t)total;
}

bool tls_has_pending(const struct tls *tls)
{
	return !tls_is_open(tls) || (tls->input == TLS_INPUT_READY && SSL_has_pending(tls->ssl));
}

bool tls_read_wants_write(const struct tls *tls)
{
	return tls->input == TLS_INPUT_WAITS;
}

bool tls_write_wants_read(const struct tls *tls)
{
	return tls->output == TLS_OUTPUT_WAITS;
}

bool tls_peer_thumbprint(const struct tls *tls, unsigned char thumbprint_r[TLS_THUMBPRINT_BYTES])
{
	const X509 *certificate = SSL_get0_peer_certificate(tls->ssl);

	return certificate != NULL &&
	       X509_digest(certificate, EVP_sha256(), thumbprint_r, NULL) == 1;
}
