/* SPDX-License-Identifier: Apache-2.0 */
/* An array of messages, as 2025-03-26 has them, taken apart. FRONT-POST-06, -07, -08, FRONT-INIT-03. */
#ifndef MCPGATED_ENDPOINT_BATCH_H
#define MCPGATED_ENDPOINT_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

#define BATCH_MAX 64

/* Its messages, in their order; slices of the body. All zeros holds nothing. */
struct batch {
	struct envelope *messages;
	size_t count;
	size_t requests;
	size_t responses;
	bool has_initialize;
};

/*
 * Takes the array in `body` apart and reads every message, once. Returns 0; or -1: one is none, there are none or
 * too many, one is initialize, or requests and responses are mixed; `err` says which. End it with batch_fini in any
 * case.
 */
int batch_read(struct slice body, const struct scan_limits *limits, struct batch *batch_r,
	       struct error *err) must_check;
void batch_fini(struct batch *batch);

#endif
