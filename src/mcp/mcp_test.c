/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of MCP: every row is found, and nothing else is. */
#include "mcp/revision.h"

#include "base/unit_test.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/method.h"

static const char *const revisions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

/* FRONT-INIT-01 */
static void revisions_with_a_handshake_are_known(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		const struct revision *revision = revision_find(slice_str(revisions[i]));

		assert_non_null(revision);
		assert_true(slice_is_equal(revision->name, slice_str(revisions[i])));
	}
	assert_ptr_equal(revision_newest(), revision_find(SLICE_LIT("2025-11-25")));
}

static void other_revisions_are_not(void **state)
{
	static const char *const others[] = {
		"", "2026-07-28", "2025-11-2", "2025-11-255", "2025-11-25 ", "DRAFT-2025", "1.0"
	};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_null(revision_find(slice_str(others[i])));
	assert_null(revision_find(slice_of("2025-11-25\0", 11)));
	assert_null(revision_find((struct slice){ NULL, 0 }));
}

/* requirements.md §3 */
static void modern_revisions_are_known(void **state)
{
	static const char *const others[] = { "",           "2026-07-2",  "2026-07-28 ",
					      "2026-07-29", "2027-01-01", "DRAFT-2026" };

	assert_true(revision_is_modern(SLICE_LIT("2026-07-28")));
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++)
		assert_false(revision_is_modern(slice_str(revisions[i])));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(revision_is_modern(slice_str(others[i])));
	assert_false(revision_is_modern((struct slice){ NULL, 0 }));
}

static void revisions_differ_where_they_do(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		const struct revision *revision = revision_find(slice_str(revisions[i]));

		assert_int_equal(revision->has_batches, strcmp(revisions[i], "2025-03-26") == 0);
	}
}

/* FRONT-VER-02, FRONT-ERA-05, MOD-DISC-02 */
static void supported_revisions_are_listed(void **state)
{
	struct buf out = { 0 };

	buf_append_str(&out, "x");
	revision_append_supported(&out, SLICE_LIT("\"1.0\""), false);
	assert_string_equal(
		buf_terminate(&out),
		"x{\"supported\":[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"],"
		"\"requested\":\"1.0\"}");
	buf_fini(&out);
	revision_append_supported(&out, SLICE_LIT("\"2025-11-25\""), true);
	assert_string_equal(buf_terminate(&out),
			    "{\"supported\":[\"2026-07-28\"],\"requested\":\"2025-11-25\"}");
	buf_fini(&out);
}

static void methods_are_found_by_their_whole_name(void **state)
{
	static const struct {
		const char *name;
		enum method_id id;
	} rows[] = {
		{ "initialize", METHOD_INITIALIZE },
		{ "ping", METHOD_PING },
		{ "tools/call", METHOD_TOOLS_CALL },
		{ "prompts/get", METHOD_PROMPTS_GET },
		{ "resources/read", METHOD_RESOURCES_READ },
		{ "logging/setLevel", METHOD_SET_LEVEL },
		{ "resources/subscribe", METHOD_SUBSCRIBE },
		{ "resources/unsubscribe", METHOD_UNSUBSCRIBE },
		{ "roots/list", METHOD_ROOTS_LIST },
		{ "sampling/createMessage", METHOD_SAMPLING },
		{ "elicitation/create", METHOD_ELICITATION },
		{ "tasks/get", METHOD_TASKS },
		{ "tasks/result", METHOD_TASKS },
		{ "tasks/list", METHOD_TASKS },
		{ "tasks/cancel", METHOD_TASKS },
		{ "tasks/update", METHOD_TASKS },
		{ "notifications/initialized", METHOD_INITIALIZED },
		{ "notifications/cancelled", METHOD_CANCELLED },
		{ "notifications/progress", METHOD_PROGRESS },
		{ "notifications/message", METHOD_MESSAGE },
		{ "notifications/roots/list_changed", METHOD_ROOTS_CHANGED },
		{ "notifications/tools/list_changed", METHOD_LIST_CHANGED },
		{ "notifications/prompts/list_changed", METHOD_LIST_CHANGED },
		{ "notifications/resources/list_changed", METHOD_LIST_CHANGED },
		{ "notifications/resources/updated", METHOD_RESOURCE_UPDATED },
		{ "notifications/elicitation/complete", METHOD_ELICITATION_COMPLETE },
		{ "tools/list", METHOD_TOOLS_LIST },
		{ "completion/complete", METHOD_COMPLETE },
		{ "notifications/tasks/status", METHOD_TASK_STATUS },
		{ "resources/list", METHOD_OTHER },
		{ "tools/lists", METHOD_OTHER },
		{ "Tools/call", METHOD_OTHER },
		{ "tools/call ", METHOD_OTHER },
		{ "tools/cal", METHOD_OTHER },
		{ "", METHOD_OTHER },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct method *method = method_find(slice_str(rows[i].name));

		assert_int_equal(method->id, rows[i].id);
		if (method->id != METHOD_OTHER)
			assert_true(slice_is_equal(method->name, slice_str(rows[i].name)));
	}
	assert_int_equal(method_find(slice_of("ping\0", 5))->id, METHOD_OTHER);
}

