/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that do not keep to either era, each before clients of both: who is served, who is not, and how many processes that
 * takes. bridging.md §1.10, §8 (8); BACK-ERA-01 to -06
 */
#include "router/pool.h"

#include "router/request_stage.h"

#define START_MS 20000 /* the stage's */
#define PROBE_MS 15000
#define DISCOVER \
	"{'jsonrpc':'2.0','id':'d','method':'server/discover','params':{" ASKER_META("") "}}"

#define OLD                                                                                        \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{'tools'" \
	":{}},'serverInfo':{'name':'s','version':'1'}}}"
#define NEW                                                                                           \
	"{'jsonrpc':'2.0','id':1,'result':{'resultType':'complete','supportedVersions':['2026-07-28'" \
	"],'capabilities':{'tools':{}},'ttlMs':0,'cacheScope':'private'}}"
#define ERROR(code) "{'jsonrpc':'2.0','id':1,'error':{'code':" code ",'message':'m'}}"
#define ONLY_NEW                                                                             \
	"{'jsonrpc':'2.0','id':1,'error':{'code':-32022,'message':'m','data':{'supported':[" \
	"'2026-07-28'],'requested':'2025-11-25'}}}"
#define NOTHING "{'jsonrpc':'2.0','id':1,'result':{}}"
#define SILENCE NULL
#define END ""

#define SERVER(n, i, d, e) .name = n, .initialize = i, .discover = d, .era = e
#define SERVES(first, second, modern) \
	.serves_first = first, .serves_second = second, .serves_modern = modern
#define STARTS(n, m) .starts = n, .modern_starts = m

/* What it does when it is asked; and who of three is served: two sessions, one after the other, and a modern request. */
static const struct odd_server {
	const char *name;
	const char *initialize;
	const char *discover;
	bool serves_first, serves_second, serves_modern;
	unsigned int starts, modern_starts; /* for the sessions; for the request */
	enum era era;                       /* that it is taken for */
	uint64_t late_ms;                   /* its answer to server/discover */
	const char *banner;
} rows[] = {
	{ SERVER("refuses the probe", OLD, ERROR("-32601"), ERA_LEGACY), SERVES(true, true, true),
	  STARTS(2, 2) },
	{ SERVER("wants other params", OLD, ERROR("-32602"), ERA_LEGACY), SERVES(true, true, true),
	  STARTS(2, 2) },
	{ SERVER("wants initialize first", OLD, ERROR("-32000"), ERA_LEGACY),
	  SERVES(true, true, true), STARTS(2, 2) },
	{ SERVER("has an error of no code", OLD, ERROR("0"), ERA_LEGACY), SERVES(true, true, true),
	  STARTS(2, 2) },
	{ SERVER("ends at the probe", OLD, END, ERA_LEGACY), SERVES(true, true, true),
	  STARTS(2, 2) },
	{ SERVER("ignores the probe", OLD, SILENCE, ERA_LEGACY), SERVES(true, true, true),
	  STARTS(2, 2) },
	{ SERVER("says nothing of use", OLD, NOTHING, ERA_LEGACY), SERVES(true, true, true),
	  STARTS(2, 2) },
	{ SERVER("prints an object first", OLD, ERROR("-32601"), ERA_LEGACY),
	  SERVES(true, true, true), STARTS(2, 2), .banner = "{}" },
	{ SERVER("prints a banner first", OLD, ERROR("-32601"), ERA_LEGACY),
	  SERVES(true, true, true), STARTS(2, 2), .banner = "server 1.0" },
	{ SERVER("answers the probe too late", OLD, NEW, ERA_LEGACY), SERVES(true, true, true),
	  STARTS(2, 2), .late_ms = PROBE_MS },
	{ SERVER("speaks both eras", OLD, NEW, ERA_MODERN), SERVES(true, true, true),
	  STARTS(2, 2) },
	{ SERVER("is modern, and says so", ONLY_NEW, NEW, ERA_MODERN), SERVES(true, true, true),
	  STARTS(3, 2) },
	{ SERVER("is modern, and refuses", ERROR("-32601"), NEW, ERA_MODERN),
	  SERVES(true, true, true), STARTS(4, 2) },
	{ SERVER("is modern, and slow", ERROR("-32000"), NEW, ERA_MODERN), SERVES(true, true, true),
	  STARTS(4, 2), .late_ms = PROBE_MS - 1 },
	{ SERVER("is modern, and prints an object first", ERROR("-32601"), NEW, ERA_MODERN),
	  SERVES(true, true, true), STARTS(4, 2), .banner = "{}" },
	{ SERVER("is modern, and silent at initialize", SILENCE, NEW, ERA_MODERN),
	  SERVES(false, true, true), STARTS(3, 2) },
	{ SERVER("is modern, and ends at initialize", END, NEW, ERA_MODERN),
	  SERVES(false, true, true), STARTS(3, 2) },
	{ SERVER("is modern, and says nothing of use to initialize", NOTHING, NEW, ERA_MODERN),
	  SERVES(false, true, true), STARTS(3, 2) },
	{ SERVER("is silent", SILENCE, SILENCE, ERA_LEGACY), SERVES(false, false, false),
	  STARTS(3, 2) },
	{ SERVER("ends", END, END, ERA_LEGACY), SERVES(false, false, false), STARTS(3, 2) },
	{ SERVER("refuses everything", ERROR("-32601"), ERROR("-32601"), ERA_LEGACY),
	  SERVES(false, false, false), STARTS(4, 2) },
};

