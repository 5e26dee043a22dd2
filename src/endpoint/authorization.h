/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is it, and may it: from the head of a request to a principal, from a message to what its caller may
 * do. Decides only; refusal.h says it to the client. oauth.md §1, §5, §8, §11, §14; FRONT-SEC-04 … -07.
 */
#ifndef MCPGATED_ENDPOINT_AUTHORIZATION_H
#define MCPGATED_ENDPOINT_AUTHORIZATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/verifier.h"
#include "base/slice.h"
#include "endpoint/access.h"
#include "endpoint/failures.h"
#include "endpoint/refusal.h"
#include "http/parse.h"
#include "policy/rights.h"
#include "session/deny_list.h"
#include "session/principal.h"

#define AUTHORIZATION_HASH_BYTES 32

struct http_conn;
struct roles;
struct permissions;
struct session_set;
struct dpop_memory;

/* Those before AUTHORIZATION_TOKEN ask nobody. */
enum authorization_mode {
	AUTHORIZATION_NONE,
	AUTHORIZATION_ANONYMOUS, /* the operator has said that everybody may */
	AUTHORIZATION_TOKEN,     /* static tokens */
	AUTHORIZATION_OAUTH,     /* tokens of issuers, and static ones */
};

enum authorization_dpop {
	AUTHORIZATION_DPOP_OFF,
	AUTHORIZATION_DPOP_ON,
	AUTHORIZATION_DPOP_REQUIRED
};

/* One static token. */
struct static_token {
	struct slice name;
	const char *sha256; /* of its text, in hexadecimal digits */
	struct slices scopes;
	struct slices servers;  /* that it is for; none: all */
	struct slices roles;    /* that it has, by name */
	struct slice_map tools; /* what it may call instead, by server; none: what its roles say */
	uint64_t ends_at_ms;    /* wall clock; 0: never */
	/* What follows from that: */
	unsigned char hash[AUTHORIZATION_HASH_BYTES];
	struct rights rights;
};

struct static_tokens {
	struct static_token *items;
	size_t count;
};

/* What one endpoint asks for. */
struct protected_resource {
	struct slices audience;   /* that a token may name besides the resource */
	struct slices clients;    /* whose tokens are taken; none: everybody's. AUTH-JWT-13 */
	struct slices algorithms; /* of their signatures; none: all that the issuer may use */
	struct slices scopes;     /* for any request */
	bool tells_in_result;     /* what a call of a tool lacks, instead of 403. AUTH-SCP-11 */
	/* What follows from that: */
	struct slice server;                   /* its name */
	struct scope_set base;                 /* scopes */
	const struct permissions *permissions; /* of the server; NULL: there are none */
	/* AUTHORIZATION_OAUTH: */
	struct slice resource;  /* its identifier: the public URL of the endpoint */
	struct slice metadata;  /* the URL of its metadata document */
	struct slices accepted; /* the resource, and behind it the audience */
};
/* Everything borrowed for the authorization's life. */
struct authorization_conf {
	enum authorization_mode mode;
	struct static_tokens tokens;
	bool takes_api_keys;          /* they are taken from X-API-Key as well. AUTH-TOK-05 */
	uint64_t failures_max;        /* in a minute, of one address; 0: any number. DEF-23 */
	struct slices initial_scopes; /* asked for at first, besides the base scopes. AUTH-SCP-09 */
	struct slice_map scope_hierarchy; /* who holds the name holds the list. AUTH-SCP-04 */
	bool names_held;   /* a challenge names the scopes that the token has, too. AUTH-SCP-03 */
	bool binds_client; /* a session belongs to the client, too. AUTH-SES-01 */
	/* AUTHORIZATION_OAUTH: */
	struct verifier_conf issuers; /* the preferred one first */
	enum authorization_dpop dpop;
	struct slice public_url; /* what proofs name */
	/* What follows from that: */
	const struct scope_table *scopes;
	struct scope_set initial;
	bool has_roles; /* what none allows, nobody may use */
	const struct roles *roles;
	/* Made when the process begins, with AUTHORIZATION_OAUTH: */
	struct verifier *verifier;
	struct dpop_memory *proofs;
};

struct authorization {
	struct authorization_conf conf;
	struct list watches; /* token_watch.h */
	struct principal_set *principals;
	struct deny_list *deny_list;
	struct failures failures;
	unsigned int configuration; /* number of the one in use */
};

