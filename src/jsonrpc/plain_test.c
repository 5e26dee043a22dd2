/* SPDX-License-Identifier: Apache-2.0 */
/* One spelling of what is read, whatever libraries write. RPC-08 */
#include "jsonrpc/scan.h"

#include "base/unit_test.h"

static const struct scan_limits limits = { .depth_max = 32, .id_max = 256 };

/* `expected` NULL: it stays as it is. */
static void assert_plain(const char *written, const char *expected, unsigned int scan_flags,
			 unsigned int plain_flags)
{
	struct buf room = { 0 };
	struct envelope env;
	struct error err;

	if (plain_scan(slice_str(written), &limits, scan_flags, plain_flags, &room, &env, &err) < 0)
		fail_msg("%s: %s", written, err.text);
	if (!slice_is_equal(env.text, slice_str(expected != NULL ? expected : written)))
		fail_msg("%s became %.*s", written, SLICE_ARG(env.text));
	assert_int_equal(room.len > 0, expected != NULL);
	buf_fini(&room);
}

struct row {
	const char *written, *plain;
};

static void assert_rows(const struct row *rows, size_t count, unsigned int plain_flags)
{
	for (size_t i = 0; i < count; i++) {
		assert_plain(rows[i].written, rows[i].plain, 0, plain_flags);
		assert_plain(rows[i].written, rows[i].plain, SCAN_LENIENT, plain_flags);
		if (rows[i].plain != NULL)
			assert_plain(rows[i].plain, NULL, 0, plain_flags);
	}
}

#define M "{\"jsonrpc\":\"2.0\","
#define CALL(params) M "\"id\":1,\"method\":\"tools/call\",\"params\":" params "}"
#define RESULT(result) M "\"id\":1,\"result\":" result "}"

static void test_names_and_methods(void **state)
{
	static const struct row rows[] = {
		{ M "\"id\":1,\"method\":\"tools\\/call\"}",
		  M "\"id\":1,\"method\":\"tools/call\"}" },
		{ M "\"id\":1,\"meth\\u006fd\":\"pi\\u006Eg\"}",
		  M "\"id\":1,\"method\":\"ping\"}" },
		{ "{\"jsonrpc\":\"2.0\",\"\\u0069d\":1,\"method\":\"ping\"}",
		  M "\"id\":1,\"method\":\"ping\"}" },
		{ CALL("{\"_meta\":{\"a.b\\/c\":1,\"progressToken\":\"a\\/b\"}}"),
		  CALL("{\"_meta\":{\"a.b/c\":1,\"progressToken\":\"a\\/b\"}}") },
		{ CALL("{\"arguments\":{\"a\\/b\":\"c\\/d\",\"\\u00e9\":[{\"\\\"\\u000A\\/\":1}]}}"),
		  CALL("{\"arguments\":{\"a/b\":\"c\\/d\",\"\\u00e9\":[{\"\\\"\\u000A\\/\":1}]}}") },
		{ CALL("{\"arguments\":{\"a\\nb\":1,\"\\ud800\":2}}"), NULL },
		{ RESULT("{\"_meta\":{\"io.modelcontextprotocol\\/serverInfo\":{}},\"x\":\"\\/\"}"),
		  RESULT("{\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{}},\"x\":\"\\/\"}") },
		{ M "\"id\":\"a\\/b\",\"method\":\"ping\"}", NULL },
	};

	assert_rows(rows, ARRAY_LEN(rows), 0);
}

static void test_strings_that_are_read(void **state)
{
	static const struct row rows[] = {
		{ CALL("{\"name\":\"a\\/b\",\"arguments\":{\"name\":\"a\\/b\"}}"),
		  CALL("{\"name\":\"a/b\",\"arguments\":{\"name\":\"a\\/b\"}}") },
		{ CALL("{\"uri\":\"file:\\/\\/\\/\\u00E9\\u0000\\u2028\\\"\"}"),
		  CALL("{\"uri\":\"file:///\xc3\xa9\\u0000\\u2028\\\"\"}") },
		{ CALL("{\"cursor\":\"\\u0061\",\"taskId\":\"\\/\",\"requestState\":\"\\/\"}"),
		  CALL("{\"cursor\":\"a\",\"taskId\":\"/\",\"requestState\":\"/\"}") },
		{ CALL("{\"name\":\"\\ud800\\/\"}"), NULL },
		{ RESULT("{\"resultType\":\"c\\u006fmplete\",\"requestState\":\"a\\/b\"}"),
		  RESULT("{\"resultType\":\"complete\",\"requestState\":\"a/b\"}") },
	};

	assert_rows(rows, ARRAY_LEN(rows), 0);
}

