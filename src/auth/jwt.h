/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Web Tokens in the compact form, strictly: what a text must be before its signature is checked. What the
 * claims mean is grant.h's. RFC 7515 s5.2, RFC 7519 s7.2, RFC 8725.
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
 * Takes a token apart: three parts that are not empty, base64url in its one spelling, the first two JSON
 * objects as document.h wants them. Says nothing about algorithm or signature yet. On success jwt_r is the
 * caller's (jwt_fini) and borrows from token. Returns 0, or -1 and the verdict. AUTH-JWT-01
 */
int jwt_parse(struct slice token, struct jwt *jwt_r, struct verdict *verdict_r) must_check;
void jwt_fini(struct jwt *jwt);

/*
 * Judges the header: `alg` is one of `allowed`, no `crit`, `kid` a short string if there is one, `typ` one
 * of `types` (ended by NULL; without case, with or without "application/"; "" stands for its absence).
 * Sets jwt->algorithm. Keys and addresses in the header are never looked at. AUTH-JWT-02, 04 to 07
 */
int jwt_check_header(struct jwt *jwt, algorithm_set allowed, const char *const *types,
		     struct verdict *verdict_r) must_check;
/* What an access token may call itself. RFC 9068 s4 */
extern const char *const jwt_access_token_types[];

/* `kid`, or {NULL, 0}. */
struct slice jwt_key_id(const struct jwt *jwt);

/* Whether the key made the signature, over the bytes as they came. */
bool jwt_is_signed_by(const struct jwt *jwt, EVP_PKEY *key);

#endif
