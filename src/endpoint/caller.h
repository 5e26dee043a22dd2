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
void caller_fini(struct caller *caller);
/* When a request that was refused for this reason is worth another try; is_initialize: it is for a session. */
unsigned int caller_retry_after_s(const struct caller *caller, bool is_initialize,
				  enum reason reason);
/* For answers on `conn`; borrowed from the caller. */
struct answer caller_answer(const struct caller *caller, struct http_conn *conn);

#endif
