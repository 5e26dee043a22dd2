/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting, decoding, and the rules for headers. */
#include "auth/jwt.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include "auth/document.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"

/* ---- algorithms ---- */

/* EVP_DigestVerify with what each row of the table says. OpenSSL's error queue is left empty. */

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

/* The members of `from` that a key of this type and curve (NULL: none) supports. */
static algorithm_set algorithm_fitting(algorithm_set from, const char *key_type, const char *curve)
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

/* ---- keys ---- */

/* JWK -> EVP_PKEY, once per key: decoding costs more than a signature (design/stack.md §4). */

#define RSA_EXPONENT_BYTES_MAX 8
#define COORDINATE_BYTES_MAX 66
#define ED25519_BYTES 32

/* ---- material ---- */

/* The member's bytes into out; their number, or 0 if it is missing, not base64url or too long. */
static size_t read_bytes(const json_t *json, const char *name, unsigned char *out, size_t max)
{
	struct slice text = document_text(json, name);
	size_t size;

	CHECK(max > 0);
	if (text.n == 0 || text.n > (max * 4 + 2) / 3 || text_from_base64url(text, out, &size) < 0)
		return 0;
	return size;
}

static EVP_PKEY *key_from_params(const char *type, OSSL_PARAM_BLD *builder)
{
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	EVP_PKEY *key = NULL;

	CHECK(params != NULL && ctx != NULL);
	if (EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(ctx);
	OSSL_PARAM_free(params);
	return key;
}

static EVP_PKEY *read_rsa(const json_t *json)
{
	unsigned char bytes[JWK_RSA_BITS_MAX / 8];
	unsigned char exponent[RSA_EXPONENT_BYTES_MAX];
	size_t size = read_bytes(json, "n", bytes, sizeof(bytes));
	size_t exponent_size = read_bytes(json, "e", exponent, sizeof(exponent));
	OSSL_PARAM_BLD *builder;
	EVP_PKEY *key = NULL;
	BIGNUM *n;
	BIGNUM *e;

	if (size == 0 || exponent_size == 0)
		return NULL;
	builder = OSSL_PARAM_BLD_new();
	n = BN_bin2bn(bytes, (int)size, NULL);
	e = BN_bin2bn(exponent, (int)exponent_size, NULL);
	CHECK(builder != NULL && n != NULL && e != NULL);
	if (BN_num_bits(n) >= JWK_RSA_BITS_MIN && BN_is_odd(n) && BN_is_odd(e) && !BN_is_one(e) &&
	    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
	    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1)
		key = key_from_params("RSA", builder);
	OSSL_PARAM_BLD_free(builder);
	BN_free(n);
	BN_free(e);
	return key;
}

/* Coordinates have the full width of their field. RFC 7518 s6.2.1.2 */
static EVP_PKEY *read_ec(const json_t *json)
{
	static const struct {
		const char *curve; /* OpenSSL knows the same names */
		size_t width;
	} curves[] = { { "P-256", 32 }, { "P-384", 48 }, { "P-521", 66 } };
	unsigned char point[1 + 2 * COORDINATE_BYTES_MAX] = { 0x04 };
	struct slice curve = document_text(json, "crv");
	OSSL_PARAM_BLD *builder;
	EVP_PKEY *key = NULL;
	size_t at = 0;
	size_t width;

	while (at < ARRAY_LEN(curves) && !slice_is_equal(slice_str(curves[at].curve), curve))
		at++;
	if (at == ARRAY_LEN(curves))
		return NULL;
	width = curves[at].width;
	CHECK(width <= COORDINATE_BYTES_MAX);
	if (read_bytes(json, "x", point + 1, width) != width ||
	    read_bytes(json, "y", point + 1 + width, width) != width)
		return NULL;
	builder = OSSL_PARAM_BLD_new();
	CHECK(builder != NULL);
	if (OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, curves[at].curve,
					    0) == 1 &&
	    OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point,
					     1 + 2 * width) == 1)
		key = key_from_params("EC", builder);
	OSSL_PARAM_BLD_free(builder);
	return key;
}

static EVP_PKEY *read_okp(const json_t *json)
{
	unsigned char bytes[ED25519_BYTES];

	if (!slice_is_equal(document_text(json, "crv"), SLICE_LIT("Ed25519")) ||
	    read_bytes(json, "x", bytes, sizeof(bytes)) != sizeof(bytes))
		return NULL;
	return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, sizeof(bytes));
}

static EVP_PKEY *jwt_read_key(const json_t *json)
{
	static const struct {
		const char *type;
		EVP_PKEY *(*read)(const json_t *json);
	} types[] = { { "RSA", read_rsa }, { "EC", read_ec }, { "OKP", read_okp } };
	EVP_PKEY *key = NULL;

	ERR_clear_error();
	for (size_t i = 0; i < ARRAY_LEN(types) && key == NULL; i++) {
		if (slice_is_equal(document_text(json, "kty"), slice_str(types[i].type)))
			key = types[i].read(json);
	}
	ERR_clear_error();
	return key;
}

