/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where the error of a call is written. It sends nothing: dispatch.c does. MCP tools. */
#include "demo/call.h"

#include <stdarg.h>
#include <stdio.h>

#include "demo/rpc.h"

json_t *call_fail(struct call *call, int code, const char *format, ...)
{
	va_list args;

	CHECK(code != 0 && call->code == 0 && !call->is_later);
	call->code = code;
	va_start(args, format);
	vsnprintf(call->text, sizeof(call->text), format, args);
	va_end(args);
	return NULL;
}

int call_unpack(struct call *call, const json_t *value, const char *format, ...)
{
	json_error_t error;
	va_list args;
	int failed;

	va_start(args, format);
	failed = json_vunpack_ex((json_t *)value, &error, 0, format, args);
	va_end(args);
	if (failed)
		call_fail(call, MCP_INVALID_PARAMS, "%s", error.text);
	return failed ? -1 : 0;
}

const json_t *call_string(struct call *call, const json_t *args, const char *name)
{
	const json_t *text = json_object_get(args, name);

	if (!json_is_string(text)) {
		call_fail(call, MCP_INVALID_PARAMS, "%s must be a string", name);
		return NULL;
	}
	return text;
}

struct slice call_text(const json_t *string)
{
	return slice_of(json_string_value(string), json_string_length(string));
}

bool call_is(const json_t *string, const char *text)
{
	return json_is_string(string) && slice_is_equal(call_text(string), slice_str(text));
}

json_t *call_result(json_t *text)
{
	return json_pack("{s:[{s:s, s:o}]}", "content", "type", "text", "text", text);
}

json_t *call_result_error(json_t *text)
{
	return json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text", text,
			 "isError", 1);
}
