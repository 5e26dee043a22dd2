/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL contexts made from PEM texts, one per certificate of a listener. The first determines
 * versions, ciphers and who may connect; the others supply their certificate when a client asks for
 * one of their names. Reads no files and never prompts on a terminal.
 *
 * Tickets have two keys: the current one, and its predecessor, which only decrypts. A new key is
 * made when one is needed and the current one is too old, so no timer is needed. AES-256-CBC and
 * HMAC-SHA-256, RFC 5077 §4.
 */
#include "io/tls_server.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "io/pem.h"

#define CIPHERS_12 "ECDHE+AESGCM:ECDHE+CHACHA20"
#define CIPHERS_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"
#define SECURITY_LEVEL 2 /* 112 bits: RSA from 2048, no SHA-1 */
#define CLIENT_CHAIN_BYTES (16 * 1024)

struct ticket_key {
	unsigned char name[16];
	unsigned char cipher[32];
	unsigned char mac[32];
	uint64_t made_ms;
};

struct tickets {
	struct ticket_key current;
	struct ticket_key previous;
};

struct tls_server {
	unsigned int refs;
	struct tickets *tickets;
	SSL_CTX **contexts;
	size_t count;
};

void tls_init(void)
{
	OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_LOAD_CRYPTO_STRINGS |
				 OPENSSL_INIT_LOAD_CONFIG,
			 NULL);
}

/* ---- contexts ---- */

/* OpenSSL's defaults except for the security level. */
static SSL_CTX *new_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	CHECK(context != NULL);
	SSL_CTX_set_security_level(context, SECURITY_LEVEL);
	return context;
}

/*
 * Uses the first certificate as the leaf and the rest as its chain; frees the list. NULL: err is
 * already set.
 */
static int use_chain(SSL_CTX *context, STACK_OF(X509) * chain, struct error *err)
{
	X509 *leaf = chain != NULL ? sk_X509_shift(chain) : NULL;
	int result = 0;

	if (chain == NULL)
		return -1;
	CHECK(leaf != NULL);
	ERR_clear_error();
	if (SSL_CTX_use_certificate(context, leaf) != 1 || SSL_CTX_set1_chain(context, chain) != 1)
		result = pem_error(err, "cannot be used");
	X509_free(leaf);
	sk_X509_pop_free(chain, X509_free);
	return result;
}

static int use_key(SSL_CTX *context, struct slice pem, struct error *err)
{
	EVP_PKEY *key = pem_read_key(pem, err);
	int result = 0;

	if (key == NULL)
		return -1;
	ERR_clear_error();
	if (X509_check_private_key(SSL_CTX_get0_certificate(context), key) != 1)
		result =
			error_set(err, ERROR_INVALID, "the key does not belong to the certificate");
	else if (SSL_CTX_use_PrivateKey(context, key) != 1)
		result = pem_error(err, "cannot be used");
	EVP_PKEY_free(key);
	return result;
}

/* The CAs of client certificates: trusted, and announced to the clients. */
static int use_authorities(SSL_CTX *context, struct slice pem, struct error *err)
{
	STACK_OF(X509) *all = pem_read_certificates(pem, err);
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	int result = 0;

	if (all == NULL)
		return -1;
	ERR_clear_error();
	for (int i = 0; i < sk_X509_num(all) && result == 0; i++) {
		if (X509_STORE_add_cert(store, sk_X509_value(all, i)) != 1 ||
		    SSL_CTX_add_client_CA(context, sk_X509_value(all, i)) != 1)
			result = pem_error(err, "cannot be used");
	}
	sk_X509_pop_free(all, X509_free);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_max_cert_list(context, CLIENT_CHAIN_BYTES);
	return result;
}

/* ---- tickets ---- */

static void make_key(struct ticket_key *key)
{
	random_bytes(key->name, sizeof(key->name));
	random_bytes(key->cipher, sizeof(key->cipher));
	random_bytes(key->mac, sizeof(key->mac));
	key->made_ms = clock_now_ms();
}

