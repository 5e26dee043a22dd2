/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.2 and 1.3 for accepted connections: what a listener shows (struct tls_server), and one
 * connection (struct tls), which io/wire.h then reads and writes like a bare socket. Renegotiation,
 * compression, early data and every cipher without forward secrecy are off. stack.md §4, DEF-03.
 */
#ifndef MCPGATED_IO_TLS_H
#define MCPGATED_IO_TLS_H

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
struct tls_server;

/*
 * Makes the library read now whatever it would read later: its configuration, its error texts. To be
 * called before the process gives up its rights.
 */
void tls_init(void);

/*
 * The keys that session tickets are sealed with. They belong to the process, not to a certificate, so
 * a client resumes its session after certificates were replaced; each is used for a bounded time.
 */
struct tickets *tickets_new(void);
/* Overwrites the keys. */
void tickets_free(struct tickets **tickets);
/* How long a key seals, and how long after that it still opens: the life of a ticket. */
#define TICKET_KEY_MS (4 * 3600 * UINT64_C(1000))

/* ---- what a listener shows: shared (ref) ---- */

/* A certificate chain, the leaf first, and its key; PEM. */
struct tls_pem {
	struct slice certificate;
	struct slice key;
};

struct tls_conf {
	const struct tls_pem *server_certificates; /* the first is for clients that name no other */
	size_t count;                              /* at least 1 */
	struct slice
		client_ca; /* PEM; not empty: only clients with a certificate of one of these */
	bool is_only_13;   /* not TLS 1.2 */
	const char *name;  /* of the listener: sessions of one are not resumed on another */
	struct tickets *tickets; /* borrowed for the server's life */
};

/* Everything in conf but tickets is borrowed for the call. NULL: err says what is wrong in which. */
struct tls_server *tls_server_new(const struct tls_conf *conf, struct error *err) must_check;
struct tls_server *tls_server_ref(struct tls_server *server);
/* Connections that were made with it go on. */
void tls_server_unref(struct tls_server **server);

/* ---- one connection ---- */

/* Borrows fd, which is non-blocking; refs the server. */
struct tls *tls_new(struct tls_server *server, int fd);
/* Says goodbye, if the socket takes it at once, and frees. */
void tls_free(struct tls **tls);

enum tls_step {
	TLS_DONE,
	TLS_WANTS_READ,
	TLS_WANTS_WRITE,
	TLS_SPEAKS_HTTP, /* the client does not speak TLS but HTTP */
	TLS_FAILED,      /* err says why */
};
enum tls_step tls_handshake(struct tls *tls, struct error *err) must_check;

/* As wire_read and wire_write; a writer that got less repeats with the same bytes, or more. */
ssize_t tls_read(struct tls *tls, void *out, size_t size) must_check;
ssize_t tls_write(struct tls *tls, const struct iovec *parts, int count) must_check;
/* Says that nothing more comes from us. */
void tls_shutdown(struct tls *tls);

/* Whether something can be read although the socket has nothing. */
bool tls_has_pending(const struct tls *tls);
/* Whether the last read waits for the socket to take bytes, or the last write for bytes from it. */
bool tls_read_wants_write(const struct tls *tls);
bool tls_write_wants_read(const struct tls *tls);

#define TLS_THUMBPRINT_BYTES 32
/* SHA-256 of the certificate that the client has proved to have (RFC 8705 §3.1); false: none. */
bool tls_peer_thumbprint(const struct tls *tls, unsigned char thumbprint_r[TLS_THUMBPRINT_BYTES]);

#endif
