/* SPDX-License-Identifier: Apache-2.0 */
/* Each tells what is wrong; admission.c and the fronts decide what follows. */
#include "endpoint/validation.h"

/* It is kept for as long as the session lives, for the processes that come later. */
#define INITIALIZE_BYTES_MAX (64 * 1024)

const char *validation_check_content(const struct http_request *http)
{
	if (!http_is_media_type(http->fields[HTTP_CONTENT_TYPE], "application/json"))
		return "Unsupported media type: the body must be application/json in UTF-8";
	if (http_has(http, HTTP_CONTENT_ENCODING))
		return "Unsupported media type: the body must not be compressed";
	return NULL;
}

/* Without Accept, or with one that is spread over several fields, anything is taken. */
bool validation_accepts(const struct http_request *http, const char *type)
{
	if (!http_has(http, HTTP_ACCEPT) || http->repeated & 1u << HTTP_ACCEPT)
		return true;
	return http_accepts(http->fields[HTTP_ACCEPT], type);
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

	CHECK(validation_is_initialize(initialize));
	if (initialize->text.n > INITIALIZE_BYTES_MAX)
		return "Invalid params: initialize is longer than 64 KiB";
	if (initialize->params.type != JSON_OBJECT ||
	    scan_member(params, SLICE_LIT("protocolVersion")).type != JSON_STRING ||
	    scan_member(params, SLICE_LIT("capabilities")).type != JSON_OBJECT ||
	    scan_member(params, SLICE_LIT("clientInfo")).type != JSON_OBJECT)
		return "Invalid params: initialize needs protocolVersion, capabilities and clientInfo";
	return NULL;
}
