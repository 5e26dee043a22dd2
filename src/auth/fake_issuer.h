/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the web server of an authorization server, in a process of its own, on a loopback port. What it
 * answers is written into shared memory; it can be slow, silent, endless, wrong. One connection, one
 * answer; it ends with its parent.
 */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>
#include <sys/types.h>

enum fake_mode {
	FAKE_OK,
	FAKE_HANG,  /* reads and says nothing */
	FAKE_DRIP,  /* a byte of the body every 100 ms */
	FAKE_HUGE,  /* no end of body */
	FAKE_RESET, /* closes without an answer */
	FAKE_CUT,   /* half of the body */
	FAKE_SLOW,  /* the answer after 300 ms */
};

#define FAKE_PAGES 8
#define FAKE_BODY_BYTES (32 * 1024)

struct fake_page {
	char path[128];
	enum fake_mode mode;
	int status;
	char fields[512]; /* further header fields, each ended by CRLF */
	char etag[64];    /* sent, and a matching If-None-Match answered with 304 */
	char body[FAKE_BODY_BYTES];
	int hits;
	char request[4096]; /* the last one, head and body */
};

struct fake_issuer {
	struct fake_page pages[FAKE_PAGES];
	pid_t pid;
	int port;
	int other_hits;    /* requests for no page */
	char origin[64];   /* http://127.0.0.1:PORT */
	char *certificate; /* with TLS: PEM of what it shows, self-signed for `host` */
	SSL_CTX *tls;
};

/* host: NULL for http; else https with a certificate for this name. */
struct fake_issuer *fake_issuer_start(const char *host);
void fake_issuer_stop(struct fake_issuer **issuer);
/* The page of this path; a new one answers 200 with an empty body. */
struct fake_page *fake_issuer_page(struct fake_issuer *issuer, const char *path);
void fake_page_set_body(struct fake_page *page, const char *body);
