/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gateway says of a caller to a server, signed: a token with which the server knows who calls, and that the
 * gateway says so; its claims are those of RFC 9068. Who calls is the gateway's word, as it has checked the caller's own token; whom the token is
 * for, by whom, and until when, is decided here. Signing is libjwt's; verifying is nobody's here (auth/jwt). BACK-URL-11
 */
#pragma once

#include "auth/signing_key.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define ASSERTION_S 300 /* how long one is good */
/* What can be said of a caller: the token has to fit into a header field. */
#define ASSERTION_CALLER_BYTES_MAX 4096

/* Borrowed. */
struct assertion_conf {
	struct slice issuer;  /* ours: the public URL */
	const char *audience; /* the server */
	const char *key;      /* PEM; NULL: nothing is signed */
};

struct assertion {
	struct assertion_conf conf;
	struct signing_key_public public;
};

/* Returns 0, or -1 and err: the key cannot be used. */
int assertion_init(struct assertion *assertion, const struct assertion_conf *conf,
		   struct error *err) must_check;
/* Also for one that is all zeros. */
void assertion_fini(struct assertion *assertion);
/*
 * Appends a new token. caller: a JSON object, its claims; those that are ours (iss, aud, iat, exp, nbf, jti) are not taken from
 * it. Returns 0, or -1 and err: it is none, it has no sub, or it is too long.
 */
int assertion_sign(const struct assertion *assertion, struct slice caller, struct buf *token,
		   struct error *err) must_check;
