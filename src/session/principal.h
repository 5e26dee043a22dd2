/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's identity. Principals are interned: equal identities are the same pointer as long as
 * there is a reference. A principal holds no credential, unless a server's token is made for it. And
 * what each caller has of what is limited. oauth.md §1, AUTH-SES-01; threats.md SEC-04.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/peer.h"

/* The issuer of the tokens in auth.tokens. Other issuers are URLs. */
#define PRINCIPAL_STATIC_ISSUER "static"
/* Of whom the operator names by claims, at the admin socket. */
#define PRINCIPAL_OPERATOR_ISSUER "operator"

/* The key of a principal. Each part is length-counted; a missing part is empty. */
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
	size_t sessions; /* open ones */
	/*
	 * When it would have had its share of the loop for all that its requests have cost
	 * (endpoint/frontend).
	 */
	uint64_t paid_at_ms;
	/*
	 * From the token that opened its latest session, indexed like claim_names. NULL, or any
	 * element NULL: none.
	 */
	char **claims;
	size_t claim_count; /* the length of `claims` */
	/* The `names_are` that `claims` belong to; if it differs, they are outdated. */
	unsigned int claims_are;
	struct list
		tokens; /* struct shown_token: of servers with auth.grant token_exchange, and their endpoints */
	/* All parts empty: anonymous. Otherwise the text is stored behind this struct. */
	struct identity identity;
};

/* Must not move. Needs no cleanup: a set without references holds no memory. */
struct principal_set {
	struct map by_key;
	uint64_t seed;
	struct slices claim_names;  /* the claims that principals keep; borrowed */
	unsigned int names_are;     /* how often claim_names changed */
	struct principal anonymous; /* all clients that need no token */
};

void principal_set_init(struct principal_set *set);
/*
 * Replaces claim_names, also borrowed. The claims kept so far are forgotten until the principal's
 * next session begins.
 */
void principal_set_rename_claims(struct principal_set *set, struct slices claim_names);
/*
 * Returns a reference to the principal of this identity, of which at least one part must not be
 * empty.
 */
struct principal *principal_get(struct principal_set *set, const struct identity *identity);
struct principal *principal_ref(struct principal *principal);
/* Accepts NULL; sets the caller's pointer to NULL. */
void principal_unref(struct principal **principal);
/*
 * Keeps a value for the name with this index. A value that must not be passed to a server
 * (text_is_claim) is kept as none.
 */
void principal_set_claim(struct principal *principal, size_t index, struct slice value);
/* The value of a claim; NULL: none. Valid until the next request of the same principal. */
const char *principal_claim(const struct principal *principal, struct slice name);
/* The last token that it has shown at a place: the name of a server, or of an endpoint. */
struct shown_token {
	struct list link;
	uint64_t number; /* of the token, never used again */
	struct buf token;
	size_t length;
	char place[];
};

/*
 * Keeps a token with which it has been let in, in place of the one before there, which is wiped; one that is empty is
 * forgotten. BACK-URL-10
 */
void principal_keep_token(struct principal *principal, struct slice place, struct slice token);
/* NULL: none. Valid until the next request of the same principal. */
const struct shown_token *principal_token(const struct principal *principal, struct slice place);
bool principal_is_anonymous(const struct principal *principal);
/*
 * What this principal has sent has been worked off, since began_ns (clock_monotonic_ns): as much of
 * the loop's time is now for others (paid_at_ms).
 */
void principal_charge(struct principal *principal, uint64_t began_ns);

/* ---- what one caller has ---- */

/*
 * How much one caller holds of a limited resource: of all sessions, or of a server's processes. A
 * caller is a principal; anonymous callers are distinguished by their address, where all IPv6
 * addresses of a /64 count as one.
 */

struct holder {
	struct map_link by_key;
	struct holder_set *set;
	unsigned int refs;
	/* What the count is for: the set of sessions, a server or a limit; only compared. */
	const void *scope;
	const struct principal *principal;
	uint64_t network;
	bool is_crowd;    /* anonymous, of this machine: may be an undeclared proxy for everybody */
	struct list idle; /* its unused sessions; idle longest first */
	size_t count;     /* that it holds */
	size_t waiting; /* that it waits for; counted while callers are compared (router/process_slots) */
	size_t coming;  /* of those that it waits for, promised to it */
	size_t leaving; /* of those that it holds, promised to others */
};

/* Must not move. Needs no cleanup: a set without references holds no memory. */
struct holder_set {
	struct map by_key;
	uint64_t seed;
};

void holder_set_init(struct holder_set *set);
/*
 * Returns a reference to the holder of this caller. Whoever has one must also have one to the
 * principal.
 */
struct holder *holder_get(struct holder_set *set, const void *scope,
			  const struct principal *principal, const struct peer *peer);
/* The holder of this caller if there is one; else NULL. */
const struct holder *holder_find(const struct holder_set *set, const void *scope,
				 const struct principal *principal, const struct peer *peer);
/*
 * A number for this caller that stays the same across connections: for counting callers that hold
 * nothing.
 */
uint64_t holder_key(const struct holder_set *set, const void *scope,
		    const struct principal *principal, const struct peer *peer);
/*
 * The same without a scope, for what one caller causes: log lines, records. principal NULL: nobody
 * knows who it is. Unpredictable for peers, as keys of maps have to be.
 */
uint64_t holder_number(const struct principal *principal, const struct peer *peer);
/* Accepts NULL; sets the caller's pointer to NULL. */
void holder_unref(struct holder **holder);
