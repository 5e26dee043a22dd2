/* SPDX-License-Identifier: Apache-2.0 */
/* Shares no code with what it tests but base64url and buffers. */
#include "auth/fake_signer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"

#define SIGNATURE_BYTES_MAX 1024

static const struct kind {
	const char *algorithm;
	const char *curve;
	const char *digest;
	int width;
} kinds[] = {
	{ "RS256", NULL, "SHA256", 0 },     { "RS384", NULL, "SHA384", 0 },
	{ "RS512", NULL, "SHA512", 0 },     { "PS256", NULL, "SHA256", 0 },
	{ "PS384", NULL, "SHA384", 0 },     { "PS512", NULL, "SHA512", 0 },
	{ "ES256", "P-256", "SHA256", 32 }, { "ES384", "P-384", "SHA384", 48 },
	{ "ES512", "P-521", "SHA512", 66 }, { "EdDSA", "Ed25519", NULL, 0 },
};

static const struct kind *kind_of(const char *algorithm)
{
	size_t at = 0;

	while (strcmp(kinds[at].algorithm, algorithm) != 0)
		CHECK(++at < ARRAY_LEN(kinds));
	return &kinds[at];
}

void fake_signer_init(struct fake_signer *signer, const char *algorithm, const char *key_id)
{
	const struct kind *kind = kind_of(algorithm);

	signer->algorithm = algorithm;
	signer->key_id = key_id;
	if (kind->curve == NULL)
		signer->key = EVP_RSA_gen(2048);
	else if (kind->digest == NULL)
		signer->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	else
		signer->key = EVP_EC_gen(kind->curve);
	CHECK(signer->key != NULL);
}

void fake_signer_fini(struct fake_signer *signer)
{
	EVP_PKEY_free(signer->key);
	signer->key = NULL;
}

/* ---- keys ---- */

static void append_base64url(struct buf *out, const void *data, size_t size)
{
	out->len += text_base64url(data, size, buf_reserve(out, size * 2 + 4));
}

static void append_member(struct buf *out, const char *name, const void *data, size_t size)
{
	buf_printf(out, ",\"%s\":\"", name);
	append_base64url(out, data, size);
	buf_append_char(out, '"');
}

static void append_number(struct buf *out, const struct fake_signer *signer, const char *param,
			  const char *name)
{
	unsigned char bytes[1024];
	BIGNUM *number = NULL;
	int size;

	CHECK(EVP_PKEY_get_bn_param(signer->key, param, &number) == 1);
	size = BN_bn2bin(number, bytes);
	append_member(out, name, bytes, (size_t)size);
	BN_free(number);
}

static void append_public(struct buf *out, const struct fake_signer *signer)
{
	const struct kind *kind = kind_of(signer->algorithm);
	unsigned char bytes[256];
	size_t size = sizeof(bytes);

	if (kind->curve == NULL) {
		buf_append_str(out, "{\"kty\":\"RSA\"");
		append_number(out, signer, OSSL_PKEY_PARAM_RSA_N, "n");
		append_number(out, signer, OSSL_PKEY_PARAM_RSA_E, "e");
	} else if (kind->digest == NULL) {
		buf_append_str(out, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\"");
		CHECK(EVP_PKEY_get_raw_public_key(signer->key, bytes, &size) == 1);
		append_member(out, "x", bytes, size);
	} else {
		buf_printf(out, "{\"kty\":\"EC\",\"crv\":\"%s\"", kind->curve);
		CHECK(EVP_PKEY_get_octet_string_param(signer->key, OSSL_PKEY_PARAM_PUB_KEY, bytes,
						      sizeof(bytes), &size) == 1);
		CHECK(size == 1 + 2 * (size_t)kind->width && bytes[0] == 4);
		append_member(out, "x", bytes + 1, (size_t)kind->width);
		append_member(out, "y", bytes + 1 + kind->width, (size_t)kind->width);
	}
}

