/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of RFC 9449 s4.3, in its order, and the memory of `jti`. The memory holds digests in a ring: a
 * proof is good for one window only, so older ones need no place. If more proofs come in a window than the ring
 * has places, the oldest of them could be used again: memory has to be bounded.
 */
#include "auth/dpop.h"

#include <math.h>
#include <stdlib.h>

#include <openssl/sha.h>

#include "auth/document.h"
#include "auth/jwt.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"

#define PROOF_BYTES_MAX 8192
#define ID_BYTES_MAX 512

const char *const dpop_algorithms[] = { "ES256", "EdDSA", "PS256", "RS256", "ES384", "ES512",
					"PS384", "PS512", "RS384", "RS512", NULL };

/* ---- proofs seen ---- */

struct proof {
	uint64_t place; /* first bytes of the digest; 0: free */
	uint64_t until_s;
};

struct dpop_memory {
	unsigned char key[SHA256_DIGEST_LENGTH]; /* so that an attacker cannot choose a place */
	struct map map;                          /* place -> struct proof */
	struct proof *ring;
	size_t size;
	size_t next;
};

struct dpop_memory *dpop_memory_new(size_t proofs_max)
{
	struct dpop_memory *memory = mem_zalloc(sizeof(*memory));

	CHECK(proofs_max > 0);
	memory->size = proofs_max;
	memory->ring = mem_zalloc(proofs_max * sizeof(*memory->ring));
	random_bytes(memory->key, sizeof(memory->key));
	return memory;
}

void dpop_memory_free(struct dpop_memory **memory)
{
	struct dpop_memory *m = *memory;

	if (m == NULL)
		return;
	map_fini(&m->map);
	free(m->ring);
	free(m);
	*memory = NULL;
}

/* `jti` is unique for its key (s11.1), so the key goes in. 64 bits, keyed by us, are enough to refuse. */
static uint64_t dpop_place_of(const struct dpop_memory *memory, const char *jkt, struct slice id)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	at_end(buf_fini) struct buf text = { .data = NULL };
	uint64_t place;

	buf_append(&text, memory->key, sizeof(memory->key));
	buf_append_str(&text, jkt);
	buf_append_slice(&text, id);
	SHA256((const unsigned char *)text.data, text.len, digest);
	memcpy(&place, digest, sizeof(place));
	return place | 1;
}

/* Returns whether the proof is new, and remembers it. */
static bool remember(struct dpop_memory *memory, uint64_t place, uint64_t now_s)
{
	struct proof *seen = map_find(&memory->map, place);
	struct proof *slot = &memory->ring[memory->next];

	CHECK(memory->map.count <= memory->size && (seen == NULL || seen->place == place));
	if (seen != NULL && seen->until_s >= now_s)
		return false;
	if (seen != NULL) {
		map_remove(&memory->map, place);
		seen->place = 0;
	}
	if (slot->place != 0)
		map_remove(&memory->map, slot->place);
	*slot = (struct proof){ place, now_s + 2 * DPOP_WINDOW_S };
	map_insert(&memory->map, place, slot);
	memory->next = (memory->next + 1) % memory->size;
	return true;
}

/* ---- one proof ---- */

static int dpop_refuse(struct verdict *verdict_r, const char *cause)
{
	return verdict_set(verdict_r, VERDICT_BOUND, "%s", cause);
}

static int check_signature(struct jwt *proof, const struct grant *grant, struct verdict *verdict_r)
{
	static const char *const types[] = { "dpop+jwt", NULL };
	char thumbprint[JWK_THUMBPRINT_BYTES];
	struct error err = { ERROR_NONE, "" };
	struct jwk key;
	bool is_good;

	if (jwt_check_header(proof, ALGORITHM_ALL, types, verdict_r) < 0)
		return -1;
	if (jwk_parse(json_object_get(proof->header, "jwk"), proof->algorithm->bit, &key, &err) < 0)
		return verdict_set(verdict_r, VERDICT_BOUND, "key of the DPoP proof: %.100s",
				   err.text);
	is_good = jwt_is_signed_by(proof, key.key);
	jwk_fini(&key);
	if (!is_good)
		return dpop_refuse(verdict_r, "the signature of the DPoP proof is wrong");
	jwk_thumbprint(json_object_get(proof->header, "jwk"), thumbprint);
	if (strcmp(thumbprint, grant->jkt) != 0)
		return dpop_refuse(verdict_r,
				   "the DPoP proof is signed with another key than the token's");
	return 0;
}

static int dpop_check_claims(const struct jwt *proof, const struct dpop_request *request,
			     struct verdict *verdict_r)
{
	const json_t *issued = json_object_get(proof->claims, "iat");
	unsigned char digest[SHA256_DIGEST_LENGTH];
	char hash[GRANT_THUMBPRINT_BYTES];

	SHA256((const unsigned char *)request->token.p, request->token.n, digest);
	hash[text_base64url(digest, sizeof(digest), hash)] = '\0';
	if (!slice_is_equal(document_text(proof->claims, "htm"), request->method))
		return dpop_refuse(verdict_r, "the DPoP proof is for another method (`htm`)");
	if (!url_is_target(document_text(proof->claims, "htu"), request->url))
		return dpop_refuse(verdict_r, "the DPoP proof is for another URL (`htu`)");
	if (!json_is_number(issued) ||
	    !(fabs(json_number_value(issued) - (double)request->now_s) <= DPOP_WINDOW_S))
		return dpop_refuse(verdict_r,
				   "the DPoP proof is too old, or from the future (`iat`)");
	if (!slice_is_equal(document_text(proof->claims, "ath"), slice_str(hash)))
		return dpop_refuse(verdict_r, "the DPoP proof is for another token (`ath`)");
	return 0;
}

int dpop_check(struct dpop_memory *memory, const struct grant *grant,
	       const struct dpop_request *request, struct verdict *verdict_r)
{
	struct slice id;
	struct jwt proof;
	int result = -1;

	if (grant->jkt[0] == '\0')
		return dpop_refuse(verdict_r,
				   "the token came with scheme DPoP but is not bound to a key");
	if (request->proof.n > PROOF_BYTES_MAX)
		return dpop_refuse(verdict_r, "the DPoP proof is too long");
	if (jwt_parse(request->proof, &proof, verdict_r) < 0)
		return -1;
	id = document_text(proof.claims, "jti");
	if (check_signature(&proof, grant, verdict_r) == 0 &&
	    dpop_check_claims(&proof, request, verdict_r) == 0) {
		if (id.n == 0 || id.n > ID_BYTES_MAX)
			dpop_refuse(verdict_r,
				    "the DPoP proof has no `jti`, or one that is too long");
		else if (!remember(memory, dpop_place_of(memory, grant->jkt, id), request->now_s))
			dpop_refuse(verdict_r, "the DPoP proof was used before");
		else
			result = 0;
	}
	jwt_fini(&proof);
	return result;
}
