/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of the legacy era at servers of the modern one: how the era is found out, what each side hears, what is asked in
 * between. The server is played line by line.
 */
#include "router/router.h"

#include "base/clock.h"
#include "router/era.h"
#include "router/era_stage.h"
#include "session/principal.h"

#define WELCOMED_AS(caps)                                                                        \
	"{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-11-25','capabilities':{" caps \
	"},'serverInfo':{'name':'s','version':'1'}}}"
#define ERA_TEST(name) cmocka_unit_test_setup_teardown(name, era_setup, client_stage_close)

/* It is asked nothing more, and stops. */
static void is_ended(size_t i)
{
	while (fake_process_read(process(i)) != NULL && !process(i)->is_eof)
		;
	hears_nothing(process(i));
	assert_true(process(i)->is_eof);
}

static void is_legacy_session(struct front *front, size_t i)
{
	hears(process(i),
	      "{'jsonrpc':'2.0','id':1,'method':'initialize','params':"
	      "{'protocolVersion':'2025-11-25','capabilities':{},'clientInfo':" CLIENT "}}");
	says(process(i), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{},'serverInfo':{'name':'s','version':'1'}}}");
	is_answered(front, WELCOMED_AS(""));
	hears(process(i), INITIALIZED);
}

/* ---- which era ---- */

/* BACK-ERA-07: a server that knows initialize is asked nothing else, and started once. */
static void legacy_servers_are_not_probed(void **state)
{
	is_legacy_session(open_session(INITIALIZE_WITH("")), 0);
	hears_nothing(process(0));
	assert_int_equal(keeper.count, 1);
	assert_int_equal(servers[0].verdict.era, ERA_LEGACY);
	assert_int_equal(servers[0].verdict.probe_again_ms, 0);
}

/* BACK-ERA-05: what a server refuses initialize with may say enough. */
static void refusal_may_name_the_modern_era(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	says(process(0), REFUSED);
	is_ended(0);
	is_open(front);
	assert_int_equal(keeper.count, 2);
	hears(process(1), DISCOVER("", CLIENT));
	says(process(1), DISCOVERED);
	is_answered(front, WELCOMED_AS("'tools':{}"));
	assert_int_equal(servers[0].verdict.era, ERA_MODERN);
	hears_nothing(process(1));
	/* From now on it is known. */
	open_session(INITIALIZE_WITH(""));
	hears(process(2), DISCOVER("", CLIENT));
}

/* BACK-ERA-01, -02, -04: any other refusal makes it worth a question, to a process that is there for nothing else. */
static void refusal_leads_to_a_probe(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	says(process(0), ERROR("1", "-32601"));
	is_open(front);
	hears(process(1), DISCOVER("", GATEWAY));
	says(process(1), "a banner");
	says(process(1), "{}");
	is_open(front);
	says(process(1), DISCOVERED);
	is_ended(1);
	hears(process(2), DISCOVER("", CLIENT));
	says(process(2), DISCOVERED);
	is_answered(front, WELCOMED_AS("'tools':{}"));
	assert_int_equal(keeper.count, 3);
}

/* A process that was asked what it is has shown that the server is of the legacy era: its clients get the refusal. */
static void is_taken_for_legacy(struct front *front)
{
	is_open(front);
	assert_int_equal(servers[0].verdict.era, ERA_LEGACY);
	assert_int_equal(keeper.count, 3);
	says(process(2), ERROR("1", "-32000"));
	is_answered(front, ERROR("0", "-32000"));
	assert_int_equal(servers[0].backoff.failures, 0);
	/* Once a day is enough. */
	front = open_session(INITIALIZE_WITH(""));
	says(process(3), ERROR("1", "-32000"));
	is_answered(front, ERROR("0", "-32000"));
	assert_int_equal(keeper.count, 4);
}

static struct front *probed(void)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	says(process(0), ERROR("1", "-32000"));
	exits(process(0), 0);
	hears(process(1), DISCOVER("", GATEWAY));
	return front;
}

/* Whose client has gone meanwhile is told of no answer. */
static void who_has_gone_waits_for_no_probe(void **state)
{
	session_end(probed()->call.client->session, REASON_PEER_CLOSED);
	settle();
	says(process(1), DISCOVERED);
	is_ended(1);
	assert_int_equal(keeper.count, 2);
}