static void test_empty_containers(void **state)
{
	assert_plain(CALL("[]"), CALL("{}"), 0, 0);
	assert_plain(CALL("[ ]"), CALL("{}"), 0, 0);
	assert_plain(CALL("{\"arguments\":[],\"_meta\":[]}"),
		     CALL("{\"arguments\":{},\"_meta\":{}}"), 0, 0);
	assert_plain(CALL("{\"arguments\":[1],\"x\":[]}"), NULL, 0, 0);
	assert_plain(CALL("{\"arguments\":{\"x\":[]}}"), NULL, 0, 0);
	assert_plain(RESULT("[]"), RESULT("{}"), 0, 0);
	assert_plain(RESULT("{\"_meta\":[],\"tools\":[]}"), RESULT("{\"_meta\":{},\"tools\":[]}"),
		     0, 0);
}

#define INITIALIZE(capabilities)                                                          \
	M "\"id\":1,\"method\":\"initialize\",\"params\":{\"capabilities\":" capabilities \
	  ",\"x\":[]}}"
#define DISCOVERED(capabilities) RESULT("{\"capabilities\":" capabilities ",\"x\":[]}")
#define META(capabilities)                                                                  \
	CALL("{\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":" capabilities "," \
	     "\"x\":[]}}")

static void test_capabilities(void **state)
{
	static const struct {
		const char *written, *plain;
		unsigned int flags;
	} rows[] = {
		{ INITIALIZE("[]"), INITIALIZE("{}"), 0 },
		{ INITIALIZE("{\"roots\":[],\"elicitation\":{\"form\":[]}}"),
		  INITIALIZE("{\"roots\":{},\"elicitation\":{\"form\":{}}}"), 0 },
		{ INITIALIZE("{\"tasks\":{\"requests\":{\"a\":{\"b\":[]}}}}"),
		  INITIALIZE("{\"tasks\":{\"requests\":{\"a\":{\"b\":{}}}}}"), 0 },
		{ INITIALIZE("{\"extensions\":{\"a\\/b\":[],\"c\":{\"d\":[]}},\"roots\":[]}"),
		  INITIALIZE("{\"extensions\":{\"a/b\":{},\"c\":{\"d\":[]}},\"roots\":{}}"), 0 },
		{ INITIALIZE("{\"experimental\":[]}"), INITIALIZE("{\"experimental\":{}}"), 0 },
		{ INITIALIZE("{\"roots\":[1]}"), NULL, 0 },
		{ DISCOVERED("{\"tools\":[]}"), NULL, 0 },
		{ DISCOVERED("{\"tools\":[]}"), DISCOVERED("{\"tools\":{}}"), PLAIN_HANDSHAKE },
		{ META("[]"), META("{}"), 0 },
		{ META("{\"roots\":[]}"), META("{\"roots\":{}}"), 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_plain(rows[i].written, rows[i].plain, 0, rows[i].flags);
}

/* Two names that are one for a reader are one here. SEC-40, SEC-41 */
static void test_what_two_readers_could_read_differently(void **state)
{
	static const char *const texts[] = {
		M "\"id\":1,\"method\":\"ping\",\"meth\\u006fd\":\"tools/call\"}",
		M "\"id\":1,\"method\":\"ping\",\"Meth\\u006fd\":\"tools/call\"}",
		CALL("{\"name\":\"a\",\"n\\u0061me\":\"b\"}"),
		CALL("{\"_meta\":{},\"\\u005fmeta\":{}}"),
		M "\"id\":1,\"method\":\"a\\u0000\"}",
		M "\"id\":1,\"method\":\"ping\",\"a\\u0000\":1}",
		M "\"id\":1,\"method\":\"ping\",\"\\ud800\":1}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct buf room = { 0 };
		struct envelope env;
		struct error err;

		if (plain_scan(slice_str(texts[i]), &limits, 0, 0, &room, &env, &err) == 0)
			fail_msg("%s is accepted", texts[i]);
		assert_int_equal(err.kind, ERROR_INVALID);
		buf_fini(&room);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_methods),
		cmocka_unit_test(test_strings_that_are_read),
		cmocka_unit_test(test_empty_containers),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_what_two_readers_could_read_differently),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
