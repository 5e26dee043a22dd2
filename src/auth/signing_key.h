/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private keys that tokens of ours are signed with: read from PEM, and what of them everybody may know. What signs is
 * client_auth.h (as a client of an issuer) and assertion.h (about a caller).
 */
#pragma once

#include <openssl/evp.h>

#include "base/error.h"

struct algorithm;

/*
 * Of PEM without a passphrase: RSA, EC, Ed25519; and what it signs with. The caller's; or NULL and err: it is none that
 * can be used.
 */
EVP_PKEY *signing_key_read(const char *pem, const struct algorithm **algorithm_r, struct error *err)
	must_check;

/* Whether signing_key_read can. */
int signing_key_check(const char *pem, struct error *err) must_check;

/* As of assertions, which are not signed with Ed25519: its public part is known as this JSON text (RFC 7517). */
struct signing_key_public {
	char *jwk;             /* the caller's; NULL: no such key */
	char *id;              /* its `kid`, the caller's: what RFC 7638 makes of it */
	const char *algorithm; /* of JWS */
};

/* Returns 0, and what the caller ends with signing_key_public_fini; or -1 and err. */
int signing_key_publish(const char *pem, struct signing_key_public *public_r, struct error *err)
	must_check;
/* Also for one that is all zeros. */
void signing_key_public_fini(struct signing_key_public *public);
