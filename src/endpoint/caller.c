/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what is borrowed. */
#include "endpoint/caller.h"

#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/trace.h"
#include "router/retry_after.h"

void caller_init(struct caller *caller, const struct endpoint_request *request)
{
	struct slice origin = request->answer.origin;

	CHECK(request->access->principal != NULL && request->endpoint->server != NULL);
	*caller = (struct caller){
		.frontend = request->frontend,
		.endpoint = request->endpoint,
		.access = access_copy(request->access),
		.origin = origin.n > 0 ? mem_dup_slice(origin) : NULL,
		.trace = trace_of_head(request->http),
	};
}

void caller_fini(struct caller *caller)
{
	free(caller->origin);
	free(caller->trace);
	access_fini(&caller->access);
}

unsigned int caller_retry_after_s(const struct caller *caller, bool is_initialize,
				  enum reason reason)
{
	return retry_after_s(caller->frontend->router, caller->endpoint->server,
			     is_initialize ? caller->access.principal : NULL, reason);
}

struct answer caller_answer(const struct caller *caller, struct http_conn *conn)
{
	struct answer answer = { .conn = conn };

	CHECK(caller->access.principal != NULL);
	if (caller->origin != NULL)
		answer.origin = slice_str(caller->origin);
	return answer;
}
