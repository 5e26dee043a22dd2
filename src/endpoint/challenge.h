/* SPDX-License-Identifier: Apache-2.0 */
/* A refusal as an answer: status, WWW-Authenticate, a small JSON body. oauth.md §4. */
#ifndef MCPGATED_ENDPOINT_CHALLENGE_H
#define MCPGATED_ENDPOINT_CHALLENGE_H

#include "endpoint/answer.h"
#include "endpoint/authorization.h"
#include "endpoint/refusal.h"

/* Answers. Nothing of the request is in it but an allowed origin. AUTH-CH-01 … -07, -10 */
void challenge_send(const struct authorization *auth, const struct protected_resource *place,
		    const struct answer *answer, const struct refusal *refusal);

/* The same in the result of the call that is refused. AUTH-SCP-11 */
void challenge_send_result(const struct authorization *auth, const struct protected_resource *place,
			   const struct answer *answer, const struct refusal *refusal);

#endif
