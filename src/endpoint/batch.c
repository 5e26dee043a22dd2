/* SPDX-License-Identifier: Apache-2.0 */
/* Each message is read into its place in one array of BATCH_MAX. */
#include "endpoint/batch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/validation.h"

struct reading {
	struct batch *batch;
	const struct scan_limits *limits;
	struct error *err;
};

static int batch_add(struct slice element, void *arg)
{
	struct reading *reading = arg;
	struct batch *batch = reading->batch;
	struct envelope *env = &batch->messages[batch->count];

	CHECK(batch->count < BATCH_MAX);
	if (scan_envelope(element, reading->limits, 0, env, reading->err) < 0)
		return -1;
	batch->count++;
	if (env->kind == ENVELOPE_REQUEST) {
		batch->requests++;
		batch->has_initialize |= validation_is_initialize(env);
	} else if (env->kind != ENVELOPE_NOTIFICATION) {
		batch->responses++;
	}
	return 0;
}

int batch_read(struct slice body, const struct scan_limits *limits, struct batch *batch_r,
	       struct error *err)
{
	struct reading reading = { batch_r, limits, err };

	*batch_r = (struct batch){ .messages = mem_alloc(BATCH_MAX * sizeof(struct envelope)) };
	if (scan_array(body, BATCH_MAX, batch_add, &reading, err) < 0)
		return -1;
	if (batch_r->count > 0 && !batch_r->has_initialize &&
	    (batch_r->requests == 0 || batch_r->responses == 0))
		return 0;
	return error_set(
		err, ERROR_INVALID,
		"Invalid request: a batch is not empty, has no initialize, and either asks or answers");
}

void batch_fini(struct batch *batch)
{
	free(batch->messages);
	*batch = (struct batch){ .messages = NULL };
}