/* ---- purpose ---- */

static algorithm_set algorithms_of(const json_t *json, algorithm_set allowed)
{
	const json_t *own = json_object_get(json, "alg");
	const char *type = document_string(json, "kty");
	const struct algorithm *algorithm;

	if (type == NULL)
		return 0;
	if (own != NULL) {
		algorithm = algorithm_find(document_text(json, "alg"));
		allowed &= algorithm != NULL ? algorithm->bit : 0;
	}
	return algorithm_fitting(allowed, type, document_string(json, "crv"));
}

/* Whether the `kid` of a key or a header is absent or comparable. */
static bool jwk_has_sane_id(const json_t *object)
{
	const json_t *id = json_object_get(object, "kid");

	return id == NULL || (json_is_string(id) && json_string_length(id) <= JWK_ID_BYTES_MAX);
}

int jwk_parse(const json_t *json, algorithm_set allowed, struct jwk *key_r, struct error *err)
{
	const char *id = document_string(json, "kid");
	const json_t *use = json_object_get(json, "use");
	const json_t *operations = json_object_get(json, "key_ops");

	*key_r = (struct jwk){ NULL, algorithms_of(json, allowed), NULL };
	if (key_r->algorithms == 0)
		return error_set(err, ERROR_INVALID, "its type or algorithm is not accepted");
	if ((use != NULL && !slice_is_equal(document_text(json, "use"), SLICE_LIT("sig"))) ||
	    (operations != NULL && !document_lists(operations, SLICE_LIT("verify"))) ||
	    !jwk_has_sane_id(json))
		return error_set(err, ERROR_INVALID, "it is not for verifying signatures");
	if (json_object_get(json, "d") != NULL || json_object_get(json, "k") != NULL)
		return error_set(err, ERROR_INVALID, "it includes its private part");
	key_r->key = jwt_read_key(json);
	if (key_r->key == NULL)
		return error_set(err, ERROR_INVALID, "it is broken or too small");
	key_r->id = id != NULL ? mem_strdup(id) : NULL;
	return 0;
}

void jwk_fini(struct jwk *key)
{
	free(key->id);
	EVP_PKEY_free(key->key);
	*key = (struct jwk){ NULL, 0, NULL };
}

void jwk_thumbprint(const json_t *json, char out[JWK_THUMBPRINT_BYTES])
{
	static const char *const names[] = { "crv", "e", "kty", "n", "x", "y" };
	bool is_rsa = slice_is_equal(document_text(json, "kty"), SLICE_LIT("RSA"));
	unsigned char digest[SHA256_DIGEST_LENGTH];
	json_auto_t *members = json_object();
	size_t length;
	at_end(mem_free) char *text = NULL;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		bool is_of_rsa = *names[i] == 'e' || *names[i] == 'n';
		json_t *value = json_object_get(json, names[i]);

		if (value != NULL && (*names[i] == 'k' || is_of_rsa == is_rsa))
			json_object_set(members, names[i], value);
	}
	text = json_dumps(members, JSON_COMPACT | JSON_SORT_KEYS);
	CHECK(text != NULL);
	SHA256((const unsigned char *)text, strlen(text), digest);
	length = text_base64url(digest, sizeof(digest), out);
	CHECK(length == JWK_THUMBPRINT_BYTES - 1);
	out[length] = '\0';
}

/* ---- sets ---- */

int jwk_set_parse(const json_t *document, algorithm_set allowed, struct jwk_set *set_r,
		  struct error *err)
{
	const json_t *keys = json_object_get(document, "keys");
	size_t count = json_array_size(keys);

	*set_r = (struct jwk_set){ NULL, 0, 0 };
	if (!json_is_array(keys))
		return error_set(err, ERROR_INVALID, "it has no array `keys`");
	if (count > JWK_SET_KEYS_MAX)
		return error_set(err, ERROR_LIMIT, "it has more than %d keys", JWK_SET_KEYS_MAX);
	set_r->keys = mem_zalloc((count + 1) * sizeof(*set_r->keys));
	for (size_t i = 0; i < count; i++) {
		if (jwk_parse(json_array_get(keys, i), allowed, &set_r->keys[set_r->count], err) ==
		    0)
			set_r->count++;
		else
			set_r->skipped++;
	}
	CHECK(set_r->count + set_r->skipped == count);
	if (set_r->count > 0)
		return 0;
	jwk_set_fini(set_r);
	return error_set(err, ERROR_INVALID, "none of its %zu keys can be used", count);
}

void jwk_set_fini(struct jwk_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		jwk_fini(&set->keys[i]);
	free(set->keys);
	*set = (struct jwk_set){ NULL, 0, 0 };
}