struct tickets *tickets_new(void)
{
	struct tickets *tickets = mem_zalloc(sizeof(*tickets));

	make_key(&tickets->current);
	make_key(&tickets->previous); /* decrypts nothing: no ticket of it exists */
	return tickets;
}

void tickets_free(struct tickets **tickets)
{
	if (*tickets == NULL)
		return;
	explicit_bzero(*tickets, sizeof(**tickets));
	free(*tickets);
	*tickets = NULL;
}

static int use_ticket_key(const struct ticket_key *key, const unsigned char *iv,
			  EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_sealing)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->mac,
						  sizeof(key->mac)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, is_sealing) ==
		       1 &&
	       EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* SSL_CTX_set_tlsext_ticket_key_evp_cb(3). */
static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
		     EVP_MAC_CTX *mac, int is_sealing)
{
	const struct tls_server *server = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct ticket_key *current = &server->tickets->current;
	struct ticket_key *previous = &server->tickets->previous;
	const struct ticket_key *key = current;

	if (is_sealing) {
		if (clock_now_ms() - current->made_ms >= TICKET_KEY_MS) {
			*previous = *current;
			make_key(current);
		}
		memcpy(name, key->name, sizeof(key->name));
		random_bytes(iv, 16);
		return use_ticket_key(key, iv, cipher, mac, 1) ? 1 : -1;
	}
	if (memcmp(key->name, name, sizeof(key->name)) != 0)
		key = previous;
	if (memcmp(key->name, name, sizeof(key->name)) != 0 ||
	    clock_now_ms() - key->made_ms >= 2 * TICKET_KEY_MS)
		return 0; /* from another process or too old: full handshake */
	if (!use_ticket_key(key, iv, cipher, mac, 0))
		return -1;
	return key == current ? 1 : 2; /* 2: the client gets a new ticket */
}

/*
 * A client may resume repeatedly, getting a new ticket each time, but not after the certificate of
 * its first handshake has expired.
 */
static SSL_TICKET_RETURN on_resumption(not_used SSL *ssl, SSL_SESSION *session,
				       not_used const unsigned char *name,
				       not_used size_t name_size, SSL_TICKET_STATUS status,
				       not_used void *arg)
{
	const X509 *certificate = session != NULL ? SSL_SESSION_get0_peer(session) : NULL;

	if ((status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) ||
	    (certificate != NULL && X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0))
		return SSL_TICKET_RETURN_IGNORE_RENEW; /* full handshake */
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

/* ---- other callbacks ---- */

/*
 * A client that offers protocols must offer ours; one that offers none is accepted. RFC 7301 §3.2.
 */
static int on_alpn(not_used SSL *ssl, const unsigned char **chosen_r, unsigned char *length_r,
		   const unsigned char *offered, unsigned int size, not_used void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, length_r, ours, sizeof(ours) - 1, offered, size) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*chosen_r = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Chooses the first certificate that matches the name, or else the default. */
static int on_server_name(SSL *ssl, not_used int *alert_r, not_used void *arg)
{
	const struct tls_server *server = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	for (size_t i = 0; name != NULL && i < server->count; i++) {
		X509 *leaf = SSL_CTX_get0_certificate(server->contexts[i]);

		if (X509_check_host(leaf, name, 0, 0, NULL) == 1) {
			SSL_set_SSL_CTX(ssl, server->contexts[i]);
			return SSL_TLSEXT_ERR_OK;
		}
	}
	return SSL_TLSEXT_ERR_NOACK;
}

/* ---- the server ---- */

/*
 * A ticket is valid only for this listener and these CAs, so that no client resumes a session made
 * without a client certificate, or with one of another CA.
 */
static void set_sessions(SSL_CTX *context, const struct tls_conf *conf)
{
	unsigned char id[SHA256_DIGEST_LENGTH];
	at_end(mem_free) char *text =
		mem_printf("%s\n%.*s", conf->name, SLICE_ARG(conf->client_ca));

	SHA256((const unsigned char *)text, strlen(text), id);
	CHECK(SSL_CTX_set_session_id_context(context, id, sizeof(id)) == 1);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(context, (long)(TICKET_KEY_MS / 1000));
	SSL_CTX_set_num_tickets(context, 1);
	SSL_CTX_set_tlsext_ticket_key_evp_cb(context, on_ticket);
	SSL_CTX_set_session_ticket_cb(context, NULL, on_resumption, NULL);
}

static SSL_CTX *make_context(struct tls_server *server, const struct tls_conf *conf)
{
	const int oldest = conf->is_only_13 ? TLS1_3_VERSION : TLS1_2_VERSION;
	SSL_CTX *context = new_context();

	SSL_CTX_set_app_data(context, server);
	CHECK(SSL_CTX_set_min_proto_version(context, oldest) == 1);
	CHECK(SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1);
	CHECK(SSL_CTX_set_cipher_list(context, CIPHERS_12) == 1);
	CHECK(SSL_CTX_set_ciphersuites(context, CIPHERS_13) == 1);
	CHECK(SSL_CTX_set1_groups_list(context, GROUPS) == 1);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					     SSL_OP_CIPHER_SERVER_PREFERENCE |
					     SSL_OP_PRIORITIZE_CHACHA |
					     SSL_OP_CLEANSE_PLAINTEXT); /* tokens. AUTH-DWN-01 */
	set_sessions(context, conf);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(context, 1);
	SSL_CTX_set_alpn_select_cb(context, on_alpn, NULL);
	if (conf->count > 1)
		SSL_CTX_set_tlsext_servername_callback(context, on_server_name);
	return context;
}

