/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a bearer token to a verdict. Knows the configured issuers, asks for and keeps their keys, asks
 * them about opaque tokens, remembers the results. Knows no HTTP serving, no sessions, no scopes
 * that an operation needs, and no static tokens: those are judged before.
 *
 * One verification path: a JWT of a configured issuer is judged here by its signature and claims, any
 * other token by introspection where an issuer offers it (RFC 7662). What depends on the asker (the
 * audience) is judged at each check, also on a remembered token.
 */
#ifndef MCPGATED_AUTH_VERIFIER_H
#define MCPGATED_AUTH_VERIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/client_auth.h"
#include "auth/grant.h"
#include "auth/verdict.h"
#include "base/error.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"

struct fetch_client;
struct roles;
struct verifier;

/* Strings are copied by verifier_new, lists are borrowed for the verifier's life, or until verifier_renew. */
struct verifier_issuer_conf {
	const char *issuer;        /* see url_check_ours */
	struct slices audience;    /* accepted besides the resource of the asker */
	bool client_is_audience;   /* of tokens without `aud`: AUTH-AUD-02 */
	struct slices algorithms;  /* none: VERIFIER_ALGORITHMS */
	const char *jwks_uri;      /* NULL: from the issuer's metadata */
	uint64_t jwks_interval_ms; /* at most one forced refresh for an unknown key in this time */
	uint64_t leeway_ms;
	uint64_t max_lifetime_ms; /* of a token; 0: any */
	struct slice_map
		required_claims; /* its tokens have all of them, each with one of the values */
	const char *introspection_endpoint; /* NULL: from the issuer's metadata */
	const char *client_id;              /* for introspection; NULL: none is done */
	const char *client_secret;
	enum client_auth_method auth_method;
	const char *client_key;        /* PEM, for CLIENT_PRIVATE_KEY_JWT instead of the secret */
	const char *client_key_id;     /* or NULL */
	bool introspect_always;        /* JWTs too, for revocation */
	uint64_t introspection_ttl_ms; /* an answer that a token is good holds so long; 0: 30 s */
	const char *ca_file;           /* whoever makes ca reads it from there; NULL: none */
	const struct roles *roles;     /* that its tokens may give; NULL: none */
	struct slice ca;               /* PEM text of accepted CAs; empty: the system's */
	/*
	 * Fetches may connect to loopback and private addresses; to link-local ones never. An issuer whose
	 * URL is a loopback address may be reached there without it.
	 */
	bool allow_private;
};

struct verifier_conf {
	struct verifier_issuer_conf *items; /* the issuers */
	size_t count;
};

/* What may be configured besides: their 384 and 512. See algorithm_find. AUTH-JWT-02 */
#define VERIFIER_ALGORITHMS                                                    \
	{                                                                      \
		SLICE("RS256"), SLICE("PS256"), SLICE("ES256"), SLICE("EdDSA") \
	}

/* Tokens above this are refused without a look. AUTH-IN-06 */
#define VERIFIER_TOKEN_BYTES_MAX (16 * 1024)

/*
 * Once, before the process is confined: what OpenSSL and jansson would otherwise open or read later, here and elsewhere.
 */
int verifier_prepare(struct error *err) must_check;

/*
 * Makes a verifier and begins to ask the client for what it needs; waits for nothing (AUTH-AS-04). Returns it (the
 * caller's), or NULL if the configuration holds something impossible. loop and client are borrowed.
 */
struct verifier *verifier_new(struct loop *loop, struct fetch_client *client,
			      const struct verifier_conf *conf, struct error *err) must_check;
/*
 * The same issuers, in their order, in another configuration, whose lists (and roles) are borrowed from now on instead. What was
 * remembered of tokens is forgotten. AUTH-IN-07
 */
void verifier_renew(struct verifier *verifier, const struct verifier_conf *conf);
/* All that another one waits for is asked of this one; answers that are known come at once. The other one can be freed then. */
void verifier_take_over(struct verifier *verifier, struct verifier *other);
/* Whoever waits is told that the token cannot be judged now. */
void verifier_give_up(struct verifier *verifier);
/* Ends all inquiries. No wait may be under way: cancel them first. Accepts NULL. */
void verifier_free(struct verifier **verifier);

/* ---- one check ---- */

/* The grant is the callee's (grant_unref) and not NULL exactly if verdict->kind is VERDICT_OK. */
struct verifier_wait;
typedef void verifier_done_fn(struct verifier_wait *wait, const struct verdict *verdict,
			      struct grant *grant);

/* Embedded by its owner, which sets on_done and is_suspect; zeroed otherwise. */
struct verifier_wait {
	verifier_done_fn *on_done;
	bool is_suspect; /* many wrong tokens came from its address: it may use only half of the questions. AUTH-OPQ-03 */
	struct verifier_job *job;      /* private; NULL when nothing is under way */
	struct list link;              /* private */
	const struct slices *accepted; /* private */
};

/*
 * Judges a token that passed the syntax of b64token.
 *
 * token      borrowed for this call only; it never appears in a verdict or a log
 * accepted   identifiers of the asker's resource: borrowed until the wait is over; those that it holds then decide
 *
 * Returns true if the verdict is known at once: *verdict_r and *grant_r are filled as for on_done, and
 * on_done is not called. This is so for remembered tokens, for JWTs whose issuer's keys are at hand, and
 * for all that can be refused by looking. Returns false if something has to be fetched: on_done is called
 * later, exactly once, from the loop and at most VERIFIER_WAIT_MS from now, unless verifier_cancel comes
 * first; it may free the wait.
 */
bool verifier_check(struct verifier *verifier, struct slice token, const struct slices *accepted,
		    struct verifier_wait *wait, struct verdict *verdict_r, struct grant **grant_r)
	must_check;
/*
 * What a verifier has granted, judged once more by the rules that hold now, and for a resource that is identified by `accepted`
 * now: the claims, and whether the issuer would have to be asked where it was not. Keys are not looked at, nobody is asked, and the
 * times for that stay. Returns the new grant, the caller's, or NULL and the verdict.
 */
struct grant *verifier_judge_again(const struct verifier *verifier, const struct grant *grant,
				   const struct slices *accepted, struct verdict *verdict_r)
	must_check;
/* on_done will not be called. Also for a wait that is over or never began. */
void verifier_cancel(struct verifier_wait *wait);

#define VERIFIER_WAIT_MS (10 * 1000)

/* Seconds to offer in Retry-After with an UNAVAILABLE verdict. */
#define VERIFIER_RETRY_AFTER_S 5

/* ---- for the facade of registration ---- */

/*
 * The metadata document of issuer number `index` as last fetched and found right, for the facade of
 * AUTH-FAC-01; borrowed until the next turn of the loop; NULL as long as there is none (AUTH-FAC-04).
 * With a configured jwks_uri the document is fetched all the same, but nothing waits for it.
 */
const json_t *verifier_metadata(const struct verifier *verifier, size_t index);

#endif
