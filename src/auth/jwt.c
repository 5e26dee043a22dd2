/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting, decoding, and the rules for headers. */
#include "auth/jwt.h"

#include <stdlib.h>

#include "auth/document.h"
#include "auth/jwk.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"

const char *const jwt_access_token_types[] = { "at+jwt", "JWT", "", NULL };

/* ---- taking apart ---- */

static unsigned char *decode(struct slice part, size_t *size_r)
{
	unsigned char *bytes;

	if (part.n == 0)
		return NULL;
	bytes = mem_alloc(part.n);
	if (text_from_base64url(part, bytes, size_r) == 0 && *size_r > 0)
		return bytes;
	free(bytes);
	return NULL;
}

static json_t *decode_object(struct slice part, const char *what, struct verdict *verdict_r)
{
	struct error err = { ERROR_NONE, "it is not base64url" };
	json_t *object = NULL;
	size_t size;
	unsigned char *bytes = decode(part, &size);

	if (bytes != NULL)
		object = document_parse(slice_of((const char *)bytes, size), &err);
	if (object == NULL)
		verdict_set(verdict_r, VERDICT_MALFORMED, "%s of the token: %.100s", what,
			    err.text);
	free(bytes);
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
		jwt_r->signature = decode(signature, &jwt_r->signature_size);
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