void authorization_init(struct authorization *auth, struct session_set *sessions,
			const struct authorization_conf *conf);
void authorization_fini(struct authorization *auth);
/* Another configuration; who has failed too often has. */
void authorization_renew_conf(struct authorization *auth, const struct authorization_conf *conf);
/*
 * After that: what callers have open who may not have it any more. Static tokens that are no more, or are for fewer servers or a
 * shorter time, and issuers that are no more, are as if they were denied at this moment; `before` is what was configured.
 */
void authorization_end_removed(struct authorization *auth, const struct authorization_conf *before);
/* The rights of a caller who was let in before that, until his next request; of a static token that is no more: none. */
void authorization_renew_rights(const struct authorization_conf *conf,
				const struct principal *principal, struct rights *rights);

enum authorization_step { AUTHORIZATION_ADMITTED, AUTHORIZATION_REFUSED, AUTHORIZATION_WAITING };

/* One request's way in. */
struct authorization_check {
	/* All borrowed: */
	struct authorization *auth;
	const struct protected_resource *place;
	const struct http_request *http;
	const struct http_conn *conn;
	/* Found out: */
	struct access access;   /* with AUTHORIZATION_ADMITTED; end it with access_fini */
	struct refusal refusal; /* with AUTHORIZATION_REFUSED */
};

/*
 * Judges the head of a request. Equal requests with equal tokens are refused equally (AUTH-CH-10), but for those of an
 * address that has failed too often: with 429 (AUTH-CH-11). AUTHORIZATION_WAITING: something has to be fetched first,
 * see verifier_check; then call authorization_conclude with what wait->on_done got, and with a copy of the same request.
 * AUTH-IN-01 … -07, AUTH-TOK-02, -05, AUTH-POP-01, -02, -04
 */
enum authorization_step authorization_admit(struct authorization_check *check,
					    struct verifier_wait *wait) must_check;
/* Takes the grant. Never AUTHORIZATION_WAITING. */
enum authorization_step authorization_conclude(struct authorization_check *check,
					       const struct verdict *verdict, struct grant *grant)
	must_check;
/* AUTH-TOK-03 */
bool static_token_is_over(const struct static_token *token);
bool static_token_is_for(const struct static_token *token, struct slice server);
/* The token of a request that was admitted by one of an issuer; borrowed from it. */
struct slice static_token(const struct http_request *http);

/*
 * Whether the token is still good: it has not expired, was not denied since, and another configuration that came since would let
 * it in, too, whose rights *access then has. If not, *refusal_r says so. AUTH-SES-07
 */
bool authorization_is_current(const struct authorization *auth,
			      const struct protected_resource *place, struct access *access,
			      struct refusal *refusal_r) must_check;
/*
 * Whether the caller may do what needs these scopes. If not, *refusal_r says why, and names all of the scopes at once.
 * AUTH-SCP-02
 */
bool authorization_covers(const struct authorization *auth, const struct protected_resource *place,
			  const struct access *access, const struct scope_set *needed,
			  struct refusal *refusal_r) must_check;
/*
 * Takes the grant that the same token has got anew. False: it is no longer what `access` was given for (another
 * identity, a base scope less, denied, none of this server's clients), and *access is as before.
 */
bool authorization_renew(const struct authorization *auth, const struct protected_resource *place,
			 struct access *access, struct grant *grant) must_check;
/*
 * The same without a word of its issuer, when the configuration has changed: whether what was given would be given now; if not,
 * *refusal_r is what a request with this token would get. Nobody in particular is let in where no token is asked for.
 */
bool authorization_judge_again(const struct authorization *auth,
			       const struct protected_resource *place, struct access *access,
			       struct refusal *refusal_r) must_check;
/* What a token with this grant brings; of its scopes those that the configuration names. */
struct rights authorization_rights_of(const struct authorization_conf *conf,
				      const struct grant *grant);
/* Whether who brings them has any business at this server: if not, his requests get 403. SEC-56 */
bool authorization_has_role(const struct protected_resource *place, const struct rights *rights);
/* What he may do; his scopes with all that they imply. */
struct rights authorization_rights(const struct authorization *auth, const struct access *access);

#endif