char *fake_signer_jwk(const struct fake_signer *signer, const char *more)
{
	struct buf out = { .data = NULL };

	append_public(&out, signer);
	if (signer->key_id != NULL)
		buf_printf(&out, ",\"kid\":\"%s\"", signer->key_id);
	if (more != NULL)
		buf_printf(&out, ",%s", more);
	buf_append_char(&out, '}');
	buf_terminate(&out);
	return out.data;
}

char *fake_signer_set(const struct fake_signer *const *signers, size_t count)
{
	struct buf out = { .data = NULL };

	buf_append_str(&out, "{\"keys\":[");
	for (size_t i = 0; i < count; i++) {
		char *more = mem_printf("\"use\":\"sig\",\"alg\":\"%s\"", signers[i]->algorithm);
		char *jwk = fake_signer_jwk(signers[i], more);

		buf_printf(&out, "%s%s", i > 0 ? "," : "", jwk);
		free(jwk);
		free(more);
	}
	buf_append_str(&out, "]}");
	buf_terminate(&out);
	return out.data;
}

char *fake_signer_pem(const struct fake_signer *signer, int is_private)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;
	char *text;
	long size;

	CHECK(bio != NULL);
	if (is_private)
		CHECK(PEM_write_bio_PrivateKey(bio, signer->key, NULL, NULL, 0, NULL, NULL) == 1);
	else
		CHECK(PEM_write_bio_PUBKEY(bio, signer->key) == 1);
	size = BIO_get_mem_data(bio, &data);
	text = mem_dup_slice(slice_of(data, (size_t)size));
	BIO_free(bio);
	return text;
}

/* ---- tokens ---- */

/* DER -> r and s side by side. */
static size_t flatten(const struct kind *kind, unsigned char *signature, size_t size)
{
	const unsigned char *p = signature;
	ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &p, (long)size);

	CHECK(pair != NULL);
	CHECK(BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, kind->width) == kind->width);
	CHECK(BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + kind->width, kind->width) ==
	      kind->width);
	ECDSA_SIG_free(pair);
	return 2 * (size_t)kind->width;
}

static size_t make_signature(const struct fake_signer *signer, struct slice input,
			     unsigned char out[SIGNATURE_BYTES_MAX])
{
	const struct kind *kind = kind_of(signer->algorithm);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *key_ctx;
	size_t size = SIGNATURE_BYTES_MAX;

	CHECK(EVP_DigestSignInit_ex(ctx, &key_ctx, kind->digest, NULL, NULL, signer->key, NULL) ==
	      1);
	if (signer->algorithm[0] == 'P')
		CHECK(EVP_PKEY_CTX_set_rsa_padding(key_ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
		      EVP_PKEY_CTX_set_rsa_pss_saltlen(key_ctx, RSA_PSS_SALTLEN_DIGEST) == 1);
	CHECK(EVP_DigestSign(ctx, out, &size, (const unsigned char *)input.p, input.n) == 1);
	EVP_MD_CTX_free(ctx);
	return kind->width > 0 ? flatten(kind, out, size) : size;
}

char *fake_signer_sign(const struct fake_signer *signer, const char *header, const char *claims)
{
	unsigned char signature[SIGNATURE_BYTES_MAX];
	struct buf out = { .data = NULL };
	size_t size;

	append_base64url(&out, header, strlen(header));
	buf_append_char(&out, '.');
	append_base64url(&out, claims, strlen(claims));
	size = make_signature(signer, buf_slice(&out), signature);
	buf_append_char(&out, '.');
	append_base64url(&out, signature, size);
	buf_terminate(&out);
	return out.data;
}

char *fake_signer_token(const struct fake_signer *signer, const char *claims)
{
	char *header = mem_printf("{\"alg\":\"%s\",\"typ\":\"at+jwt\"%s%s%s}", signer->algorithm,
				  signer->key_id != NULL ? ",\"kid\":\"" : "",
				  signer->key_id != NULL ? signer->key_id : "",
				  signer->key_id != NULL ? "\"" : "");
	char *token = fake_signer_sign(signer, header, claims);

	free(header);
	return token;
}
