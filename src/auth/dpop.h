/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof of possession: DPoP proofs (RFC 9449). Pure except for the memory of proofs seen. Whether a
 * token is bound at all is read from the grant (jkt).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "auth/grant.h"
#include "base/slice.h"

/* For dpop_signing_alg_values_supported, ended by NULL. */
extern const char *const dpop_algorithms[];

/* How far `iat` may differ from now, in either direction. */
#define DPOP_WINDOW_S 300

/* The proofs of the last windows. Bounded: when full, the oldest is forgotten. */
struct dpop_memory;
struct dpop_memory *dpop_memory_new(size_t proofs_max);
void dpop_memory_free(struct dpop_memory **memory);

struct dpop_request {
	struct slice proof;  /* value of the only DPoP header field */
	struct slice method; /* as in the request line */
	struct slice url;    /* public URL of the request; query and fragment are ignored */
	struct slice token;  /* the access token that came with it */
	uint64_t now_s;      /* wall clock */
};

/*
 * Judges one proof for a grant: typ, algorithm, key, signature, htm, htu, iat, ath, jti, and that
 * its key is the grant's. A grant without jkt is refused (VERDICT_BOUND): a bearer token is not a
 * DPoP token. Returns 0, or -1 and the verdict. RFC 9449 s4.3, s7.1. AUTH-POP-02
 */
int dpop_check(struct dpop_memory *memory, const struct grant *grant,
	       const struct dpop_request *request, struct verdict *verdict_r) must_check;
