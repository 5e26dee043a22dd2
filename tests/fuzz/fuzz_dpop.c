/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of DPoP proofs. The input is a proof, or, where it holds a line feed, the members that its header
 * and its claims have besides the needed ones; then it is signed by the right key. What must hold: only a
 * proof that was signed here is good, and it is so once.
 */
#include <stdint.h>
#include <stdlib.h>

#include "auth/document.h"
#include "auth/dpop.h"
#include "auth/fake_signer.h"
#include "auth/jwt.h"
#include "base/check.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ATH "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"

static struct fake_signer signer;
static struct grant grant;
static char *jwk;

static void set_up(void)
{
	struct error err = { ERROR_NONE, "" };
	json_t *json;

	fake_signer_init(&signer, "ES256", NULL);
	jwk = fake_signer_jwk(&signer, NULL);
	json = document_parse(slice_str(jwk), &err);
	jwk_thumbprint(json, grant.jkt);
	json_decref(json);
}

/* NULL: the input is none of this form. */
static char *sign(struct slice input)
{
	struct slice rest = input;
	struct slice of_header = slice_cut(&rest, '\n');
	char *header;
	char *claims;
	char *proof;

	if (rest.p == NULL)
		return NULL;
	header = mem_printf("{\"typ\":\"dpop+jwt\",\"alg\":\"ES256\",\"jwk\":%s%.*s}", jwk,
			    SLICE_ARG(of_header));
	claims =
		mem_printf("{\"jti\":\"x\",\"htm\":\"POST\",\"iat\":1700000000,\"ath\":\"" ATH "\","
			   "\"htu\":\"https://gw.example/mcp\"%.*s}",
			   SLICE_ARG(rest));
	proof = fake_signer_sign(&signer, header, claims);
	free(header);
	free(claims);
	return proof;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dpop_memory *memory = dpop_memory_new(2);
	struct slice input = slice_of((const char *)data, size);
	struct dpop_request request = { .method = SLICE("POST"),
					.url = SLICE("https://gw.example/mcp?x"),
					.token = SLICE(
						"Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"),
					.now_s = 1700000000 };
	struct verdict verdict;
	char *proof;

	if (jwk == NULL)
		set_up();
	proof = sign(input);
	request.proof = proof != NULL ? slice_str(proof) : input;
	if (dpop_check(memory, &grant, &request, &verdict) == 0) {
		CHECK(proof != NULL);
		CHECK(dpop_check(memory, &grant, &request, &verdict) == -1);
	}
	free(proof);
	dpop_memory_free(&memory);
	return 0;
}
