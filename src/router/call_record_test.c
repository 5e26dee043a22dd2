/* SPDX-License-Identifier: Apache-2.0 */
/* What is recorded of a call when it ends, however it ends, and which calls are. */
#include "router/call.h"

#include <fcntl.h>
#include <unistd.h>

#include "obs/audit.h"
#include "router/audit_call.h"
#include "router/pool_stage.h"
#include "router/span_stage.h"

static struct audit audit;
static int in; /* where the records come out */
static struct client *client;
static char text[16384];

static int setup(void **state)
{
	int fds[2];

	pool_setup_principals(state);
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	in = fds[0];
	audit = (struct audit){ .fd = fds[1] };
	client = begin_plain(alice)->client;
	router.audit = &audit;
	return 0;
}

static int teardown(void **state)
{
	pool_teardown_principals(state);
	close(audit.fd);
	close(in);
	return 0;
}

/* As request, of a front that has a name. */
static struct front *ask(const char *message)
{
	static const struct peer nowhere;
	static const struct audit_origin origin = { "streamable", &nowhere };
	static const struct rights no_rights = { .needs_roles = false };
	struct envelope env = scan(q(message));
	struct front *front = front_new(&env);
	struct admitted *admitted = admitted_new(client, &no_rights, &origin, &env, 1);

	admitted_next(admitted);
	forward_request(client, &front->call, admitted);
	admitted_free(&admitted);
	settle();
	return front;
}

/* How many records there are since the last time; `text` has them. */
static size_t records(void)
{
	ssize_t n = read(in, text, sizeof(text) - 1);
	size_t count = 0;

	text[n > 0 ? n : 0] = '\0';
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		count++;
	return count;
}

static bool has(const char *part)
{
	return strstr(text, q(part)) != NULL;
}

/* There is one record, with this verdict and this reason; NULL: none. */
static void is_recorded(const char *verdict, const char *reason)
{
	char part[200];

	assert_int_equal(records(), 1);
	snprintf(part, sizeof(part), "'verdict':'%s'", verdict);
	if (!has(part))
		fail_msg("%s: %s", part, text);
	snprintf(part, sizeof(part), "'reason':'%s'", reason != NULL ? reason : "");
	assert_int_equal(has(reason != NULL ? part : "'reason'"), reason != NULL);
}

static void answers_are_recorded(void **state)
{
	static const struct {
		const char *answer, *verdict, *reason;
	} rows[] = {
		{ "'result':{'ok':1}", "allowed", NULL },
		{ "'result':{'isError':true}", "allowed", NULL },
		{ "'error':{'code':-1,'message':'m'}", "failed", "error_answer" },
	};
	uint64_t errors = servers[0].own.errors;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct front *front = ask(CALL("9"));
		char line[200];

		is_open(front);
		assert_int_equal(records(), 0); /* not before it has ended */
		snprintf(line, sizeof(line), "{'jsonrpc':'2.0','id':%zu,%s}", i + 2,
			 rows[i].answer);
		says(process(0), line);
		is_recorded(rows[i].verdict, rows[i].reason);
		snprintf(line, sizeof(line), "'bytes_out':%zu,", front->response.len);
		if (!has(line))
			fail_msg("%s: %s", line, text);
		assert_true(has("'tool':'t'"));
	}
	assert_int_equal(servers[0].own.errors - errors, 2);
	ask("{'jsonrpc':'2.0','id':9,'method':'prompts/get','params':{'name':'p'}}");
	says(process(0), "{'jsonrpc':'2.0','id':5,'result':{'isError':true}}");
	is_recorded("allowed", NULL);
	assert_int_equal(servers[0].own.errors - errors, 2); /* it is no tool */
}

static void ends_without_an_answer_are_recorded(void **state)
{
	struct front *front = ask(CALL("1"));

	notify(client, CANCELLED("1"));
	assert_int_equal(front->ending, ENDING_CANCELLED);
	is_recorded("cancelled", "cancelled");
	says(process(0), RESULT("2"));
	assert_int_equal(records(), 0);
	front = ask(CALL("2"));
	pass(60000);
	is_failed(front, REASON_TIMEOUT);
	is_recorded("failed", reason_get(REASON_TIMEOUT)->text);
}

/* Where that is required, what cannot be recorded is not done. */
static void what_cannot_be_recorded_is_refused(void **state)
{
	struct front *front;

	audit.conf.is_required = true;
	audit.is_failing = true;
	front = ask(CALL("1"));
	is_failed(front, REASON_UNRECORDED);
	hears_nothing(process(0));
}

/* A call without an id is one all the same. */
static void calls_without_an_id_are_recorded(void **state)
{
	static const struct peer nowhere;
	static const struct audit_origin origin = { "streamable", &nowhere };
	static const struct rights no_rights = { .needs_roles = false };
	static const char call[] = "{'jsonrpc':'2.0','method':'tools/call','params':{'name':'t'}}";

	session_end(client->session, REASON_DELETED);
	settle();
	exits(process(0), 0);
	servers[0].conf.isolation = ISOLATION_SESSION;
	router.audit = NULL; /* that of the test has no front */
	client = open_session_as(alice, INITIALIZE_WITH(""))->call.client;
	router.audit = &audit;
	get_ready(1);
	for (int i = 0; i < 2; i++) {
		struct envelope env = scan(q(call));
		struct admitted *admitted = admitted_new(client, &no_rights, &origin, &env, 1);

		audit.conf.is_required = audit.is_failing = i > 0;
		admitted_next(admitted);
		forward_notification(client, admitted);
		admitted_free(&admitted);
		settle();
		if (i > 0)
			continue;
		is_recorded("allowed", "notification");
		hears(process(1), call);
	}
	hears_nothing(process(1)); /* what cannot be recorded is not done */
}

