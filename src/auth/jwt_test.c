/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures, keys and the form of tokens: vectors of the standards, tokens signed here by OpenSSL, and
 * libjwt as a second reader of what both can read.
 */
#include "auth/jwt.h"

#include <jwt.h>
#include <openssl/rsa.h>

#include "auth/document.h"
#include "auth/fake_signer.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/unit_test.h"

#define CLAIMS "{\"iss\":\"https://id.example\",\"sub\":\"alice\"}"

static const char *const every[] = { "RS256", "RS384", "RS512", "PS256", "PS384",
				     "PS512", "ES256", "ES384", "ES512", "EdDSA" };

static struct fake_signer signers[ARRAY_LEN(every)];
static struct fake_signer strangers[ARRAY_LEN(every)];

static json_t *parse(const char *text)
{
	struct error err = { ERROR_NONE, "" };
	json_t *json = document_parse(slice_str(text), &err);

	if (json == NULL)
		print_error("%s: %s\n", text, err.text);
	assert_non_null(json);
	return json;
}

static bool take_key(const char *text, algorithm_set allowed, struct jwk *key_r)
{
	struct error err = { ERROR_NONE, "" };
	json_t *json = parse(text);
	int result = jwk_parse(json, allowed, key_r, &err);

	json_decref(json);
	return result == 0;
}

/* The verdict over a whole token with one key. */
static enum verdict_kind judge(const char *token, const struct jwk *key)
{
	struct verdict verdict = { .kind = VERDICT_OK };
	struct jwt jwt;

	if (jwt_parse(slice_str(token), &jwt, &verdict) < 0)
		return verdict.kind;
	if (jwt_check_header(&jwt, ALGORITHM_ALL, jwt_access_token_types, &verdict) == 0 &&
	    ((key->algorithms & jwt.algorithm->bit) == 0 || !jwt_is_signed_by(&jwt, key->key)))
		verdict.kind = VERDICT_BAD_SIGNATURE;
	jwt_fini(&jwt);
	return verdict.kind;
}

/* ---- vectors of the standards ---- */

#define RFC7515_CLAIMS                                                                             \
	"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0" \
	"cnVlfQ"

/* RFC 7515 A.2 and A.3, RFC 8037 A.4: key, header, claims, signature. AUTH-JWT-08 */
static const struct {
	const char *key;
	const char *token;
} vectors[] = {
	{ "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\""
	  "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEz"
	  "P1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf6"
	  "3kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5Zw"
	  "Kh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRW"
	  "yuXpoQ\"}",
	  "eyJhbGciOiJSUzI1NiJ9." RFC7515_CLAIMS "."
	  "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt"
	  "_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArL"
	  "IARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7no"
	  "OPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ"
	  "Ge77Rw" },
	{ "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
	  "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}",
	  "eyJhbGciOiJFUzI1NiJ9." RFC7515_CLAIMS "."
	  "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU"
	  "1Q" },
};

static void vectors_of_the_standards(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct jwk key;
		char *changed = mem_strdup(vectors[i].token);
		char *claims = strchr(changed, '.') + 3;

		assert_true(take_key(vectors[i].key, ALGORITHM_ALL, &key));
		assert_int_equal(judge(vectors[i].token, &key), VERDICT_OK);
		*claims = *claims == 'A' ? 'B' : 'A';
		assert_int_not_equal(judge(changed, &key), VERDICT_OK);
		free(changed);
		jwk_fini(&key);
	}
}

