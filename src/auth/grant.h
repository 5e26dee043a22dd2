/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a verified token: its principal, its scopes, its expiry. Immutable and
 * reference-counted; it does not contain the token. All strings are terminated and free of NUL and
 * control characters: a claim that contains any is refused, never truncated (AUTH-JWT-14).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "policy/rights.h"

/* ---- verdicts ---- */

/*
 * The possible verdicts on a token: the rows of verdict.def. The function that finds a reason to
 * refuse writes the verdict and its cause; authorization maps it to a status, the log to a word.
 */

enum verdict_kind {
#define X(id, outcome, name, description) VERDICT_##id,
#include "auth/verdict.def"
	VERDICT_COUNT
};

enum verdict_outcome {
	VERDICT_GRANTED,
	VERDICT_REFUSED, /* 401 invalid_token with the row's description */
	VERDICT_DENIED,  /* 403 without a challenge: the token is valid, and no other would help */
	VERDICT_UNAVAILABLE, /* 503 with Retry-After, no challenge: the token may be valid */
};

#define VERDICT_CAUSE_BYTES 160

struct verdict {
	enum verdict_kind kind;
	/*
	 * For the log, never for the client: what exactly was wrong. May quote claims, never the
	 * token.
	 */
	char cause[VERDICT_CAUSE_BYTES];
};

struct verdict_row {
	enum verdict_outcome outcome;
	const char *name; /* for the log and the metrics */
	/*
	 * For error_description: constant ASCII without `"`, `\` and `=`; "" if there is no
	 * objection to the token.
	 */
	const char *description;
};
const struct verdict_row *verdict_get(enum verdict_kind kind);

/* How often this process has reached this verdict; whoever acts on a verdict counts it. */
void verdict_count(enum verdict_kind kind);
uint64_t verdict_counted(enum verdict_kind kind);

/* Fills *verdict_r and returns -1, so that callers can write `return verdict_set(…)`. */
int verdict_set(struct verdict *verdict_r, enum verdict_kind kind, const char *format, ...)
	printf_like(3, 4);

/* ---- grants ---- */

struct buf;
struct roles;

/*
 * From <jansson.h>, which cannot be included together with jsonrpc/scan.h: both define names of
 * JSON's types.
 */
typedef struct json_t json_t;

enum grant_source { GRANT_JWT, GRANT_INTROSPECTION };

/* base64url of a SHA-256, and NUL. */
#define GRANT_THUMBPRINT_BYTES 44

struct grant {
	unsigned int references;
	enum grant_source source;
	char *issuer;    /* as configured */
	char *subject;   /* NULL if the token has none; then there is a client_id */
	char *client_id; /* client_id, else azp, appid, cid; NULL if none */
	bool client_is_audience;
	char **scopes; /* in the token's order, without duplicates */
	size_t scope_count;
	struct role_set roles; /* granted by its claims */
	uint64_t expires_at_s; /* `exp` in whole seconds; 0: introspection returned none */
	uint64_t ends_at_ms; /* `exp` plus the leeway, as clock_wall_ms; UINT64_MAX without `exp` */
	/*
	 * For tokens that the issuer was asked about, as clock_now_ms; else UINT64_MAX. AUTH-OPQ-08
	 */
	uint64_t ask_again_at_ms; /* when to ask the issuer again */
	uint64_t trust_until_ms;  /* an open stream ends if the issuer has not answered by then */
	/* Sender constraints; "" if none. They must be proven where the token is accepted. */
	char jkt[GRANT_THUMBPRINT_BYTES];      /* RFC 9449 s6: thumbprint of the DPoP key */
	char x5t_s256[GRANT_THUMBPRINT_BYTES]; /* RFC 8705 s3.1: of the client certificate */
	const char *algorithm;                 /* of the signature; NULL if introspected */
	json_t *claims; /* the whole object; borrowed as long as the grant lives */
};

struct grant *grant_ref(struct grant *grant);
/* Accepts NULL; sets the caller's pointer to NULL. */
void grant_unref(struct grant **grant);

/*
 * Compares whole tokens, case-sensitively; a hierarchy of scopes is up to the caller. AUTH-SCP-05
 */
bool grant_has_scope(const struct grant *grant, struct slice scope);

/*
 * Appends the value of a claim as text: strings as they are, numbers without a fraction, true and
 * false. Returns whether there is such a value; a string with a NUL does not count.
 */
bool grant_append_claim(const struct grant *grant, struct slice name, struct buf *out);

/* The claim if it is a string; else empty. Borrowed for the grant's life. */
struct slice grant_claim_text(const struct grant *grant, const char *name);

/*
 * Whether the claim with this name, or an element of it if it is a list, equals one of the values:
 * compared byte for byte in the form that grant_append_claim writes. AUTH-JWT-15
 */
bool grant_meets(const struct grant *grant, const struct named_slices *demand);

/*
 * Whether `aud` (or the client id, if the rules say so and there is no `aud`) contains one of
 * `accepted`. In URLs, scheme and host are case-insensitive, the default port and an absent path
 * are treated as usual, and one slash at the end of the path is ignored; everything else is
 * compared byte for byte. AUTH-AUD-01, 03, 05, 06
 */
bool grant_is_for(const struct grant *grant, struct slices accepted);
/* Appends `aud` for the operator: its values, separated by commas; or that there is none. */
void grant_append_audience(const struct grant *grant, struct buf *out);

/* ---- creating one: only for auth/ ---- */

struct grant_rules {
	const char *issuer;
	uint64_t leeway_ms;
	bool must_expire;          /* a missing `exp` is refused: JWTs */
	uint64_t max_lifetime_ms;  /* from `iat` to `exp`; 0: unlimited. AUTH-JWT-11 */
	bool client_is_audience;   /* of a token without `aud`. AUTH-AUD-02 */
	const struct roles *roles; /* the existing ones; NULL: none */
};

/*
 * Applies the rules for claims, except the audience: exp, nbf, iat, sub, client id, scopes, cnf;
 * times against now_ms (wall clock). `claims` is shared (the grant takes a reference). Returns a
 * grant, which the caller owns, or NULL and the verdict. AUTH-JWT-10, 12, 13, 14, AUTH-SCP-05,
 * AUTH-POP-01
 */
struct grant *grant_new(json_t *claims, const struct grant_rules *rules, uint64_t now_ms,
			struct verdict *verdict_r) must_check;
/*
 * The grant of a token with these claims, disregarding its validity and to whom it is bound: for the operator, who says
 * what a caller has. Without sub it is somebody's. NULL: no token can have these claims; err says why.
 */
struct grant *grant_imagine(const json_t *claims, const char *issuer, const struct roles *roles,
			    struct error *err) must_check;
/* The same for a text, a JSON object. */
struct grant *grant_imagine_text(struct slice claims, const char *issuer, const struct roles *roles,
				 struct error *err) must_check;
/* Whether it has not expired. */
bool grant_is_current(const struct grant *grant, uint64_t now_ms);
