/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/batch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/validation.h"

#define BATCH_MAX 64

static int batch_add(struct slice element, void *arg)
{
	struct batch *batch = arg;
	struct envelope *env = &batch->messages[batch->count];

	CHECK(batch->count < BATCH_MAX);
	if (scan_envelope(element, batch->limits, 0, env, batch->err) < 0)
		return -1;
	batch->count++;
	batch->requests += env->kind == ENVELOPE_REQUEST;
	return 0;
}

int batch_read(struct batch *batch, struct slice body, const struct scan_limits *limits,
	       struct error *err)
{
	bool has_initialize = false;
	size_t responses = 0;

	CHECK(batch->messages == NULL);
	batch->messages = mem_alloc(BATCH_MAX * sizeof(*batch->messages));
	batch->limits = limits;
	batch->err = err;
	if (scan_array(body, BATCH_MAX, batch_add, batch, err) < 0)
		return -1;
	for (size_t i = 0; i < batch->count; i++) {
		const struct envelope *env = &batch->messages[i];

		has_initialize |= validation_is_initialize(env);
		responses += env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR;
	}
	if (batch->count > 0 && !has_initialize && (batch->requests == 0 || responses == 0))
		return 0;
	return error_set(
		err, ERROR_INVALID,
		"Invalid request: a batch is not empty, has no initialize, and either asks or answers");
}

void batch_fini(struct batch *batch)
{
	free(batch->messages);
	batch->messages = NULL;
}