/* Its payload is no JSON, so only the signature is judged. RFC 8037 A.1, A.3, A.4 */
static void vector_of_ed25519(void **state)
{
	static const char *const text = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
	static const struct slice encoded =
		SLICE("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvp"
		      "Ar_MuM0KAg");
	static const char *const jwk = "{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
				       "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}";
	const struct algorithm *algorithm = algorithm_find(SLICE_LIT("EdDSA"));
	char thumbprint[JWK_THUMBPRINT_BYTES];
	unsigned char signature[96];
	json_t *json = parse(jwk);
	struct jwk key;
	size_t size;

	assert_true(take_key(jwk, ALGORITHM_ALL, &key));
	assert_int_equal(text_from_base64url(encoded, signature, &size), 0);
	assert_true(algorithm_verify(algorithm, key.key, slice_str(text),
				     slice_of((char *)signature, size)));
	signature[size - 1] ^= 1;
	assert_false(algorithm_verify(algorithm, key.key, slice_str(text),
				      slice_of((char *)signature, size)));
	jwk_thumbprint(json, thumbprint);
	assert_string_equal(thumbprint, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
	json_decref(json);
	jwk_fini(&key);
}

/* RFC 7638 s3.1, with the members in another order and two that do not count. */
static void thumbprint_of_rsa(void **state)
{
	char thumbprint[JWK_THUMBPRINT_BYTES];
	json_t *json = parse(
		"{\"kid\":\"2011-04-29\",\"alg\":\"RS256\",\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\""
		"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L"
		"6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4Qy"
		"Q5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbI"
		"SD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-"
		"kEgU8awapJzKnqDKgw\"}");

	jwk_thumbprint(json, thumbprint);
	assert_string_equal(thumbprint, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
	json_decref(json);
}

/* ---- tokens made here ---- */

static int make_signers(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(every); i++) {
		fake_signer_init(&signers[i], every[i], "k");
		fake_signer_init(&strangers[i], every[i], "k");
	}
	return 0;
}

static int free_signers(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(every); i++) {
		fake_signer_fini(&signers[i]);
		fake_signer_fini(&strangers[i]);
	}
	return 0;
}

static void key_of(const struct fake_signer *signer, algorithm_set allowed, struct jwk *key_r)
{
	char *jwk = fake_signer_jwk(signer, NULL);

	assert_true(take_key(jwk, allowed, key_r));
	free(jwk);
}

/* Every algorithm: its own signature and no other. AUTH-JWT-02, 03, 08 */
static void signatures_of_every_algorithm(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(every); i++) {
		char *good = fake_signer_token(&signers[i], CLAIMS);
		char *bad = fake_signer_token(&strangers[i], CLAIMS);
		struct jwk key;

		key_of(&signers[i], algorithm_find(slice_str(every[i]))->bit, &key);
		assert_int_equal(judge(good, &key), VERDICT_OK);
		assert_int_equal(judge(bad, &key), VERDICT_BAD_SIGNATURE);
		free(good);
		free(bad);
		jwk_fini(&key);
	}
}

/* A key is used with its own algorithm only, also where the mathematics would allow more. AUTH-JWT-03 */
static void a_key_has_one_algorithm(void **state)
{
	char *jwk = fake_signer_jwk(&signers[0], "\"alg\":\"RS256\"");
	char *token = fake_signer_sign(&signers[0], "{\"alg\":\"RS256\"}", CLAIMS);
	char *other = fake_signer_sign(&signers[0], "{\"alg\":\"PS256\"}", CLAIMS);
	struct jwk key;

	assert_true(take_key(jwk, ALGORITHM_ALL, &key));
	assert_int_equal(key.algorithms, algorithm_find(SLICE_LIT("RS256"))->bit);
	assert_int_equal(judge(token, &key), VERDICT_OK);
	assert_int_equal(judge(other, &key), VERDICT_BAD_SIGNATURE);
	jwk_fini(&key);
	free(jwk);
	free(token);
	free(other);
}

static char *with_signature(const char *token, const unsigned char *signature, size_t size)
{
	char text[1024];
	size_t n = text_base64url(signature, size, text);

	return mem_printf("%.*s.%.*s", (int)(strrchr(token, '.') - token), token, (int)n, text);
}