static int prefix_error(struct error *err, const char *what)
{
	struct error why = *err;

	return error_set(err, why.kind, "%s %.220s", what, why.text);
}

static int fill_context(SSL_CTX *context, const struct tls_conf *conf, size_t at, struct error *err)
{
	const struct tls_pem *pem = &conf->server_certificates[at];

	if (use_chain(context, pem_read_certificates(pem->certificate, err), err) < 0)
		return prefix_error(err, "certificate:");
	if (use_key(context, pem->key, err) < 0)
		return prefix_error(err, "key:");
	if (conf->client_ca.n > 0 && use_authorities(context, conf->client_ca, err) < 0)
		return prefix_error(err, "client_ca:");
	return 0;
}

struct tls_server *tls_server_new(const struct tls_conf *conf, struct error *err)
{
	struct tls_server *server = mem_zalloc(sizeof(*server));

	CHECK(conf->count > 0);
	server->refs = 1;
	server->tickets = conf->tickets;
	server->contexts = mem_zalloc(conf->count * sizeof(*server->contexts));
	for (size_t i = 0; i < conf->count; i++) {
		server->contexts[i] = make_context(server, conf);
		server->count++;
		if (fill_context(server->contexts[i], conf, i, err) < 0) {
			tls_server_unref(&server);
			break;
		}
	}
	ERR_clear_error();
	return server;
}

uint64_t tls_server_not_after_ms(const struct tls_server *server, size_t index)
{
	const X509 *leaf =
		index < server->count ? SSL_CTX_get0_certificate(server->contexts[index]) : NULL;
	struct tm utc;
	time_t seconds;

	if (leaf == NULL || ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &utc) != 1)
		return 0;
	seconds = timegm(&utc);
	return seconds > 0 ? (uint64_t)seconds * 1000 : 1;
}

struct tls_server *tls_server_ref(struct tls_server *server)
{
	CHECK(server->refs > 0);
	server->refs++;
	return server;
}

void tls_server_unref(struct tls_server **server)
{
	struct tls_server *s = *server;

	*server = NULL;
	CHECK(s == NULL || s->refs > 0);
	if (s == NULL || --s->refs > 0)
		return;
	for (size_t i = 0; i < s->count; i++)
		SSL_CTX_free(s->contexts[i]);
	free(s->contexts);
	free(s);
}

SSL *tls_server_make_ssl(struct tls_server *server)
{
	SSL *ssl = SSL_new(server->contexts[0]);

	CHECK(server->count > 0 && ssl != NULL);
	return ssl;
}
