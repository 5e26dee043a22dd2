/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a server's challenge (WWW-Authenticate) like a client. RFC 9110 s11.6.1, RFC 6750 s3, RFC
 * 9728 s5.1
 */
#ifndef MCPGATED_CTL_CHALLENGE_H
#define MCPGATED_CTL_CHALLENGE_H

#include <stdbool.h>

#include "base/slice.h"

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

#endif