/* Not raw, too short, too long, zero: each is refused. AUTH-JWT-08 */
static void ecdsa_signatures_are_two_numbers(void **state)
{
	char *token = fake_signer_token(&signers[6], CLAIMS);
	unsigned char raw[66] = { 0 };
	size_t size;
	struct jwk key;
	size_t sizes[] = { 0, 1, 63, 65, 66 };

	key_of(&signers[6], ALGORITHM_ALL, &key);
	assert_int_equal(text_from_base64url(slice_str(strrchr(token, '.') + 1), raw, &size), 0);
	assert_int_equal(size, 64);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		char *changed = with_signature(token, raw, sizes[i]);

		assert_int_not_equal(judge(changed, &key), VERDICT_OK);
		free(changed);
	}
	memset(raw, 0, sizeof(raw));
	for (size_t width = 64; width <= 66; width += 2) {
		char *zero = with_signature(token, raw, width);

		assert_int_equal(judge(zero, &key), VERDICT_BAD_SIGNATURE);
		free(zero);
	}
	jwk_fini(&key);
	free(token);
}

/* Salt of another length is another signature. AUTH-JWT-08 */
static void pss_wants_its_own_padding(void **state)
{
	char *token = fake_signer_sign(&signers[0], "{\"alg\":\"PS256\"}", CLAIMS);
	struct jwk key;

	key_of(&signers[0], ALGORITHM_ALL, &key);
	assert_int_equal(judge(token, &key), VERDICT_BAD_SIGNATURE);
	jwk_fini(&key);
	free(token);
}

/* The same token with a salt of another length; -1: as long as the digest. */
static char *sign_with_salt(const struct fake_signer *signer, int salt)
{
	char *token = fake_signer_sign(signer, "{\"alg\":\"PS256\"}", CLAIMS);
	size_t length = (size_t)(strrchr(token, '.') - token);
	unsigned char signature[512];
	size_t size = sizeof(signature);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *key_ctx = NULL;
	char *text, *end;

	assert_int_equal(EVP_DigestSignInit_ex(ctx, &key_ctx, "SHA256", NULL, NULL, signer->key,
					       NULL),
			 1);
	assert_true(EVP_PKEY_CTX_set_rsa_padding(key_ctx, RSA_PKCS1_PSS_PADDING) > 0);
	assert_true(EVP_PKEY_CTX_set_rsa_pss_saltlen(key_ctx, salt) > 0);
	assert_int_equal(EVP_DigestSign(ctx, signature, &size, (unsigned char *)token, length), 1);
	EVP_MD_CTX_free(ctx);
	text = mem_zalloc(length + 2 * size);
	memcpy(text, token, length + 1);
	end = text + length + 1;
	end[text_base64url(signature, size, end)] = '\0';
	free(token);
	return text;
}

/* AUTH-JWT-08, RFC 7518 s3.5: the salt is as long as the digest. */
static void pss_wants_its_own_salt(void **state)
{
	static const struct {
		int salt;
		enum verdict_kind kind;
	} rows[] = { { 32, VERDICT_OK },
		     { 20, VERDICT_BAD_SIGNATURE },
		     { 0, VERDICT_BAD_SIGNATURE },
		     { 64, VERDICT_BAD_SIGNATURE } };
	struct jwk key;

	key_of(&signers[3], ALGORITHM_ALL, &key);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *token = sign_with_salt(&signers[3], rows[i].salt);

		assert_int_equal(judge(token, &key), rows[i].kind);
		free(token);
	}
	jwk_fini(&key);
}

/* AUTH-JWT-03: what an issuer may use is said here, and not by the token. */
static void other_algorithms_are_refused(void **state)
{
	char *token = fake_signer_sign(&signers[6], "{\"alg\":\"ES256\"}", CLAIMS);
	struct verdict verdict;
	struct jwt jwt;

	assert_int_equal(jwt_parse(slice_str(token), &jwt, &verdict), 0);
	assert_int_equal(jwt_check_header(&jwt, algorithm_find(SLICE_LIT("ES256"))->bit,
					  jwt_access_token_types, &verdict),
			 0);
	assert_int_equal(jwt_check_header(&jwt,
					  ALGORITHM_ALL & ~algorithm_find(SLICE_LIT("ES256"))->bit,
					  jwt_access_token_types, &verdict),
			 -1);
	assert_int_equal(verdict.kind, VERDICT_BAD_ALG);
	jwt_fini(&jwt);
	free(token);
}

