/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a bearer token to a verdict. Knows the configured issuers, fetches and keeps their keys,
 * asks them about opaque tokens, and caches the results; compares static tokens. It knows nothing
 * about HTTP serving, sessions, or the scopes an operation needs.
 *
 * There is one verification path: a static token is found by its hash, a JWT of a configured issuer
 * is judged here by its signature and claims, any other token by introspection if an issuer offers it (RFC 7662). What depends on the
 * asker (the audience) is judged at each check, even for a cached token.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/client_auth.h"
#include "auth/grant.h"
#include "base/error.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "policy/rights.h"

struct fetch_client;
struct verifier;

/*
 * Strings are copied by verifier_new; lists are borrowed for the verifier's life, or until
 * verifier_renew.
 */
struct verifier_issuer_conf {
	const char *issuer;        /* see url_check_ours */
	struct slices audience;    /* accepted in addition to the asker's resource */
	bool client_is_audience;   /* of tokens without `aud`: AUTH-AUD-02 */
	struct slices algorithms;  /* none: VERIFIER_ALGORITHMS */
	const char *jwks_uri;      /* NULL: from the issuer's metadata */
	uint64_t jwks_interval_ms; /* minimum time between forced refreshes for an unknown key */
	uint64_t leeway_ms;
	uint64_t max_lifetime_ms; /* of a token; 0: unlimited */
	/* Its tokens must have all of them, each with one of the values. */
	struct slice_map required_claims;
	const char *introspection_endpoint; /* NULL: from the issuer's metadata */
	const char *client_id;              /* for introspection; NULL: no introspection */
	const char *client_secret;
	enum client_auth_method auth_method;
	const char *client_key;        /* PEM, for CLIENT_PRIVATE_KEY_JWT instead of the secret */
	const char *client_key_id;     /* or NULL */
	bool introspect_always;        /* JWTs too, to detect revocation */
	uint64_t introspection_ttl_ms; /* how long a positive answer is valid; 0: 30 s */
	const char *ca_file;           /* whoever sets `ca` reads it from this file; NULL: none */
	const struct roles *roles;     /* that its tokens may give; NULL: none */
	struct slice ca;               /* PEM text of accepted CAs; empty: the system's */
	/*
	 * Fetches may connect to loopback and private addresses, but never to link-local ones. If
	 * the issuer's URL is a loopback address, it may be reached there even if this is false.
	 */
	bool allow_private;
};

struct verifier_conf {
	struct verifier_issuer_conf *items; /* the issuers */
	size_t count;
};

/*
 * The defaults. The 384 and 512 variants may be configured as well. See algorithm_find. AUTH-JWT-02
 */
#define VERIFIER_ALGORITHMS                                                    \
	{                                                                      \
		SLICE("RS256"), SLICE("PS256"), SLICE("ES256"), SLICE("EdDSA") \
	}

/* Longer tokens are refused unread. AUTH-IN-06 */
#define VERIFIER_TOKEN_BYTES_MAX (16 * 1024)

/*
 * Call once, before the process is confined: loads what OpenSSL and jansson would otherwise open or
 * read later, here and elsewhere.
 */
int verifier_prepare(struct error *err) must_check;

/*
 * Creates a verifier and begins to ask the client for what it needs, without waiting for anything
 * (AUTH-AS-04). The caller owns the result; NULL and err if the configuration is unusable. Borrows
 * loop and client.
 */
struct verifier *verifier_new(struct loop *loop, struct fetch_client *client,
			      const struct verifier_conf *conf, struct error *err) must_check;
/*
 * Switches to another configuration with the same issuers in the same order; its lists (and roles)
 * are borrowed from now on instead. Cached results for tokens are dropped. AUTH-IN-07
 */
void verifier_renew(struct verifier *verifier, const struct verifier_conf *conf);
/*
 * Moves all waits of `other` to this verifier; known answers are delivered at once. `other` can
 * then be freed.
 */
void verifier_take_over(struct verifier *verifier, struct verifier *other);
/* Ends all waits with the verdict that the token cannot be judged now. */
void verifier_give_up(struct verifier *verifier);
/* Ends all inquiries. No wait may be pending: cancel them first. Accepts NULL. */
void verifier_free(struct verifier **verifier);

/* ---- one check ---- */

/*
 * The callee owns the grant (grant_unref), which is not NULL if and only if verdict->kind is
 * VERDICT_OK.
 */
struct verifier_wait;
typedef void verifier_done_fn(struct verifier_wait *wait, const struct verdict *verdict,
			      struct grant *grant);

