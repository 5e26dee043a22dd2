/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requestState that modern clients are given, and bring when they try again: sealed for this server, this caller and this
 * request (seal.h). MOD-MRTR-03, bridging.md §2.4, §2.6.
 */
#ifndef MCPGATED_ROUTER_REQUEST_STATE_H
#define MCPGATED_ROUTER_REQUEST_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "router/seal.h"

/* park_ttl, and as long for what a server has given. bridging.md §7 */
#define REQUEST_STATE_TTL_MS (10 * 60 * 1000)

struct call;
struct client;

/* Appends, as a JSON string, that of a parked call in this round. */
void request_state_append_parked(struct buf *out, const struct client *client,
				 const struct digest *digest,
				 const unsigned char id[SEAL_CALL_BYTES], uint32_t round);
/*
 * Appends, as a JSON string, the one that goes with a modern server's result (JSON text) of this call, which has the
 * digest of its request: the server's own is in it. False: the result asks for what it may not, and nothing was appended.
 * MOD-MRTR-02
 */
bool request_state_append_wrapped(struct buf *out, const struct call *call, struct slice result);
/*
 * Appends, as a JSON string, that of a call which has the digest of its request, and is to be made again once the client
 * has opened the URLs that `child` wants (url_elicitation.h).
 */
void request_state_append_replay(struct buf *out, const struct call *call, uint64_t child,
				 struct slice wanted);
/* Whether a modern server may ask this client all of these: the members of inputRequests, JSON text. MOD-MRTR-02 */
bool request_state_may_ask(const struct client *client, struct slice requests);
/* Opens what a client has brought, as seal_open; -1: it is not to be used, and the log has the reason. */
int request_state_open(const struct client *client, const struct digest *digest, struct json sealed,
		       struct buf *plain, struct seal *seal_r) must_check;

#endif
