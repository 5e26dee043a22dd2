/* SPDX-License-Identifier: Apache-2.0 */
/* Checks only; nothing is kept but slices of the body. */
#include "endpoint/validation.h"

#include "mcp/error.h"

/* It is kept for as long as the session lives, for the processes that come later. */
#define INITIALIZE_BYTES_MAX (64 * 1024)

int validation_code(const struct error *err)
{
	return err->kind == ERROR_SYNTAX ? MCP_PARSE_ERROR : MCP_INVALID_REQUEST;
}

bool validation_is_initialize(const struct envelope *env)
{
	return env->kind == ENVELOPE_REQUEST &&
	       slice_is_equal(env->method, SLICE_LIT("initialize"));
}

struct json validation_version(const struct envelope *env)
{
	return scan_member(env->meta.text, SLICE_LIT("io.modelcontextprotocol/protocolVersion"));
}

const char *validation_check_initialize(const struct envelope *initialize)
{
	struct slice params = initialize->params.text;

	if (initialize->text.n > INITIALIZE_BYTES_MAX)
		return "Invalid params: initialize is longer than 64 KiB";
	if (initialize->params.type != JSON_OBJECT ||
	    scan_member(params, SLICE_LIT("protocolVersion")).type != JSON_STRING ||
	    scan_member(params, SLICE_LIT("capabilities")).type != JSON_OBJECT ||
	    scan_member(params, SLICE_LIT("clientInfo")).type != JSON_OBJECT)
		return "Invalid params: initialize needs protocolVersion, capabilities and clientInfo";
	return NULL;
}

static int batch_add(struct slice element, void *arg)
{
	struct batch *batch = arg;
	struct envelope env;

	if (scan_envelope(element, batch->limits, 0, &env, batch->err) < 0)
		return -1;
	if (env.kind == ENVELOPE_REQUEST) {
		batch->requests++;
		batch->has_initialize |= validation_is_initialize(&env);
	} else if (env.kind != ENVELOPE_NOTIFICATION) {
		batch->responses++;
	}
	batch->elements[batch->count++] = element;
	return 0;
}

int validation_batch(struct slice body, const struct scan_limits *limits, struct batch *batch_r,
		     struct error *err)
{
	*batch_r = (struct batch){ .limits = limits, .err = err };
	if (scan_array(body, BATCH_MAX, batch_add, batch_r, err) < 0)
		return -1;
	if (batch_r->count > 0 && !batch_r->has_initialize &&
	    (batch_r->requests == 0 || batch_r->responses == 0))
		return 0;
	return error_set(
		err, ERROR_INVALID,
		"Invalid request: a batch is not empty, has no initialize, and either asks or answers");
}

void validation_add_needed(const struct batch *batch, const struct protected_resource *place,
			   struct scope_set *needed)
{
	struct error err;
	struct envelope env;

	for (size_t i = 0; i < batch->count && place->tool_scopes.count > 0; i++)
		if (scan_envelope(batch->elements[i], batch->limits, 0, &env, &err) == 0)
			authorization_add_required(place, &env, needed);
}
