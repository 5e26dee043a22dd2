/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of modern requests, as a server compares them with the message. MOD-HDR-01, -02. */
#include "remote/message_headers.h"

#include "base/unit_test.h"
#include "remote/tools.h"

#define META "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"
#define REVISION "MCP-Protocol-Version: 2026-07-28;"

static void note(const char *name, const char *value, void *arg)
{
	buf_printf(arg, "%s: %s;", name, value);
}

/* With ' for ". */
static struct buf with_quotes(const char *text)
{
	struct buf out = { 0 };

	buf_append_str(&out, text);
	for (size_t i = 0; i < out.len; i++)
		if (out.data[i] == '\'')
			out.data[i] = '"';
	return out;
}

static void assert_headers(const char *text, const char *want)
{
	struct buf message = with_quotes(text), seen = { 0 };
	struct envelope env;
	struct error err;

	assert_int_equal(scan_envelope(buf_slice(&message), &scan_limits_none, 0, &env, &err), 0);
	message_headers_add(&env, note, &seen);
	assert_string_equal(buf_terminate(&seen), want);
	buf_fini(&message);
	buf_fini(&seen);
}

static void modern_requests_have_them(void **state)
{
	(void)state;
	assert_headers("{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{" META "}}",
		       REVISION "Mcp-Method: tools/list;");
	assert_headers("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{" META
		       ",'name':'a b'}}",
		       REVISION "Mcp-Method: tools/call;Mcp-Name: a b;");
	assert_headers("{'jsonrpc':'2.0','id':1,'method':'resources/read','params':{" META
		       ",'uri':'x:\xc3\xa4'}}",
		       REVISION "Mcp-Method: resources/read;Mcp-Name: =?base64?eDrDpA==?=;");
	assert_headers("{'jsonrpc':'2.0','id':1,'method':'tasks/get','params':{" META
		       ",'taskId':'t','name':'n'}}",
		       REVISION "Mcp-Method: tasks/get;Mcp-Name: t;");
}

static void others_have_none(void **state)
{
	(void)state;
	assert_headers("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'a'}}", "");
	assert_headers("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{" META "}}",
		       "");
	assert_headers("{'jsonrpc':'2.0','id':1,'result':{}}", "");
}

#define LIST                                                                                       \
	"{'tools':[{'name':'plain'},{'name':'t','inputSchema':{'type':'object','properties':{"     \
	"'r':{'type':'string','x-mcp-header':'Region'},'n':{'type':'integer','x-mcp-header':'N'}," \
	"'o':{'type':'object','properties':{'b':{'type':'boolean','x-mcp-header':'B'}}}}}}]}"
#define CALL(arguments)                                                 \
	"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{" META \
	",'name':'\\u0074','arguments':" arguments "}}"

static void assert_params(struct tools *tools, const char *call, const char *want)
{
	struct buf message = with_quotes(call), seen = { 0 };
	struct envelope env;
	struct error err;

	assert_int_equal(scan_envelope(buf_slice(&message), &scan_limits_none, 0, &env, &err), 0);
	message_headers_add_params(&env, tools_schema(tools, env.name), note, &seen);
	assert_string_equal(buf_terminate(&seen), want);
	buf_fini(&message);
	buf_fini(&seen);
}

static void arguments_are_mirrored_as_the_last_list_says(void **state)
{
	struct buf list = with_quotes(LIST);
	struct tools tools;

	(void)state;
	tools_init(&tools);
	assert_params(&tools, CALL("{'r':'x'}"), "");
	for (int i = 0; i < 2; i++)
		tools_learn(&tools, buf_slice(&list));
	assert_int_equal(tools.count, 1);
	assert_params(&tools, CALL("{'n':7,'r':'\xc3\xa4','o':{'b':true}}"),
		      "Mcp-Param-Region: =?base64?w6Q=?=;Mcp-Param-N: 7;Mcp-Param-B: true;");
	assert_params(&tools, CALL("{'n':null,'o':{}}"), "");
	buf_fini(&list);
	list = with_quotes("{'tools':[{'name':'t','inputSchema':{'type':'object'}}]}");
	tools_learn(&tools, buf_slice(&list));
	assert_params(&tools, CALL("{'r':'x'}"), "");
	tools_learn(&tools, SLICE_LIT("{\"tools\":5}"));
	buf_fini(&list);
	tools_fini(&tools);
}

static void assert_value(struct slice text, const char *want)
{
	struct buf value = { 0 };

	message_headers_append_value(&value, text);
	assert_string_equal(buf_terminate(&value), want);
	buf_fini(&value);
}

static void values_are_literal_or_base64(void **state)
{
	(void)state;
	assert_value(SLICE_LIT("a b"), "a b");
	assert_value(SLICE_LIT(" a"), "=?base64?IGE=?=");
	assert_value(SLICE_LIT("a "), "=?base64?YSA=?=");
	assert_value(SLICE_LIT(""), "=?base64?"
				    "?=");
	assert_value(SLICE_LIT("a\r\nX: y"), "=?base64?YQ0KWDogeQ==?=");
	assert_value(SLICE_LIT("=?base64?YQ==?="), "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modern_requests_have_them),
		cmocka_unit_test(others_have_none),
		cmocka_unit_test(arguments_are_mirrored_as_the_last_list_says),
		cmocka_unit_test(values_are_literal_or_base64),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
