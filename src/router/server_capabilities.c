/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the capabilities of an InitializeResult. What is written in a way that nobody knows is not offered. */
#include "router/server_capabilities.h"

#include "base/check.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"

static bool is_told(struct slice capabilities, const char *name, const char *member)
{
	const char *const path[] = { name, member };

	return scan_path(capabilities, path, member != NULL ? 2 : 1).type ==
	       (member != NULL ? JSON_TRUE : JSON_OBJECT);
}

void server_capabilities_read(struct server_capabilities *server_capabilities, struct slice result)
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
		{ "tasks", NULL, { .offers = OFFER_TASKS } },
	};
	struct slice capabilities = scan_member(result, SLICE_LIT("capabilities")).text;

	*server_capabilities = (struct server_capabilities){ 0, 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!is_told(capabilities, rows[i].name, rows[i].member))
			continue;
		server_capabilities->offers |= rows[i].means.offers;
		server_capabilities->tells |= rows[i].means.tells;
	}
}
