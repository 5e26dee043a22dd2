/* SPDX-License-Identifier: Apache-2.0 */
#include "router/tool_series.h"

#include "jsonrpc/scan.h"

struct note {
	struct call_stats *stats;
	struct buf name;
};

static int note_item(struct slice item, void *arg)
{
	struct note *note = arg;

	note->name.len = 0;
	if (scan_decode_string(scan_member(item, SLICE_LIT("name")), &note->name) == 0)
		call_stats_note_tool(note->stats, buf_slice(&note->name));
	return call_stats_has_room(note->stats) ? 0 : -1;
}

void tool_series_note(struct server *server, const struct method *method, struct slice result)
{
	struct note note = { .stats = &server->stats->calls };
	struct json tools;
	struct error err;

	if (method->id != METHOD_TOOLS_LIST || !call_stats_has_room(note.stats))
		return;
	tools = scan_member(result, SLICE_LIT("tools"));
	if (tools.type == JSON_ARRAY)
		(void)!scan_array(tools.text, SIZE_MAX, note_item, &note, &err);
	buf_fini(&note.name);
}
