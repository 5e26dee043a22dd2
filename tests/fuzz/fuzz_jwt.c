/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of access tokens. The input is a token, or, where it holds a line feed, header and claims in plain
 * text that are made into one. What must hold: what is taken apart can be put together to the same bytes;
 * nobody's signature is found good; a grant that comes out keeps its promises.
 */
#include <stdint.h>
#include <stdlib.h>

#include "auth/fake_signer.h"
#include "auth/grant.h"
#include "auth/jwt.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append_part(struct buf *token, struct slice part)
{
	token->len += text_base64url(part.p, part.n, buf_reserve(token, part.n * 2 + 4));
	buf_append_char(token, '.');
}

static void make_token(struct slice input, struct buf *token)
{
	struct slice rest = input;
	struct slice header = slice_cut(&rest, '\n');

	if (rest.p == NULL) {
		buf_append_slice(token, input);
		return;
	}
	append_part(token, header);
	append_part(token, rest);
	buf_append_str(token, "c2lnbmF0dXJl");
}

static void check_parts(struct slice token, const struct jwt *jwt)
{
	struct buf again = { .data = NULL };
	const char *end = jwt->signed_part.p + jwt->signed_part.n;

	CHECK(jwt->signed_part.p == token.p && *end == '.');
	again.len = text_base64url(jwt->signature, jwt->signature_size,
				   buf_reserve(&again, jwt->signature_size * 2 + 4));
	CHECK(slice_is_equal(buf_slice(&again), slice_between(end + 1, token.p + token.n)));
	buf_fini(&again);
}

static void check_text(const char *text)
{
	for (; text != NULL && *text != '\0'; text++)
		CHECK((unsigned char)*text >= 0x20 && *text != 0x7F);
}

static void check_claims(json_t *claims)
{
	static const struct slice accepted[] = { SLICE("https://gw.example/mcp"), SLICE("") };
	const struct grant_rules rules = { .issuer = "https://id.example",
					   .leeway_ms = 60000,
					   .must_expire = true };
	const uint64_t now_ms = 1700000000000;
	struct verdict verdict = { .kind = VERDICT_OK };
	struct grant *grant = grant_new(claims, &rules, now_ms, &verdict);

	CHECK((grant != NULL) == (verdict.kind == VERDICT_OK));
	if (grant == NULL)
		return;
	CHECK(grant->subject != NULL || grant->client_id != NULL);
	CHECK(grant_is_current(grant, now_ms) && grant->ends_at_ms != UINT64_MAX);
	check_text(grant->subject);
	check_text(grant->client_id);
	for (size_t i = 0; i < grant->scope_count; i++)
		CHECK(grant->scopes[i][0] != '\0' && strchr(grant->scopes[i], ' ') == NULL);
	if (grant_is_for(grant, (struct slices){ accepted, 2 }))
		CHECK(json_object_get(claims, "aud") != NULL);
	grant_unref(&grant);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake_signer signers[3];
	struct buf token = { .data = NULL };
	struct verdict verdict;
	struct jwt jwt;

	if (signers[0].key == NULL) {
		fake_signer_init(&signers[0], "RS256", NULL);
		fake_signer_init(&signers[1], "ES256", NULL);
		fake_signer_init(&signers[2], "EdDSA", NULL);
	}
	make_token(slice_of((const char *)data, size), &token);
	if (jwt_parse(buf_slice(&token), &jwt, &verdict) == 0) {
		check_parts(buf_slice(&token), &jwt);
		check_claims(jwt.claims);
		if (jwt_check_header(&jwt, ALGORITHM_ALL, jwt_access_token_types, &verdict) == 0) {
			for (size_t i = 0; i < ARRAY_LEN(signers); i++)
				CHECK(!jwt_is_signed_by(&jwt, signers[i].key));
		}
		jwt_fini(&jwt);
	}
	buf_fini(&token);
	return 0;
}