static size_t played; /* processes that were asked */

static void act(const struct odd_server *server, struct fake_process *p)
{
	const char *line = fake_process_read(p);
	bool is_probe = line != NULL && strstr(line, "server/discover") != NULL;
	const char *answer = is_probe ? server->discover : server->initialize;

	if (line == NULL)
		return; /* it is stopped already */
	if (server->banner != NULL)
		says(p, server->banner);
	if (is_probe)
		pass(server->late_ms);
	if (answer != NULL && *answer == '\0')
		exits(p, 1);
	else if (answer != NULL && !p->is_eof && !p->is_exited)
		says(p, answer);
}

static bool is_served(const enum ending *ending, const struct buf *response)
{
	return *ending == ENDING_RESPONSE && buf_slice(response).n > 0 &&
	       memmem(response->data, response->len, "\"result\"", 8) != NULL;
}

/* Until that has ended; for longer than a start and a probe take, it need not be waited for. */
static void play(const struct odd_server *server, const enum ending *ending)
{
	for (size_t turns = 0; *ending == ENDING_NONE; turns++) {
		assert_true(turns < 60);
		while (played < keeper.count)
			act(server, process(played++));
		if (*ending == ENDING_NONE)
			pass(1000);
	}
}

static bool serves_session(const struct odd_server *server)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	play(server, &front->ending);
	return is_served(&front->ending, &front->response);
}

static int setup(void **state)
{
	request_setup(state);
	servers[0].conf.isolation = ISOLATION_SESSION;
	servers[0].conf.era = ERA_UNKNOWN;
	servers[0].conf.pool_max = 16; /* none of them goes when it is told to */
	played = 0;
	return 0;
}

static void before_sessions(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool first = serves_session(&rows[i]), second;

		pass(START_MS); /* no back-off is in the way */
		second = serves_session(&rows[i]);
		if (first != rows[i].serves_first || second != rows[i].serves_second ||
		    keeper.count != rows[i].starts)
			fail_msg("a server that %s: %d, %d, %zu starts", rows[i].name, first,
				 second, keeper.count);
		request_teardown(state);
		setup(state);
	}
}

static void before_modern_clients(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct asker *asker = ask(DISCOVER);
		bool serves;

		play(&rows[i], &asker->ending);
		serves = is_served(&asker->ending, &asker->response);
		if (serves != rows[i].serves_modern || keeper.count != rows[i].modern_starts ||
		    servers[0].verdict.era != rows[i].era)
			fail_msg("a server that %s: %d, %zu starts, %s", rows[i].name, serves,
				 keeper.count, era_name(servers[0].verdict.era));
		request_teardown(state);
		setup(state);
	}
}

