/* SPDX-License-Identifier: Apache-2.0 */
/* What a record says of a request, and what it does not say. SEC-63 */
#include "router/audit_call.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "io/peer.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "obs/audit.h"
#include "policy/rule.h"
#include "session/principal.h"
#include "session/session.h"

#define SERVER "a-server-with-a-long-name-a-server-with-a-long-name-of-64-bytes-"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };

static struct {
	struct audit audit;
	struct rule_places places;
	int in;
	struct peer peer;
	struct principal_set principals;
	struct principal principal;
	char message[8192];
	struct envelope env;
	char text[3 * TEXT_LINE_BYTES];
} stage;

static int begin(void **state)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	stage.audit = (struct audit){ .fd = fds[1] };
	stage.in = fds[0];
	assert_true(peer_parse(SLICE_LIT("192.0.2.7"), &stage.peer));
	stage.principal = (struct principal){
		.set = &stage.principals,
		.identity = { SLICE("https://issuer"), SLICE("ali\"ce"), SLICE("") },
	};
	clock_freeze(1000);
	return 0;
}

static int end(void **state)
{
	close(stage.audit.fd);
	close(stage.in);
	rule_places_free(&stage.places);
	return 0;
}

/* A request with this method and these params, in which ' stands for ". */
static struct audit_request request_of(const char *method, const char *params)
{
	struct error err;

