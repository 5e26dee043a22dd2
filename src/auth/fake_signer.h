/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: what an authorization server does. Keys, key sets and tokens, made by OpenSSL alone. */
#pragma once

#include <openssl/evp.h>

struct fake_signer {
	const char *algorithm; /* of JWA, the ten that algorithm.h has */
	const char *key_id;    /* or NULL */
	EVP_PKEY *key;
};

/* Both texts are borrowed. */
void fake_signer_init(struct fake_signer *signer, const char *algorithm, const char *key_id);
void fake_signer_fini(struct fake_signer *signer);

/* All that follows is the caller's. The public key as a JWK; with `more`, further members: `"use":"sig"`. */
char *fake_signer_jwk(const struct fake_signer *signer, const char *more);
/* A set of these keys. */
char *fake_signer_set(const struct fake_signer *const *signers, size_t count);
/* A token with this header and these claims, signed whatever they say. */
char *fake_signer_sign(const struct fake_signer *signer, const char *header, const char *claims);
/* A token with the header that an honest server writes. */
char *fake_signer_token(const struct fake_signer *signer, const char *claims);
/* The public, or the private key as PEM. */
char *fake_signer_pem(const struct fake_signer *signer, int is_private);
