/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of possession, made and spoiled here. AUTH-POP-02 */
#include "auth/dpop.h"

#include <openssl/sha.h>

#include "auth/document.h"
#include "auth/fake_signer.h"
#include "auth/jwt.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/unit_test.h"

#define NOW_S 1700000000
#define TOKEN "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
/* RFC 9449 s7.1: ath of that token */
#define ATH "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"
#define URL "https://gw.example/mcp"
#define CLAIMS(jti, htm, htu, iat, ath)                                             \
	"{\"jti\":\"" jti "\",\"htm\":\"" htm "\",\"htu\":\"" htu "\",\"iat\":" iat \
	",\"ath\":\"" ath "\"}"
#define GOOD(jti) CLAIMS(jti, "POST", URL, "1700000000", ATH)

static struct fake_signer signer;
static struct fake_signer stranger;
static struct dpop_memory *memory;
static struct grant grant;

static char *header_of(const struct fake_signer *by, const char *type)
{
	char *jwk = fake_signer_jwk(by, NULL);
	char *header = mem_printf("{\"typ\":\"%s\",\"alg\":\"ES256\",\"jwk\":%s}", type, jwk);

	free(jwk);
	return header;
}

static int judge_text(const char *proof, const char *url, uint64_t now_s)
{
	const struct dpop_request request = { slice_str(proof), SLICE_LIT("POST"), slice_str(url),
					      SLICE_LIT(TOKEN), now_s };
	struct verdict verdict = { .kind = VERDICT_OK };
	int result = dpop_check(memory, &grant, &request, &verdict);

	assert_int_equal(result == 0, verdict.kind == VERDICT_OK);
	return result;
}

static int judge_with(const char *header, const char *claims)
{
	char *proof = fake_signer_sign(&signer, header, claims);
	int result = judge_text(proof, URL "?query=1#x", NOW_S);

	free(proof);
	return result;
}

static int judge(const char *claims)
{
	char *header = header_of(&signer, "dpop+jwt");
	int result = judge_with(header, claims);

	free(header);
	return result;
}

static void a_good_proof_is_good_once(void **state)
{
	assert_int_equal(judge(GOOD("1")), 0);
	assert_int_equal(judge(GOOD("1")), -1);
	assert_int_equal(judge(GOOD("2")), 0);
}

static void proofs_that_are_refused(void **state)
{
	static const char *const claims[] = {
		CLAIMS("a", "GET", URL, "1700000000", ATH),
		CLAIMS("b", "post", URL, "1700000000", ATH),
		CLAIMS("c", "POST", URL "?query=1", "1700000000", ATH),
		CLAIMS("d", "POST", URL "/", "1700000000", ATH),
		CLAIMS("e", "POST", "https://other.example/mcp", "1700000000", ATH),
		CLAIMS("f", "POST", URL, "1700000301", ATH),
		CLAIMS("g", "POST", URL, "1699999699", ATH),
		CLAIMS("h", "POST", URL, "\"1700000000\"", ATH),
		CLAIMS("i", "POST", URL, "1e999", ATH),
		CLAIMS("j", "POST", URL, "1700000000", "other"),
		CLAIMS("", "POST", URL, "1700000000", ATH),
		"{\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1700000000,\"ath\":\"" ATH "\"}",
		"{\"jti\":\"k\",\"htm\":\"POST\",\"htu\":\"" URL "\",\"iat\":1700000000}",
		"{}",
	};

	for (size_t i = 0; i < ARRAY_LEN(claims); i++)
		assert_int_equal(judge(claims[i]), -1);
	assert_int_equal(judge(CLAIMS("l", "POST", URL, "1700000300", ATH)), 0);
	assert_int_equal(judge(CLAIMS("m", "POST", "HTTPS://gw.example:443/mcp", "1699999700",
				      ATH)),
			 0);
	assert_int_equal(judge_text("", URL, NOW_S), -1);
	assert_int_equal(judge_text("a.b.c", URL, NOW_S), -1);
}