/* ---- the form ---- */

static enum verdict_kind judge_form(const char *header, const char *claims)
{
	char *token = fake_signer_sign(&signers[6], header, claims);
	enum verdict_kind kind;
	struct jwk key;

	key_of(&signers[6], ALGORITHM_ALL, &key);
	kind = judge(token, &key);
	jwk_fini(&key);
	free(token);
	return kind;
}

/* AUTH-JWT-01, AUTH-JWT-14 */
static void forms_that_are_no_token(void **state)
{
	static const char *const tokens[] = {
		"",
		".",
		"..",
		"...",
		"a",
		"a.b",
		"a.b.c",
		"a.b.c.d",
		"e30.e30.",
		".e30.AA",
		"e30..AA",
		"e30.e30.AA.AA.AA",
		"e30=.e30.AA",
		"e30.e30.AB",
		"e30.e30.A",
		"e3 0.e30.AA",
		"W10.e30.AA",
		"e30.W10.AA",
		"e30.MQ.AA",
		"e30.AA.AA",
	};
	struct jwk key;

	key_of(&signers[6], ALGORITHM_ALL, &key);
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
		assert_int_equal(judge(tokens[i], &key), VERDICT_MALFORMED);
	jwk_fini(&key);
}

/* SEC-09, AUTH-JWT-01, AUTH-JWT-02, AUTH-JWT-05, AUTH-JWT-06, AUTH-JWT-07, AUTH-JWT-14 */
static void headers_that_are_refused(void **state)
{
	static const struct {
		const char *header;
		enum verdict_kind kind;
	} rows[] = {
		{ "{\"alg\":\"ES256\"}", VERDICT_OK },
		{ "{\"alg\":\"ES256\",\"typ\":\"at+jwt\"}", VERDICT_OK },
		{ "{\"alg\":\"ES256\",\"typ\":\"AT+JWT\"}", VERDICT_OK },
		{ "{\"alg\":\"ES256\",\"typ\":\"application/at+jwt\"}", VERDICT_OK },
		{ "{\"alg\":\"ES256\",\"typ\":\"jwt\"}", VERDICT_OK },
		{ "{\"alg\":\"ES256\",\"typ\":\"dpop+jwt\"}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"typ\":\"logout+jwt\"}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"typ\":\"\"}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"typ\":null}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"typ\":\"application/\"}", VERDICT_MALFORMED },
		{ "{\"alg\":\"none\"}", VERDICT_BAD_ALG },
		{ "{\"alg\":\"nOnE\"}", VERDICT_BAD_ALG },
		{ "{\"alg\":\"HS256\"}", VERDICT_BAD_ALG },
		{ "{\"alg\":\"es256\"}", VERDICT_BAD_ALG },
		{ "{\"alg\":\"ES256 \"}", VERDICT_BAD_ALG },
		{ "{\"alg\":[\"ES256\"]}", VERDICT_BAD_ALG },
		{ "{\"alg\":1}", VERDICT_BAD_ALG },
		{ "{}", VERDICT_BAD_ALG },
		{ "{\"alg\":\"RS256\"}", VERDICT_BAD_SIGNATURE },
		{ "{\"alg\":\"ES256\",\"crit\":[\"b64\"],\"b64\":false}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"crit\":null}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"kid\":7}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"kid\":\"k\\u0000\"}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"alg\":\"ES256\"}", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"jku\":\"https://evil.example\",\"jwk\":{}}", VERDICT_OK },
		{ "{\"alg\":\"ES256\"}x", VERDICT_MALFORMED },
		{ "{\"alg\":\"ES256\",\"x\":\"\xff\"}", VERDICT_MALFORMED },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum verdict_kind kind = judge_form(rows[i].header, CLAIMS);

		if (kind != rows[i].kind)
			print_error("%s\n", rows[i].header);
		assert_int_equal(kind, rows[i].kind);
	}
}

