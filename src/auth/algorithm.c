/* SPDX-License-Identifier: Apache-2.0 */
/* EVP_DigestVerify with what each row of the table says. OpenSSL's error queue is left empty. */
#include "auth/algorithm.h"

#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

#include "base/check.h"

/* clang-format off */
static const struct algorithm algorithms[] = {
	{ "RS256", "RSA", NULL,      "SHA256", false, 0,  1u << 0 },
	{ "RS384", "RSA", NULL,      "SHA384", false, 0,  1u << 1 },
	{ "RS512", "RSA", NULL,      "SHA512", false, 0,  1u << 2 },
	{ "PS256", "RSA", NULL,      "SHA256", true,  0,  1u << 3 },
	{ "PS384", "RSA", NULL,      "SHA384", true,  0,  1u << 4 },
	{ "PS512", "RSA", NULL,      "SHA512", true,  0,  1u << 5 },
	{ "ES256", "EC",  "P-256",   "SHA256", false, 32, 1u << 6 },
	{ "ES384", "EC",  "P-384",   "SHA384", false, 48, 1u << 7 },
	{ "ES512", "EC",  "P-521",   "SHA512", false, 66, 1u << 8 },
	{ "EdDSA", "OKP", "Ed25519", NULL,     false, 0,  1u << 9 },
};
/* clang-format on */

const struct algorithm *algorithm_find(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
		if (slice_is_equal(slice_str(algorithms[i].name), name))
			return &algorithms[i];
	}
	return NULL;
}

algorithm_set algorithm_fitting(algorithm_set from, const char *key_type, const char *curve)
{
	algorithm_set found = 0;

	CHECK(key_type != NULL);
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
		const struct algorithm *a = &algorithms[i];

		if ((from & a->bit) == 0 || strcmp(a->key_type, key_type) != 0)
			continue;
		if (a->curve == NULL || (curve != NULL && strcmp(a->curve, curve) == 0))
			found |= a->bit;
	}
	return found;
}

/* r and s side by side -> DER. Returns its length, or 0. The caller's: OPENSSL_free(*der_r). */
static size_t encode_ecdsa(const struct algorithm *algorithm, struct slice signature,
			   unsigned char **der_r)
{
	const unsigned char *bytes = (const unsigned char *)signature.p;
	ECDSA_SIG *pair;
	BIGNUM *r;
	BIGNUM *s;
	int size;

	if (signature.n != 2 * algorithm->width)
		return 0;
	pair = ECDSA_SIG_new();
	r = BN_bin2bn(bytes, (int)algorithm->width, NULL);
	s = BN_bin2bn(bytes + algorithm->width, (int)algorithm->width, NULL);
	CHECK(pair != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1);
	*der_r = NULL;
	size = i2d_ECDSA_SIG(pair, der_r);
	ECDSA_SIG_free(pair);
	return size > 0 ? (size_t)size : 0;
}

bool algorithm_verify(const struct algorithm *algorithm, EVP_PKEY *key, struct slice input,
		      struct slice signature)
{
	const unsigned char *bytes = (const unsigned char *)signature.p;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *key_ctx = NULL;
	unsigned char *der = NULL;
	size_t size = signature.n;
	bool is_good;

	CHECK(algorithm != NULL && key != NULL && ctx != NULL);
	ERR_clear_error();
	if (algorithm->width > 0) {
		size = encode_ecdsa(algorithm, signature, &der);
		bytes = der;
	}
	/* The salt of PSS is as long as the digest, no other length. RFC 7518 s3.5 */
	is_good = size > 0 &&
		  EVP_DigestVerifyInit_ex(ctx, &key_ctx, algorithm->digest, NULL, NULL, key,
					  NULL) == 1 &&
		  (!algorithm->is_pss ||
		   (EVP_PKEY_CTX_set_rsa_padding(key_ctx, RSA_PKCS1_PSS_PADDING) > 0 &&
		    EVP_PKEY_CTX_set_rsa_pss_saltlen(key_ctx, RSA_PSS_SALTLEN_DIGEST) > 0)) &&
		  EVP_DigestVerify(ctx, bytes, size, (const unsigned char *)input.p, input.n) == 1;
	OPENSSL_free(der);
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return is_good;
}
