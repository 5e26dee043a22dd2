/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of what else an issuer's server answers: metadata, introspection, Cache-Control, and the URLs in
 * them. What must hold: a document that may be used is of this issuer and names https URLs only; an active
 * token is said to be so by `true`; comparing resources does not depend on the order.
 */
#include <stdint.h>
#include <stdlib.h>

#include "auth/document.h"
#include "auth/issuer.h"
#include "auth/url.h"
#include "base/check.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ISSUER "https://id.example/tenant"

static void check_metadata(const json_t *document)
{
	struct slice uri = document_text(document, "jwks_uri");
	struct error err;

	if (issuer_metadata_check(document, ISSUER, &err) < 0)
		return;
	CHECK(slice_is_equal(document_text(document, "issuer"), SLICE_LIT(ISSUER)));
	if (json_object_get(document, "jwks_uri") != NULL)
		CHECK(uri.n > 8 && strncasecmp(uri.p, "https://", 8) == 0);
}

static void check_introspection(struct slice text)
{
	struct verdict verdict = { .kind = VERDICT_OK };
	json_t *claims = introspect_read(text, ISSUER, &verdict);

	CHECK((claims != NULL) == (verdict.kind == VERDICT_OK));
	if (claims != NULL)
		CHECK(json_is_true(json_object_get(claims, "active")));
	json_decref(claims);
}

static void check_url(struct slice text)
{
	static const struct slice resource = SLICE("https://gw.example/mcp");
	struct error err = { ERROR_NONE, "" };
	struct url url;
	char *issuer;

	CHECK(url_is_same_resource(text, resource) == url_is_same_resource(resource, text));
	CHECK(url_is_same_resource(text, text));
	if (url_check_ours(text, &err) < 0)
		return;
	CHECK(url_parse(text, &url) == 0 && (url_is_https(&url) || url_is_loopback(&url)));
	issuer = mem_dup_slice(text);
	for (size_t i = 0; i < 4; i++) {
		char *place = issuer_metadata_url(issuer, i);

		if (place != NULL)
			CHECK(url_check_ours(slice_str(place), &err) == 0);
		free(place);
	}
	free(issuer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of((const char *)data, size);
	uint64_t lifetime_ms = issuer_lifetime_ms(text);
	struct error err = { ERROR_NONE, "" };
	json_t *document = document_parse(text, &err);

	CHECK(lifetime_ms >= 60 * 1000 && lifetime_ms <= 24 * 60 * 60 * 1000);
	if (document != NULL)
		check_metadata(document);
	json_decref(document);
	check_introspection(text);
	check_url(text);
	return 0;
}
