/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public keys in JSON: single keys, and an issuer's set. A key can be used only with the algorithms
 * that its own `alg`, or else its type and curve, allow. RFC 7517, RFC 7518 s6, RFC 8037 s2.
 */
#ifndef MCPGATED_AUTH_JWK_H
#define MCPGATED_AUTH_JWK_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "auth/algorithm.h"
#include "base/error.h"
#include "base/slice.h"

#define JWK_RSA_BITS_MIN 2048
#define JWK_RSA_BITS_MAX 8192
/* A `kid` is compared bytewise, and may not be longer than this. */
#define JWK_ID_BYTES_MAX 256
#define JWK_SET_KEYS_MAX 128
/* base64url of a SHA-256, and NUL. */
#define JWK_THUMBPRINT_BYTES 44

struct jwk {
	char *id; /* `kid`; NULL if it has none */
	algorithm_set algorithms;
	EVP_PKEY *key;
};

/*
 * Reads a public key for verification. `allowed` are the algorithms of interest; a key that fits
 * none of them is refused. Also refused: symmetric and unknown types, `use` other than sig, key_ops
 * without verify, RSA keys outside the limits above, points off their curve, and keys published
 * with their private part. On success the caller owns key_r (jwk_fini). Returns 0, or -1 and err.
 * AUTH-JWT-03, AUTH-JWT-08
 */
int jwk_parse(const json_t *json, algorithm_set allowed, struct jwk *key_r, struct error *err)
	must_check;
void jwk_fini(struct jwk *key);
/* RFC 7638 with SHA-256, terminated. For a key that jwk_parse accepted. */
void jwk_thumbprint(const json_t *json, char out[JWK_THUMBPRINT_BYTES]);

/* Whether the `kid` of a key or a header is absent or comparable. */
bool jwk_has_sane_id(const json_t *object);

struct jwk_set {
	struct jwk *keys;
	size_t count;
	size_t skipped; /* unusable keys in the document; decoys, other purposes */
};

/*
 * Reads a set: unusable keys are skipped one by one; a set without any usable key is an error
 * (AUTH-KEY-05, AUTH-KEY-08). On success the caller owns the set (jwk_set_fini).
 */
int jwk_set_parse(const json_t *document, algorithm_set allowed, struct jwk_set *set_r,
		  struct error *err) must_check;
void jwk_set_fini(struct jwk_set *set);

/*
 * The key with this id that may be used with the algorithm; without an id (NULL, 0) the only one
 * that may, if there is exactly one. Borrowed; NULL if there is none. AUTH-JWT-05
 */
const struct jwk *jwk_set_find(const struct jwk_set *set, struct slice id,
			       const struct algorithm *algorithm);

#endif
