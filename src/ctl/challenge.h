/* SPDX-License-Identifier: Apache-2.0 */
/* A server's challenge (WWW-Authenticate) as a client reads it. RFC 9110 s11.6.1, RFC 6750 s3, RFC 9728 s5.1 */
#ifndef MCPGATED_CTL_CHALLENGE_H
#define MCPGATED_CTL_CHALLENGE_H

#include <stdbool.h>

#include "base/slice.h"

/* NULL: it is not there. */
struct challenge {
	bool is_bearer; /* there is one for Bearer; the rest is its parameters */
	bool is_first;  /* and none before it */
	char *resource_metadata;
	char *scope;
	char *error;
	char *error_description;
};

/* Reads all fields, joined by commas. What is no challenge is passed over. On return the caller's. */
void challenge_parse(struct slice field, struct challenge *challenge_r);
void challenge_fini(struct challenge *challenge);

#endif
