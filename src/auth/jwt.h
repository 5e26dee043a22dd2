/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The algorithms of signatures, the keys, and the strict parsing of JSON Web Tokens in the compact
 * form: what a text must satisfy before its
 * signature is checked. The meaning of claims is in grant.h. RFC 7515 s5.2, RFC 7519 s7.2, RFC
 * 8725.
 */
#pragma once

#include <jansson.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/grant.h"
#include "base/error.h"
#include "base/slice.h"

/* ---- algorithms ---- */

/*
 * Signature algorithms: a table, and the only place that verifies signatures. Asymmetric ones only:
 * an algorithm that is not in the table does not exist here, so neither `none` nor HS* can ever be
 * accepted. RFC 7518 s3, RFC 8037 s3.1. AUTH-JWT-02, AUTH-JWT-08
 */

/* A set of algorithms, for lists of a configuration: the `bit`s of its members. */
typedef uint32_t algorithm_set;
#define ALGORITHM_ALL UINT32_MAX

struct algorithm {
	const char *name;
	const char *key_type; /* `kty` */
	const char *curve;    /* `crv`, or NULL */
	const char *digest;   /* OpenSSL's name, or NULL: the algorithm has its own */
	bool is_pss;
	size_t width; /* ECDSA: bytes of one coordinate; else 0 */
	algorithm_set bit;
};

/* Exact match; NULL if there is no such name. */
const struct algorithm *algorithm_find(struct slice name);

/*
 * Whether `signature`, in JWS format, is the key's signature of `input`. The key must fit the
 * algorithm. ECDSA signatures must be the two numbers in their fixed width.
 */
bool algorithm_verify(const struct algorithm *algorithm, EVP_PKEY *key, struct slice input,
		      struct slice signature);

/* ---- keys ---- */

/*
 * Public keys in JSON: single keys, and an issuer's set. A key can be used only with the algorithms
 * that its own `alg`, or else its type and curve, allow. RFC 7517, RFC 7518 s6, RFC 8037 s2.
 */

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

/* ---- tokens ---- */

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
