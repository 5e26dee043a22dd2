/* SPDX-License-Identifier: Apache-2.0 */
/* The client's own initialize goes on as it is, but for its id, its revision and what only the modern era may say. */
#include "upstream/handshake.h"

#include "base/text.h"
#include "mcp/revision.h"
#include "upstream/send.h"
#include "upstream/upstream.h"

int handshake_send(struct upstream *upstream, uint64_t id)
{
	const struct upstream_setup *setup = upstream->setup;
	struct send_edits edits = { .count = 0 };
	struct buf version = { 0 };
	struct envelope env;
	struct error err;
	char digits[20];

	CHECK(upstream->state == UPSTREAM_HANDSHAKE && id != 0);
	if (scan_envelope(setup->initialize->text, &upstream->shared->limits, 0, &env, &err) < 0)
		return -1;
	buf_printf(&version, "\"%.*s\"", SLICE_ARG(setup->revision->name));
	send_edits_add(&edits, env.id.text, slice_of(digits, text_format_u64(id, digits)));
	send_edits_add(&edits, scan_member(env.params.text, SLICE_LIT("protocolVersion")).text,
		       buf_slice(&version));
	send_edits_add_meta(&edits, &env, (struct slice){ NULL, 0 });
	send_message(upstream, &env, &edits);
	send_edits_fini(&edits);
	buf_fini(&version);
	return 0;
}

const struct revision *handshake_read_revision(struct slice result)
{
	return revision_find(scan_plain_string(scan_member(result, SLICE_LIT("protocolVersion"))));
}

void handshake_complete(struct upstream *upstream)
{
	send_notification(upstream, SLICE_LIT("notifications/initialized"));
}