/* BACK-ERA-03 */
static void errors_prove_nothing(void **state)
{
	static const char *const answers[] = {
		ERROR("1", "-32601"),
		ERROR("1", "-32602"),
		ERROR("1", "-32000"),
		ERROR("1", "0"),
		ERROR("1", "-32020"),
		ERROR("1", "-32022"),
		"{'jsonrpc':'2.0','id':1,'error':{'code':-32022,'message':'m','data':{"
		"'supported':['2025-11-25'],'requested':'2026-07-28'}}}",
		"{'jsonrpc':'2.0','id':1,'error':{'code':-32022,'message':'m','data':{"
		"'supported':['2099-01-01'],'requested':'2026-07-28'}}}",
		ANSWER("1", ""),
		ANSWER("1", "'supportedVersions':['2025-11-25'],'capabilities':{}"),
		ANSWER("1", "'supportedVersions':['2026-07-28']"),
		ANSWER("1", "'supportedVersions':'2026-07-28','capabilities':{}"),
		ANSWER("1",
		       "'resultType':'x','supportedVersions':['2026-07-28'],'capabilities':{}"),
		"{'jsonrpc':'2.0','id':1,'result':{},'error':{}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct front *front = probed();

		says(process(1), answers[i]);
		is_taken_for_legacy(front);
		client_stage_close(state);
		era_setup(state);
	}
}

/* BACK-ERA-03: an end, or silence. What comes too late is not heard. */
static void end_is_legacy(void **state)
{
	struct front *front = probed();

	exits(process(1), 1);
	is_taken_for_legacy(front);
	assert_false(is_logged("the process ended"));
}

static void silence_is_legacy(void **state)
{
	struct front *front = probed();

	pass(14999);
	assert_int_equal(servers[0].verdict.era, ERA_UNKNOWN);
	pass(1);
	says(process(1), DISCOVERED);
	is_taken_for_legacy(front);
}

/* BACK-ERA-06: another day it is asked again. */
static void verdict_of_a_day(void **state)
{
	struct front *front = probed();

	says(process(1), ERROR("1", "-32601"));
	is_taken_for_legacy(front);
	stage_end_processes();
	pass(24ull * 60 * 60 * 1000);
	front = open_session(INITIALIZE_WITH(""));
	says(process(4), ERROR("1", "-32601"));
	hears(process(5), DISCOVER("", GATEWAY));
	says(process(5), DISCOVERED);
	says(process(6), DISCOVERED);
	is_answered(front, WELCOMED_AS("'tools':{}"));
}

/* BACK-ERA-06: what the operator is told of where the era is known from. */
static void the_operator_fixes_it(void **state)
{
	assert_string_equal(era_source(&servers[0]), "");
	probed();
	says(process(1), DISCOVERED);
	assert_int_equal(era_of(&servers[0]), ERA_MODERN);
	assert_string_equal(era_source(&servers[0]), "found");
	servers[0].conf.era = ERA_LEGACY;
	assert_int_equal(era_of(&servers[0]), ERA_LEGACY);
	assert_string_equal(era_source(&servers[0]), "configured");
	era_note(&servers[0], ERA_UNKNOWN);
	assert_int_equal(era_of(&servers[0]), ERA_LEGACY);
	assert_false(era_may_probe(&servers[0]));
	servers[0].conf.era = ERA_UNKNOWN;
	assert_int_equal(era_of(&servers[0]), ERA_MODERN);
}

/* What has never answered is addressed as a legacy server, but nothing has been found. */
static void failed_start_finds_no_era(void **state)
{
	era_note_unanswered(&servers[0]);
	era_note_probed(&servers[0], ERA_LEGACY);
	assert_int_equal(era_of(&servers[0]), ERA_LEGACY);
	assert_int_equal(era_known(&servers[0]), ERA_UNKNOWN);
	assert_string_equal(era_source(&servers[0]), "");
	era_note_answered(&servers[0]);
	assert_int_equal(era_known(&servers[0]), ERA_LEGACY);
	assert_string_equal(era_source(&servers[0]), "found");
}

