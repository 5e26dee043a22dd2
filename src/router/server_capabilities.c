/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the capabilities of an InitializeResult. A capability that is not of the expected type is
 * not offered.
 */
#include "router/server_capabilities.h"

#include "base/check.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"
#include "router/era.h"

void server_capabilities_read(struct server_capabilities *capabilities, struct slice result,
			      bool is_modern)
{
	static const struct {
		const char *name;
		const char *member;
		struct server_capabilities means;
	} rows[] = {
		{ "tools", NULL, { .offers = OFFER_TOOLS } },
		{ "tools", "listChanged", { .tells = OFFER_TOOLS } },
		{ "prompts", NULL, { .offers = OFFER_PROMPTS } },
		{ "prompts", "listChanged", { .tells = OFFER_PROMPTS } },
		{ "resources", NULL, { .offers = OFFER_RESOURCES } },
		{ "resources", "listChanged", { .tells = OFFER_RESOURCES } },
		{ "resources", "subscribe", { .offers = OFFER_SUBSCRIBE } },
		{ "completions", NULL, { .offers = OFFER_COMPLETIONS } },
		{ "logging", NULL, { .offers = OFFER_LOGGING } },
	};
	struct slice text = scan_member(result, SLICE_LIT("capabilities")).text;

	*capabilities = (struct server_capabilities){ 0, 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *const path[] = { rows[i].name, rows[i].member };
		bool has_member = rows[i].member != NULL;

		if (scan_path(text, path, has_member ? 2 : 1).type !=
		    (has_member ? JSON_TRUE : JSON_OBJECT))
			continue;
		capabilities->offers |= rows[i].means.offers;
		capabilities->tells |= rows[i].means.tells;
	}
	if (is_modern ? task_extension_is_declared(text) :
			scan_member(text, SLICE_LIT("tasks")).type == JSON_OBJECT)
		capabilities->offers |= OFFER_TASKS;
}

struct rebuild {
	struct buf out;
	bool is_of_capabilities; /* that object; else the result */
	bool has_logging;
};

/*
 * A log message does not say whose call it is about, nor does a task say whose it is. bridging.md
 * §1.3, §2.5
 */
static bool is_shareable(const struct rebuild *rebuild, struct slice name)
{
	return !rebuild->is_of_capabilities ||
	       (!slice_is_equal(name, SLICE_LIT("tasks")) &&
		(rebuild->has_logging || !slice_is_equal(name, SLICE_LIT("logging"))));
}

static int copy_shareable(struct slice name, struct json value, void *arg)
{
	struct rebuild *rebuild = arg;
	struct rebuild inner = { .is_of_capabilities = true, .has_logging = rebuild->has_logging };

	if (!is_shareable(rebuild, name))
		return 0;
	buf_append_char(&rebuild->out, rebuild->out.len > 0 ? ',' : '{');
	buf_append_char(&rebuild->out, '"');
	buf_append_slice(&rebuild->out, name);
	buf_append_str(&rebuild->out, "\":");
	if (rebuild->is_of_capabilities || value.type != JSON_OBJECT ||
	    !slice_is_equal(name, SLICE_LIT("capabilities"))) {
		splice_append(&rebuild->out, value.text, NULL, 0, SPLICE_ONE_LINE);
		return 0;
	}
	scan_members(value.text, copy_shareable, &inner);
	buf_append_str(&inner.out, inner.out.len > 0 ? "}" : "{}");
	buf_append_slice(&rebuild->out, buf_slice(&inner.out));
	buf_fini(&inner.out);
	return 0;
}

struct msg *server_capabilities_share(struct slice result, bool has_logging)
{
	struct rebuild rebuild = { .has_logging = has_logging };
	struct buf text = { 0 };

	scan_members(result, copy_shareable, &rebuild);
	buf_append_str(&rebuild.out, rebuild.out.len > 0 ? "}" : "{}");
	write_result(&text, SLICE_LIT("0"), buf_slice(&rebuild.out));
	buf_fini(&rebuild.out);
	return msg_new_take(&text);
}
