/* SPDX-License-Identifier: Apache-2.0 */
/* What a message needs: read from the very text that is forwarded, as the server will read it. */
#include "base/text.h"
#include "endpoint/authorization.h"
#include "jsonrpc/scan.h"

static void add_tool(const struct protected_resource *place, struct slice name,
		     struct scope_set *needed)
{
	for (size_t i = 0; i < place->tool_scopes.count; i++)
		if (text_fits_pattern(name, place->tool_scopes.items[i].name))
			scope_set_join(needed, &place->tool_needs[i]);
}

static void add_all(const struct protected_resource *place, struct scope_set *needed)
{
	for (size_t i = 0; i < place->tool_scopes.count; i++)
		scope_set_join(needed, &place->tool_needs[i]);
}

/* A name that is no text, or cannot be decoded, may mean any tool. SEC-50 */
void authorization_add_required(const struct protected_resource *place, const struct envelope *env,
				struct scope_set *needed)
{
	struct buf decoded = { 0 };

	if (place->tool_scopes.count == 0 || env->kind == ENVELOPE_RESULT ||
	    env->kind == ENVELOPE_ERROR || !slice_is_equal(env->method, SLICE_LIT("tools/call")))
		return;
	if (env->name.type == JSON_STRING && !env->name.has_escape)
		add_tool(place, scan_plain_string(env->name), needed);
	else if (scan_decode_string(env->name, &decoded) == 0)
		add_tool(place, buf_slice(&decoded), needed);
	else
		add_all(place, needed);
	buf_fini(&decoded);
}
