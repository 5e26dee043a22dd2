/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict parsing of JSON Web Tokens in the compact form: what a text must satisfy before its
 * signature is checked. The meaning of claims is in grant.h. RFC 7515 s5.2, RFC 7519 s7.2, RFC
 * 8725.
 */
#ifndef MCPGATED_AUTH_JWT_H
#define MCPGATED_AUTH_JWT_H

#include <stddef.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "auth/algorithm.h"
#include "auth/verdict.h"
#include "base/slice.h"

struct jwt {
	json_t *header;
	json_t *claims;
	struct slice signed_part; /* of the token's text: header, dot, claims; borrowed */
	unsigned char *signature;
	size_t signature_size;
	const struct algorithm *algorithm; /* set by jwt_check_header */
};

/*
 * Splits a token: three non-empty parts, canonical base64url, the first two JSON objects as
 * document.h requires. Does not judge algorithm or signature yet. On success the caller owns jwt_r
 * (jwt_fini), which borrows from token. Returns 0, or -1 and the verdict. AUTH-JWT-01
 */
int jwt_parse(struct slice token, struct jwt *jwt_r, struct verdict *verdict_r) must_check;
void jwt_fini(struct jwt *jwt);

/*
 * Judges the header: `alg` is one of `allowed`, no `crit`, `kid` absent or a short string, `typ`
 * one of `types` (ended by NULL; case-insensitive, with or without "application/"; "" stands for
 * its absence). Sets jwt->algorithm. Keys and addresses in the header are never used. AUTH-JWT-02,
 * 04 to 07
 */
int jwt_check_header(struct jwt *jwt, algorithm_set allowed, const char *const *types,
		     struct verdict *verdict_r) must_check;
/* The accepted `typ` of access tokens. RFC 9068 s4 */
extern const char *const jwt_access_token_types[];

/* `kid`, or {NULL, 0}. */
struct slice jwt_key_id(const struct jwt *jwt);

/* Whether the key made the signature, over the bytes as received. */
bool jwt_is_signed_by(const struct jwt *jwt, EVP_PKEY *key);

#endif
