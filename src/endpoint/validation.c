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
