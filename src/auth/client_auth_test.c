/* SPDX-License-Identifier: Apache-2.0 */
/* What we send as who we are, read as an issuer reads it. */
#include "auth/client_auth.h"

#include "auth/document.h"
#include "auth/fake_signer.h"
#include "auth/jwt.h"
#include "auth/signing_key.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"

#define ISSUER "https://id.example/tenant"
#define BEGIN                                                                                \
	"client_id=gateway%20rs&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-" \
	"assertion-type%3Ajwt-bearer&client_assertion="

static const struct client_auth_conf usual = {
	.method = CLIENT_PRIVATE_KEY_JWT,
	.issuer = ISSUER,
	.client_id = "gateway rs",
	.key_id = "ours",
};

/* Checks all but the number; which is the caller's. */
static char *check_assertion(struct slice token, const struct fake_signer *signer)
{
	static const char *const types[] = { "JWT", NULL };
	json_int_t now_s = (json_int_t)(clock_wall_ms() / 1000);
	struct verdict verdict;
	json_int_t end_s;
	struct jwt jwt;
	char *jti;

	assert_int_equal(jwt_parse(token, &jwt, &verdict), 0);
	assert_int_equal(jwt_check_header(&jwt, ALGORITHM_ALL, types, &verdict), 0);
	assert_string_equal(jwt.algorithm->name, signer->algorithm);
	assert_true(jwt_is_signed_by(&jwt, signer->key));
	assert_true(slice_is_equal(jwt_key_id(&jwt), SLICE_LIT("ours")));
	assert_string_equal(document_string(jwt.claims, "iss"), "gateway rs");
	assert_string_equal(document_string(jwt.claims, "sub"), "gateway rs");
	assert_string_equal(document_string(jwt.claims, "aud"), ISSUER);
	end_s = json_integer_value(json_object_get(jwt.claims, "exp"));
	assert_in_range(end_s, now_s + 1, now_s + 61);
	assert_in_range(json_integer_value(json_object_get(jwt.claims, "iat")), now_s - 5, now_s);
	jti = mem_strdup(document_string(jwt.claims, "jti"));
	jwt_fini(&jwt);
	return jti;
}

/* AUTH-OPQ-01, RFC 7523 s3 */
static void a_token_is_signed_with_every_kind_of_key(void **state)
{
	static const char *const algorithms[] = { "RS256", "ES256", "ES384", "ES512", "EdDSA" };

	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
		struct client_auth_conf conf = usual;
		struct fake_signer signer;
		struct client_auth auth;
		struct error err;
		char *pem, *numbers[2];

		fake_signer_init(&signer, algorithms[i], NULL);
		pem = fake_signer_pem(&signer, 1);
		conf.key = pem;
		assert_int_equal(signing_key_check(pem, &err), 0);
		assert_int_equal(client_auth_init(&auth, &conf, &err), 0);
		assert_null(auth.credentials);
		for (size_t k = 0; k < 2; k++) {
			struct buf form = { 0 };
			struct slice text;

			client_auth_begin_form(&auth, &form);
			text = buf_slice(&form);
			assert_true(slice_has_prefix(text, SLICE_LIT(BEGIN)));
			assert_int_equal(text.p[text.n - 1], '&');
			numbers[k] = check_assertion(slice_of(text.p + strlen(BEGIN),
							      text.n - strlen(BEGIN) - 1),
						     &signer);
			buf_fini(&form);
		}
		assert_string_not_equal(numbers[0], numbers[1]);
		free(numbers[0]);
		free(numbers[1]);
		client_auth_fini(&auth);
		fake_signer_fini(&signer);
		free(pem);
	}
}

/* A key that nobody could check with, or that we could not use, is refused at the start. */
static void keys_that_cannot_be_used(void **state)
{
	static const char *const texts[] = { "", "no PEM", "-----BEGIN PRIVATE KEY-----\n" };
	struct client_auth_conf conf = usual;
	struct fake_signer signer;
	struct client_auth auth;
	struct error err;
	char *pem;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(signing_key_check(texts[i], &err), -1);
	fake_signer_init(&signer, "RS256", NULL);
	pem = fake_signer_pem(&signer, 0);
	assert_int_equal(signing_key_check(pem, &err), -1);
	free(pem);
	EVP_PKEY_free(signer.key);
	signer.key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
	pem = fake_signer_pem(&signer, 1);
	assert_int_equal(signing_key_check(pem, &err), -1);
	free(pem);
	EVP_PKEY_free(signer.key);
	/* As many bits as P-256, and another curve. */
	signer.key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "secp256k1");
	pem = fake_signer_pem(&signer, 1);
	conf.key = pem;
	assert_int_equal(client_auth_init(&auth, &conf, &err), -1);
	client_auth_fini(&auth);
	free(pem);
	fake_signer_fini(&signer);
}

/* AUTH-OPQ-01, RFC 6749 s2.3.1 */
static void a_secret_is_encoded(void **state)
{
	struct client_auth_conf conf = usual;
	struct client_auth auth;
	struct buf form = { 0 };
	struct error err;

	conf.secret = "s:e%cret";
	conf.method = CLIENT_SECRET_BASIC;
	assert_int_equal(client_auth_init(&auth, &conf, &err), 0);
	assert_string_equal(auth.credentials, "Basic Z2F0ZXdheSUyMHJzOnMlM0FlJTI1Y3JldA==");
	client_auth_begin_form(&auth, &form);
	assert_int_equal(form.len, 0);
	client_auth_fini(&auth);
	conf.method = CLIENT_SECRET_POST;
	assert_int_equal(client_auth_init(&auth, &conf, &err), 0);
	assert_null(auth.credentials);
	client_auth_begin_form(&auth, &form);
	assert_string_equal(buf_terminate(&form),
			    "client_id=gateway%20rs&client_secret=s%3Ae%25cret&");
	client_auth_fini(&auth);
	buf_fini(&form);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_signed_with_every_kind_of_key),
		cmocka_unit_test(keys_that_cannot_be_used),
		cmocka_unit_test(a_secret_is_encoded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
