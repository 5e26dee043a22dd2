/* SPDX-License-Identifier: Apache-2.0 */
/* Who has sent a request that was let in, and what he may do. authorization.h finds it out. */
#ifndef MCPGATED_ENDPOINT_ACCESS_H
#define MCPGATED_ENDPOINT_ACCESS_H

#include <stdint.h>

#include "auth/grant.h"
#include "policy/rights.h"
#include "session/deny_list.h"
#include "session/principal.h"

struct access {
	struct principal *principal; /* a reference */
	struct grant *grant;         /* likewise; NULL: no token of an issuer */
	struct rights rights;        /* of its token */
	unsigned int configuration;  /* number of the one that let it in */
	uint64_t ends_at_ms;         /* of its token; wall clock, UINT64_MAX: never */
};

/* A second reference to the same. */
struct access access_copy(const struct access *access);
void access_fini(struct access *access);
/* His principal has the claims of this token from now on, for the session that is about to begin. AUTH-DWN-02 */
void access_keep_claims(const struct access *access);
/* What his token says that an entry of the denials can name; borrowed from it. */
void access_show(const struct access *access, struct denial_marks *marks_r);

#endif