/* All who wait hear of the same probe; its process has a place among the others. */
static void one_probe_for_all(void **state)
{
	struct front *first, *second;

	servers[0].conf.pool_max = 2;
	servers[0].conf.queue_calls = 1;
	servers[0].conf.reclaims = RECLAIM_IDLE;
	first = open_session(INITIALIZE_WITH(""));
	second = open_session(INITIALIZE_WITH(""));
	says(process(0), ERROR("1", "-32601"));
	says(process(1), ERROR("1", "-32601"));
	assert_int_equal(keeper.count, 2);
	exits(process(0), 0);
	exits(process(1), 0);
	pass(1000);
	hears(process(2), DISCOVER("", GATEWAY));
	assert_int_equal(keeper.count, 3);
	says(process(2), DISCOVERED);
	exits(process(2), 0);
	says(process(3), DISCOVERED);
	says(process(4), DISCOVERED);
	is_answered(first, WELCOMED_AS("'tools':{}"));
	is_answered(second, WELCOMED_AS("'tools':{}"));
}

/* BACK-ERA-03: an error that names our revision does. */
static void an_error_may_name_the_modern_era(void **state)
{
	(void)probed();
	says(process(1), REFUSED);
	assert_int_equal(servers[0].verdict.era, ERA_MODERN);
}

/* What is found out of one server says nothing of another one. */
static void each_server_is_probed(void **state)
{
	static const char *const answers[] = { ERROR("1", "-32601"), DISCOVERED };
	size_t i;

	servers[1].conf.era = ERA_UNKNOWN;
	for (i = 0; i < 2; i++)
		(void)open_session_at(&servers[i], &router.sessions.principals.anonymous,
				      INITIALIZE_WITH(""));
	for (i = 0; i < 2; i++)
		says(process(i), ERROR("1", "-32601"));
	for (i = 0; i < 2; i++) {
		hears(process(2 + i), DISCOVER("", GATEWAY));
		says(process(2 + i), answers[i]);
	}
	assert_int_equal(servers[0].verdict.era, ERA_LEGACY);
	assert_int_equal(servers[1].verdict.era, ERA_MODERN);
}

/* For a place it is waited as long as for an answer; then it counts as none. */
static void no_place_is_legacy(void **state)
{
	servers[0].conf.pool_max = 1;
	servers[0].conf.queue_calls = 1;
	servers[0].conf.reclaims = RECLAIM_IDLE;
	(void)open_session(INITIALIZE_WITH(""));
	says(process(0), ERROR("1", "-32601"));
	pass(14999);
	assert_int_equal(servers[0].verdict.era, ERA_UNKNOWN);
	assert_int_equal(keeper.count, 1);
	pass(1);
	assert_int_equal(servers[0].verdict.era, ERA_LEGACY);
}

/* The time before its process may be started, because others were, is no time for its answer. */
static void time_before_the_start_does_not_count(void **state)
{
	uint64_t wait_ms = 0;

	(void)open_session(INITIALIZE_WITH(""));
	servers[0].conf.start_rate = 1;
	while (wait_ms < 17000)
		assert_true(backoff_take_turn(&servers[0].backoff, &wait_ms));
	says(process(0), ERROR("1", "-32000"));
	pass(16000);
	assert_int_equal(keeper.count, 1);
	assert_int_equal(servers[0].verdict.era, ERA_UNKNOWN);
	pass(3000);
	hears(process(1), DISCOVER("", GATEWAY));
	pass(11000);
	says(process(1), DISCOVERED);
	assert_int_equal(servers[0].verdict.era, ERA_MODERN);
}

/* AUTH-DWN-02: without its claims the keeper would not start it. */
static void a_probe_has_the_claims(void **state)
{
	static const struct slice names[] = { SLICE("team") };
	static const struct identity identity = { .issuer = SLICE("i"), .subject = SLICE("s") };
	struct principal_set *principals = &router.sessions.principals;
	struct principal *caller;

	principals->claim_names = servers[0].conf.claims = (struct slices){ names, 1 };
	router.sessions.conf.max_per_principal = 1;
	caller = principal_get(principals, &identity);
	principal_set_claim(caller, 0, SLICE_LIT("a"));
	(void)open_session_at(&servers[0], caller, INITIALIZE_WITH(""));
	says(process(0), ERROR("1", "-32601"));
	hears(process(1), DISCOVER("", GATEWAY));
	assert_int_equal(keeper.claims_told, 2);
	router_end_sessions(&router, REASON_DRAINING);
	principal_unref(&caller);
}