static char *nested(size_t depth)
{
	char *text = mem_zalloc(2 * depth + 16);

	strcpy(text, "{\"x\":");
	memset(text + 5, '[', depth);
	memset(text + 5 + depth, ']', depth);
	strcat(text, "}");
	return text;
}

/* AUTH-JWT-01: depth 32, the object counted; and bounds hold before a tree is built. */
static void documents_are_bounded(void **state)
{
	static const struct {
		size_t depth;
		enum verdict_kind kind;
	} rows[] = { { 31, VERDICT_OK }, { 32, VERDICT_MALFORMED }, { 2000, VERDICT_MALFORMED } };
	struct error err = { ERROR_NONE, "" };
	char *many = mem_alloc(40000);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *claims = nested(rows[i].depth);

		assert_int_equal(judge_form("{\"alg\":\"ES256\"}", claims), rows[i].kind);
		free(claims);
	}
	memset(many, ',', 40000);
	assert_null(document_parse(slice_of(many, 40000), &err));
	assert_int_equal(err.kind, ERROR_LIMIT);
	assert_null(document_parse(slice_of("{}\0", 3), &err));
	assert_null(document_parse(slice_of(NULL, 0), &err));
	assert_null(document_parse(SLICE_LIT("{\"a\":\"\\"), &err));
	assert_null(document_parse(SLICE_LIT("{\"a\":18446744073709551616}"), &err));
	free(many);
}

/* ---- keys ---- */

/* AUTH-JWT-03, AUTH-JWT-08, AUTH-KEY-08 */
static void keys_that_are_refused(void **state)
{
	static const char *const keys[] = {
		"{}",
		"{\"kty\":\"oct\",\"k\":\"AAAA\",\"alg\":\"HS256\"}",
		"{\"kty\":\"oct\",\"k\":\"AAAA\",\"alg\":\"RS256\"}",
		"{\"kty\":\"FUTURE\",\"x\":\"AAAA\"}",
		"{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
		"{\"kty\":\"RSA\",\"n\":\"!\",\"e\":\"AQAB\"}",
		"{\"kty\":\"RSA\",\"e\":\"AQAB\"}",
		/* one coordinate changed: off the curve; short; another curve; without y */
		"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
		"\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a1\"}",
		"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
		"{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
		"\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}",
		"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}",
		"{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
		"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}",
		"{\"kty\":\"OKP\",\"crv\":\"X25519\","
		"\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
	};
	static const char *const more[] = {
		"\"use\":\"enc\"",
		"\"use\":1",
		"\"key_ops\":[\"sign\"]",
		"\"key_ops\":\"verify\"",
		"\"alg\":\"RS256\"",
		"\"alg\":\"none\"",
		"\"alg\":1",
		"\"d\":\"AAAA\"",
	};
	struct jwk key;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		assert_false(take_key(keys[i], ALGORITHM_ALL, &key));
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		char *jwk = fake_signer_jwk(&signers[6], more[i]);

		assert_false(take_key(jwk, ALGORITHM_ALL, &key));
		free(jwk);
	}
}

static void small_rsa_keys_are_refused(void **state)
{
	struct fake_signer small = { "RS256", NULL, EVP_RSA_gen(1024) };
	char *jwk = fake_signer_jwk(&small, NULL);
	struct jwk key;

	assert_false(take_key(jwk, ALGORITHM_ALL, &key));
	free(jwk);
	fake_signer_fini(&small);
}

/* The longest modulus, every bit set, and one that is a byte longer. */
static void large_rsa_keys_have_a_bound(void **state)
{
	char digits[(JWK_RSA_BITS_MAX / 8 * 4 + 2) / 3 + 1];
	const char *const ends[] = { "w", "_8" };
	struct jwk key;

	memset(digits, '_', sizeof(digits));
	digits[sizeof(digits) - 2] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		char *jwk = mem_printf("{\"kty\":\"RSA\",\"n\":\"%s%s\",\"e\":\"AQAB\"}", digits,
				       ends[i]);
		bool is_taken = take_key(jwk, ALGORITHM_ALL, &key);

		assert_int_equal(is_taken, i == 0);
		if (is_taken)
			jwk_fini(&key);
		free(jwk);
	}
}

