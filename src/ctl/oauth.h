/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the way that a client takes to an MCP endpoint with authorization, and says what it finds at each
 * step: the challenge, the resource's metadata, the authorization servers, and what becomes of a token. It logs
 * nobody in. The token is sent to the endpoint alone and never printed.
 */
#ifndef MCPGATED_CTL_OAUTH_H
#define MCPGATED_CTL_OAUTH_H

#include "base/error.h"

/* Whether the walk can begin: https, or http to loopback; no fragment. */
int oauth_check_url(const char *url, struct error *err) must_check;
/* The one line of the file; the caller's, to be wiped; NULL and err. */
char *oauth_read_token(const char *path, struct error *err) must_check;
/* The certificates in the file, as PEM, and those that the system trusts; the caller's; NULL and err. */
char *oauth_read_ca(const char *path, struct error *err) must_check;

/* What is borrowed for a walk. */
struct oauth_walk {
	const char *url;
	const char *token; /* or NULL */
	const char *ca;    /* PEM, the authorities of all servers; or NULL: the system's */
};

/* Returns how many steps were in the way: 0 if a client gets, or can get, through; else 1. */
int oauth_examine(const struct oauth_walk *oauth);

#endif