/* BACK-ERA-06: who has agreed to initialize before has only failed; and a day must pass before it is asked again. */
static void what_is_known_is_not_doubted(void **state)
{
	static const struct odd_server good = { .initialize = OLD }, silent = { .name = "silent" };

	assert_true(serves_session(&good));
	assert_false(serves_session(&silent));
	pass(START_MS);
	assert_true(serves_session(&good));
	assert_int_equal(keeper.count, 3);
	servers[0].verdict = (struct era_verdict){ .era = ERA_UNKNOWN };
	assert_false(serves_session(&silent));
	pass(START_MS);
	assert_false(serves_session(&silent));
	assert_int_equal(keeper.count, 6);
	pass(START_MS);
	assert_false(serves_session(&silent));
	assert_int_equal(keeper.count, 7);
	pass(24ull * 60 * 60 * 1000);
	assert_false(serves_session(&silent));
	assert_int_equal(keeper.count, 9);
}

/* Whose starts are refused after so many failures is refused without waiting for a probe. */
static void servers_that_are_given_up(void **state)
{
	static const struct odd_server broken = { .initialize = END, .discover = END };
	struct asker *asker;

	servers[0].conf.give_up_after = 1;
	assert_false(serves_session(&broken));
	is_failed(open_session(INITIALIZE_WITH("")), REASON_BACKEND_DOWN);
	asker = ask(DISCOVER);
	assert_int_equal(asker->ending, ENDING_FAILED);
	assert_int_equal(asker->reason, REASON_BACKEND_DOWN);
	assert_int_equal(keeper.count, 1);
}

/* A modern server that has become another one: the next client finds out. */
static void modern_servers_that_fail(void **state)
{
	static const struct odd_server now = { .initialize = OLD, .discover = END };

	era_note_probed(&servers[0], ERA_MODERN);
	assert_false(serves_session(&now));
	pass(START_MS);
	assert_true(serves_session(&now));
	assert_int_equal(servers[0].verdict.era, ERA_LEGACY);
}

/* RPC-08: as PHP writes them by default. What is not read stays as it is written. */
static void servers_that_escape_slashes(void **state)
{
	struct member *a;
	struct front *call;

	a = begin_asking(alice, 0);
	call = request(a->client, CALL("1"));
	hears(process(0), CALL("2"));
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications\\/message','params':{'level':"
	     "'info','data':'a\\/b\\\\/c\\u002f','_meta':{'io.modelcontextprotocol\\/x':1}}}");
	was_told(call,
		 "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
		 "'info','data':'a\\/b\\\\/c\\u002f','_meta':{'io.modelcontextprotocol/x':1}}}|");
	says(process(0),
	     "{'jsonrpc':'2.0','id':'q\\/','method':'elicitation\\/create','params':{'message':'m'}}");
	was_told(
		call,
		"{'jsonrpc':'2.0','id':1000001,'method':'elicitation/create','params':{'message':'m'}}|");
	answer(a->client, "{'jsonrpc':'2.0','id':1000001,'result':{'action':'decline'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':'q\\/','result':{'action':'decline'}}");
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'x':'a\\/b'}}");
	is_answered(call, "{'jsonrpc':'2.0','id':1,'result':{'x':'a\\/b'}}");
}

#define ODD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, request_teardown)

static const struct CMUnitTest tests[] = {
	ODD_TEST(before_sessions),
	ODD_TEST(before_modern_clients),
	ODD_TEST(what_is_known_is_not_doubted),
	ODD_TEST(servers_that_are_given_up),
	ODD_TEST(modern_servers_that_fail),
	cmocka_unit_test_setup_teardown(servers_that_escape_slashes, request_setup,
					request_teardown),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
