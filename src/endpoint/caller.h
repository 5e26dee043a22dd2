/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, and what of: kept of a request that passed the frontend until its body has come, or as long as a stream lasts. */
#ifndef MCPGATED_ENDPOINT_CALLER_H
#define MCPGATED_ENDPOINT_CALLER_H

#include <stdbool.h>

#include "endpoint/answer.h"
#include "endpoint/authorization.h"
#include "endpoint/frontend.h"

struct caller {
	struct frontend *frontend;
	const struct endpoint *endpoint; /* its server, and what that asks for */
	struct access access;
	char *origin; /* NULL: none */
	char *trace;  /* of trace_of_head */
};

void caller_init(struct caller *caller, const struct endpoint_request *request);
/*
 * A reload may have put another server in the place of the one that it is for: it is for the one whose session it names, else
 * (NULL) for the one that takes new sessions.
 */
void caller_settle(struct caller *caller, const struct server *server);
/* Whether it is for the address of this endpoint, whichever server has that now. */
bool caller_is_at(const struct caller *caller, const struct endpoint *endpoint);
void caller_fini(struct caller *caller);
/* When a request that was refused for this reason is worth another try; is_initialize: it is for a session. */
unsigned int caller_retry_after_s(const struct caller *caller, bool is_initialize,
				  enum reason reason);
/* For answers on `conn`; borrowed from the caller. */
struct answer caller_answer(const struct caller *caller, struct http_conn *conn);

#endif
