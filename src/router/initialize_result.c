/* SPDX-License-Identifier: Apache-2.0 */
#include "router/initialize_result.h"

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

struct rebuild {
	struct buf out;
	bool is_inside; /* of capabilities */
	bool is_for_all;
};

/* Tasks have ids that nobody maps; log messages do not say whose call they are about. bridging.md §1.3 */
static bool is_shareable(const struct rebuild *rebuild, struct slice capability)
{
	return !slice_is_equal(capability, SLICE_LIT("tasks")) &&
	       !(rebuild->is_for_all && slice_is_equal(capability, SLICE_LIT("logging")));
}

static int copy_member(struct slice name, struct json value, void *arg)
{
	struct rebuild *rebuild = arg;
	struct rebuild capabilities = { .is_inside = true, .is_for_all = rebuild->is_for_all };

	if (rebuild->is_inside && !is_shareable(rebuild, name))
		return 0;
	buf_append_char(&rebuild->out, rebuild->out.len > 0 ? ',' : '{');
	buf_append_char(&rebuild->out, '"');
	buf_append_slice(&rebuild->out, name);
	buf_append_str(&rebuild->out, "\":");
	if (rebuild->is_inside || !slice_is_equal(name, SLICE_LIT("capabilities")) ||
	    value.type != JSON_OBJECT) {
		buf_append_slice(&rebuild->out, value.text);
		return 0;
	}
	scan_members(value.text, copy_member, &capabilities);
	buf_append_str(&capabilities.out, capabilities.out.len > 0 ? "}" : "{}");
	buf_append_slice(&rebuild->out, buf_slice(&capabilities.out));
	buf_fini(&capabilities.out);
	return 0;
}

struct msg *initialize_result_share(struct slice result, bool is_for_all)
{
	struct rebuild rebuild = { .is_for_all = is_for_all };
	struct buf text = { 0 };

	scan_members(result, copy_member, &rebuild);
	buf_append_str(&rebuild.out, rebuild.out.len > 0 ? "}" : "{}");
	write_result(&text, SLICE_LIT("0"), buf_slice(&rebuild.out));
	buf_fini(&rebuild.out);
	return msg_new_take(&text);
}
