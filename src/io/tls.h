/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.2 and 1.3: the identity of a listener (struct tls_server), whom we trust where we connect
 * (struct tls_client), and one connection (struct tls), which io/wire.h reads and writes like a plain socket. Renegotiation,
 * compression, early data and ciphers without forward secrecy are disabled. stack.md §4, DEF-03.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

struct tickets;
struct tls;
struct tls_client;
struct tls_server;

/*
 * Makes OpenSSL load now what it would load later, its configuration and error texts. Call before
 * the process drops its privileges.
 */
void tls_init(void);

/*
 * The keys that encrypt session tickets. They belong to the process, not to a certificate, so
 * clients can resume sessions after certificates were replaced. Each key is used for a limited
 * time.
 */
struct tickets *tickets_new(void);
/* Overwrites the keys and frees them; sets the pointer to NULL. */
void tickets_free(struct tickets **tickets);
/*
 * How long a key encrypts new tickets, and then decrypts existing ones for the same time again: the
 * lifetime of a ticket.
 */
#define TICKET_KEY_MS (4 * 3600 * UINT64_C(1000))

/* ---- the identity of a listener: reference-counted ---- */

/* A certificate chain, leaf first, and its key, in PEM. */
struct tls_pem {
	struct slice certificate;
	struct slice key;
};

struct tls_conf {
	/* the first is the default, for clients that name no other */
	const struct tls_pem *server_certificates;
	size_t count; /* at least 1 */
	/* PEM; if not empty, clients must present a certificate issued by one of these */
	struct slice client_ca;
	bool is_only_13;         /* TLS 1.2 is disabled */
	const char *name;        /* of the listener: sessions are not resumed across listeners */
	struct tickets *tickets; /* borrowed for the lifetime of the server */
};

/*
 * All of conf except tickets is borrowed only during the call. The caller owns one reference.
 * Returns NULL on failure; err names the certificate and what is wrong with it.
 */
struct tls_server *tls_server_new(const struct tls_conf *conf, struct error *err) must_check;
struct tls_server *tls_server_ref(struct tls_server *server);
/*
 * When certificate number `index` of conf expires, in milliseconds since 1970; 0: there is none with
 * this number.
 */
uint64_t tls_server_not_after_ms(const struct tls_server *server, size_t index);
/* Existing connections are not affected. */
void tls_server_unref(struct tls_server **server);

/* ---- whom we trust where we connect ---- */

/*
 * ca: PEM, borrowed for the call; empty: the system's, which are read now. Returns NULL on failure, and
 * err ends a sentence about them.
 */
struct tls_client *tls_client_new(struct slice ca, struct error *err) must_check;
/* No connection may be left. Accepts a pointer to NULL. */
void tls_client_free(struct tls_client **client);

/* ---- one connection ---- */

/*
 * To the host of this name or address, whose certificate must be for that. Borrows fd, which must be
 * connected and non-blocking, and the client.
 */
struct tls *tls_connect(const struct tls_client *client, const char *host, int fd);

/* Borrows fd, which must be non-blocking, and takes a reference to the server. */
struct tls *tls_new(struct tls_server *server, int fd);
/* Sends close_notify if the socket accepts it at once, and frees. The descriptor stays open. */
void tls_free(struct tls **tls);

enum tls_step {
	TLS_DONE,
	TLS_WANTS_READ,
	TLS_WANTS_WRITE,
	TLS_SPEAKS_HTTP, /* the client speaks plain HTTP */
	TLS_FAILED,      /* err says why */
};
enum tls_step tls_handshake(struct tls *tls, struct error *err) must_check;

/*
 * Like wire_read and wire_write. After a short write, the next one must begin with the remaining
 * bytes; more may follow.
 */
ssize_t tls_read(struct tls *tls, void *out, size_t size) must_check;
ssize_t tls_write(struct tls *tls, const struct iovec *parts, int count) must_check;
/* Sends close_notify: no more data comes from us. */
void tls_shutdown(struct tls *tls);

/* Whether decrypted data can be read although nothing is waiting in the socket. */
bool tls_has_pending(const struct tls *tls);
/*
 * Whether the last read needs the socket to become writable, or the last write needs it readable.
 */
bool tls_read_wants_write(const struct tls *tls);
bool tls_write_wants_read(const struct tls *tls);

#define TLS_THUMBPRINT_BYTES 32
/*
 * SHA-256 of the certificate that the client authenticated with (RFC 8705 §3.1); false if there is
 * none.
 */
bool tls_peer_thumbprint(const struct tls *tls, unsigned char thumbprint_r[TLS_THUMBPRINT_BYTES]);