	snprintf(stage.message, sizeof(stage.message),
		 "{'jsonrpc':'2.0','id':1,'method':'%s','params':%s}", method, params);
	for (char *at = stage.message; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	if (scan_envelope(slice_str(stage.message), &limits, 0, &stage.env, &err) < 0)
		fail_msg("%s: %s", stage.message, err.text);
	return (struct audit_request){
		.origin = { "streamable", &stage.peer },
		.server = "files",
		.places = &stage.places,
		.principal = &stage.principal,
		.revision = &revision_modern,
		.env = &stage.env,
		.bytes = 77,
	};
}

static const char *written(void)
{
	ssize_t n = read(stage.in, stage.text, sizeof(stage.text) - 1);

	stage.text[n > 0 ? n : 0] = '\0';
	return stage.text;
}

/* What is recorded of the refusal of such a request. */
static const char *refused(const char *method, const char *params)
{
	const struct audit_request request = request_of(method, params);

	audit_refusal(&stage.audit, &request, "not_permitted",
		      &(struct rule){ .key = RULE_TOOLS_DENY, .has_entry = true, .entry = 2 });
	assert_non_null(strchr(written(), '\n'));
	return stage.text;
}

#define ASSERT_HAS(part) assert_non_null(strstr(stage.text, part))
#define ASSERT_LACKS(part) assert_null(strstr(stage.text, part))

static void a_refusal_says_who_what_and_why(void **state)
{
	rule_places_add(&stage.places, SLICE_LIT("servers.files.tools.deny[2]"),
			SLICE_LIT("mcpgated.yaml"), 41);
	refused("tools/call", "{'name':'dr\\u006fp','arguments':{'b':1, 'a':'hush'}}");
	assert_memory_equal(stage.text + strlen("{\"time\":\"2026-01-02T03:04:05.678Z\""),
			    ",\"v\":1,\"event\":\"refusal\"", 22);
	ASSERT_HAS(",\"verdict\":\"refused\",\"reason\":\"not_permitted\","
		   "\"rule\":\"servers.files.tools.deny[2]\",\"rule_at\":\"mcpgated.yaml:41\","
		   "\"revision\":\"2026-07-28\","
		   "\"front\":\"streamable\",\"server\":\"files\",\"address\":\"192.0.2.7\","
		   "\"bytes_in\":77,");
	ASSERT_HAS(",\"arguments_sha256\":\"");
	ASSERT_HAS(",\"issuer\":\"https://issuer\",\"subject\":\"ali\\\"ce\","
		   "\"method\":\"tools/call\",\"tool\":\"drop\"}\n");
	ASSERT_LACKS("hush");
	ASSERT_LACKS("client");
}

static void requests_are_about_something(void **state)
{
	static const struct {
		const char *method;
		const char *params;
		const char *said;
	} rows[] = {
		{ "tools/call", "{'name':'a\\nb\\u0000'}", "\"tool\":\"a\\u000ab\\u0000\"}" },
		{ "tools/call", "{'name':7}", "\"tool\":\"7\"}" },
		{ "tools/call", "{'name':'\\ud800'}", "\"tool\":\"\\\"\\\\ud800\\\"\"}" },
		{ "prompts/get", "{'name':'p'}", "\"prompt\":\"p\"}" },
		{ "resources/read", "{'uri':'file:///a'}", "\"resource\":\"file:///a\"}" },
		{ "completion/complete", "{'ref':{'type':'ref/prompt','name':'p'}}",
		  "\"prompt\":\"p\"}" },
		{ "completion/complete", "{'ref':{'type':'ref/resource','uri':'a:{x}'}}",
		  "\"resource\":\"a:{x}\"}" },
		{ "tools/list", "{}", "\"method\":\"tools/list\"}" },
		{ "tools/list", "[]", "\"method\":\"tools/list\"}" },
		/* what a method does not use */
		{ "tools/call", "{'name':'a','uri':'b','ref':{'name':'c','uri':'d'}}",
		  "\"tool\":\"a\"}" },
		{ "prompts/get", "{'uri':'b','name':'p'}", "\"prompt\":\"p\"}" },
		{ "resources/read", "{'uri':'a','name':'b','arguments':{'c':1}}",
		  "resources/read\",\"resource\":\"a\"}" },
		{ "completion/complete", "{'name':'a','uri':'b','ref':{'NAME':'p','name':'q'}}",
		  "complete\",\"prompt\":\"p\"}" },
		{ "tools/list", "{'name':'a','uri':'b','ref':{'name':'c'},'arguments':{}}",
		  "\"method\":\"tools/list\"}" },
		{ "Tools/Call", "{'name':'a','uri':'b'}", "\"tool\":\"a\"}" },
	};

	for (int shown = 0; shown < 2; shown++) {
		stage.audit.conf.shows_arguments = shown > 0;
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			if (strstr(refused(rows[i].method, rows[i].params), rows[i].said) == NULL)
				fail_msg("%s: %s", rows[i].params, stage.text);
	}
}

/* No field takes another's room: the arguments, which come last, are shown whatever a caller puts before them. */
static void each_field_has_its_room(void **state)
{
	char name[256], params[4096];
	size_t n = 0;

	memset(name, '\x01', sizeof(name));
	stage.principal.identity =
		(struct identity){ slice_of(name, 256), slice_of(name, 256), slice_of(name, 256) };
	stage.audit.conf.shows_arguments = true;
	n += (size_t)snprintf(params, sizeof(params), "{'name':'");
	for (int i = 0; i < 256; i++)
		n += (size_t)snprintf(params + n, sizeof(params) - n, "\\u0001");
	snprintf(params + n, sizeof(params) - n, "','arguments':{'x':'%0900d'}}", 7);
	refused("tools/call", params);
	ASSERT_HAS(",\"subject\":\"\\u0001\\u0001");
	ASSERT_HAS(",\"client\":\"\\u0001\\u0001");
	ASSERT_HAS(",\"method\":\"tools/call\",\"tool\":\"\\u0001\\u0001");
	ASSERT_HAS("0007\\\"}\"}\n");
	ASSERT_LACKS("truncated");
}

/* Equal arguments have equal digests, however they are written. */
static void the_digest_is_of_the_canonical_form(void **state)
{
	char first[128];

	refused("tools/call", "{'name':'a','arguments':{'b':[1],'a':2}}");
	snprintf(first, sizeof(first), "%.84s", strstr(stage.text, "\"arguments_sha256\""));
	refused("tools/call", "{'name':'b','arguments': { 'a' : 2.0, '\\u0062':[1 ] }}");
	ASSERT_HAS(first);
	refused("tools/call", "{'name':'a','arguments':{'b':[1],'a':3}}");
	ASSERT_LACKS(first);
	refused("tools/call", "{'name':'a'}");
	ASSERT_LACKS("sha256");
}

/* W3C Trace Context §3.2 */
static void a_trace_counts_if_it_is_valid(void **state)
{
	static const struct {
		const char *text;
		bool is_valid;
	} rows[] = {
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true },
		{ "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future", true },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false },
		{ "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more", false },
		{ "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false },
		{ "00-00000000000000000000000000000000-b7ad6b7169203331-01", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false },
		{ "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", false },
		{ "00-0af7651916cd43dd8448eb211c80319cxb7ad6b7169203331-01", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\\u0031", false },
		{ "", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char params[200];
		bool is_said;

		snprintf(params, sizeof(params), "{'name':'a','_meta':{'traceparent':'%s'}}",
			 rows[i].text);
		is_said = strstr(refused("tools/call", params),
				 ",\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\"") != NULL;
		if (is_said != rows[i].is_valid || (!is_said && strstr(stage.text, "trace")))
			fail_msg("%s: %s", rows[i].text, stage.text);
	}
	refused("tools/call", "{'name':'a','_meta':{'traceparent':7}}");
	ASSERT_LACKS("trace");
}

static void arguments_are_shown_if_that_is_wanted(void **state)
{
	char params[4096];
	size_t n;

	stage.audit.conf.shows_arguments = true;
	refused("tools/call", "{'name':'a','arguments':{'x':'y'}}");
	ASSERT_HAS(",\"arguments\":\"{\\\"x\\\":\\\"y\\\"}\"}\n");
	n = (size_t)snprintf(params, sizeof(params), "{'name':'%0256d','arguments':{'x':'", 1);
	memset(params + n, '"', 3000); /* becomes \" */
	for (size_t i = n; i < n + 3000; i += 2)
		params[i] = '\\';
	strcpy(params + n + 3000, "'}}");
	refused("tools/call", params);
	ASSERT_HAS(",\"arguments\":\"{\\\"x\\\":\\\"\\\\\\\"");
	ASSERT_HAS("...\",\"arguments_truncated\":true}\n");
	assert_in_range(strlen(stage.text), 1000, TEXT_LINE_BYTES);
}

/* However much room other fields leave: arguments that are not whole are said not to be. */
static void cut_arguments_are_said_to_be(void **state)
{
	struct audit_request request;
	char name[256], params[1024];
	size_t whole = 0, cut = 0;
	int n = snprintf(params, sizeof(params), "{'name':'a','arguments':{'x':'");

	for (int i = 0; i < 650; i++)
		params[n++] = i % 2 == 0 ? '\\' : '"'; /* becomes \\ and \" */
	strcpy(params + n, "'}}");
	request = request_of("tools/call", params);
	memset(name, '\x01', sizeof(name));
	stage.audit.conf.shows_arguments = true;
	for (size_t i = 0; i < 252; i++) {
		stage.principal.identity =
			(struct identity){ slice_of(name, 150), slice_of(name, 120 + i / 6),
					   slice_of(SERVER, i % 6 + 1) };
		audit_refusal(&stage.audit, &request, "not_permitted",
			      &(struct rule){ .key = RULE_TOOLS_DENY });
		written();
		whole += strstr(stage.text, "\\\"\\\"}\"}\n") != NULL;
		cut += strstr(stage.text, ",\"arguments_truncated\":true}\n") != NULL;
		assert_int_equal(whole + cut, i + 1);
	}
	assert_in_range(whole, 10, 240);
}

/* Nobody knows its id yet. */
static void a_session_is_named_once_it_has_begun(void **state)
{
	static struct session session = { .state = SESSION_NEW }; /* it has no id yet */
	struct audit_request request = request_of("initialize", "{}");

	request.session = &session;
	for (int i = 0; i < 2; i++) {
		audit_refusal(&stage.audit, &request, "not_permitted",
			      &(struct rule){ .key = RULE_TOOLS_DENY });
		assert_int_equal(strstr(written(), ",\"session\":\"01234567") != NULL, i == 1);
		memcpy(session.entry.id, "0123456789abcdef", 16);
		session.state = SESSION_LIVE;
	}
}

static void a_call_has_one_record_at_its_end(void **state)
{
	const struct audit_request request = request_of("tools/call", "{'name':'a'}");
	struct audit_call *call = audit_call_new(&stage.audit, &request);

	assert_true(audit_call_may_begin(call));
	assert_string_equal(written(), "");
	clock_freeze(1250);
	audit_call_end(&call, NULL, "allowed", NULL, NULL, 12);
	assert_null(call);
	written();
	ASSERT_HAS(",\"event\":\"end\",\"verdict\":\"allowed\",\"bytes_out\":12,"
		   "\"duration_ms\":250,\"front\"");
	assert_ptr_equal(strchr(stage.text, '\n') + 1, stage.text + strlen(stage.text));
}

static void a_required_record_comes_first_or_the_call_does_not(void **state)
{
	const struct audit_request request = request_of("tools/call", "{'name':'a'}");
	struct audit_call *call;

	stage.audit.conf.is_required = true;
	call = audit_call_new(&stage.audit, &request);
	assert_true(audit_call_may_begin(call));
	written();
	ASSERT_HAS(",\"event\":\"begin\",\"verdict\":\"allowed\",\"revision\"");
	ASSERT_HAS(",\"tool\":\"a\"");
	audit_call_end(&call, NULL, "failed", "timeout", NULL, 0);
	written();
	ASSERT_HAS(",\"event\":\"end\",\"verdict\":\"failed\",\"reason\":\"timeout\"");
	stage.audit.is_failing = true; /* what waits is written later */
	call = audit_call_new(&stage.audit, &request);
	assert_false(audit_call_may_begin(call));
	assert_string_equal(written(), "");
	audit_call_end(&call, NULL, "failed", "unrecorded", NULL, 0);
	written();
	ASSERT_HAS(",\"event\":\"end\",\"verdict\":\"refused\",\"reason\":\"unrecorded\"");
	stage.audit.is_failing = false;
	while (write(stage.audit.fd, stage.message, 4096) > 0)
		;
	call = audit_call_new(&stage.audit, &request);
	assert_false(audit_call_may_begin(call));
	audit_call_end(&call, NULL, "failed", "unrecorded", NULL, 0);
	assert_int_equal(stage.audit.lost, 2);
}

static void on_gathering(struct audit *audit)
{
	assert_ptr_equal(audit, &stage.audit);
}

/* It does not wait for others of its turn: it is asked for at once whether it could be written. */
static void a_required_record_is_not_gathered(void **state)
{
	const struct audit_request request = request_of("tools/call", "{'name':'a'}");
	struct audit_call *call;

	stage.audit.conf.is_required = true;
	stage.audit.on_gathering = on_gathering;
	call = audit_call_new(&stage.audit, &request);
	assert_true(audit_call_may_begin(call));
	written();
	ASSERT_HAS(",\"event\":\"begin\",");
	audit_call_end(&call, NULL, "allowed", NULL, NULL, 0);
	assert_string_equal(written(), "");
	while (write(stage.audit.fd, stage.message, 4096) > 0)
		;
	call = audit_call_new(&stage.audit, &request);
	assert_false(audit_call_may_begin(call));
	assert_int_equal(stage.audit.lost, 2); /* and the end of the first one */
	audit_call_end(&call, NULL, "failed", "unrecorded", NULL, 0);
	assert_false(audit_flush(&stage.audit));
	assert_int_equal(stage.audit.lost, 3);
}

/* The longest that each part can be, of characters that become the most. */
static void the_longest_record_is_one_line(void **state)
{
	char name[400], file[400], params[2000];
	struct rule rule = { .key = RULE_DENY_PATTERNS, .has_entry = true, .entry = SIZE_MAX };
	struct audit_request request;

	memset(name, '\x01', sizeof(name));
	rule.member = slice_of(name, sizeof(name));
	stage.principal.identity =
		(struct identity){ slice_of(name, 400), slice_of(name, 400), slice_of(name, 400) };
	stage.audit.conf.shows_arguments = true;
	snprintf(params, sizeof(params), "{'ref':{'name':'%0400d','uri':'%0600d'}}", 1, 1);
	request = request_of("completion/complete", params);
	request.server = SERVER;
	request.batch = SIZE_MAX;
	memset(file, '/', sizeof(file));
	rule_places_add(&stage.places,
			SLICE_LIT("servers." SERVER ".tools.arguments.deny_patterns"),
			slice_of(file, sizeof(file)), UINT_MAX);
	audit_refusal(&stage.audit, &request, "insufficient_scope", &rule);
	assert_in_range(strlen(written()), 3000, TEXT_LINE_BYTES);
	assert_string_equal(stage.text + strlen(stage.text) - 2, "}\n");
	ASSERT_HAS(",\"subject\":\"\\u0001");
	ASSERT_HAS(".deny_patterns.\\u0001");
	ASSERT_HAS(",\"rule_at\":\"//");
	ASSERT_HAS(":4294967295\",");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_refusal_says_who_what_and_why, begin, end),
		cmocka_unit_test_setup_teardown(requests_are_about_something, begin, end),
		cmocka_unit_test_setup_teardown(each_field_has_its_room, begin, end),
		cmocka_unit_test_setup_teardown(the_digest_is_of_the_canonical_form, begin, end),
		cmocka_unit_test_setup_teardown(a_trace_counts_if_it_is_valid, begin, end),
		cmocka_unit_test_setup_teardown(arguments_are_shown_if_that_is_wanted, begin, end),
		cmocka_unit_test_setup_teardown(cut_arguments_are_said_to_be, begin, end),
		cmocka_unit_test_setup_teardown(a_session_is_named_once_it_has_begun, begin, end),
		cmocka_unit_test_setup_teardown(a_call_has_one_record_at_its_end, begin, end),
		cmocka_unit_test_setup_teardown(a_required_record_comes_first_or_the_call_does_not,
						begin, end),
		cmocka_unit_test_setup_teardown(a_required_record_is_not_gathered, begin, end),
		cmocka_unit_test_setup_teardown(the_longest_record_is_one_line, begin, end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
