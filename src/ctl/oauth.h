/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a client's way to an MCP endpoint with authorization, and reports each step: the
 * challenge, the resource's metadata, the authorization servers, and what becomes of a token. It
 * does not log in. The token is sent only to the endpoint and never printed.
 */
#ifndef MCPGATED_CTL_OAUTH_H
#define MCPGATED_CTL_OAUTH_H

#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

/* A server's challenge (WWW-Authenticate), as a client reads it. NULL: absent. RFC 9110 s11.6.1 */
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

/*
 * Without a token (NULL) it is not tried; ca: CAs for all servers, as PEM; NULL: the system's. Returns
 * 0 if a client gets, or can get, through; otherwise 1.
 */
int oauth_examine(const char *url, const char *token, const char *ca);

#endif
