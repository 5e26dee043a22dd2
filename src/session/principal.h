/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is calling: interned, so that equal identities are the same pointer as long as anything refers to it.
 * It holds no credential. oauth.md §1, AUTH-SES-01; threats.md SEC-04.
 */
#ifndef MCPGATED_SESSION_PRINCIPAL_H
#define MCPGATED_SESSION_PRINCIPAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slice.h"

/* The issuer of the tokens in auth.tokens. Other issuers are URLs. */
#define PRINCIPAL_STATIC_ISSUER "static"

/* What makes two callers the same one. Each part is length-counted; one that is missing is empty. */
struct identity {
	struct slice issuer;
	struct slice subject;
	struct slice client;
};

struct principal_set;

struct principal {
	struct principal_set *set;
	struct map_link by_key;
	unsigned int refs;
	size_t sessions; /* that it has open */
	/* Of the token that opened its last session, by the index of claim_names; NULL, or any of them NULL: none. */
	char **claims;
	size_t claim_count; /* of them */
	unsigned int
		claims_are; /* of the names that had this number; others have taken their place if it is another */
	/* All parts empty: anonymous. Else their texts lie behind this struct. */
	struct identity identity;
};

/* Must not move. Nothing to release: a set without references holds no memory. */
struct principal_set {
	struct map by_key;
	uint64_t seed;
	struct slices claim_names;  /* that principals keep; borrowed */
	unsigned int names_are;     /* how often they have changed */
	struct principal anonymous; /* all clients that need no token */
};

void principal_set_init(struct principal_set *set);
/* Other names of claims, borrowed likewise: what principals keep is forgotten until their next session begins. */
void principal_set_rename_claims(struct principal_set *set, struct slices claim_names);
/* A reference to the principal of this identity, which must not be all empty. */
struct principal *principal_get(struct principal_set *set, const struct identity *identity);
struct principal *principal_ref(struct principal *principal);
/* Accepts NULL; sets the caller's pointer to NULL. */
void principal_unref(struct principal **principal);
/* Keeps a value for the name of this index; what is no text for a server (text_is_claim) is kept as none. */
void principal_set_claim(struct principal *principal, size_t index, struct slice value);
/* The value for a name; NULL: there is none. Valid until the next request of the same principal. */
const char *principal_claim(const struct principal *principal, struct slice name);
bool principal_is_anonymous(const struct principal *principal);

#endif
