/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tokens come from, said to clients: the documents below /.well-known/, and the paths that clients
 * guess. Public: no credential is wanted or looked at, any web page may read them. oauth.md §3, §16.
 */
#ifndef MCPGATED_ENDPOINT_METADATA_H
#define MCPGATED_ENDPOINT_METADATA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "endpoint/answer.h"
#include "http/conn.h"

struct authorization_conf;

struct metadata_resource {
	struct slice path;     /* of the endpoint */
	struct slice resource; /* its identifier */
	struct slice scopes;   /* to be asked for, separated by spaces; or empty */
};

/* A copy of the issuer's metadata, for clients of 2025-03-26. AUTO: with exactly one issuer. */
enum metadata_facade { METADATA_FACADE_AUTO, METADATA_FACADE_ON, METADATA_FACADE_OFF };

struct metadata_conf {
	enum metadata_facade facade;
	struct slice client_id; /* for registration; empty: nobody is registered */
	struct slices redirect_uris;
	/* What follows from the options: */
	const struct metadata_resource *resources; /* none: nothing is published */
	size_t resource_count;
};

struct metadata {
	struct metadata_conf conf;
	const struct authorization_conf *auth; /* whose tokens, with what proofs */
	struct metadata_document *documents;   /* one for each resource */
};

/* Everything borrowed for the metadata's life. */
void metadata_init(struct metadata *metadata, const struct metadata_conf *conf,
		   const struct authorization_conf *auth);
/* Also right for one that is all zeros. */
void metadata_fini(struct metadata *metadata);

/*
 * Whether the request is for one of these paths; `path` is its own, without what public_url has in front and a slash at its end. If so it has been answered, or *exchange_r will do that once
 * its body is there. AUTH-PRM-01, -02, -07, -10, -12, AUTH-FAC-01, -02, -06, AUTH-DCR-01
 */
bool metadata_take(const struct metadata *metadata, struct http_conn *conn,
		   const struct http_request *http, struct slice path,
		   struct http_exchange **exchange_r);

/* Registers a client with what the body says; in registration.c. */
struct http_exchange *registration_new(const struct metadata_conf *conf, struct http_conn *conn,
				       const struct http_request *http);

#endif
