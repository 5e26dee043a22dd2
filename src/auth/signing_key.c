/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/signing_key.h"

#include <stdlib.h>

#include <jansson.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>

#include "auth/jwt.h"
#include "base/mem.h"
#include "base/text.h"

#define COORDINATE_BYTES_MAX 66

/* ---- reading ---- */

/* What a key signs with, or NULL. */
static const struct algorithm *find_algorithm(const EVP_PKEY *key)
{
	static const struct {
		const char *type;
		const char *group; /* OpenSSL's name, or NULL */
		struct slice algorithm;
	} rows[] = {
		{ "RSA", NULL, SLICE("RS256") },       { "EC", "prime256v1", SLICE("ES256") },
		{ "EC", "secp384r1", SLICE("ES384") }, { "EC", "secp521r1", SLICE("ES512") },
		{ "ED25519", NULL, SLICE("EdDSA") },
	};
	int bits = EVP_PKEY_get_bits(key);
	char group[32] = "";

	if (EVP_PKEY_is_a(key, "RSA") && (bits < JWK_RSA_BITS_MIN || bits > JWK_RSA_BITS_MAX))
		return NULL;
	if (EVP_PKEY_is_a(key, "EC") &&
	    EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) != 1)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (EVP_PKEY_is_a(key, rows[i].type) &&
		    (rows[i].group == NULL || strcmp(rows[i].group, group) == 0))
			return algorithm_find(rows[i].algorithm);
	return NULL;
}

/* Nobody is there to be asked for one. */
static int no_password(char *buffer, int size, int is_writing, void *arg)
{
	(void)buffer, (void)size, (void)is_writing, (void)arg;
	return -1;
}

EVP_PKEY *signing_key_read(const char *pem, const struct algorithm **algorithm_r, struct error *err)
{
	BIO *in = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key;

	CHECK(in != NULL);
	key = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
	BIO_free(in);
	if (key == NULL) {
		error_set(err, ERROR_INVALID,
			  "it is not a private key in PEM form without a passphrase");
		return NULL;
	}
	*algorithm_r = find_algorithm(key);
	if (*algorithm_r != NULL)
		return key;
	EVP_PKEY_free(key);
	error_set(
		err, ERROR_INVALID,
		"the key is neither RSA of %d to %d bits, nor EC (P-256, P-384, P-521), nor Ed25519",
		JWK_RSA_BITS_MIN, JWK_RSA_BITS_MAX);
	return NULL;
}

int signing_key_check(const char *pem, struct error *err)
{
	const struct algorithm *algorithm;
	EVP_PKEY *key = signing_key_read(pem, &algorithm, err);

	EVP_PKEY_free(key);
	return key != NULL ? 0 : -1;
}

/* ---- what is public ---- */

static void add_bytes(json_t *jwk, const char *name, const unsigned char *bytes, size_t size)
{
	char text[JWK_RSA_BITS_MAX / 8 * 2];

	CHECK(size <= JWK_RSA_BITS_MAX / 8);
	json_object_set_new(jwk, name, json_stringn(text, text_base64url(bytes, size, text)));
}

static void add_number(json_t *jwk, const char *name, const EVP_PKEY *key, const char *parameter)
{
	unsigned char bytes[JWK_RSA_BITS_MAX / 8];
	BIGNUM *number = NULL;

	CHECK(EVP_PKEY_get_bn_param(key, parameter, &number) == 1 &&
	      (size_t)BN_num_bytes(number) <= sizeof(bytes));
	add_bytes(jwk, name, bytes, (size_t)BN_bn2bin(number, bytes));
	BN_free(number);
}

static void add_coordinate(json_t *jwk, const char *name, const EVP_PKEY *key,
			   const char *parameter, size_t width)
{
	unsigned char bytes[COORDINATE_BYTES_MAX];
	BIGNUM *number = NULL;

	CHECK(EVP_PKEY_get_bn_param(key, parameter, &number) == 1 &&
	      BN_bn2binpad(number, bytes, (int)width) == (int)width);
	add_bytes(jwk, name, bytes, width);
	BN_free(number);
}

/* RFC 7518 s6.2.1, s6.3.1 */
static json_t *make_jwk(const EVP_PKEY *key, const struct algorithm *algorithm)
{
	json_t *jwk = json_pack("{s:s, s:s, s:s, s:s*}", "kty", algorithm->key_type, "use", "sig",
				"alg", algorithm->name, "crv", algorithm->curve);

	CHECK(jwk != NULL && algorithm->width <= COORDINATE_BYTES_MAX);
	if (algorithm->width == 0) {
		add_number(jwk, "n", key, OSSL_PKEY_PARAM_RSA_N);
		add_number(jwk, "e", key, OSSL_PKEY_PARAM_RSA_E);
	} else {
		add_coordinate(jwk, "x", key, OSSL_PKEY_PARAM_EC_PUB_X, algorithm->width);
		add_coordinate(jwk, "y", key, OSSL_PKEY_PARAM_EC_PUB_Y, algorithm->width);
	}
	return jwk;
}

int signing_key_publish(const char *pem, struct signing_key_public *public_r, struct error *err)
{
	const struct algorithm *algorithm;
	EVP_PKEY *key = signing_key_read(pem, &algorithm, err);
	char id[JWK_THUMBPRINT_BYTES];
	json_auto_t *jwk = NULL;

	*public_r = (struct signing_key_public){ .jwk = NULL };
	if (key == NULL)
		return -1;
	if (EVP_PKEY_is_a(key, "ED25519")) {
		EVP_PKEY_free(key);
		return error_set(
			err, ERROR_INVALID,
			"assertions cannot be signed with Ed25519: use RSA, or EC (P-256)");
	}
	jwk = make_jwk(key, algorithm);
	EVP_PKEY_free(key);
	jwk_thumbprint(jwk, id);
	json_object_set_new(jwk, "kid", json_string(id));
	*public_r = (struct signing_key_public){
		.jwk = json_dumps(jwk, JSON_COMPACT | JSON_SORT_KEYS),
		.id = mem_strdup(id),
		.algorithm = algorithm->name,
	};
	CHECK(public_r->jwk != NULL);
	return 0;
}

void signing_key_public_fini(struct signing_key_public *public)
{
	free(public->jwk);
	free(public->id);
	*public = (struct signing_key_public){ .jwk = NULL };
}
