/* SPDX-License-Identifier: Apache-2.0 */
/* What we say of a caller, read as a server reads it: with the key that is published. */
#include "auth/assertion.h"

#include "auth/document.h"
#include "auth/fake_signer.h"
#include "auth/jwt.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"

#define ISSUER "https://gateway.example/gw"
#define AUDIENCE "https://wiki.example/mcp"
#define CALLER                                                                                       \
	"{\"sub\":\"anna \\\"x\\\" \\u00e4\",\"client_id\":\"editor\",\"scope\":\"a b\",\"roles\":[" \
	"\"r\"],\"iss\":\"https://evil.example\",\"aud\":\"elsewhere\",\"exp\":99999999999,\"nbf\":99999999999,\"jti\":\"1\"}"

struct world {
	struct fake_signer signer;
	struct assertion assertion;
	char *pem;
};

static void world_begin(struct world *world, const char *algorithm)
{
	struct error err;

	fake_signer_init(&world->signer, algorithm, NULL);
	world->pem = fake_signer_pem(&world->signer, 1);
	assert_int_equal(assertion_init(&world->assertion,
					&(struct assertion_conf){ SLICE_LIT(ISSUER), AUDIENCE,
								  world->pem },
					&err),
			 0);
}

static void world_end(struct world *world)
{
	assertion_fini(&world->assertion);
	fake_signer_fini(&world->signer);
	free(world->pem);
}

static void check_claims(const json_t *claims)
{
	json_int_t now_s = (json_int_t)(clock_wall_ms() / 1000);
	json_int_t issued_s = json_integer_value(json_object_get(claims, "iat"));

	assert_string_equal(document_string(claims, "iss"), ISSUER);
	assert_string_equal(document_string(claims, "aud"), AUDIENCE);
	assert_string_equal(document_string(claims, "sub"), "anna \"x\" \xc3\xa4");
	assert_string_equal(document_string(claims, "client_id"), "editor");
	assert_string_equal(document_string(claims, "scope"), "a b");
	assert_true(document_lists(json_object_get(claims, "roles"), SLICE_LIT("r")));
	assert_in_range(issued_s, now_s - 5, now_s);
	assert_int_equal(json_integer_value(json_object_get(claims, "exp")),
			 issued_s + ASSERTION_S);
	assert_null(json_object_get(claims, "nbf"));
	assert_int_equal(document_text(claims, "jti").n, 22);
}

/* BACK-URL-11, BACK-URL-12: the published key is the one that verifies it, under the kid that it names; the private part is not in it. */
static void it_is_verified_with_what_is_published(void **state)
{
	static const char *const algorithms[] = { "ES256", "RS256", "ES384", "ES512" };
	static const char *const types[] = { "JWT", NULL };

	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
		struct world world;
		struct buf tokens[2] = { { 0 }, { 0 } };
		struct error err;
		struct verdict verdict;
		struct jwk key;
		struct jwt jwt;
		json_t *document;

		world_begin(&world, algorithms[i]);
		assert_string_equal(world.assertion.public.algorithm, algorithms[i]);
		document = document_parse(slice_str(world.assertion.public.jwk), &err);
		assert_int_equal(jwk_parse(document, ALGORITHM_ALL, &key, &err), 0);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(assertion_sign(&world.assertion, SLICE_LIT(CALLER),
							&tokens[k], &err),
					 0);
			assert_int_equal(jwt_parse(buf_slice(&tokens[k]), &jwt, &verdict), 0);
			assert_int_equal(jwt_check_header(&jwt, key.algorithms, types, &verdict),
					 0);
			assert_true(slice_is_equal(jwt_key_id(&jwt), slice_str(key.id)));
			assert_true(jwt_is_signed_by(&jwt, key.key));
			check_claims(jwt.claims);
			jwt_fini(&jwt);
		}
		assert_false(slice_is_equal(buf_slice(&tokens[0]), buf_slice(&tokens[1])));
		buf_fini(&tokens[0]);
		buf_fini(&tokens[1]);
		jwk_fini(&key);
		json_decref(document);
		world_end(&world);
	}
}

/* Two keys are two names; one key has one, so that a reload that changes nothing publishes nothing new. */
static void a_key_has_a_name_of_its_own(void **state)
{
	struct signing_key_public again;
	struct world one, other;
	struct error err;

	world_begin(&one, "ES256");
	world_begin(&other, "ES256");
	assert_int_equal(signing_key_publish(one.pem, &again, &err), 0);
	assert_string_equal(again.jwk, one.assertion.public.jwk);
	assert_string_not_equal(again.id, other.assertion.public.id);
	assert_int_equal(strlen(again.id), JWK_THUMBPRINT_BYTES - 1);
	signing_key_public_fini(&again);
	world_end(&one);
	world_end(&other);
}

/* BACK-URL-11: nobody is asserted, and nothing that would not fit. */
static void what_is_not_signed(void **state)
{
	static const char *const callers[] = { "",
					       "[]",
					       "{}",
					       "{\"sub\":\"\"}",
					       "{\"sub\":1}",
					       "{\"sub\":\"a\",\"sub\":\"b\"}",
					       "{\"sub\":\"a\\u0000b\"}" };
	char long_one[ASSERTION_CALLER_BYTES_MAX + 32];
	struct world world;
	struct buf token = { 0 };
	struct error err;

	world_begin(&world, "ES256");
	for (size_t i = 0; i < ARRAY_LEN(callers); i++)
		assert_int_equal(assertion_sign(&world.assertion, slice_str(callers[i]), &token,
						&err),
				 -1);
	memset(long_one, 'a', sizeof(long_one));
	memcpy(long_one, "{\"sub\":\"", 8);
	memcpy(long_one + sizeof(long_one) - 2, "\"}", 2);
	assert_int_equal(assertion_sign(&world.assertion, slice_of(long_one, sizeof(long_one)),
					&token, &err),
			 -1);
	assert_int_equal(token.len, 0);
	memcpy(long_one + ASSERTION_CALLER_BYTES_MAX - 2, "\"}", 2);
	assert_int_equal(assertion_sign(&world.assertion,
					slice_of(long_one, ASSERTION_CALLER_BYTES_MAX), &token,
					&err),
			 0);
	buf_fini(&token);
	world_end(&world);
}

/* A key that would sign with what libjwt does not know, or that is none. */
static void keys_that_do_not_assert(void **state)
{
	struct signing_key_public public;
	struct fake_signer signer;
	struct error err;
	char *pem;

	fake_signer_init(&signer, "EdDSA", NULL);
	pem = fake_signer_pem(&signer, 1);
	assert_int_equal(signing_key_publish(pem, &public, &err), -1);
	assert_non_null(strstr(err.text, "Ed25519"));
	assert_null(public.jwk);
	free(pem);
	pem = fake_signer_pem(&signer, 0);
	assert_int_equal(signing_key_publish(pem, &public, &err), -1);
	free(pem);
	fake_signer_fini(&signer);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_verified_with_what_is_published),
		cmocka_unit_test(a_key_has_a_name_of_its_own),
		cmocka_unit_test(what_is_not_signed),
		cmocka_unit_test(keys_that_do_not_assert),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
