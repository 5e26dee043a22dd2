/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication and authorization: who sent a request, and may they send this message. Only
 * decides; refusal.h tells the client. oauth.md §1, §5, §8, §11, §14; FRONT-SEC-04 … -07.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/grant.h"
#include "auth/verifier.h"
#include "base/list.h"
#include "base/map.h"
#include "base/tally.h"
#include "base/slice.h"
#include "endpoint/answer.h"
#include "http/parse.h"
#include "io/peer.h"
#include "policy/rights.h"
#include "session/deny_list.h"
#include "session/principal.h"

/* ---- failures ---- */

/*
 * How many wrong tokens came from an address within a minute. An IPv6 address counts by its first
 * 64 bits, since one person can choose the rest. Peers on this machine are exempt: a proxy that is
 * not declared (trusted_proxies) would stand for everybody. AUTH-CH-11, AUTH-TOK-06, DEF-23.
 */

#define FAILURES_WINDOW_MS (60 * 1000)
/* Addresses remembered; beyond that, the one that failed longest ago is dropped. */
#define FAILURES_ADDRESSES_MAX 10000

struct failures {
	struct map by_key;
	struct list entries; /* by last failure */
	size_t count;
	uint64_t seed;
	uint64_t max;        /* per FAILURES_WINDOW_MS and address; 0: unlimited */
	struct tally shared; /* with the other nodes of the cluster */
};

void failures_init(struct failures *failures, uint64_t max);
void failures_fini(struct failures *failures);
/* A number for the address, as long as these last; 0: it may stand for many callers. */
uint64_t failures_key(const struct failures *failures, const struct peer *peer);

/* Counts a failure. Returns after how many seconds the address may fail again; 0: now. */
unsigned int failures_note(struct failures *failures, const struct peer *peer);
/* Whether it has no failures left now. */
bool failures_is_slowed(const struct failures *failures, const struct peer *peer);
/* A valid token came from this address: resets its count. */
void failures_forget(struct failures *failures, const struct peer *peer);

/* ---- access ---- */

/* Who sent an admitted request, and what they may do. Established by authorization.h. */

struct access {
	struct principal *principal; /* holds a reference */
	struct grant *grant;         /* likewise; NULL: not a token of an issuer */
	struct rights rights;        /* of the token */
	unsigned int configuration;  /* that admitted it to its endpoint; 0: none has */
	uint64_t ends_at_ms;         /* expiry of the token; wall clock, UINT64_MAX: never */
};

/* Takes another reference to the same principal and grant. */
struct access access_copy(const struct access *access);
/* Whether they are of one principal, by the same token. */
bool access_is_same(const struct access *one, const struct access *other);
void access_fini(struct access *access);
/*
 * Gives the principal this token's claims from now on, for the session that is about to begin.
 * AUTH-DWN-02
 */
void access_keep_claims(const struct access *access);
/* What a deny list entry can name of the token; borrowed from it. */
void access_show(const struct access *access, struct denial_marks *marks_r);

struct http_conn;
struct permissions;
struct session_set;
struct dpop_memory;

/* The modes before AUTHORIZATION_TOKEN require no credential. */
enum authorization_mode {
	AUTHORIZATION_NONE,
	AUTHORIZATION_ANONYMOUS, /* the operator has opened it to everybody */
	AUTHORIZATION_TOKEN,     /* static tokens */
	AUTHORIZATION_OAUTH,     /* tokens of issuers, and static ones */
};

enum authorization_dpop {
	AUTHORIZATION_DPOP_OFF,
	AUTHORIZATION_DPOP_ON,
	AUTHORIZATION_DPOP_REQUIRED
};

/* The requirements of one endpoint. */
struct protected_resource {
	struct slices audience;   /* that a token may name besides the resource */
	struct slices clients;    /* whose tokens are accepted; none: any. AUTH-JWT-13 */
	struct slices algorithms; /* of signatures; none: all that the issuer may use */
	struct slices scopes;     /* required for any request */
	bool tells_in_result;     /* lacking scopes are told in a call's result. AUTH-SCP-11 */
	bool keeps_token;    /* one of its servers gets a token that is made for the caller's */
	bool asserts_caller; /* the server gets a token that says who calls: endpoint/assertion.h */
	/* Derived: */
	struct slice server;                   /* its name */
	struct scope_set base;                 /* scopes */
	const struct permissions *permissions; /* of the server; NULL: none */
	/* AUTHORIZATION_OAUTH: */
	struct slice resource;  /* its identifier: the endpoint's public URL */
	struct slice metadata;  /* the URL of its metadata document */
	struct slices accepted; /* the resource, followed by the audience */
};
/* Everything is borrowed for the life of the authorization. */
struct authorization_conf {
	enum authorization_mode mode;
	struct static_tokens tokens;
	bool takes_api_keys;          /* also accepts them in X-API-Key. AUTH-TOK-05 */
	uint64_t failures_max;        /* per minute and address; 0: unlimited. DEF-23 */
	struct slices initial_scopes; /* requested first, besides the base scopes. AUTH-SCP-09 */
	struct slice_map scope_hierarchy; /* a scope (key) implies those in its list. AUTH-SCP-04 */
	bool names_held; /* a challenge also names the scopes that the token has. AUTH-SCP-03 */
	/* Of the admin socket: Caller-Claims says which claims the caller has that is to be served. */
	bool takes_claims;
	bool binds_client; /* a session also belongs to the OAuth client. AUTH-SES-01 */
	/* AUTHORIZATION_OAUTH: */
	struct verifier_conf issuers; /* the preferred one first */
	enum authorization_dpop dpop;
	struct slice public_url; /* named in proofs */
	/* Derived: */
	const struct scope_table *scopes;
	struct scope_set initial;
	bool has_roles; /* what no role allows is forbidden */
	const struct roles *roles;
	/* Created when the process starts, with AUTHORIZATION_OAUTH: */
	struct verifier *verifier;
	struct dpop_memory *proofs;
};

