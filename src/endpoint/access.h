/* SPDX-License-Identifier: Apache-2.0 */
/* Who sent an admitted request, and what they may do. Established by authorization.h. */
#ifndef MCPGATED_ENDPOINT_ACCESS_H
#define MCPGATED_ENDPOINT_ACCESS_H

#include <stdint.h>

#include "auth/grant.h"
#include "policy/rights.h"
#include "session/deny_list.h"
#include "session/principal.h"

struct access {
	struct principal *principal; /* holds a reference */
	struct grant *grant;         /* likewise; NULL: not a token of an issuer */
	struct rights rights;        /* of the token */
	unsigned int configuration;  /* that admitted it to its endpoint; 0: none has */
	uint64_t ends_at_ms;         /* expiry of the token; wall clock, UINT64_MAX: never */
};

/* Takes another reference to the same principal and grant. */
struct access access_copy(const struct access *access);
void access_fini(struct access *access);
/*
 * Gives the principal this token's claims from now on, for the session that is about to begin.
 * AUTH-DWN-02
 */
void access_keep_claims(const struct access *access);
/* What a deny list entry can name of the token; borrowed from it. */
void access_show(const struct access *access, struct denial_marks *marks_r);

#endif