static const struct jwk *find(const struct jwk_set *set, const char *id, const char *algorithm)
{
	struct slice s = { NULL, 0 };

	if (id != NULL)
		s = slice_str(id);
	return jwk_set_find(set, s, algorithm_find(slice_str(algorithm)));
}

/* AUTH-JWT-05, AUTH-KEY-05, AUTH-KEY-08 */
static void sets_are_read_key_by_key(void **state)
{
	struct error err = { ERROR_NONE, "" };
	char *first = fake_signer_jwk(&signers[0], NULL);
	char *second = fake_signer_jwk(&signers[6], "\"alg\":\"ES256\"");
	char *text = mem_printf("{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\",\"kid\":\"o\"},7,%s,"
				"{\"kty\":\"FUTURE\"},%s]}",
				first, second);
	json_t *json = parse(text);
	json_t *bad = parse("{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}");
	struct jwk_set set;

	assert_int_equal(jwk_set_parse(json, ALGORITHM_ALL, &set, &err), 0);
	assert_int_equal(set.count, 2);
	assert_int_equal(set.skipped, 3);
	assert_ptr_equal(find(&set, "k", "RS256"), &set.keys[0]);
	assert_ptr_equal(find(&set, "k", "ES256"), &set.keys[1]);
	assert_ptr_equal(find(&set, NULL, "ES256"), &set.keys[1]);
	assert_null(find(&set, "k", "ES384"));
	assert_null(find(&set, "o", "RS256"));
	assert_null(find(&set, "", "RS256"));
	jwk_set_fini(&set);
	assert_int_equal(jwk_set_parse(bad, ALGORITHM_ALL, &set, &err), -1);
	json_decref(bad);
	json_decref(json);
	bad = parse("{\"keys\":{}}");
	assert_int_equal(jwk_set_parse(bad, ALGORITHM_ALL, &set, &err), -1);
	json_decref(bad);
	free(first);
	free(second);
	free(text);
}

/* AUTH-KEY-01: each key costs time and memory. */
static void sets_have_a_number_of_keys(void **state)
{
	char *key = fake_signer_jwk(&signers[6], NULL);

	for (size_t count = JWK_SET_KEYS_MAX; count <= JWK_SET_KEYS_MAX + 1; count++) {
		struct error err = { ERROR_NONE, "" };
		json_t *document = json_pack("{s:[]}", "keys");
		struct jwk_set set;

		for (size_t i = 0; i < count; i++)
			json_array_append_new(json_object_get(document, "keys"), parse(key));
		assert_int_equal(jwk_set_parse(document, ALGORITHM_ALL, &set, &err),
				 count > JWK_SET_KEYS_MAX ? -1 : 0);
		assert_int_equal(err.kind, count > JWK_SET_KEYS_MAX ? ERROR_LIMIT : ERROR_NONE);
		jwk_set_fini(&set);
		json_decref(document);
	}
	free(key);
}

/* Without `kid` only if exactly one key fits. AUTH-JWT-05 */
static void no_key_id_needs_one_key(void **state)
{
	const struct fake_signer *const two[] = { &signers[6], &strangers[6] };
	struct error err = { ERROR_NONE, "" };
	char *text = fake_signer_set(two, 2);
	json_t *json = parse(text);
	struct jwk_set set;

	assert_int_equal(jwk_set_parse(json, ALGORITHM_ALL, &set, &err), 0);
	assert_null(find(&set, NULL, "ES256"));
	jwk_set_fini(&set);
	json_decref(json);
	free(text);
}

/* ---- the second reader ---- */

/* The string is freed as the version of the library wants it. */
static void free_jwt_text(char *text)
{
#ifdef HAVE_JWT_FREE_STR
	jwt_free_str(text);
#else
	free(text);
#endif
}

static bool libjwt_accepts(const char *token, const char *pem)
{
	jwt_t *jwt = NULL;
	int result = jwt_decode(&jwt, token, (const unsigned char *)pem, (int)strlen(pem));

	if (result == 0)
		jwt_free(jwt);
	return result == 0;
}