static void session_may_end_before_the_verdict(void **state)
{
	struct front *front = probed();

	session_end(front->call.client->session, REASON_DELETED);
	is_failed(front, REASON_DELETED);
	says(process(1), DISCOVERED);
	assert_int_equal(servers[0].verdict.era, ERA_MODERN);
	assert_int_equal(keeper.count, 2);
}

/* BACK-ERA-06: what is configured is not doubted. */
static void configured_era_is_final(void **state)
{
	struct front *front;

	servers[0].conf.era = ERA_LEGACY;
	front = open_session(INITIALIZE_WITH(""));
	says(process(0), REFUSED);
	assert_true(is_error(front, "-32022"));
	servers[0].conf.era = ERA_MODERN;
	front = open_session(INITIALIZE_WITH(""));
	says(process(1), ERROR("1", "-32601"));
	is_failed(front, REASON_HANDSHAKE_REFUSED);
	assert_int_equal(keeper.count, 2);
	assert_int_equal(servers[0].backoff.failures, 1);
}

/* BACK-ERA-06: a server that is another one now. */
static void contradiction_clears_the_verdict(void **state)
{
	struct front *front;

	servers[0].verdict.era = ERA_MODERN;
	front = open_session(INITIALIZE_WITH(""));
	says(process(0), ERROR("1", "-32601"));
	is_failed(front, REASON_HANDSHAKE_REFUSED);
	assert_int_equal(servers[0].verdict.era, ERA_UNKNOWN);
	front = open_session(INITIALIZE_WITH(""));
	pass(1000);
	is_legacy_session(front, 1);
}

/* ---- what each side hears ---- */

/* BACK-MSG-01, -05: requests say who asks; what results say of themselves is left out. */
static void calls_are_translated(void **state)
{
	struct client *client = begin_with("'roots':{}", "'tools':{}")->client;
	struct front *front;

	hears_nothing(process(0));
	front = request(client,
			"{'jsonrpc':'2.0','id':'a','method':'tools/call','params':{'name':'t',"
			"'arguments':{'x':[1, 2]},'task':{},'_meta':{'progressToken':'p','" META
			"logLevel':'debug','" META "protocolVersion':'x','v/w':1}}}");
	hears(process(0),
	      REQUEST("2", "tools/call",
		      META_OF("'roots':{}", CLIENT) ",'progressToken':2,'v/w':1},'name':'t',"
						    "'arguments':{'x':[1, 2]}"));
	says(process(0), PROGRESS("2", "1"));
	was_told(front, PROGRESS("'p'", "1") "|");
	says(process(0),
	     ANSWER("2", "'content':[],'resultType':'complete','ttlMs':5,"
			 "'cacheScope':'public','_meta':{'" META "serverInfo':{},'k':1}"));
	is_answered(front, ANSWER("'a'", "'content':[],'_meta':{'k':1}"));
	front = request(client, LIST("2"));
	hears(process(0), REQUEST("3", "tools/list", META_OF("'roots':{}", CLIENT) "}"));
	says(process(0), ANSWER("3", "'tools':[],'_meta':{'" META "serverInfo':{}}"));
	is_answered(front, ANSWER("2", "'tools':[]"));
}