/* The servers' requests need what the client has declared; only some requests make them ask. */
static void methods_carry_what_follows_from_them(void **state)
{
	assert_string_equal(method_find(SLICE_LIT("roots/list"))->capability, "roots");
	assert_string_equal(method_find(SLICE_LIT("sampling/createMessage"))->capability,
			    "sampling");
	assert_string_equal(method_find(SLICE_LIT("elicitation/create"))->capability,
			    "elicitation");
	assert_string_equal(method_find(SLICE_LIT("tasks/get"))->capability, "tasks");
	assert_string_equal(method_find(SLICE_LIT("notifications/prompts/list_changed"))
				    ->capability,
			    "prompts");
	assert_null(method_find(SLICE_LIT("ping"))->capability);
	assert_null(method_find(SLICE_LIT("x/unknown"))->capability);
	assert_true(method_find(SLICE_LIT("tools/call"))->flags & METHOD_ASKING);
	assert_true(method_find(SLICE_LIT("prompts/get"))->flags & METHOD_ASKING);
	assert_true(method_find(SLICE_LIT("resources/read"))->flags & METHOD_ASKING);
	assert_false(method_find(SLICE_LIT("ping"))->flags & METHOD_ASKING);
	assert_false(method_find(SLICE_LIT("tools/list"))->flags & METHOD_ASKING);
}

static void levels_rise(void **state)
{
	static const char *const names[] = { "debug", "info",     "notice", "warning",
					     "error", "critical", "alert",  "emergency" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(level_find(slice_str(names[i])), i);
		assert_true(slice_is_equal(level_name((int)i), slice_str(names[i])));
	}
	assert_int_equal(level_find(SLICE_LIT("Debug")), -1);
	assert_int_equal(level_find(SLICE_LIT("warn")), -1);
	assert_int_equal(level_find(SLICE_LIT("")), -1);
	assert_int_equal(level_find(SLICE_LIT("debug ")), -1);
}

/* JSON-RPC 2.0 section 5.1 */
static void codes_are_those_of_the_specification(void **state)
{
	assert_int_equal(MCP_PARSE_ERROR, -32700);
	assert_int_equal(MCP_INVALID_REQUEST, -32600);
	assert_int_equal(MCP_METHOD_NOT_FOUND, -32601);
	assert_int_equal(MCP_INVALID_PARAMS, -32602);
	assert_int_equal(MCP_INTERNAL_ERROR, -32603);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revisions_with_a_handshake_are_known),
		cmocka_unit_test(other_revisions_are_not),
		cmocka_unit_test(modern_revisions_are_known),
		cmocka_unit_test(revisions_differ_where_they_do),
		cmocka_unit_test(supported_revisions_are_listed),
		cmocka_unit_test(methods_are_found_by_their_whole_name),
		cmocka_unit_test(methods_carry_what_follows_from_them),
		cmocka_unit_test(levels_rise),
		cmocka_unit_test(codes_are_those_of_the_specification),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