const struct jwk *jwk_set_find(const struct jwk_set *set, struct slice id,
			       const struct algorithm *algorithm)
{
	const struct jwk *found = NULL;

	CHECK(algorithm != NULL);
	for (size_t i = 0; i < set->count; i++) {
		const struct jwk *key = &set->keys[i];

		if ((key->algorithms & algorithm->bit) == 0)
			continue;
		if (id.p != NULL) {
			if (key->id != NULL && slice_is_equal(slice_str(key->id), id))
				return key;
		} else if (found != NULL) {
			return NULL;
		} else {
			found = key;
		}
	}
	return found;
}

/* ---- tokens ---- */

const char *const jwt_access_token_types[] = { "at+jwt", "JWT", "", NULL };

/* ---- taking apart ---- */

static unsigned char *jwt_decode_part(struct slice part, size_t *size_r)
{
	unsigned char *bytes;

	if (part.n == 0)
		return NULL;
	bytes = mem_alloc(part.n);
	if (text_from_base64url(part, bytes, size_r) == 0)
		return bytes;
	free(bytes);
	return NULL;
}

static json_t *decode_object(struct slice part, const char *what, struct verdict *verdict_r)
{
	struct error err = { ERROR_NONE, "it is not base64url" };
	json_t *object = NULL;
	size_t size;
	at_end(mem_free) unsigned char *bytes = jwt_decode_part(part, &size);

	if (bytes != NULL)
		object = document_parse(slice_of((const char *)bytes, size), &err);
	if (object == NULL)
		verdict_set(verdict_r, VERDICT_MALFORMED, "%s of the token: %.100s", what,
			    err.text);
	return object;
}

int jwt_parse(struct slice token, struct jwt *jwt_r, struct verdict *verdict_r)
{
	struct slice rest = token;
	struct slice header = slice_cut(&rest, '.');
	struct slice claims = slice_cut(&rest, '.');
	struct slice signature = slice_cut(&rest, '.');

	*jwt_r = (struct jwt){ .header = NULL };
	if (signature.p == NULL || rest.p != NULL)
		return verdict_set(verdict_r, VERDICT_MALFORMED,
				   "the token does not have three parts");
	jwt_r->signed_part = slice_between(token.p, claims.p + claims.n);
	jwt_r->header = decode_object(header, "header", verdict_r);
	if (jwt_r->header != NULL)
		jwt_r->claims = decode_object(claims, "claims", verdict_r);
	if (jwt_r->claims != NULL) {
		jwt_r->signature = jwt_decode_part(signature, &jwt_r->signature_size);
		if (jwt_r->signature != NULL)
			return 0;
		verdict_set(verdict_r, VERDICT_MALFORMED,
			    "the signature is missing or not base64url");
	}
	jwt_fini(jwt_r);
	return -1;
}

void jwt_fini(struct jwt *jwt)
{
	json_decref(jwt->header);
	json_decref(jwt->claims);
	free(jwt->signature);
	*jwt = (struct jwt){ .header = NULL };
}

/* ---- header ---- */

static bool is_type_accepted(const json_t *header, const char *const *types)
{
	static const struct slice prefix = SLICE("application/");
	struct slice type = document_text(header, "typ");

	if (json_object_get(header, "typ") != NULL && type.n == 0)
		return false;
	if (type.n > prefix.n && slice_is_equal_nocase(slice_of(type.p, prefix.n), prefix))
		type = slice_of(type.p + prefix.n, type.n - prefix.n);
	for (; *types != NULL; types++) {
		if (slice_is_equal_nocase(slice_str(*types), type))
			return true;
	}
	return false;
}

int jwt_check_header(struct jwt *jwt, algorithm_set allowed, const char *const *types,
		     struct verdict *verdict_r)
{
	struct slice name = document_text(jwt->header, "alg");

	CHECK(jwt->header != NULL && types != NULL);
	jwt->algorithm = algorithm_find(name);
	if (jwt->algorithm == NULL || (jwt->algorithm->bit & allowed) == 0)
		return verdict_set(verdict_r, VERDICT_BAD_ALG,
				   "the algorithm `%.*s` is not accepted",
				   name.n < 32 ? (int)name.n : 32, name.n > 0 ? name.p : "");
	if (json_object_get(jwt->header, "crit") != NULL)
		return verdict_set(verdict_r, VERDICT_MALFORMED, "the header has a `crit`");
	if (!jwk_has_sane_id(jwt->header))
		return verdict_set(verdict_r, VERDICT_MALFORMED,
				   "`kid` is not a string, or too long");
	if (!is_type_accepted(jwt->header, types))
		return verdict_set(verdict_r, VERDICT_MALFORMED,
				   "by its `typ` it is not a token of this kind");
	return 0;
}

struct slice jwt_key_id(const struct jwt *jwt)
{
	return document_text(jwt->header, "kid");
}

bool jwt_is_signed_by(const struct jwt *jwt, EVP_PKEY *key)
{
	CHECK(jwt->algorithm != NULL && jwt->signature != NULL && key != NULL);
	return algorithm_verify(jwt->algorithm, key, jwt->signed_part,
				slice_of((const char *)jwt->signature, jwt->signature_size));
}
