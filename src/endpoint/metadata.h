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

struct verifier;

struct metadata_resource {
	struct slice path;     /* of the endpoint */
	struct slice resource; /* its identifier */
	struct slice scopes;   /* to be asked for, separated by spaces; or empty */
};

/* Everything borrowed for the metadata's life. */
struct metadata_conf {
	const struct metadata_resource *resources;
	size_t resource_count;
	struct slices issuers; /* the preferred one first */
	struct slice origin;   /* public */
	bool takes_proofs;
	bool requires_proofs;
	bool has_facade;
	const struct verifier *verifier; /* for the facade */
	struct slice client_id;          /* for registration; empty: nobody is registered */
	struct slices redirect_uris;
};

struct metadata {
	struct metadata_conf conf;
	struct metadata_document *documents; /* one for each resource */
};

void metadata_init(struct metadata *metadata, const struct metadata_conf *conf);
/* Also right for one that is all zeros. */
void metadata_fini(struct metadata *metadata);

/*
 * Whether the request is for one of these paths. If so it has been answered, or *exchange_r will do that once
 * its body is there. AUTH-PRM-01, -02, -07, -10, -12, AUTH-FAC-01, -02, -06, AUTH-DCR-01
 */
bool metadata_take(const struct metadata *metadata, struct http_conn *conn,
		   const struct http_request *http, struct http_exchange **exchange_r);

/* Registers a client with what the body says; in registration.c. */
struct http_exchange *registration_new(const struct metadata_conf *conf, struct http_conn *conn,
				       const struct http_request *http);

/* The field line that lets any web page read an answer. AUTH-PRM-08 */
#define METADATA_CORS "Access-Control-Allow-Origin: *\r\n"

#endif