/* bridging §3 (8): before the modern era what tools return was an object, and so was its schema. */
static void values_of_tools_are_objects(void **state)
{
	static const char *const values[][2] = {
		{ "'content':[],'structuredContent':[1, 2]",
		  "'content':[],'structuredContent':{'result':[1, 2]}" },
		{ "'structuredContent':'x\\\"'",
		  "'structuredContent':{'result':'x\\\"'},'content':[{'type':'text','text':"
		  "'\\\"x\\\\\\\"\\\"'}]" },
		{ "'structuredContent':{'a':1}", "'structuredContent':{'a':1}" },
	};
	struct client *client = begin_with("", "'tools':{}")->client;
	struct front *front = request(client, LIST("7"));

	says(process(0),
	     TOOLS("2", "{'name':'a','outputSchema':{'type':'object'},'x':1},{'name':'b',"
			"'outputSchema':{'type':'array'}},{'outputSchema':{'anyOf':[]},'name':'c'"
			"},{'name':'d','outputSchema':{'type':['object','null']}},5,{'name':'e'}"));
	is_answered(front, TOOLS("7", "{'name':'a','outputSchema':{'type':'object'},'x':1},{"
				      "'name':'b','outputSchema':{'type':'object','properties':{"
				      "'result':{'type':'array'}},'required':['result']}},{'name':"
				      "'c'},{'name':'d'},5,{'name':'e'}"));
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct buf text = { 0 };

		front = request(client, CALL("1"));
		buf_printf(&text, ANSWER("%zu", "%s"), i + 3, values[i][0]);
		says(process(0), buf_terminate(&text));
		assert_int_equal(front->ending, ENDING_RESPONSE);
		assert_non_null(strstr(buf_terminate(&front->response), q(values[i][1])));
		buf_fini(&text);
	}
}

/* RPC-06: codes that only the modern era has. */
static void errors_are_translated(void **state)
{
	static const char *const codes[][2] = { { "-32020", "-32603" },
						{ "-32022", "-32603" },
						{ "-32021", "-32603" },
						{ "-32602", "-32602" } };
	struct client *client = begin_with("", "'tools':{}")->client;

	process(0);
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		struct front *front = request(client, LIST("1"));
		struct buf text = { 0 };

		buf_printf(&text, ERROR("%zu", "%s"), i + 2, codes[i][0]);
		says(process(0), buf_terminate(&text));
		assert_true(is_error(front, codes[i][1]));
		buf_fini(&text);
	}
}

/* Nothing of a session reaches the server: it would not know what that is. */
static void sessions_are_ours(void **state)
{
	struct client *client = begin_with("'roots':{}", "'tools':{},'logging':{}")->client;
	struct front *front;

	notify(client, "{'jsonrpc':'2.0','method':'notifications/roots/list_changed'}");
	notify(client, "{'jsonrpc':'2.0','method':'notifications/x'}");
	is_answered(request(client, "{'jsonrpc':'2.0','id':5,'method':'ping'}"), EMPTY("5"));
	is_answered(request(client, "{'jsonrpc':'2.0','id':6,'method':'logging/setLevel',"
				    "'params':{'level':'error'}}"),
		    EMPTY("6"));
	hears_nothing(process(0));
	front = request(client, CALL("7"));
	hears(process(0),
	      REQUEST("2", "tools/call",
		      META_OF("'roots':{}", CLIENT) ",'" META "logLevel':'error'},'name':'t'"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'error','data':1}}");
	was_told(front, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			"'error','data':1}}|");
	notify(client, CANCELLED("7"));
	hears(process(0), CANCELLED("2"));
	assert_int_equal(front->ending, ENDING_CANCELLED);
}

