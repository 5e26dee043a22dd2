/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of key sets. What must hold: every key that is taken can be used with one algorithm at least, is
 * found again by that and by its id, verifies nothing that is noise, and has a thumbprint.
 */
#include <stdint.h>

#include "auth/document.h"
#include "auth/jwt.h"
#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "RS256", "RS384", "RS512", "PS256", "PS384",
				     "PS512", "ES256", "ES384", "ES512", "EdDSA" };

static void check_key(const struct jwk_set *set, const struct jwk *key)
{
	static const char noise[512];
	size_t usable = 0;

	CHECK(key->key != NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct algorithm *algorithm = algorithm_find(slice_str(names[i]));
		const struct jwk *found;

		if ((key->algorithms & algorithm->bit) == 0)
			continue;
		usable++;
		CHECK(!algorithm_verify(algorithm, key->key, SLICE_LIT("text"),
					slice_of(noise, algorithm->width > 0 ?
								2 * algorithm->width :
								256)));
		if (key->id == NULL)
			continue;
		found = jwk_set_find(set, slice_str(key->id), algorithm);
		CHECK(found != NULL && found <= key);
	}
	CHECK(usable > 0);
}

static void check_thumbprints(const json_t *document)
{
	const json_t *keys = json_object_get(document, "keys");
	char thumbprint[JWK_THUMBPRINT_BYTES];

	for (size_t i = 0; i < json_array_size(keys); i++) {
		struct error err;
		struct jwk key;

		if (jwk_parse(json_array_get(keys, i), ALGORITHM_ALL, &key, &err) < 0)
			continue;
		jwk_thumbprint(json_array_get(keys, i), thumbprint);
		CHECK(strlen(thumbprint) == JWK_THUMBPRINT_BYTES - 1);
		jwk_fini(&key);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = { ERROR_NONE, "" };
	json_t *document = document_parse(slice_of((const char *)data, size), &err);
	struct jwk_set set;

	CHECK(document != NULL || err.kind != ERROR_NONE);
	if (document != NULL && jwk_set_parse(document, ALGORITHM_ALL, &set, &err) == 0) {
		CHECK(set.count > 0);
		for (size_t i = 0; i < set.count; i++)
			check_key(&set, &set.keys[i]);
		jwk_set_fini(&set);
		check_thumbprints(document);
	}
	json_decref(document);
	return 0;
}
