/* SPDX-License-Identifier: Apache-2.0 */
/* A refusal as an answer: status, WWW-Authenticate, a small JSON body. oauth.md §4. */
#ifndef MCPGATED_ENDPOINT_CHALLENGE_H
#define MCPGATED_ENDPOINT_CHALLENGE_H

#include "endpoint/answer.h"
#include "endpoint/authorization.h"

/* Answers. Nothing of the request is in it but an allowed origin. AUTH-CH-01 … -07, -10 */
void challenge_send(const struct authorization *authorization,
		    const struct protected_resource *place, const struct answer *answer,
		    const struct refusal *refusal);

/* Whether the caller may do what needs these scopes; false: it has answered. AUTH-SCP-02 */
bool challenge_permits(const struct authorization *authorization,
		       const struct protected_resource *place, const struct access *access,
		       const struct scope_set *needed, const struct answer *answer) must_check;
/*
 * The same for the request `id`: where the server wants it so, the answer is a result that holds the challenge. An
 * empty id: never. AUTH-SCP-11
 */
bool challenge_permits_call(const struct authorization *authorization,
			    const struct protected_resource *place, const struct access *access,
			    const struct scope_set *needed, const struct answer *answer,
			    struct slice id) must_check;

#endif
