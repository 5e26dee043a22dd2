/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC batches of clients: arrays of messages, which 2025-03-26 has. FRONT-POST-06, -07, -08. */
#ifndef MCPGATED_ENDPOINT_BATCH_H
#define MCPGATED_ENDPOINT_BATCH_H

#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct batch {
	struct envelope *messages; /* in their order, each scanned once; slices into the body */
	size_t count;
	size_t requests;
	/* while it is read: */
	const struct scan_limits *limits;
	struct error *err;
};

/*
 * Takes an array apart; all zeros before, and ended by batch_fini in any case. -1: it is no array of messages, is empty
 * or too long, has an initialize, or both asks and answers; err may be shown to the client. FRONT-INIT-03
 */
int batch_read(struct batch *batch, struct slice body, const struct scan_limits *limits,
	       struct error *err) must_check;
void batch_fini(struct batch *batch);

#endif
