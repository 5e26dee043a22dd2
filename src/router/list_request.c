/* SPDX-License-Identifier: Apache-2.0 */
#include "router/list_request.h"

#include <stdint.h>

#include "base/slice.h"

#define REQUEST_BYTES_MAX 1024 /* of one that may wait for a list: an id, and trace context */

static int check_meta(struct slice name, struct json value, void *arg)
{
	/* None of these changes the response; those of the modern era never reach a process. */
	static const struct slice harmless[] = {
		SLICE("progressToken"),
		SLICE("traceparent"),
		SLICE("tracestate"),
		SLICE("baggage"),
	};
	bool *is_plain = arg;

	(void)value;
	*is_plain = slices_has((struct slices){ harmless, ARRAY_LEN(harmless) }, name) ||
		    slice_has_prefix(name, SLICE_LIT("io.modelcontextprotocol/"));
	return *is_plain ? 0 : -1;
}

static int check_param(struct slice name, struct json value, void *arg)
{
	bool *is_plain = arg;

	if (slice_is_equal(name, SLICE_LIT("_meta")))
		scan_members(value.text, check_meta, arg);
	else
		*is_plain = false;
	return *is_plain ? 0 : -1;
}

bool list_request_is_plain(const struct envelope *env)
{
	bool is_plain = env->params.type != JSON_ARRAY && env->text.n <= REQUEST_BYTES_MAX;

	scan_members(env->params.text, check_param, &is_plain);
	return is_plain;
}
