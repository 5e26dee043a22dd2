/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modern client comes back with what became of the URLs that it was to open for a legacy server (url_elicitation.h): if it
 * accepted all, its request is made anew, once the server says that they are complete, or after a while. bridging.md §2.3.7
 */
#ifndef MCPGATED_ROUTER_URL_REPLAY_H
#define MCPGATED_ROUTER_URL_REPLAY_H

#include "jsonrpc/scan.h"

struct call;
struct seal;

/* Makes the request of a linked call as if it had come for the first time. */
typedef void url_replay_fn(struct call *call, const struct envelope *env);

/* Takes such a call, which has its digest; the seal, of kind SEAL_REPLAY, is open. `run` is called now, later, or never. */
void url_replay_take(struct call *call, const struct envelope *env, const struct seal *seal,
		     url_replay_fn *run);

#endif
