/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose token cannot be judged at once: it waits, its body unread, until the issuer was asked. Nobody
 * else waits for it; if its client leaves, nothing is left of it. AUTH-KEY-07.
 */
#ifndef MCPGATED_ENDPOINT_WAITING_H
#define MCPGATED_ENDPOINT_WAITING_H

#include "endpoint/gate.h"

/*
 * Judges the request and lets it in (gate_dispatch), refuses it, or keeps it. For on_request: returns the exchange,
 * or NULL if it has answered.
 */
struct http_exchange *waiting_admit(struct gate *gate, const struct gate_visit *visit,
				    const struct answer *answer, const struct http_request *http);

#endif
