/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One authorization server: its metadata (RFC 8414, OpenID discovery) and its keys (RFC 7517),
 * requested through fetch_client.h, kept, and renewed in the background. Nothing here waits:
 * on_settled reports that a fetch that may bring a missing key is over. Asks it about tokens, too. AUTH-AS-01 to 05,
 * AUTH-KEY-01 to 09
 *
 * A usable key set is replaced only by another usable one. A key missing from the new set is
 * dropped at once.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/fetch_client.h"
#include "auth/grant.h"
#include "auth/jwt.h"
#include "auth/verifier.h"
#include "base/error.h"
#include "base/slice.h"
#include "io/loop.h"

struct issuer;

struct issuer_ops {
	/* A fetch has ended, successfully or not. */
	void (*on_settled)(struct issuer *issuer);
	/* Tokens signed with the old keys may no longer be valid. */
	void (*on_keys_changed)(struct issuer *issuer);
};

/* A document that is fetched repeatedly. */
struct issuer_errand {
	struct inquiry inquiry;
	uint64_t due_ms;       /* time of the next fetch; clock_now_ms */
	unsigned int failures; /* consecutive ones */
};

struct issuer {
	const struct issuer_ops *ops;
	struct loop *loop;
	struct fetch_client *client;
	size_t number;          /* in the configuration */
	char *name;             /* the issuer's URL, as configured */
	struct slices audience; /* borrowed */
	bool client_is_audience;
	const struct roles *roles;
	algorithm_set algorithms;
	bool has_jwks_uri; /* configured; else it comes from the metadata */
	uint64_t interval_ms;
	uint64_t leeway_ms;
	uint64_t max_lifetime_ms;
	struct slice_map required_claims; /* borrowed */

	struct issuer_errand discovery;
	json_t *metadata; /* NULL: none found yet */

	struct issuer_errand renewal;
	struct jwk_set keys;
	char *etag;
	unsigned char digest[32]; /* of the set's text */
	uint64_t fetched_ms;      /* when the issuer last sent or confirmed the set */
	uint64_t forced_ms;       /* when issuer_seek_keys last started a fetch; 0: never */
	uint64_t began_ms;        /* when it was first asked */
	char cause[160];          /* why keys or metadata did not come the last time */
	struct timer tick;
};

/*
 * Copies what it keeps of conf, and begins to ask, as issuer number `number` of the configuration.
 * Borrows client and ops for the issuer's life.
 */
int issuer_init(struct issuer *issuer, struct loop *loop, struct fetch_client *client,
		size_t number, const struct verifier_issuer_conf *conf,
		const struct issuer_ops *ops, struct error *err) must_check;
/* The same issuer in another configuration, whose lists are borrowed from now on. */
void issuer_renew(struct issuer *issuer, const struct verifier_issuer_conf *conf);
void issuer_fini(struct issuer *issuer);

/* Whether there is a usable key set: fetched, and not too old (AUTH-KEY-05). */
bool issuer_has_keys(const struct issuer *issuer);
/*
 * A token needs a key that is not in the set. Returns true if a fetch is under way; on_settled
 * follows. Returns false if the last such fetch was too recent (jwks_interval). AUTH-KEY-04
 */
bool issuer_seek_keys(struct issuer *issuer) must_check;
/*
 * The key with that name did not make the signature: the issuer may have given the name to another
 * key. Returns true if a fetch is under way; false if the set is new enough, or the last such fetch
 * was too recent. AUTH-KEY-10
 */
bool issuer_doubts_keys(struct issuer *issuer) must_check;
/*
 * Whether somebody should look at it: keys or metadata do not come. There are none at first, which is
 * no problem yet. issuer_keyless_since_ms is then the time since when there are no usable keys.
 */
bool issuer_is_failing(const struct issuer *issuer);
uint64_t issuer_keyless_since_ms(const struct issuer *issuer);
/* Whether such a fetch is under way. */
bool issuer_is_seeking(const struct issuer *issuer);
/* Whether the last attempt to fetch keys failed, so that a missing key may yet exist. */
bool issuer_is_in_doubt(const struct issuer *issuer);

/* The rules for the claims of its tokens. */
struct grant_rules issuer_rules(const struct issuer *issuer, bool must_expire);

/* ---- pure, for tests and fuzzers ---- */

/* max-age of a Cache-Control field, clamped to 60 s and 24 h; 10 min if absent. AUTH-KEY-03 */
uint64_t issuer_lifetime_ms(struct slice cache_control);

/* ---- asking it about a token ---- */

/*
 * Asking an issuer about a token: RFC 7662. How, and with which credentials, is fetch_site.h's. One question is one
 * inquiry; the verifier shares questions and remembers answers. AUTH-OPQ-02, 04
 */

/* Questions to one issuer at a time, and how many of them may be for suspects. */
#define INTROSPECTIONS_MAX 64
#define INTROSPECTIONS_SUSPECT_MAX 32

struct introspector {
	struct issuer *issuer;
	bool is_on;
	bool has_endpoint; /* configured; else the metadata's */
	size_t running;
	bool is_failing;       /* it has been logged that no answer comes */
	uint64_t failed_at_ms; /* the last time */
};

struct question;
/*
 * claims   the answer, if the verdict is OK: the token is active and not of another issuer; borrowed.
 *          Otherwise NULL, and the verdict is INACTIVE, UNKNOWN_ISSUER or INTROSPECTION_UNAVAILABLE.
 */
typedef void question_done_fn(struct question *question, json_t *claims,
			      const struct verdict *verdict);

/* Embedded by its owner, which sets on_done and is_suspect; zeroed otherwise. */
struct question {
	question_done_fn *on_done;
	bool is_suspect;
	struct introspector *introspector; /* private */
	struct inquiry inquiry;            /* private */
};

/* The issuer is borrowed. */
void introspector_init(struct introspector *introspector, struct issuer *issuer,
		       const struct verifier_issuer_conf *conf);
void introspector_fini(struct introspector *introspector);
bool introspector_is_on(const struct introspector *introspector);

/*
 * Asks; on_done comes later, exactly once, unless question_cancel comes first; it may free the question.
 * Returns 0, or -1 and the verdict (INTROSPECTION_UNAVAILABLE) if the issuer cannot be asked now.
 */
int introspector_ask(struct introspector *introspector, struct question *question,
		     struct slice token, struct verdict *verdict_r) must_check;
void question_cancel(struct question *question);

/* ---- pure, for tests and fuzzers ---- */

/* The claims (the caller's) of an active token, or NULL and the verdict. */
json_t *introspect_read(struct slice body, const char *issuer, struct verdict *verdict_r)
	must_check;