/* Pings are no work; and of what is allowed nothing is recorded where only refusals are to be. */
static void not_all_is_recorded(void **state)
{
	ask("{'jsonrpc':'2.0','id':1,'method':'ping'}");
	assert_int_equal(records(), 0);
	ask(LIST("1"));
	says(process(0), TOOLS("2", ""));
	is_recorded("allowed", NULL);
	audit.conf.is_refused_only = true;
	ask(CALL("1"));
	says(process(0), RESULT("3"));
	assert_int_equal(records(), 0);
}

/* How long calls wait for a process, and then for its first message; once for each, also for one that is sent again. */
static void waits_are_counted_once(void **state)
{
	const struct call_stats *calls = &servers[0].stats->calls;
	struct front *front;

	servers[0].conf.isolation = ISOLATION_PRINCIPAL;
	ask("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t','_meta':{"
	    "'progressToken':'p'}}}");
	assert_int_equal(calls->waited.count, 1);
	assert_int_equal(calls->first_message.count, 0);
	says(process(0), PROGRESS("2", "1"));
	says(process(0), PROGRESS("2", "2"));
	assert_int_equal(calls->first_message.count, 1);
	says(process(0), RESULT("2"));
	assert_int_equal(calls->first_message.count, 1);
	front = ask("{'jsonrpc':'2.0','id':2,'method':'tools/list','params':{'of':'x'}}");
	assert_int_equal(calls->waited.count, 2);
	exits(process(0), 0);
	is_open(front);
	get_ready(1);
	assert_non_null(fake_process_read(process(1)));
	assert_int_equal(calls->waited.count, 2);
}

/* ---- spans ---- */

#define INTERVAL_MS 100
#define TRACE "0af7651916cd43dd8448eb211c80319c"

static int setup_spans(void **state)
{
	setup(state);
	router.audit = NULL;
	router.exporter = span_stage_open(loop, INTERVAL_MS);
	return 0;
}

static int teardown_spans(void **state)
{
	span_stage_close(&router.exporter);
	return teardown(state);
}

/* So many of the two spans of the call have this attribute. */
static void has_attribute(const char *name, const char *value, size_t expected)
{
	size_t count = 0;

	for (size_t i = 0; i < 2; i++) {
		const char *found = span_stage_attribute(i, name);

		if (found == NULL)
			continue;
		assert_string_equal(found, value);
		count++;
	}
	if (count != expected)
		fail_msg("%s: %zu", name, count);
}

/* Each call has two spans, which say what it was, and how it ended; its process is told of the trace. */
static void spans_say_how_calls_end(void **state)
{
	static const struct {
		const char *answer;
		enum call_status status;
		const char *code; /* NULL: none */
	} rows[] = {
		{ "'result':{'ok':1}", CALL_OK, NULL },
		{ "'result':{'isError':true}", CALL_TOOL_ERROR, NULL },
		{ "'error':{'code':-1,'message':'m'}", CALL_ERROR, "-1" },
		{ NULL, CALL_FAILED, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char line[200];

		ask("{'jsonrpc':'2.0','id':'x','method':'tools/call','params':{'name':'\\u0074','_meta':{"
		    "'traceparent':'00-" TRACE "-b7ad6b7169203331-01'}}}");
		assert_non_null(
			strstr(fake_process_read(process(0)), "\"traceparent\":\"00-" TRACE));
		if (rows[i].answer != NULL) {
			snprintf(line, sizeof(line), "{'jsonrpc':'2.0','id':%zu,%s}", i + 2,
				 rows[i].answer);
			says(process(0), line);
		} else {
			pass(60000);
		}
		pass(INTERVAL_MS);
		assert_int_equal(span_stage_take(), 2);
		has_attribute("mcp.method.name", "tools/call", 2);
		has_attribute("gen_ai.tool.name", "t", 2);
		has_attribute("gen_ai.prompt.name", "", 0);
		has_attribute("mcpgated.server", "test", 2);
		has_attribute("jsonrpc.request.id", "x", 1);
		has_attribute("mcpgated.front", "streamable", 1);
		has_attribute("mcpgated.era", "legacy", 1);
		has_attribute("mcpgated.status", call_status_name(rows[i].status), 1);
		has_attribute("rpc.response.status_code", rows[i].code,
			      rows[i].code != NULL ? 2 : 0);
		has_attribute("mcpgated.reason", reason_get(REASON_TIMEOUT)->text,
			      rows[i].status == CALL_FAILED);
	}
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers_are_recorded),
		TEST(ends_without_an_answer_are_recorded),
		TEST(what_cannot_be_recorded_is_refused),
		TEST(not_all_is_recorded),
		TEST(calls_without_an_id_are_recorded),
		TEST(waits_are_counted_once),
		cmocka_unit_test_setup_teardown(spans_say_how_calls_end, setup_spans,
						teardown_spans),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
