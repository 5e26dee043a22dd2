/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door out: every result, list and error response goes through here on its way to a client, whoever made it. What is to be
 * checked, changed or counted for some clients has its place here; for all of a server's, in upstream/intake. bridging.md §1.6.
 */
#ifndef MCPGATED_ROUTER_RESULT_H
#define MCPGATED_ROUTER_RESULT_H

#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"

struct call;
struct client;
struct revision;

/* The server's response; the call ends with it. */
void result_send(struct call *call, const struct envelope *env);
/*
 * A response that was kept, from a server of this revision. Of everybody's pool it has nothing about tasks in it any more.
 */
void result_send_kept(struct call *call, const struct revision *revision,
		      const struct envelope *env);
/* The response to initialize, from a server that agreed to this revision. */
void result_send_initialize(struct call *call, const struct revision *agreed,
			    const struct envelope *env);
/* What is known of the servers of the call's pool, for a modern client. MOD-DISC-01 */
void result_send_discovery(struct call *call);
/*
 * What the server asks the modern client of a call: the members of inputRequests as JSON text, and the state that it is to
 * bring when it tries again. MOD-MRTR-01, -02
 */
void result_send_input_required(struct call *call, struct slice requests, struct slice state);
/* The requestState that it brings is not to be used. MOD-MRTR-03 */
void result_send_invalid_state(struct call *call);
/* What it brings beside that is no answer to what it was asked. MOD-MRTR-05 */
void result_send_malformed_answer(struct call *call);
/*
 * The process `child` wants URLs to be opened before it does what the modern client of a call asks, which has the digest
 * of its request. `wanted` as of url_elicitation.h. bridging.md §2.3.7
 */
void result_send_url_elicitations(struct call *call, uint64_t child, struct slice wanted);
/* Ours; the call is linked. `result` is JSON text. */
void result_send_own(struct call *call, struct slice result);
void result_send_error(struct call *call, int code, struct slice message);
/* The error of a subscription that the session has no room for. */
void result_send_no_room(struct call *call);

#endif
