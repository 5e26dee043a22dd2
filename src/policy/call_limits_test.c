/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit a call counts for. */
#include "policy/call_limits.h"

#include "base/unit_test.h"
#include "jsonrpc/scan.h"

static const struct slice writing[] = { SLICE("create_*"), SLICE("Delete") };
static const struct slice reports[] = { SLICE("create_report"), SLICE("*report*") };
static struct tool_limit entries[] = {
	{ .tools.written = { writing, 2 }, .limit.concurrency = 1 },
	{ .tools.written = { reports, 2 }, .limit.rate = { .calls = 1, .per_ms = 1000 } },
};
static struct call_limits limits = { .tools = { entries, 2 } };

/* The number of the entry, from 1 on; 0: none. */
static long entry_of(const char *method, const char *params)
{
	const struct scan_limits scan_limits = { .depth_max = 64, .id_max = 64 };
	const struct call_limit *found;
	struct envelope env;
	struct error err;
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
	assert_int_equal(scan_envelope(slice_str(text), &scan_limits, 0, &env, &err), 0);
	found = call_limits_of_tool(&limits, &env);
	return found == NULL ? 0 :
			       (long)(container_of(found, struct tool_limit, limit) - entries) + 1;
}

static int begin(void **state)
{
	call_limits_finish(&limits, SLICE_LIT("main"));
	return 0;
}

static int end(void **state)
{
	call_limits_free(&limits);
	return 0;
}

/* mcpgated.yaml(5): what is counted goes on in another configuration. */
static void a_limit_is_known_again(void **state)
{
	static const struct slice shorter[] = { SLICE("create_*") };
	static const struct slice joined[] = { SLICE("create_*Delete") };
	struct tool_limit again[] = { { .tools.written = { writing, 2 } },
				      { .tools.written = { reports, 2 },
					.limit.rate = { .calls = 1, .per_ms = 1000 } },
				      { .tools.written = { shorter, 1 } },
				      { .tools.written = { joined, 1 } } };
	struct call_limits other = { .tools = { again, 4 } }, elsewhere = { .all.concurrency = 1 };
	const struct call_limit *writes = &entries[0].limit, *reads = &entries[1].limit;

	call_limits_finish(&other, SLICE_LIT("main"));
	call_limits_finish(&elsewhere, SLICE_LIT("mai"));
	assert_ptr_equal(other.all.in_flight_scope, limits.all.in_flight_scope);
	assert_ptr_equal(other.all.rate_scope, limits.all.rate_scope);
	assert_ptr_not_equal(elsewhere.all.in_flight_scope, limits.all.in_flight_scope);
	assert_ptr_not_equal(elsewhere.all.rate_scope, limits.all.rate_scope);
	/* Of another concurrency as well; of the same rate alone. */
	assert_ptr_equal(again[0].limit.in_flight_scope, writes->in_flight_scope);
	assert_ptr_equal(again[1].limit.in_flight_scope, reads->in_flight_scope);
	assert_ptr_equal(again[1].limit.rate_scope, reads->rate_scope);
	for (size_t i = 0; i < 3; i++) {
		struct call_limit changed = again[1].limit;

		*(i == 0 ? &changed.rate.calls :
		  i == 1 ? &changed.rate.per_ms :
			   &changed.rate.burst) += 1;
		again[0].limit = changed;
		call_limits_free(&other);
		again[0].tools.written = (struct slices){ reports, 2 };
		call_limits_finish(&other, SLICE_LIT("main"));
		assert_ptr_equal(again[0].limit.in_flight_scope, reads->in_flight_scope);
		assert_ptr_not_equal(again[0].limit.rate_scope, reads->rate_scope);
	}
	for (size_t i = 2; i < 4; i++)
		assert_ptr_not_equal(again[i].limit.in_flight_scope, writes->in_flight_scope);
	assert_ptr_not_equal(writes->in_flight_scope, limits.all.in_flight_scope);
	call_limits_free(&other);
	call_limits_free(&elsewhere);
}

static void first_that_fits(void **state)
{
	assert_int_equal(entry_of("tools/call", "{\"name\":\"create_x\"}"), 1);
	assert_int_equal(entry_of("tools/call", "{\"name\":\"create_report\"}"), 1);
	assert_int_equal(entry_of("tools/call", "{\"name\":\"the report\"}"), 2);
	assert_int_equal(entry_of("tools/call", "{\"name\":\"read\"}"), 0);
}

/* As servers may take names for one another, they are counted. SEC-42 */
static void spellings_are_one(void **state)
{
	static const char *const names[] = { "delete", "DELETE", "d e l e t e", "\\u0064elete",
					     "\xEF\xBD\x84"
					     "elete" };
	char params[128];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(params, sizeof(params), "{\"name\":\"%s\"}", names[i]);
		assert_int_equal(entry_of("tools/call", params), 1);
	}
	assert_int_equal(entry_of("Tools/Call", "{\"name\":\"delete\"}"), 1);
}

static void what_cannot_be_compared_counts(void **state)
{
	assert_int_equal(entry_of("tools/call", "{\"name\":\"re\\u200bad\"}"), 1);
	assert_int_equal(entry_of("tools/call", "{\"name\":7}"), 1);
	assert_int_equal(entry_of("tools/call", "{}"), 1);
}

static void other_messages_are_none(void **state)
{
	assert_int_equal(entry_of("prompts/get", "{\"name\":\"delete\"}"), 0);
	assert_int_equal(entry_of("tools/list", "{}"), 0);
}

static void unless_something_is_set(void **state)
{
	const struct call_limits none = { .all = { .concurrency = 0 } };
	const struct call_limits rate = { .all.rate.calls = 1 };
	const struct call_limits concurrency = { .all.concurrency = 1 };

	assert_false(call_limits_are_set(&none));
	assert_true(call_limits_are_set(&rate));
	assert_true(call_limits_are_set(&concurrency));
	assert_true(call_limits_are_set(&limits));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_that_fits),
		cmocka_unit_test(a_limit_is_known_again),
		cmocka_unit_test(spellings_are_one),
		cmocka_unit_test(what_cannot_be_compared_counts),
		cmocka_unit_test(other_messages_are_none),
		cmocka_unit_test(unless_something_is_set),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, begin, end);
}
