/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One authorization server: its metadata (RFC 8414, OpenID discovery) and its keys (RFC 7517),
 * requested through fetch_client.h, kept, and renewed in the background. Nothing here waits:
 * on_settled reports that a fetch that may bring a missing key is over. AUTH-AS-01 to 05,
 * AUTH-KEY-01 to 09
 *
 * A usable key set is replaced only by another usable one. A key missing from the new set is
 * dropped at once.
 */
#ifndef MCPGATED_AUTH_ISSUER_H
#define MCPGATED_AUTH_ISSUER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "auth/algorithm.h"
#include "auth/fetch_client.h"
#include "auth/jwk.h"
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
/* Whether such a fetch is under way. */
bool issuer_is_seeking(const struct issuer *issuer);
/* Whether the last attempt to fetch keys failed, so that a missing key may yet exist. */
bool issuer_is_in_doubt(const struct issuer *issuer);

/* The rules for the claims of its tokens. */
struct grant_rules issuer_rules(const struct issuer *issuer, bool must_expire);

/* ---- pure, for tests and fuzzers ---- */

/* max-age of a Cache-Control field, clamped to 60 s and 24 h; 10 min if absent. AUTH-KEY-03 */
uint64_t issuer_lifetime_ms(struct slice cache_control);

#endif