/* Embedded by its owner, which sets on_done, is_suspect and asker; otherwise zeroed. */
struct verifier_wait {
	verifier_done_fn *on_done;
	/*
	 * Many bad tokens came from its address: it may use only half of the questions. AUTH-OPQ-03
	 */
	bool is_suspect;
	/* A number for its address, of which more than a few questions at a time count as suspect; 0: not counted. */
	uint64_t asker;
	struct verifier_job *job;      /* private; NULL when nothing is pending */
	struct list link;              /* private */
	const struct slices *accepted; /* private */
};

/*
 * Judges a token that matched the syntax of b64token.
 *
 *	token      borrowed for this call only; it never appears in a verdict or a log
 *	accepted   identifiers of the asker's resource; borrowed until the wait is over, and
 *	           evaluated only then
 *
 * Returns true if the verdict is known at once: *verdict_r and *grant_r are filled as for on_done,
 * and on_done is not called. This applies to cached tokens, to JWTs whose issuer's keys are at
 * hand, and to everything that can be refused by inspection. Returns false if something must be
 * fetched: on_done is called later, exactly once, from the loop and at most VERIFIER_WAIT_MS from
 * now, unless verifier_cancel comes first; it may free the wait.
 */
bool verifier_check(struct verifier *verifier, struct slice token, const struct slices *accepted,
		    struct verifier_wait *wait, struct verdict *verdict_r, struct grant **grant_r)
	must_check;
/*
 * Judges a granted token again by the current rules, and for a resource that `accepted` identifies
 * now: the claims, and whether the issuer would now have to be asked where it was not before. Does
 * not check keys or ask anyone, and keeps the times for that. Returns the new grant, which the
 * caller owns, or NULL and the verdict.
 */
struct grant *verifier_judge_again(const struct verifier *verifier, const struct grant *grant,
				   const struct slices *accepted, struct verdict *verdict_r)
	must_check;
/* Prevents the call of on_done. Also valid for a wait that is over or never began. */
void verifier_cancel(struct verifier_wait *wait);

#define VERIFIER_WAIT_MS (10 * 1000)

/* Questions of one asker at a time that do not count as a suspect's. */
#define VERIFIER_OWN_MAX 8

/* Seconds for Retry-After with an UNAVAILABLE verdict. */
#define VERIFIER_RETRY_AFTER_S 5

/* ---- for the registration facade ---- */

/*
 * The metadata document of issuer number `index` as last fetched and validated, for the facade of
 * AUTH-FAC-01. Borrowed until the next turn of the loop; NULL while there is none (AUTH-FAC-04).
 * With a configured jwks_uri the document is still fetched, but nothing waits for it.
 */
const json_t *verifier_metadata(const struct verifier *verifier, size_t index);

/* ---- report ---- */

/* What the operator can see of an issuer; texts are borrowed. Times are of clock_now_ms. */
struct issuer_report {
	const char *name;
	bool has_keys;             /* or needs none: it is asked about each token */
	bool is_failing;           /* keys or metadata do not come */
	const char *cause;         /* why not; empty: not known */
	uint64_t keyless_since_ms; /* without has_keys: for how long */
	bool introspection_failing; /* its last question, of the last ten minutes, was not answered */
};

/* Issuer number `index` of the configuration; false: there are no more. */
bool verifier_report_issuer(const struct verifier *verifier, size_t index,
			    struct issuer_report *report_r) must_check;

/* ---- static tokens ---- */

#define STATIC_TOKEN_HASH_BYTES 32

/* One static token. */
struct static_token {
	struct slice name;
	const char *sha256; /* of the token, in hexadecimal digits */
	struct slices scopes;
	struct slices servers;  /* valid for these; none: all */
	struct slices roles;    /* by name */
	struct slice_map tools; /* what it may call, by server; none: what its roles say */
	uint64_t ends_at_ms;    /* wall clock; 0: never */
	/* Derived: */
	unsigned char hash[STATIC_TOKEN_HASH_BYTES];
	struct rights rights;
};

struct static_tokens {
	struct static_token *items;
	size_t count;
};

/* The token with this text; NULL: there is none. AUTH-TOK-02 */
const struct static_token *static_token_find(const struct static_tokens *tokens, struct slice text);
/* Distinguishes its text from those of other tokens of the same name. */
uint64_t static_token_mark(const struct static_token *token);
/* The token with this name and this mark. */
const struct static_token *static_token_find_marked(const struct static_tokens *tokens,
						    struct slice name, uint64_t mark);
/* AUTH-TOK-03 */
bool static_token_is_over(const struct static_token *token);
bool static_token_is_for(const struct static_token *token, struct slice server);
/* Whether the token is good for at least as long as before, and for at least the same servers. */
bool static_token_outlives(const struct static_token *token, const struct static_tokens *now);