/* BACK-MSG-02 */
static void requests_of_modern_servers_are_ignored(void **state)
{
	struct client *client = begin_asked()->client;
	struct front *front = request(client, CALL("7"));

	assert_non_null(fake_process_read(process(0)));
	says(process(0), ASK("1"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'method':'ping'}");
	hears_nothing(process(0));
	was_told(front, "");
	assert_true(is_logged("child_stray server=test"));
}

static void task_becomes(const char *kind, const char *info, const char *id, const char *expected)
{
	struct buf out = { 0 };

	era_append_task(&out, kind,
			slice_str(q("{'taskId':'theirs','x':1,'cacheScope':'public','y':[]}")),
			slice_str(q(info)), slice_str(q(id)));
	assert_string_equal(buf_terminate(&out), q(expected));
	buf_fini(&out);
}

/* What is not known is not said. */
static void tasks_are_rewritten(void **state)
{
	task_becomes(NULL, "", "", "{'x':1,'y':[]}");
	task_becomes(NULL, "", "'7'", "{'taskId':'7','x':1,'y':[]}");
	task_becomes("task", "", "", "{'resultType':'task','x':1,'y':[]}");
	task_becomes("task", "{'name':'s'}", "'7'",
		     "{'resultType':'task','taskId':'7','x':1,'y':[],'_meta':{'io."
		     "modelcontextprotocol/serverInfo':{'name':'s'}}}");
}

/* What a client is offered is of its own revision: tasks are of another one, and those of the modern era are no word for it. */
static void no_tasks_are_offered_to_older_clients(void **state)
{
	struct front *front;

	servers[0].conf.isolation = ISOLATION_SESSION;
	servers[0].conf.era = ERA_LEGACY;
	front = open_session(INITIALIZE);
	assert_non_null(fake_process_read(process(0)));
	says(process(0), WELCOME);
	assert_non_null(strstr(buf_terminate(&front->response), "\"listChanged\""));
	assert_null(strstr(buf_terminate(&front->response), "\"tasks\""));
}

/* §1.7: log lines are for who wants them, and nothing else is one. */
static void only_wanted_log_lines_are_told(void **state)
{
#define LOGGED \
	"{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'info','data':1}}"
	struct member *member = begin_with("", "'tools':{},'logging':{}");

	says(process(0), LOGGED);
	heard(member, "");
	is_answered(request(member->client, REQUEST("6", "logging/setLevel", "'level':'info'")),
		    EMPTY("6"));
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications/other','params':{'level':'info','data':1}}");
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'debug','data':1}}");
	heard(member, "");
	says(process(0), LOGGED);
	heard(member, LOGGED "|");
#undef LOGGED
}

/* Tasks of the one era are none of the other. bridging.md §2.5 */
static void legacy_clients_have_no_modern_tasks(void **state)
{
	struct member *member = begin_with("", "'tools':{},'extensions':{'" META "tasks':{}}");
	struct front *front = request(member->client, REQUEST("1", "tasks/get", "'taskId':'a'"));

	assert_non_null(strstr(buf_terminate(&front->response), "-32601"));
	hears_nothing(process(0));
}

static void no_modern_tasks_are_offered_to_legacy_clients(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	assert_non_null(fake_process_read(process(0)));
	says(process(0), DISCOVERED_WITH("'tools':{},'extensions':{'x/y':{},'" META "tasks':{}}"));
	assert_non_null(strstr(buf_terminate(&front->response), "\"x/y\""));
	assert_null(strstr(buf_terminate(&front->response), "/tasks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ERA_TEST(legacy_servers_are_not_probed),
		ERA_TEST(refusal_may_name_the_modern_era),
		ERA_TEST(refusal_leads_to_a_probe),
		ERA_TEST(who_has_gone_waits_for_no_probe),
		ERA_TEST(errors_prove_nothing),
		ERA_TEST(end_is_legacy),
		ERA_TEST(silence_is_legacy),
		ERA_TEST(verdict_of_a_day),
		ERA_TEST(the_operator_fixes_it),
		ERA_TEST(failed_start_finds_no_era),
		ERA_TEST(one_probe_for_all),
		ERA_TEST(an_error_may_name_the_modern_era),
		ERA_TEST(each_server_is_probed),
		ERA_TEST(no_place_is_legacy),
		ERA_TEST(time_before_the_start_does_not_count),
		ERA_TEST(a_probe_has_the_claims),
		ERA_TEST(session_may_end_before_the_verdict),
		ERA_TEST(configured_era_is_final),
		ERA_TEST(contradiction_clears_the_verdict),
		MODERN_TEST(no_modern_tasks_are_offered_to_legacy_clients),
		MODERN_TEST(legacy_clients_have_no_modern_tasks),
		MODERN_TEST(only_wanted_log_lines_are_told),
		MODERN_TEST(no_tasks_are_offered_to_older_clients),
		MODERN_TEST(calls_are_translated),
		MODERN_TEST(values_of_tools_are_objects),
		MODERN_TEST(errors_are_translated),
		MODERN_TEST(sessions_are_ours),
		MODERN_TEST(requests_of_modern_servers_are_ignored),
		cmocka_unit_test(tasks_are_rewritten),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
