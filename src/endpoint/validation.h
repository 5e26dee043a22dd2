/* SPDX-License-Identifier: Apache-2.0 */
/* What every front asks of a body before it hands messages on. */
#ifndef MCPGATED_ENDPOINT_VALIDATION_H
#define MCPGATED_ENDPOINT_VALIDATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "endpoint/authorization.h"
#include "jsonrpc/scan.h"

#define BATCH_MAX 64

/* The messages of an array, each checked. */
struct batch {
	struct slice elements[BATCH_MAX];
	size_t count;
	size_t requests;
	size_t responses;
	const struct scan_limits *limits;
	struct error *err;
	bool has_initialize;
};

/* The JSON-RPC code of an error of the scanner. */
int validation_code(const struct error *err);
bool validation_is_initialize(const struct envelope *env);
/* What a message's _meta says about the revision that it is of; absent in the legacy era. */
struct json validation_version(const struct envelope *env);
/* What is wrong with an initialize request, for its client; NULL: nothing. FRONT-INIT-01, DEF-11 */
const char *validation_check_initialize(const struct envelope *initialize);

/*
 * Reads an array of messages. Returns 0; or -1: one is none, there are none or too many, one is
 * initialize, or requests and responses are mixed; `err` says which. FRONT-POST-06.
 */
int validation_batch(struct slice body, const struct scan_limits *limits, struct batch *batch_r,
		     struct error *err) must_check;

/* Adds what the messages of a batch need, all together. AUTH-SCP-06 */
void validation_add_needed(const struct batch *batch, const struct protected_resource *place,
			   struct scope_set *needed);

#endif
