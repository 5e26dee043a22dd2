/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verified token says: its principal, its scopes, its end. Immutable and reference-counted; the
 * token itself is not in it. All texts are terminated and free of NUL and control characters: a claim that
 * holds such is refused, never cut (AUTH-JWT-14).
 */
#ifndef MCPGATED_AUTH_GRANT_H
#define MCPGATED_AUTH_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/verdict.h"
#include "base/slice.h"
#include "policy/rights.h"

struct buf;
struct roles;

/* Of <jansson.h>, which cannot stand in one file with jsonrpc/scan.h: both name JSON's types. */
typedef struct json_t json_t;

enum grant_source { GRANT_JWT, GRANT_INTROSPECTION };

/* base64url of a SHA-256, and NUL. */
#define GRANT_THUMBPRINT_BYTES 44

struct grant {
	unsigned int references;
	enum grant_source source;
	char *issuer;    /* as configured */
	char *subject;   /* NULL if the token has none; then client_id is there */
	char *client_id; /* client_id, else azp, appid, cid; NULL if none */
	bool client_is_audience;
	char **scopes; /* in the token's order, without repetitions */
	size_t scope_count;
	struct role_set roles; /* that its claims give */
	uint64_t expires_at_s; /* whole seconds of `exp`; 0: introspection named none */
	uint64_t ends_at_ms; /* `exp` and the leeway, as clock_wall_ms; UINT64_MAX without `exp` */
	/* Of tokens that the issuer was asked about, as clock_now_ms; UINT64_MAX for others. AUTH-OPQ-08 */
	uint64_t ask_again_at_ms; /* the issuer is to be asked again */
	uint64_t trust_until_ms; /* an open stream ends if the issuer has not answered until then */
	/* Sender constraints; "" if there is none. They must be proven where the token is accepted. */
	char jkt[GRANT_THUMBPRINT_BYTES];      /* RFC 9449 s6: thumbprint of the DPoP key */
	char x5t_s256[GRANT_THUMBPRINT_BYTES]; /* RFC 8705 s3.1: of the client certificate */
	const char *algorithm; /* of the signature, for the audit record; NULL if introspected */
	char *key_id;          /* `kid`, for the audit record; NULL if none */
	json_t *claims;        /* the whole object; borrowed as long as the grant lives */
};

struct grant *grant_ref(struct grant *grant);
/* Accepts NULL; sets the caller's pointer to NULL. */
void grant_unref(struct grant **grant);

/* Whole, case-sensitive tokens; a hierarchy of scopes is the caller's. AUTH-SCP-05 */
bool grant_has_scope(const struct grant *grant, struct slice scope);

/*
 * Appends the value of a claim as a text: strings as they are, numbers without fraction, true and false. Returns
 * whether there is such a value; a string with a NUL is none.
 */
bool grant_append_claim(const struct grant *grant, struct slice name, struct buf *out);

/* The claim if it is a text; else empty. Borrowed as long as the grant lives. */
struct slice grant_claim_text(const struct grant *grant, const char *name);

/*
 * Whether the claim of this name, or an element of it if it is a list, is one of the values: compared as
 * grant_append_claim writes it, byte for byte. AUTH-JWT-15
 */
bool grant_meets(const struct grant *grant, const struct named_slices *demand);

/* The roles whose claims it has, all of each; `scope` and `scp` are lists of scopes, whatever their form. SEC-56 */
struct role_set grant_find_roles(const struct grant *grant, const struct roles *roles);

/*
 * Whether `aud` (or the client's id, if the rules say so and there is no `aud`) holds one of `accepted`: URLs are
 * compared with scheme and host without case, default port and an absent path as usual, one slash at the end of the
 * path tolerated, everything else byte for byte. AUTH-AUD-01, 03, 05, 06
 */
bool grant_is_for(const struct grant *grant, struct slices accepted);

/* ---- making one: for the files of auth/ ---- */

struct grant_rules {
	const char *issuer;
	uint64_t leeway_ms;
	bool must_expire;          /* a missing `exp` refuses: JWTs */
	uint64_t max_lifetime_ms;  /* from `iat` to `exp`; 0: any. AUTH-JWT-11 */
	bool client_is_audience;   /* of a token without `aud`. AUTH-AUD-02 */
	const struct roles *roles; /* that there are; NULL: none */
};

/*
 * The rules for claims, except the audience: exp, nbf, iat, sub, client id, scopes, cnf; times against
 * now_ms (wall clock). `claims` is shared (ref). Returns a grant (the caller's) or NULL and the verdict.
 * AUTH-JWT-10, 12, 13, 14, AUTH-SCP-05, AUTH-POP-01
 */
struct grant *grant_new(json_t *claims, const struct grant_rules *rules, uint64_t now_ms,
			struct verdict *verdict_r) must_check;
/* Whether it is still within its time. */
bool grant_is_current(const struct grant *grant, uint64_t now_ms);

#endif