struct authorization {
	struct authorization_conf conf;
	struct list watches; /* token_watch.h */
	struct principal_set *principals;
	struct deny_list *deny_list;
	struct failures failures;
	unsigned int configuration; /* number of the current one, from 1 */
};

void authorization_init(struct authorization *auth, struct session_set *sessions,
			const struct authorization_conf *conf);
void authorization_fini(struct authorization *auth);
/* Switches to another configuration; counted failures are kept. */
void authorization_renew_conf(struct authorization *auth, const struct authorization_conf *conf);
/*
 * Must follow: ends what callers may no longer have open. Static tokens that were removed or now
 * have fewer servers or an earlier expiry, and removed issuers, count as denied as of now; `before`
 * is the previous configuration.
 */
void authorization_end_removed(struct authorization *auth, const struct authorization_conf *before);
/* Updates a caller admitted before, until its next request; none for a removed static token. */
void authorization_renew_rights(const struct authorization_conf *conf,
				const struct principal *principal, struct rights *rights);

enum authorization_step { AUTHORIZATION_ADMITTED, AUTHORIZATION_REFUSED, AUTHORIZATION_WAITING };

/* The authorization of one request. */
struct authorization_check {
	/* Input, borrowed: */
	struct authorization *auth;
	const struct protected_resource *place;
	const struct http_request *http;
	const struct http_conn *conn;
	/* Output: */
	/*
	 * Of whoever it is; with AUTHORIZATION_REFUSED zero unless the token proves who that is.
	 * The caller ends it with access_fini.
	 */
	struct access access;
	struct refusal refusal; /* with AUTHORIZATION_REFUSED */
};

/*
 * Judges a request's header. Equal requests with equal tokens are refused equally (AUTH-CH-10),
 * except that an address with too many failures gets 429 (AUTH-CH-11). AUTHORIZATION_WAITING:
 * something must be fetched (see verifier_check); then call authorization_conclude with what
 * wait->on_done got and a copy of the same request. AUTH-IN-01 … -07, AUTH-TOK-02, -05,
 * AUTH-POP-01, -02, -04
 */
enum authorization_step authorization_admit(struct authorization_check *check,
					    struct verifier_wait *wait) must_check;
/* Takes ownership of the grant. Never returns AUTHORIZATION_WAITING. */
enum authorization_step authorization_conclude(struct authorization_check *check,
					       const struct verdict *verdict, struct grant *grant)
	must_check;
/* The token of a request that was admitted with an issuer's token; borrowed from the request. */
struct slice authorization_token(const struct http_request *http);

/*
 * Whether the token is still valid: it has not expired or been denied, and any newer configuration
 * admits it too; *access then has its rights. If not, sets *refusal_r. AUTH-SES-07
 */
bool authorization_is_current(const struct authorization *auth,
			      const struct protected_resource *place, struct access *access,
			      struct refusal *refusal_r) must_check;
/*
 * Whether it suffices for a server at all, of what was found out about its token before: without the
 * counts and log lines of a refusal.
 */
bool authorization_suffices(const struct authorization *auth,
			    const struct protected_resource *place, const struct access *access)
	must_check;
/* Whether the caller has these scopes. If not, *refusal_r names all of them. AUTH-SCP-02 */
bool authorization_covers(const struct authorization *auth, const struct protected_resource *place,
			  const struct access *access, const struct scope_set *needed,
			  struct refusal *refusal_r) must_check;
/*
 * Takes the new grant of the same token. False: it no longer covers what `access` was given for
 * (other identity, a base scope missing, denied, not one of this server's clients), and *access is
 * unchanged.
 */
bool authorization_renew(const struct authorization *auth, const struct protected_resource *place,
			 struct access *access, struct grant *grant) must_check;
/*
 * The same after a configuration change, without the issuer: whether access would be granted now.
 * If not, *refusal_r is what a request with this token would get. Anonymous access is granted where
 * no token is required.
 */
bool authorization_judge_again(const struct authorization *auth,
			       const struct protected_resource *place, struct access *access,
			       struct refusal *refusal_r) must_check;
/* The rights of a token with this grant; of its scopes only those that the configuration names. */
struct rights authorization_rights_of(const struct authorization_conf *conf,
				      const struct grant *grant);
/* Whether these rights allow anything at this server; if not, requests get 403. SEC-56 */
bool authorization_has_role(const struct protected_resource *place, const struct rights *rights);
/* The caller's rights, with all implied scopes. */
struct rights authorization_rights(const struct authorization *auth, const struct access *access);
