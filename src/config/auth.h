/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the configuration that says who may call: `auth`. See config.h. */
#ifndef MCPGATED_CONFIG_AUTH_H
#define MCPGATED_CONFIG_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Different scopes that may be named. */
#define CONFIG_SCOPES_MAX 256

enum config_auth_mode {
	CONFIG_AUTH_NONE,
	CONFIG_AUTH_TOKEN,
	CONFIG_AUTH_OAUTH,
	CONFIG_AUTH_ANONYMOUS
};
enum config_dpop { CONFIG_DPOP_OFF, CONFIG_DPOP_ON, CONFIG_DPOP_REQUIRED };
enum config_audience_claim { CONFIG_AUDIENCE_AUD, CONFIG_AUDIENCE_CLIENT_ID };
enum config_client_auth { CONFIG_CLIENT_SECRET_BASIC, CONFIG_CLIENT_SECRET_POST };
enum config_facade { CONFIG_FACADE_AUTO, CONFIG_FACADE_ON, CONFIG_FACADE_OFF };

/* A static token: who shows the text with this hash is `name`. */
struct config_token {
	char *name;
	char *sha256; /* 64 hexadecimal digits, of the token's text */
	struct slices scopes;
	struct slices servers; /* none: all */
	uint64_t expires_ms;   /* since 1970; 0: never */
};

struct config_tokens {
	struct config_token *items;
	size_t count;
};

/* An authorization server whose tokens are accepted. */
struct config_issuer {
	char *issuer;
	struct slices audience; /* accepted besides the server's own resource */
	enum config_audience_claim audience_claim;
	struct slices algorithms;
	char *jwks_uri; /* NULL: from the issuer's metadata */
	uint64_t jwks_interval_ms;
	uint64_t leeway_ms;
	uint64_t max_lifetime_ms;         /* 0: any */
	struct slice_map required_claims; /* names, and the values of which one must be there */
	char *introspection_endpoint;     /* NULL: from the metadata, if there is a client_id */
	char *introspection_client_id;
	char *introspection_client_secret;
	enum config_client_auth introspection_auth_method;
	bool introspection_always;
	uint64_t introspection_ttl_ms;
	char *ca_file;
	char *ca; /* PEM: what is in the file */
	bool allow_private;
};

struct config_issuers {
	struct config_issuer *items;
	size_t count;
};

/* What a server wants of its callers. */
struct config_wants {
	struct slices audience;       /* accepted besides its resource */
	struct slices clients;        /* whose tokens are taken; none: everybody's */
	struct slices algorithms;     /* of their signatures; none: all that the issuer may use */
	struct slices scopes;         /* that every request needs */
	struct slice_map tool_scopes; /* by pattern: that calls of such tools need besides */
	bool challenge_in_result;     /* a call without the scopes of its tool gets no 403 */
};

/* Tokens that are refused although they are good: of an issuer, and one of the four names. */
struct config_denial {
	char *issuer; /* or "static" */
	char *sub;
	char *client_id;
	char *jti;
	char *sid;
	uint64_t until_ms; /* since 1970; 0: for good */
};

struct config_denials {
	struct config_denial *items;
	size_t count;
};

struct config_auth {
	enum config_auth_mode mode;
	struct config_tokens tokens;
	bool x_api_key; /* they are taken from that field as well */
	struct config_denials deny;
	uint64_t failures_per_minute;  /* of one address; 0: any number */
	struct config_issuers issuers; /* the preferred one first */
	struct slices initial_scopes;  /* asked for at first, beyond what is needed */
	bool bind_client; /* a session belongs to the client, too, not only to the person */
	enum config_dpop dpop;
	enum config_facade metadata_facade;
	char *registration_client_id; /* NULL: nobody is registered */
	struct slices registration_redirect_uris;
	struct slice_map scope_hierarchy; /* who holds the name holds the list */
	bool challenge_held; /* name the scopes that a token has among those that it needs */
};

#endif
