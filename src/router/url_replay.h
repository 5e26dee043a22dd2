/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modern client returns with its answers about URLs that it was to open for a legacy server
 * (url_elicitation.h). If it accepted all, its request is repeated once the server reports them as
 * complete, or after a while. bridging.md §2.3.7
 */
#pragma once

#include "jsonrpc/scan.h"

struct call;
struct seal;

/* Runs the request of a linked call as if it had come for the first time. */
typedef void url_replay_fn(struct call *call, const struct envelope *env);

/*
 * Takes such a call, with its digest set and its opened seal of kind SEAL_REPLAY. `run` is called
 * now, later, or never.
 */
void url_replay_take(struct call *call, const struct envelope *env, const struct seal *seal,
		     url_replay_fn *run);
