/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells clients where tokens come from, and servers with what to verify those of ours: the documents below /.well-known/,
 * and the paths that clients guess. Public: no credential is required or examined, and any web page may read them.
 * oauth.md §3, §16.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/conn.h"

struct authorization_conf;

struct metadata_resource {
	struct slice path;     /* of the endpoint */
	struct slice resource; /* its identifier */
	struct slice scopes;   /* to be requested, separated by spaces; or empty */
};

/*
 * A copy of the issuer's metadata, for clients of 2025-03-26. AUTO: if there is exactly one issuer.
 */
enum metadata_facade { METADATA_FACADE_AUTO, METADATA_FACADE_ON, METADATA_FACADE_OFF };

struct metadata_conf {
	enum metadata_facade facade;
	struct slice client_id; /* for registration; empty: registration is off */
	struct slices redirect_uris;
	/* Derived from the options: */
	struct slice own_key; /* what assertions are verified with: a JWK; or empty */
	const struct metadata_resource *resources; /* none: nothing is published */
	size_t resource_count;
};

#define METADATA_KEYS_PATH "/.well-known/jwks.json"
/* Keys that are served at a time; after as many changes within minutes, the oldest goes. */
#define METADATA_KEYS_MAX 8

struct metadata_key {
	char *jwk;         /* NULL: none */
	uint64_t until_ms; /* clock_now_ms; UINT64_MAX: it is in use */
};

struct metadata {
	struct metadata_conf conf;
	struct metadata_key keys[METADATA_KEYS_MAX]; /* with which assertions are signed, or were */
	const struct authorization_conf *auth;       /* the issuers and proofs in use */
	struct metadata_document *documents;         /* one per resource */
};

/* Everything is borrowed for the life of the metadata. */
void metadata_init(struct metadata *metadata, const struct metadata_conf *conf,
		   const struct authorization_conf *auth);
/*
 * Switches to another configuration. A key of ours that is not in it any more is served for as long as tokens that were
 * signed with it are good. BACK-URL-12
 */
void metadata_renew(struct metadata *metadata, const struct metadata_conf *conf,
		    const struct authorization_conf *auth);
/* Also allowed for a zeroed struct. */
void metadata_fini(struct metadata *metadata);

/*
 * Whether the request is for one of these paths; `path` is the path without public_url's prefix and
 * without a trailing slash. If so, it has been answered, or *exchange_r will answer it once its
 * body has arrived. BACK-URL-12, AUTH-PRM-01, -02, -07, -10, -12, AUTH-FAC-01, -02, -06, AUTH-DCR-01
 */
bool metadata_take(const struct metadata *metadata, struct http_conn *conn,
		   const struct http_request *http, struct slice path,
		   struct http_exchange **exchange_r);

/*
 * The server card (SEP-2127): what a client has to know of a server before it connects. Public, from the
 * configuration alone. FRONT-HTTP-16
 */
#define METADATA_CARD_SUFFIX "/server-card" /* behind the path of the endpoint */

/* All borrowed. */
struct metadata_card {
	struct slice public_url;
	struct slice path; /* of the endpoint */
	struct slice name; /* of the server */
	struct slice said; /* by the operator: a JSON object */
};
/* Answers a request for the card. */
void metadata_send_card(const struct metadata_card *card, struct http_conn *conn,
			const struct http_request *http);

/* Whether clients that look for a sign-in, there being none, try this path; without public_url's prefix. */
bool metadata_is_guess(struct slice path);

/* Whether there is a client to hand out; a reload may change that. AUTH-DCR-01 */
static inline bool metadata_has_client(const struct metadata *metadata)
{
	return metadata->documents != NULL && metadata->conf.client_id.n > 0;
}
