/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who we are, for an issuer that we ask about tokens: with a secret (RFC 6749 s2.3.1), or with a token that we sign
 * (RFC 7523 s2.2, s3). AUTH-OPQ-01
 */
#pragma once

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

struct algorithm;

enum client_auth_method {
	CLIENT_SECRET_BASIC,
	CLIENT_SECRET_POST,
	CLIENT_PRIVATE_KEY_JWT,
};

/* Strings are borrowed. */
struct client_auth_conf {
	enum client_auth_method method;
	const char *issuer; /* whom the token is for */
	const char *client_id;
	const char *secret; /* of the first two; NULL: empty */
	const char *key;    /* of the third, PEM */
	const char *key_id; /* its `kid` at the issuer, or NULL */
};

struct client_auth {
	char *credentials; /* value of Authorization, or NULL */
	char *form;        /* what each form begins with, or NULL */
	EVP_PKEY *key;     /* NULL: nothing is signed */
	const struct algorithm *algorithm;
	char *issuer;
	char *client_id;
	char *key_id;
};

/* Returns 0, or -1 and err: the key is none that can be used. */
int client_auth_init(struct client_auth *auth, const struct client_auth_conf *conf,
		     struct error *err) must_check;
/* Wipes. Also for one that is all zeros. */
void client_auth_fini(struct client_auth *auth);

/* Appends what a form begins with; a token in it is new each time. The caller wipes. */
void client_auth_begin_form(const struct client_auth *auth, struct buf *form);

/* Appends the text as application/x-www-form-urlencoded, every doubtful byte as %XX. */
void client_auth_append(struct buf *out, struct slice text);
