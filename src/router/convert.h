/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes in a message between two that agreed on different revisions: kinds of things that the
 * reader's revision does not know become something it does. Unknown members are harmless and stay;
 * what cannot be understood passes as it is. bridging.md §3; FRONT-INIT-10.
 */
#ifndef MCPGATED_ROUTER_CONVERT_H
#define MCPGATED_ROUTER_CONVERT_H

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"

/* A message written anew. All zeros to begin with, or convert_init; convert_fini at the end. */
struct convert {
	struct buf text;
	struct envelope env; /* slices into text; large, and nothing until there is text */
};

/* Where it is met with each call, and seldom used. */
static inline void convert_init(struct convert *convert)
{
	convert->text = (struct buf){ NULL, 0, 0 };
}

/*
 * Each of these returns `env` itself where nothing is to be changed, which costs nothing if `lost` is 0, or
 * the envelope of the changed message, which lives as long as *convert. `lost` are features that the
 * sender may use and the reader lacks (revision_lacks).
 */

/* A server's response to a request of `method`. */
const struct envelope *convert_response(struct convert *convert, unsigned int lost,
					const struct method *method, const struct envelope *env);
/* A server's request. NULL: the client's revision has no words for it, the server is to be refused. */
const struct envelope *convert_server_request(struct convert *convert, unsigned int lost,
					      const struct method *method,
					      const struct envelope *env);
/* A client's request. `differing`: features that only one side knows, whichever. */
const struct envelope *convert_request(struct convert *convert, unsigned int differing,
				       const struct method *method, const struct envelope *env);
/* A client's answer to a server's request of `method`. */
const struct envelope *convert_answer(struct convert *convert, unsigned int lost,
				      const struct method *method, const struct envelope *env);
/* A client's initialize: a capability that its own revision does not have is not told to servers. */
const struct envelope *convert_initialize(struct convert *convert, unsigned int lost,
					  const struct envelope *env);

void convert_fini(struct convert *convert);

#endif