static void headers_that_are_refused(void **state)
{
	char *jwk = fake_signer_jwk(&signer, "\"d\":\"AAAA\"");
	char *with_private = mem_printf("{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":%s}", jwk);
	char *wrong_type = header_of(&signer, "JWT");
	char *wrong_key = header_of(&stranger, "dpop+jwt");

	assert_int_equal(judge_with(with_private, GOOD("n")), -1);
	assert_int_equal(judge_with(wrong_type, GOOD("o")), -1);
	assert_int_equal(judge_with(wrong_key, GOOD("p")), -1);
	assert_int_equal(judge_with("{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\"}", GOOD("q")), -1);
	assert_int_equal(judge_with("{\"typ\":\"dpop+jwt\",\"alg\":\"none\",\"jwk\":{}}",
				    GOOD("r")),
			 -1);
	assert_int_equal(judge_with("{\"typ\":\"dpop+jwt\",\"alg\":\"HS256\",\"jwk\":"
				    "{\"kty\":\"oct\",\"k\":\"AAAA\"}}",
				    GOOD("s")),
			 -1);
	free(jwk);
	free(with_private);
	free(wrong_type);
	free(wrong_key);
}

/* Rightly signed, but by a key that the token is not bound to; and a token that is bound to none. */
static void the_key_has_to_be_the_tokens(void **state)
{
	char *header = header_of(&stranger, "dpop+jwt");
	char *proof = fake_signer_sign(&stranger, header, GOOD("t"));
	struct grant bearer = { .references = 1 };
	const struct dpop_request request = { slice_str(proof), SLICE_LIT("POST"), SLICE_LIT(URL),
					      SLICE_LIT(TOKEN), NOW_S };
	struct verdict verdict;

	assert_int_equal(judge_text(proof, URL, NOW_S), -1);
	assert_int_equal(dpop_check(memory, &bearer, &request, &verdict), -1);
	assert_int_equal(verdict.kind, VERDICT_BOUND);
	free(proof);
	free(header);
}

/* A proof may be dated ahead and lives on; its identifier does as well, even in a full memory of its size. */
static void seen_as_long_as_it_could_be_used(void **state)
{
	char *header = header_of(&signer, "dpop+jwt");
	char *ahead =
		fake_signer_sign(&signer, header, CLAIMS("ahead", "POST", URL, "1700000300", ATH));
	char *full = fake_signer_sign(&signer, header, CLAIMS("u", "POST", URL, "1700000000", ATH));

	assert_int_equal(judge_text(ahead, URL, NOW_S), 0);
	assert_int_equal(judge_text(full, URL, NOW_S), 0);
	assert_int_equal(judge_text(ahead, URL, NOW_S + 600), -1);
	dpop_memory_free(&memory);
	memory = dpop_memory_new(2);
	assert_int_equal(judge(GOOD("v")), 0);
	assert_int_equal(judge(GOOD("w")), 0);
	assert_int_equal(judge(GOOD("v")), -1);
	assert_int_equal(judge(GOOD("x")), 0);
	assert_int_equal(judge(GOOD("w")), -1);
	free(header);
	free(ahead);
	free(full);
}

static int set_up(void **state)
{
	struct error err = { ERROR_NONE, "" };
	json_t *json;
	char *jwk;

	fake_signer_init(&signer, "ES256", NULL);
	fake_signer_init(&stranger, "ES256", NULL);
	memory = dpop_memory_new(1000);
	jwk = fake_signer_jwk(&signer, NULL);
	json = document_parse(slice_str(jwk), &err);
	jwk_thumbprint(json, grant.jkt);
	json_decref(json);
	free(jwk);
	return 0;
}

static int tear_down(void **state)
{
	fake_signer_fini(&signer);
	fake_signer_fini(&stranger);
	dpop_memory_free(&memory);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_proof_is_good_once),
		cmocka_unit_test(proofs_that_are_refused),
		cmocka_unit_test(headers_that_are_refused),
		cmocka_unit_test(the_key_has_to_be_the_tokens),
		cmocka_unit_test(seen_as_long_as_it_could_be_used),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