static void compare(const char *token, const struct jwk *key, const char *pem, bool is_good)
{
	assert_int_equal(judge(token, key) == VERDICT_OK, is_good);
	assert_int_equal(libjwt_accepts(token, pem), is_good);
}

/* Flips one bit of the text in the middle of its last part. */
static void spoil_signature(char *token)
{
	char *signature = strrchr(token, '.') + 1;
	char *at = signature + strlen(signature) / 2;

	*at = *at == 'A' ? 'B' : 'A';
}

/* Only what libjwt can do right: RS and ES, `typ` JWT. design/stack.md §5 */
static void libjwt_reads_the_same(void **state)
{
	static const size_t both[] = { 0, 1, 2, 6, 7, 8 };

	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		const struct fake_signer *signer = &signers[both[i]];
		char *header = mem_printf("{\"alg\":\"%s\",\"typ\":\"JWT\"}", signer->algorithm);
		char *good = fake_signer_sign(signer, header, CLAIMS);
		char *foreign = fake_signer_sign(&strangers[both[i]], header, CLAIMS);
		char *pem = fake_signer_pem(signer, 0);
		struct jwk key;

		key_of(signer, ALGORITHM_ALL, &key);
		compare(good, &key, pem, true);
		compare(foreign, &key, pem, false);
		spoil_signature(good);
		compare(good, &key, pem, false);
		jwk_fini(&key);
		free(pem);
		free(foreign);
		free(good);
		free(header);
	}
}

static void libjwt_signs_what_we_read(void **state)
{
	static const struct {
		size_t signer;
		jwt_alg_t algorithm;
	} rows[] = { { 0, JWT_ALG_RS256 }, { 6, JWT_ALG_ES256 }, { 7, JWT_ALG_ES384 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct fake_signer *signer = &signers[rows[i].signer];
		char *pem = fake_signer_pem(signer, 1);
		jwt_t *jwt = NULL;
		struct jwk key;
		char *token;

		key_of(signer, ALGORITHM_ALL, &key);
		assert_int_equal(jwt_new(&jwt), 0);
		assert_int_equal(jwt_add_grant(jwt, "sub", "alice"), 0);
		assert_int_equal(jwt_set_alg(jwt, rows[i].algorithm, (const unsigned char *)pem,
					     (int)strlen(pem)),
				 0);
		token = jwt_encode_str(jwt);
		assert_non_null(token);
		assert_int_equal(judge(token, &key), VERDICT_OK);
		spoil_signature(token);
		assert_int_not_equal(judge(token, &key), VERDICT_OK);
		free_jwt_text(token);
		jwt_free(jwt);
		jwk_fini(&key);
		free(pem);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_the_standards),
		cmocka_unit_test(vector_of_ed25519),
		cmocka_unit_test(thumbprint_of_rsa),
		cmocka_unit_test(signatures_of_every_algorithm),
		cmocka_unit_test(a_key_has_one_algorithm),
		cmocka_unit_test(ecdsa_signatures_are_two_numbers),
		cmocka_unit_test(pss_wants_its_own_padding),
		cmocka_unit_test(pss_wants_its_own_salt),
		cmocka_unit_test(other_algorithms_are_refused),
		cmocka_unit_test(forms_that_are_no_token),
		cmocka_unit_test(headers_that_are_refused),
		cmocka_unit_test(documents_are_bounded),
		cmocka_unit_test(keys_that_are_refused),
		cmocka_unit_test(small_rsa_keys_are_refused),
		cmocka_unit_test(large_rsa_keys_have_a_bound),
		cmocka_unit_test(sets_are_read_key_by_key),
		cmocka_unit_test(sets_have_a_number_of_keys),
		cmocka_unit_test(no_key_id_needs_one_key),
		cmocka_unit_test(libjwt_reads_the_same),
		cmocka_unit_test(libjwt_signs_what_we_read),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_signers, free_signers);
}
