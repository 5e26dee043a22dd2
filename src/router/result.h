/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit: every result, list and error response passes here on its way to a client, whoever made
 * it. Checks, changes and counts for particular clients belong here; those for everything a server
 * sends, in upstream/upstream. bridging.md §1.6.
 */
#pragma once

#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"

struct call;
struct revision;

/* Sends the server's response and ends the call; unless, with call->may_pause, that ends meanwhile. */
void result_send(struct call *call, const struct envelope *env);
/*
 * Sends a cached response from a server of this revision. In a pool of everybody it no longer
 * mentions tasks. The response is the caller's: the call, and the list, may end meanwhile (io/aside).
 */
void result_send_kept(struct call *call, const struct revision *revision,
		      const struct envelope *env);
/* Sends the response to initialize from a server that agreed to this revision. */
void result_send_initialize(struct call *call, const struct revision *agreed,
			    const struct envelope *env);
/* Answers a modern client with what is known of the servers of its pool. MOD-DISC-01 */
void result_send_discovery(struct call *call);
/*
 * Asks a modern client on behalf of the server: the members of inputRequests as JSON text, and the
 * state that it must bring on the retry. MOD-MRTR-01, -02
 */
void result_send_input_required(struct call *call, struct slice requests, struct slice state);
/* The requestState of the request cannot be used. MOD-MRTR-03 */
void result_send_invalid_state(struct call *call);
/* What the request brings with its state does not answer what was asked. MOD-MRTR-05 */
void result_send_malformed_answer(struct call *call);
/*
 * The process `child` wants URLs opened before it does what the call, of a modern client and with
 * its digest set, asks. `wanted` as in url_pending.h. bridging.md §2.3.7
 */
void result_send_url_elicitations(struct call *call, uint64_t child, struct slice wanted);
/* Sends the gateway's own answer to a linked call. `result` is JSON text. */
void result_send_own(struct call *call, struct slice result);
void result_send_error(struct call *call, int code, struct slice message);
/* The error for a subscription that exceeds the session's limit. */
void result_send_no_room(struct call *call);
