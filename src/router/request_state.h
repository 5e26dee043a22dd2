/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requestState that modern clients get and bring back on a retry: sealed for this server,
 * caller and request (seal.h). MOD-MRTR-03, bridging.md §2.4, §2.6.
 */
#ifndef MCPGATED_ROUTER_REQUEST_STATE_H
#define MCPGATED_ROUTER_REQUEST_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "router/seal.h"

/* park_ttl; the same for a state that wraps a server's own. bridging.md §7 */
#define REQUEST_STATE_TTL_MS (10 * 60 * 1000)

struct call;
struct client;

/* Appends, as a JSON string, the state of a parked call in this round. */
void request_state_append_parked(struct buf *out, const struct client *client,
				 const struct digest *digest,
				 const unsigned char id[SEAL_CALL_BYTES], uint32_t round);
/*
 * Appends, as a JSON string, the state for a modern server's result (JSON text) of this call, whose
 * digest is set; it contains the server's own state. False: the result asks for something it may
 * not, and nothing was appended. MOD-MRTR-02
 */
bool request_state_append_wrapped(struct buf *out, const struct call *call, struct slice result);
/*
 * Appends, as a JSON string, the state of a call, whose digest is set, that is to be repeated once
 * the client has opened the URLs that `child` wants (url_pending.h).
 */
void request_state_append_replay(struct buf *out, const struct call *call, uint64_t child,
				 struct slice wanted);
/*
 * Whether a modern server may ask this client all of these members of inputRequests (JSON text).
 * MOD-MRTR-02
 */
bool request_state_may_ask(const struct client *client, struct slice requests);
/*
 * Opens a state that a client has brought, as seal_open. -1: it must not be used; the reason was
 * logged.
 */
int request_state_open(const struct client *client, const struct digest *digest, struct json sealed,
		       struct buf *plain, struct seal *seal_r) must_check;

#endif
