/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a client's way to an MCP endpoint with authorization, and reports each step: the
 * challenge, the resource's metadata, the authorization servers, and what becomes of a token. It
 * does not log in. The token is sent only to the endpoint and never printed.
 */
#ifndef MCPGATED_CTL_OAUTH_H
#define MCPGATED_CTL_OAUTH_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

/*
 * ---- challenge ----
 *
 * Parses a server's challenge (WWW-Authenticate) like a client. RFC 9110 s11.6.1, RFC 6750 s3,
 * RFC 9728 s5.1
 */

/* NULL: absent. */
struct challenge {
	bool is_bearer; /* there is a Bearer challenge; the rest is its parameters */
	bool is_first;  /* and it is the first challenge */
	char *resource_metadata;
	char *scope;
	char *error;
	char *error_description;
};

/*
 * Parses all fields, joined by commas. Anything that is not a challenge is skipped. The caller ends
 * the result.
 */
void challenge_parse(struct slice field, struct challenge *challenge_r);
void challenge_fini(struct challenge *challenge);

/* Whether the URL is acceptable: https, or http to loopback; no fragment. */
int oauth_check_url(const char *url, struct error *err) must_check;
/*
 * The certificates in the file, as PEM, followed by those that the system trusts; owned by the
 * caller. NULL: err says why.
 */
char *oauth_read_ca(const char *path, struct error *err) must_check;

/* Everything is borrowed. */
struct oauth_walk {
	const char *url;
	const char *token; /* or NULL */
	const char *ca;    /* CAs for all servers, as PEM; or NULL: the system's */
};

/* Returns 0 if a client gets, or can get, through; otherwise 1. */
int oauth_examine(const struct oauth_walk *oauth);

#endif
