/* SPDX-License-Identifier: Apache-2.0 */
/* A session and its own process: handshake, ids, tokens, questions of the server, and how they end. */
#include "router/client_session.h"
#include "router/router.h"

#include <errno.h>
#include <signal.h>

#include "base/text.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/child.h"
#include "router/client_stage.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/server_request.h"

#define TIMEOUT_MS 60000
#define TIMEOUT_MAX_MS 600000 /* the stage's, as is the next */
#define START_TIMEOUT_MS 20000
#define HOLD_MS 60000
#define QUEUE_MAX 100000

#define CAPS "'roots':{'listChanged':true},'sampling':{},'elicitation':{}"
#define HANDSHAKE(caps)                                                                           \
	"{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':'2025-11-25'," \
	"'capabilities':{" caps "},'clientInfo':{'name':'c','version':'1'}}}"
#define WELCOME                                                                             \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{" \
	"'logging':{},'tools':{'listChanged':true},'resources':{'subscribe':true}},"        \
	"'serverInfo':{'name':'s','version':'1'}}}"

#define SUBSCRIBE(id, uri) \
	"{'jsonrpc':'2.0','id':" id ",'method':'resources/subscribe','params':{'uri':'" uri "'}}"
#define EMPTY(id) "{'jsonrpc':'2.0','id':" id ",'result':{}}"

/* A session of a client with these capabilities; its process has heard what is usual. */
static struct client *begin_with(const char *initialize)
{
	struct front *front = open_session(initialize);
	struct fake_process *p = process(keeper.count - 1);

	assert_non_null(fake_process_read(p));
	says(p, WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	hears(p, INITIALIZED);
	return front->call.client;
}

static struct client *begin(void)
{
	struct client *client = begin_with(INITIALIZE_WITH(CAPS));

	notify(client, INITIALIZED);
	return client;
}

static struct tool_timeout tool_timeout = { SLICE("slow"), 2 * TIMEOUT_MS };

/* The reader of the one session's own stream. */
static struct member *listener;

static void was_heard(const char *text)
{
	heard(listener, text);
}

static int setup(void **state)
{
	struct server_conf *conf = &servers[0].conf;

	client_stage_open();
	conf->pool_max = 3;
	conf->queue_max = QUEUE_MAX;
	conf->request_timeout_ms = TIMEOUT_MS;
	conf->tool_timeouts = (struct tool_timeouts){ &tool_timeout, 1 };
	return 0;
}

/* ---- the handshake ---- */

/* BACK-INIT-01, BACK-INIT-02, BACK-INIT-03, FRONT-SESS-01: verbatim but for the id; `initialized` after it. */
static void handshake_is_forwarded(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(CAPS));
	struct fake_process *p = process(0);

	hears(p, HANDSHAKE(CAPS));
	hears_nothing(p);
	is_open(front);
	says(p, WELCOME);
	is_answered(front, "{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-11-25',"
			   "'capabilities':{'logging':{},'tools':{'listChanged':true},"
			   "'resources':{'subscribe':true}},"
			   "'serverInfo':{'name':'s','version':'1'}}}");
	assert_int_equal(front->call.client->session->state, SESSION_LIVE);
	hears(p, INITIALIZED);
	notify(front->call.client, INITIALIZED); /* the client's own is consumed */
	hears_nothing(p);
}

/* FRONT-INIT-01, BACK-INIT-02, BACK-FRAME-04, BACK-FRAME-05: older server, its own way to write. */
static void handshake_is_lenient_to_servers(void **state)
{
	struct front *front = open_session(
		"{'jsonrpc':'2.0','method':'initialize','params':{'capabilities':{},'protocolVersion':"
		"'1999-01-01','_meta':{'io.modelcontextprotocol/clientInfo':{},'x':1},"
		"'clientInfo':{}},'id':'first'}");
	struct fake_process *p = process(0);

	hears(p, "{'jsonrpc':'2.0','method':'initialize','params':{'capabilities':{},"
		 "'protocolVersion':'2025-11-25','_meta':{'x':1},'clientInfo':{}},'id':1}");
	says(p, "{}");
	says(p, "server 1.0 is ready");
	is_open(front);
	says(p, "{'result':{'capabilities':{},'protocolVersion':'2024-11-05'},'id':'1'}");
	is_answered(front, "{'jsonrpc':'2.0','id':'first','result':{'capabilities':{},"
			   "'protocolVersion':'2025-11-25'}}");
	hears(p, INITIALIZED);
}

/* BACK-INIT-01: what has another id is no answer to it, whatever it looks like. */
static void handshake_has_its_own_id(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));
	uint64_t strays = counter_get(COUNTER_CHILD_STRAY_RESPONSES);

	says(process(0), "{'jsonrpc':'2.0','id':7,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'prompts':{}}}}");
	says(process(0), "{'jsonrpc':'2.0','id':7,'error':{'code':1,'message':'no'}}");
	is_open(front);
	assert_int_equal(counter_get(COUNTER_CHILD_STRAY_RESPONSES) - strays, 2);
	says(process(0), WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	assert_null(strstr(buf_terminate(&front->response), "prompts"));
}

/* bridging §2.1 (1): the server's error is the client's; no session, the process goes. */
static void server_may_refuse(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));
	struct fake_process *p = process(0);

	says(p, "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'no'}}");
	is_answered(front, "{'jsonrpc':'2.0','id':0,'error':{'code':-32602,'message':'no'}}");
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	hears(p, HANDSHAKE(""));
	hears_nothing(p);
	assert_true(p->is_eof);
}

/* SEC-51: what it says on stderr in the same moment is for the log, and stays out of the answer. */
static void refusal_comes_with_last_words(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));
	char words[4096];

	memset(words, 'W', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	fake_process_write(process(0), q("{'jsonrpc':'2.0','id':1,'error':{'code':-32602,"
					 "'message':'no'}}\n"));
	fake_process_write_err(process(0), words);
	settle();
	is_answered(front, "{'jsonrpc':'2.0','id':0,'error':{'code':-32602,'message':'no'}}");
}

/* BACK-FRAME-05: an error without id is about the only request there is. */
static void server_may_refuse_without_id(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	says(process(0), "{'error':{'code':-32700,'message':'what?'},'id':null}");
	is_answered(front, "{'jsonrpc':'2.0','id':0,'error':{'code':-32700,'message':'what?'}}");
}

/* BACK-INIT-02: a revision that nobody knows. REL-23: an answer that is none. */
static void bad_answers_fail_the_handshake(void **state)
{
	static const char *const answers[] = {
		"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2099-01-01'}}",
		"{'jsonrpc':'2.0','id':1,'result':{}}",
		"{'jsonrpc':'2.0','id':1,'result':{},'error':{'code':1,'message':'x'}}",
		"{'jsonrpc':'2.0','id':'1'}",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct front *front = open_session(INITIALIZE_WITH(""));
		struct fake_process *p = process(keeper.count - 1);

		is_open(front);
		says(p, answers[i]);
		is_failed(front, REASON_HANDSHAKE_REFUSED);
		assert_int_equal(p->last_signal, SIGKILL);
		fake_process_exit(&keeper, p, SIGKILL);
		backoff_note_started(&servers[0].backoff); /* no back-off in this test */
	}
}

/* BACK-INIT-04, BACK-PROC-06: silence, an exit, a start that fails. */
static void start_can_fail(void **state)
{
	struct front *silent = open_session(INITIALIZE_WITH(""));
	struct front *ended;
	struct front *refused;

	pass(START_TIMEOUT_MS - 1);
	is_open(silent);
	pass(1);
	is_failed(silent, REASON_START_TIMEOUT);
	assert_int_equal(process(0)->last_signal, SIGKILL);

	backoff_note_started(&servers[0].backoff);
	ended = open_session(INITIALIZE_WITH(""));
	exits(process(1), 256);
	is_failed(ended, REASON_START_FAILED);

	backoff_note_started(&servers[0].backoff);
	keeper.refuses = ENOENT;
	refused = open_session(INITIALIZE_WITH(""));
	is_failed(refused, REASON_START_FAILED);
}

/* BACK-PROC-04: the next start waits for the back-off; then callers hear at once that it is down. */
static void failing_server_backs_off(void **state)
{
	struct front *waits;

	keeper.refuses = ENOENT;
	is_failed(open_session(INITIALIZE_WITH("")), REASON_START_FAILED);
	waits = open_session(INITIALIZE_WITH(""));
	is_open(waits);
	pass(1000);
	is_failed(waits, REASON_START_FAILED);
	waits = open_session(INITIALIZE_WITH(""));
	pass(2000);
	is_failed(waits, REASON_START_FAILED);
	is_failed(open_session(INITIALIZE_WITH("")), REASON_BACKEND_DOWN);
	pass(4000);
	keeper.refuses = 0;
	waits = open_session(INITIALIZE_WITH(""));
	says(process(0), WELCOME);
	assert_int_equal(waits->ending, ENDING_RESPONSE);
}

/* pool.max holds for those that wait for the back-off, too. */
static void pool_is_limited(void **state)
{
	backoff_note_failed(&servers[0].backoff);
	for (int i = 0; i < 3; i++)
		is_open(open_session(INITIALIZE_WITH("")));
	is_failed(open_session(INITIALIZE_WITH("")), REASON_OVER_LIMIT);
	assert_int_equal(keeper.count, 0);
	pass(1000);
	assert_int_equal(keeper.count, 3);
	assert_int_equal(servers[0].reserved, 0);
	is_failed(open_session(INITIALIZE_WITH("")), REASON_OVER_LIMIT);
}

/* FRONT-SESS-08: limits.sessions; the long id tells the leak checker where it was kept. */
static void sessions_are_limited(void **state)
{
	router.sessions.conf.max_sessions = 1;
	begin();
	is_failed(open_session("{'jsonrpc':'2.0','id':'0123456789012345678901234567890123456789"
			       "01234567890123456789012345678901234567890','method':'initialize',"
			       "'params':{}}"),
		  REASON_OVER_LIMIT);
	assert_int_equal(keeper.count, 1);
}

/* REL-41: no new sessions; those in their handshake end with the rest. */
static void draining_refuses_sessions(void **state)
{
	struct front *half = open_session(INITIALIZE_WITH(""));

	router.is_draining = true;
	is_failed(open_session(INITIALIZE_WITH("")), REASON_DRAINING);
	assert_int_equal(keeper.count, 1);
	session_end(half->call.client->session, REASON_DRAINING);
	is_failed(half, REASON_DRAINING);
	pass(0);
	hears(process(0), HANDSHAKE(""));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
}

/* The client has left meanwhile: its front ends the session while it is told. */
static void client_leaves_during_the_handshake(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	front->ends_session = true;
	says(process(0), WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	assert_int_equal(router.sessions.count, 0);
	pass(0);
	hears(process(0), HANDSHAKE(""));
	hears(process(0), INITIALIZED);
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
}

/* pool.min is for pools: nobody is left here whom another process could serve. */
static void nothing_is_kept_for_who_left_during_the_handshake(void **state)
{
	struct front *front;

	servers[0].conf.pool_min = 1;
	front = open_session(INITIALIZE_WITH(""));
	front->ends_session = true;
	says(process(0), WELCOME);
	pass(5000);
	assert_int_equal(router.sessions.count, 0);
	assert_int_equal(keeper.count, 1);
}

/* bridging I3: what a server asks too early is answered; ping at any time (BACK-MSG-07). */
static void early_requests_of_the_server(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(CAPS));
	struct fake_process *p = process(0);

	hears(p, HANDSHAKE(CAPS));
	says(p, "{'jsonrpc':'2.0','id':'p','method':'ping'}");
	hears(p, "{'jsonrpc':'2.0','id':'p','result':{}}");
	says(p, "{'jsonrpc':'2.0','id':9,'method':'roots/list'}");
	hears(p, "{'jsonrpc':'2.0','id':9,'error':{'code':-32600,'message':"
		 "'Invalid request: the handshake is not through'}}");
	says(p, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'info'}}");
	says(p, WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	listener = listen_to(front->call.client);
	was_heard("");
}

/* ---- requests and responses ---- */

/* RPC-04, BACK-FRAME-01, BACK-FRAME-08, FRONT-POST-11: id and token, wherever they stand; nothing else. */
static void ids_are_replaced(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *a, *b, *c;

	a = request(client,
		    "{'jsonrpc':'2.0','id':'x\\u0041','method':'tools/call','params':"
		    "{'name':'t','n':1.0E+2,'_meta':{'progressToken':'tok','v/k':[1 , 2]}}}");
	hears(p, "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':"
		 "{'name':'t','n':1.0E+2,'_meta':{'progressToken':2,'v/k':[1 , 2]}}}");
	b = request(
		client,
		"{'params':{'_meta':{'progressToken':7}},'method':'x/y','jsonrpc':'2.0','id':-5}");
	hears(p, "{'params':{'_meta':{'progressToken':3}},'method':'x/y','jsonrpc':'2.0','id':3}");
	c = request(
		client,
		"{'jsonrpc':'2.0',\n'id':12345678901234567,\r\n\t'method':'x','params':['\xE2\x80\xA8']}");
	hears(p, "{'jsonrpc':'2.0', 'id':4,  \t'method':'x','params':['\\u2028']}");
	says(p, "{'jsonrpc':'2.0','id':3,'result':{ 'a' : 2.50}}");
	says(p, "{'result':['id',4],'id':4,'jsonrpc':'2.0'}");
	says(p, "{'jsonrpc':'2.0','error':{'code':-1,'message':'m','data':null},'id':2}");
	is_answered(
		a,
		"{'jsonrpc':'2.0','error':{'code':-1,'message':'m','data':null},'id':'x\\u0041'}");
	is_answered(b, "{'jsonrpc':'2.0','id':-5,'result':{ 'a' : 2.50}}");
	is_answered(c, "{'result':['id',4],'id':12345678901234567,'jsonrpc':'2.0'}");
}

/* BACK-MSG-06: what only the modern era says goes; the rest of _meta stays, also beside a token. */
static void meta_is_rebuilt(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);

	request(client, "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{'_meta':{"
			"'io.modelcontextprotocol/protocolVersion':'x','traceparent':'00-1',"
			"'progressToken':'k','io.modelcontextprotocol/related-task':{'taskId':'1'},"
			"'io.modelcontextprotocol/clientCapabilities':{'a':[1]}},'cursor':''}}");
	hears(p, "{'jsonrpc':'2.0','id':2,'method':'tools/list','params':{'_meta':{"
		 "'traceparent':'00-1','progressToken':2,"
		 "'io.modelcontextprotocol/related-task':{'taskId':'1'}},'cursor':''}}");
	request(client, "{'jsonrpc':'2.0','method':'tools/list','params':{'_meta':{"
			"'io.modelcontextprotocol/logLevel':'info'}},'id':'after'}");
	hears(p, "{'jsonrpc':'2.0','method':'tools/list','params':{'_meta':{}},'id':3}");
	notify(client, "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{"
		       "'io.modelcontextprotocol/logLevel':'info','y':1}}}");
	hears(p, "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{'y':1}}}");
	notify(client, "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{"
		       "'io.modelcontextprotocol/clientInfo':{},'z':2,"
		       "'io.modelcontextprotocol/subscriptionId':'s'}}}");
	hears(p, "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{'z':2}}}");
}

/* BACK-FRAME-03, BACK-FRAME-04, BACK-FRAME-05: responses that are written in unusual ways. */
static void responses_are_taken_leniently(void **state)
{
	static const char *const answers[][2] = {
		{ "{'jsonrpc':'2.0','id':'2','result':{}}",
		  "{'jsonrpc':'2.0','id':9,'result':{}}" },
		{ "{'jsonrpc':'2.0','id':3.0,'result':{'a':[]}}",
		  "{'jsonrpc':'2.0','id':9,'result':{'a':[]}}" },
		{ "{'jsonrpc':'2.0',\r'id':4,\r'result':{\r}}",
		  "{'jsonrpc':'2.0','id':9,'result':{ }}" },
		{ "{'jsonrpc':'2.0','id':5,'result':1,'error':null}",
		  "{'jsonrpc':'2.0','id':9,'result':1}" },
		{ "ready> {'jsonrpc':'2.0','id':6,'result':2}",
		  "{'jsonrpc':'2.0','id':9,'result':2}" },
		{ "[log] {'jsonrpc':'2.0','id':7,'result':3}",
		  "{'jsonrpc':'2.0','id':9,'result':3}" },
		{ "[{'jsonrpc':'2.0','id':8,'result':4}]", "{'jsonrpc':'2.0','id':9,'result':4}" },
		{ "{50%}{ 'id':9e0,'result':5,'jsonrpc':'2.0'}",
		  "{ 'id':9,'result':5,'jsonrpc':'2.0'}" },
		{ "{'id':1} [{'result':6,'id':10,'jsonrpc':'2.0'}",
		  "{'result':6,'id':9,'jsonrpc':'2.0'}" },
		{ "{'jsonrpc':'2.0','id':11,'method':'','params':null,'result':7}",
		  "{'jsonrpc':'2.0','id':9,'result':7}" },
		{ "{'jsonrpc':'2.0','id':12,'result':'\xff\xc3'}",
		  "{'jsonrpc':'2.0','id':9,'result':'\xEF\xBF\xBD\xEF\xBF\xBD'}" },
		{ "\xff{'jsonrpc':'2.0','id':13,'result':8}",
		  "{'jsonrpc':'2.0','id':9,'result':8}" },
		{ "{'jsonrpc':'2.0','id':14,'result':[]}", "{'jsonrpc':'2.0','id':9,'result':{}}" },
	};
	struct client *client = begin();

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct front *front = request(client, CALL("9"));

		says(process(0), answers[i][0]);
		is_answered(front, answers[i][1]);
	}
}

/* BACK-FRAME-04: an array of the server is several messages, in order, good and bad ones. */
static void arrays_are_unpacked(void **state)
{
	struct client *client = begin();
	struct front *a = request(client, CALL("1"));
	struct front *b = request(client, CALL("2"));

	says(process(0), "[" RESULT("3") ",{},5," RESULT("2") ",[" RESULT("3") "]]");
	is_answered(a, RESULT("1"));
	is_answered(b, RESULT("2"));
	says(process(0), "[]");
	says(process(0), "[1,");
}

/* FRONT-POST-12, RPC-03, bridging I4: same id twice; each gets its own answer, whatever the order. */
static void same_id_twice_is_served_twice(void **state)
{
	struct client *client = begin();
	struct front *a = request(client, CALL("5"));
	struct front *b = request(client, CALL("5"));

	says(process(0), "{'jsonrpc':'2.0','id':3,'result':'b'}");
	is_open(a);
	is_answered(b, "{'jsonrpc':'2.0','id':5,'result':'b'}");
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':'a'}");
	is_answered(a, "{'jsonrpc':'2.0','id':5,'result':'a'}");
}

/* SEC-06, REL-23, CXL-06, bridging I3: double, late, forged answers reach nobody and are counted. */
static void stray_responses_are_dropped(void **state)
{
	struct client *client = begin();
	struct front *a = request(client, CALL("1"));
	struct front *b = request(client, CALL("2"));
	uint64_t strays = counter_get(COUNTER_CHILD_STRAY_RESPONSES);

	says(process(0), RESULT("2"));
	says(process(0), RESULT("2"));
	says(process(0), RESULT("1"));
	says(process(0), RESULT("99"));
	says(process(0), RESULT("-3"));
	says(process(0), RESULT("'a'"));
	says(process(0), RESULT("''"));
	is_answered(a, RESULT("1"));
	is_open(b);
	assert_int_equal(counter_get(COUNTER_CHILD_STRAY_RESPONSES) - strays, 6);
}

/* BACK-SEC-01, SEC-06, bridging I1: a server reaches its own session only, whatever ids it names. */
static void sessions_do_not_cross(void **state)
{
	struct client *first = begin();
	struct client *second = begin();
	struct front *a = request(first, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':"
					 "{'_meta':{'progressToken':'mine'}}}");
	struct front *b = request(second, CALL("1"));

	listener = listen_to(first);
	says(process(1), "{'jsonrpc':'2.0','id':2,'result':'for b'}");
	is_open(a);
	is_answered(b, "{'jsonrpc':'2.0','id':1,'result':'for b'}");
	says(process(1), "{'jsonrpc':'2.0','id':2,'result':'forged'}");
	says(process(1),
	     "{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':2,'progress':1}}");
	says(process(1), "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
	says(process(1), "{'jsonrpc':'2.0','id':1,'method':'roots/list'}");
	is_open(a);
	was_told(a, "");
	was_heard("");
	/* SEC-48, SEC-49, FRONT-POST-04: nor does a client. */
	says(process(0), "{'jsonrpc':'2.0','id':'q','method':'roots/list'}");
	answer(second, "{'jsonrpc':'2.0','id':1000001,'result':{'to':'second'}}");
	hears(process(0),
	      "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'_meta':{'progressToken':2}}}");
	hears_nothing(process(0));
	notify(second,
	       "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
	hears_nothing(process(0));
	is_open(a);
}

/* BACK-FRAME-05: an error without id fails the only call; with two in flight, none. */
static void error_without_id(void **state)
{
	struct client *client = begin();
	struct front *a = request(client, CALL("1"));
	struct front *b = request(client, CALL("2"));

	says(process(0), "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'x'}}");
	is_open(a);
	is_open(b);
	says(process(0), RESULT("2"));
	says(process(0), "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'x'}}");
	is_answered(b, "{'jsonrpc':'2.0','id':2,'error':{'code':-32700,'message':'x'}}");
}

#define CANCELLED(id) \
	"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':" id "}}"

/* BACK-FRAME-05: an answer to a notification concerns nobody; servers read in order. */
static void answers_to_notifications(void **state)
{
#define REFUSED(code) "{'jsonrpc':'2.0','id':null,'error':{'code':" code ",'message':'x'}}"
	struct client *client = begin(); /* notifications/initialized was sent */
	struct front *a = request(client, CALL("1"));
	struct front *b;

	says(process(0), REFUSED("-32601"));
	is_open(a);
	says(process(0), REFUSED("-32600")); /* the second one */
	is_answered(a, "{'jsonrpc':'2.0','id':1,'error':{'code':-32600,'message':'x'}}");
	a = request(client, CALL("1"));
	notify(client, CANCELLED("1"));
	b = request(client, CALL("2"));
	says(process(0), REFUSED("-32601"));
	is_open(b);
	says(process(0), RESULT("4"));
	b = request(client, CALL("2"));
	says(process(0), REFUSED("-32601")); /* what was sent before it was read before it */
	is_answered(b, "{'jsonrpc':'2.0','id':2,'error':{'code':-32601,'message':'x'}}");
	(void)a;
}

/* REL-23: a message about a call, but no response, fails that call; REL-20, REL-21: what else is not JSON does nothing. */
static void malformed_answers(void **state)
{
	struct client *client = begin();
	struct front *a = request(client, CALL("1"));
	struct front *b = request(client, CALL("2"));
	uint64_t garbage = counter_get(COUNTER_CHILD_GARBAGE);

	says(process(0), "{'jsonrpc':'2.0','id':2,'method':3}"); /* a bad request, not an answer */
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':");
	says(process(0), "'id'");
	says(process(0), "17");
	says(process(0), "{'jsonrpc':'2.0','id':2,'id':2,'result':{}}"); /* whose is it? */
	is_open(a);
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':'no'}");
	is_failed(a, REASON_CHILD_PROTOCOL_ERROR);
	is_open(b);
	assert_int_equal(counter_get(COUNTER_CHILD_GARBAGE) - garbage, 6);
	says(process(0), "{'level':'info','id':3,'result':'started'}"); /* a line of its log */
	says(process(0), "{'id':3,'result':'started'}");
	says(process(0), "{'level':'info','id':3}");
	is_open(b);
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'a':NaN}}");
	is_failed(b, REASON_CHILD_PROTOCOL_ERROR);
	assert_int_equal(counter_get(COUNTER_CHILD_GARBAGE) - garbage, 10);
}

/* Its request that cannot be read is refused at once, by whatever id can be read. REL-23 */
static void malformed_requests(void **state)
{
	char long_id[300] = "";
	struct buf text = { 0 };

	(void)begin();
	while (fake_process_read(process(0)) != NULL)
		;
	memset(long_id, 'x', sizeof(long_id) - 1);
	buf_printf(&text, "{'jsonrpc':'2.0','id':'%s','method':'roots/list'}", long_id);
	says(process(0), buf_terminate(&text));
	text.len = 0;
	buf_printf(&text,
		   "{'jsonrpc':'2.0','id':'%s','error':{'code':-32600,'message':'Invalid request: "
		   "the id is longer than 200 bytes'}}",
		   long_id);
	hears(process(0), buf_terminate(&text));
	says(process(0), "{'jsonrpc':'2.0','id':1,'method':3}");
	hears(process(0),
	      "{'jsonrpc':'2.0','id':1,'error':{'code':-32600,'message':'Invalid request: "
	      "the method is not a string'}}");
	buf_fini(&text);
}

/* UTIL-PING-01: answered here, for either side; also while no process runs. */
static void ping_is_answered_here(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);

	is_answered(request(client, "{'jsonrpc':'2.0','id':'p','method':'ping'}"),
		    "{'jsonrpc':'2.0','id':'p','result':{}}");
	says(p, "{'jsonrpc':'2.0','id':3,'method':'ping','params':{}}");
	hears(p, "{'jsonrpc':'2.0','id':3,'result':{}}");
	exits(p, 0);
	is_answered(request(client, "{'jsonrpc':'2.0','id':4,'method':'ping'}"),
		    "{'jsonrpc':'2.0','id':4,'result':{}}");
	assert_int_equal(keeper.count, 1);
}

/* REL-26, REL-46: when its stdin queue is full, a call fails at once. */
static void full_queue_refuses(void **state)
{
	struct client *client = begin();
	static char text[QUEUE_MAX + 1000];
	struct envelope env;
	struct front *front;

	snprintf(text, sizeof(text), "%s", q("{'jsonrpc':'2.0','id':1,'method':'x','params':['"));
	memset(text + strlen(text), 'x', QUEUE_MAX);
	memcpy(text + QUEUE_MAX - 3, "\"]}", 4);
	env = scan(text);
	for (int i = 0; i < 2; i++) { /* the first finds the queue empty */
		front = front_new(&env);
		forward_request(client, &front->call, admit(client, &env));
	}
	is_failed(front, REASON_OVER_LIMIT);
	is_open(front - 1);
	assert_int_equal(router.calls, 1);
}

/* BACK-FRAME-08: below 2^31, and none that is in use. */
static void ids_begin_anew(void **state)
{
	struct client *client = begin();
	struct front *first = request(client, CALL("1"));

	pool_own_upstream(client->pool)->last_id = INT32_MAX - 1;
	hears(process(0), CALL("2"));
	request(client, CALL("1"));
	hears(process(0), CALL("2147483647"));
	request(client, CALL("1"));
	hears(process(0), CALL("1"));
	request(client, CALL("1"));
	hears(process(0), CALL("3"));
	says(process(0), RESULT("2"));
	assert_int_equal(first->ending, ENDING_RESPONSE);
}

/* ---- progress, cancellation, deadlines ---- */

/* UTIL-PROG-01: the client's token, only while its call is in flight, only if it increases. */
static void progress_is_mapped(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *a = request(
		client,
		"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'_meta':{'progressToken':'2'}}}");
	struct front *b = request(
		client,
		"{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'_meta':{'progressToken':3}}}");
	struct front *c = request(client, CALL("3"));
	uint64_t strays = counter_get(COUNTER_CHILD_STRAY_PROGRESS);

	says(p, PROGRESS("2", "0"));
	was_told(a, PROGRESS("'2'", "0") "|");
	says(p, PROGRESS("'3'", "-1.5e3"));
	says(p, PROGRESS("3", "-1.5e3"));
	says(p, PROGRESS("3", "-2000"));
	says(p, PROGRESS("3", "'4000'"));
	says(p, PROGRESS("3", "-1.49e3"));
	was_told(b, PROGRESS("3", "-1.5e3") "|" PROGRESS("3", "-1.49e3") "|");
	says(p, PROGRESS("4", "1")); /* the client gave no token */
	says(p, PROGRESS("77", "1"));
	says(p, PROGRESS("null", "1"));
	says(p, RESULT("2"));
	says(p, PROGRESS("2", "5"));
	was_told(a, "");
	was_told(b, "");
	was_told(c, "");
	assert_int_equal(counter_get(COUNTER_CHILD_STRAY_PROGRESS) - strays, 7);
	assert_int_equal(count_logged("child_stray server=test"), 7);
	listener = listen_to(client);
	was_heard("");
}

/* BACK-MSG-02: what concerns nobody is counted. */
static void what_concerns_nobody_is_counted(void **state)
{
	static const char *const strays[] = {
		"{'jsonrpc':'2.0','method':'notifications/resources/updated','params':{'uri':'r:x'}}",
		"{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{"
		"'elicitationId':'e'}}",
	};
	struct client *client = begin();
	uint64_t dropped = counter_get(COUNTER_CHILD_DROPPED);

	listener = listen_to(client);
	for (size_t i = 0; i < ARRAY_LEN(strays); i++) {
		says(process(0), strays[i]);
		assert_int_equal(counter_get(COUNTER_CHILD_DROPPED) - dropped, i + 1);
		was_heard("");
	}
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/x','params':{}}");
	was_heard("{'jsonrpc':'2.0','method':'notifications/x','params':{}}|");
	assert_int_equal(counter_get(COUNTER_CHILD_DROPPED) - dropped, ARRAY_LEN(strays));
}

#define CANCEL(id) \
	"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':" id "}}"

/* CXL-02, CXL-03, CXL-06, SEC-49: all calls of that id and type; with our id; nothing else. */
static void cancel_is_mapped(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *a = request(client, CALL("7"));
	struct front *b = request(client, CALL("'7'"));
	struct front *c = request(client, CALL("7"));

	hears(p, CALL("2"));
	hears(p, CALL("3"));
	hears(p, CALL("4"));
	notify(client, "{'jsonrpc':'2.0','method':'notifications/cancelled'}");
	notify(client, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':[7]}");
	notify(client, CANCEL("2"));
	notify(client, CANCEL("[7]"));
	notify(client, CANCEL("null"));
	hears_nothing(p);
	notify(client,
	       "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'reason':'stop it\xE2\x80\xA8','requestId':7}}");
	hears(p,
	      "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2,'reason':'stop it\\u2028'}}");
	hears(p,
	      "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':4,'reason':'stop it\\u2028'}}");
	assert_int_equal(a->ending, ENDING_CANCELLED);
	assert_int_equal(c->ending, ENDING_CANCELLED);
	is_open(b);
	says(p, RESULT("2"));
	notify(client, CANCEL("7"));
	hears_nothing(p);
	notify(client, CANCEL("'7'"));
	hears(p, CANCEL("3"));
	assert_int_equal(b->ending, ENDING_CANCELLED);
}

/* FRONT-INIT-09: initialize is not cancelled; there is no session yet whose cancel could name it. */
static void cancel_of_a_call_that_waits(void **state)
{
	struct client *client = begin();
	struct front *front;

	exits(process(0), 0);
	front = request(client, CALL("1"));
	is_open(front);
	notify(client, CANCEL("1"));
	assert_int_equal(front->ending, ENDING_CANCELLED);
	hears(process(1), HANDSHAKE(CAPS));
	says(process(1), WELCOME);
	hears(process(1), INITIALIZED);
	hears_nothing(process(1));
}

/* CXL-08, REL-25: an error for the client, a cancel and a ping for the server; a pong saves it. */
static void silence_times_out(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *front = request(client, CALL("1"));

	hears(p, CALL("2"));
	pass(TIMEOUT_MS - 1);
	is_open(front);
	pass(1);
	is_failed(front, REASON_TIMEOUT);
	hears(p,
	      "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2,'reason':'no answer in time'}}");
	hears(p, "{'jsonrpc':'2.0','id':3,'method':'ping'}");
	says(p, "{'jsonrpc':'2.0','id':3,'result':{}}");
	pass(10000);
	assert_int_equal(p->signals, 0);
	is_open(request(client, CALL("2")));
	assert_int_equal(keeper.count, 1);
}

/* REL-25: no pong: it is killed, other calls fail, the next request gets another process. */
static void hung_process_is_replaced(void **state)
{
	struct client *client = begin();
	struct front *other;

	request(client, CALL("1"));
	pass(30000);
	other = request(client, CALL("2"));
	pass(30000);
	is_open(other);
	pass(4999);
	is_open(other);
	pass(1);
	is_failed(other, REASON_CHILD_HUNG);
	assert_int_equal(process(0)->last_signal, SIGKILL);
	is_open(request(client, CALL("3")));
	assert_int_equal(keeper.count, 2);
	says(process(0), RESULT("4")); /* the old one is not listened to */
	assert_int_equal(router.calls, 1);
}

/* CXL-08: progress renews the silence, never the absolute limit; a tool may have its own. */
static void progress_renews_the_deadline(void **state)
{
	struct client *client = begin();
	struct front *front = request(
		client,
		"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'_meta':{'progressToken':1}}}");
	struct front *slow =
		request(client,
			"{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'slow'}}");
	char text[200];

	for (int i = 1; i <= 10; i++) {
		pass(TIMEOUT_MS - 1);
		assert_int_equal(slow->ending, i < 3 ? ENDING_NONE : ENDING_FAILED);
		is_open(front);
		snprintf(text, sizeof(text), PROGRESS("2", "%d"), i);
		says(process(0), text);
	}
	pass(10);
	is_failed(front, REASON_TIMEOUT);
	is_failed(slow, REASON_TIMEOUT);
}

/* UTIL-PROG-01: one that stands still is not passed on, but the server is alive. */
static void progress_that_stands_still(void **state)
{
	struct client *client = begin();
	struct front *front = request(
		client,
		"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'_meta':{'progressToken':1}}}");

	for (int i = 1; i <= 5; i++) {
		pass(TIMEOUT_MS - 1);
		is_open(front);
		says(process(0), PROGRESS("2", "1"));
		was_told(front, i == 1 ? PROGRESS("1", "1") "|" : "");
	}
	pass(10 + TIMEOUT_MS);
	is_failed(front, REASON_TIMEOUT);
}

/* ---- what the server asks ---- */

#define ASK(id, method) "{'jsonrpc':'2.0','id':" id ",'method':'" method "'}"

/* BACK-MSG-07, FRONT-SSE-07, FRONT-POST-03, SEC-48: to the call in progress; its answer back, once. */
static void asks_are_mapped(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *list = request(client, "{'jsonrpc':'2.0','id':1,'method':'tools/list'}");
	struct front *call = request(client, CALL("2"));
	struct front *last = request(client, "{'jsonrpc':'2.0','id':3,'method':'x/y'}");
	uint64_t strays = counter_get(COUNTER_CLIENT_STRAY_RESPONSES);

	while (fake_process_read(p) != NULL)
		;
	says(p,
	     "{'method':'sampling/createMessage','params':{'messages':[]},'jsonrpc':'2.0','id':'s-1'}");
	was_told(
		call,
		"{'method':'sampling/createMessage','params':{'messages':[]},'jsonrpc':'2.0','id':1000001}|");
	says(p, ASK("2", "roots/list"));
	was_told(call, ASK("1000002", "roots/list") "|");
	was_told(list, "");
	was_told(last, "");
	answer(client, "{'jsonrpc':'2.0','id':'1000002.0','result':{}}");
	answer(client, "{'jsonrpc':'2.0','id':1000003,'result':{}}");
	answer(client, "{'jsonrpc':'2.0','id':'s-1','result':{}}");
	answer(client, "{'jsonrpc':'2.0','error':{'code':1,'message':'no id'}}");
	hears_nothing(p);
	answer(client, "{'jsonrpc':'2.0','result':{'roots':[ ]},\n'id':1000002}");
	hears(p, "{'jsonrpc':'2.0','result':{'roots':[ ]}, 'id':2}");
	answer(client, "{'jsonrpc':'2.0','id':1000001,'error':{'code':-1,'message':'declined'}}");
	hears(p, "{'jsonrpc':'2.0','id':'s-1','error':{'code':-1,'message':'declined'}}");
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears_nothing(p);
	assert_int_equal(counter_get(COUNTER_CLIENT_STRAY_RESPONSES) - strays, 5);
	says(p, ASK("3.0", "roots/list"));
	was_told(call, ASK("1000003", "roots/list") "|");
	answer(client, "{'jsonrpc':'2.0','id':'1000003','result':{}}"); /* its value counts */
	hears(p, "{'jsonrpc':'2.0','id':3.0,'result':{}}");
	says(p, ASK("4", "roots/list"));
	was_told(call, ASK("1000004", "roots/list") "|");
	answer(client, "{'jsonrpc':'2.0','id':1000004.0,'result':{}}");
	hears(p, "{'jsonrpc':'2.0','id':4,'result':{}}");
	says(p, ASK("5", "roots/list"));
	was_told(call, ASK("1000005", "roots/list") "|");
	says(p, CANCELLED("5.0"));
	was_told(call, CANCELLED("1000005") "|");
}

/* bridging §1.6 (5): the latest asking call; else any; one that cannot be given it is passed over. */
static void asks_find_a_carrier(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *list = request(client, "{'jsonrpc':'2.0','id':1,'method':'tools/list'}");
	struct front *old = request(client, CALL("2"));
	struct front *new = request(client, CALL("3"));

	says(p, ASK("1", "roots/list"));
	was_told(new, ASK("1000001", "roots/list") "|");
	new->refuses = true;
	says(p, ASK("2", "roots/list"));
	was_told(old, ASK("1000002", "roots/list") "|");
	old->refuses = true;
	says(p, ASK("3", "roots/list"));
	was_told(list, ASK("1000003", "roots/list") "|");
	list->refuses = true;
	says(p, ASK("4", "roots/list"));
	listener = listen_to(client); /* FRONT-GET-02, FRONT-GET-04 */
	was_heard(ASK("1000004", "roots/list") "|");
}

#define MODE(params) "{'jsonrpc':'2.0','id':1,'method':'elicitation/create','params':{" params "}}"

/* UTIL-ROOT-01, UTIL-ROOT-02: who has not declared it is not asked; the server hears so. */
static void undeclared_capabilities(void **state)
{
	static const char *const none =
		"{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':"
		"'Method not found: the client did not declare this capability'}}";
	static const char *const mode = "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':"
					"'Invalid params: the client did not declare this mode'}}";
	static const char *const server_requests[][2] = {
		{ ASK("1", "roots/list"), none },
		{ ASK("1", "tasks/list"), none },
		{ ASK("1", "tools/list"), none },
		{ ASK("1", "notifications/tools/list_changed"), none },
		{ MODE("'mode':'url'"), mode },
		{ "{'jsonrpc':'2.0','id':1,'method':'sampling/createMessage','params':{'tools':[]}}",
		  mode },
		/* What the client might read otherwise than we. SEC-11 */
		{ MODE("'mode':'u\\u0072l'"), mode },
		{ MODE("'mod\\u0065':'url'"), mode },
		{ MODE("'mode':'form','mode':'url'"), mode },
		{ MODE("'Mode':'url'"), mode },
		{ MODE("'mode':'telepathy'"), mode },
		{ "{'jsonrpc':'2.0','id':1,'method':'sampling/createMessage','params':{'t\\u006fols':[]}}",
		  mode },
	};
	struct client *client =
		begin_with(INITIALIZE_WITH("'roots':null,'sampling':{},'elicitation':{'form':{}}"));

	notify(client, INITIALIZED);
	listener = listen_to(client);
	for (size_t i = 0; i < ARRAY_LEN(server_requests); i++) {
		says(process(0), server_requests[i][0]);
		hears(process(0), server_requests[i][1]);
	}
	was_heard("");
	says(process(0),
	     "{'jsonrpc':'2.0','id':2,'method':'elicitation/create','params':{'message':'m'}}");
	was_heard(
		"{'jsonrpc':'2.0','id':1000001,'method':'elicitation/create','params':{'message':'m'}}|");
}

static void url_mode_only(void **state)
{
	struct client *client = begin_with(INITIALIZE_WITH("'elicitation':{'url':{}}"));

	notify(client, INITIALIZED);
	listener = listen_to(client);
	says(process(0),
	     "{'jsonrpc':'2.0','id':1,'method':'elicitation/create','params':{'message':'m'}}");
	assert_non_null(strstr(fake_process_read(process(0)), "-32602"));
	/* UTIL-ELIC-01: its end is told to who was given it, once. */
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{'elicitationId':'e'}}");
	says(process(0),
	     "{'jsonrpc':'2.0','id':2,'method':'elicitation/create','params':{'mode':'url','elicitationId':'e'}}");
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{'elicitationId':'e'}}");
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{'elicitationId':'e'}}");
	was_heard(
		"{'jsonrpc':'2.0','id':1000001,'method':'elicitation/create','params':{'mode':'url','elicitationId':'e'}}|"
		"{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{'elicitationId':'e'}}|");
}

#define ELICITED \
	"{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{'elicitationId':'e'}}"

/* Revisions before 2025-11-25 know no end of an elicitation, whatever a server puts into its request. */
static void old_clients_hear_of_no_end(void **state)
{
	struct client *client = begin_with(
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-06-18',"
		"'capabilities':{'elicitation':{}},'clientInfo':{'name':'c','version':'1'}}}");

	notify(client, INITIALIZED);
	listener = listen_to(client);
	says(process(0), "{'jsonrpc':'2.0','id':1,'method':'elicitation/create','params':{"
			 "'message':'m','elicitationId':'e'}}");
	assert_int_not_equal(listener->got.len, 0);
	listener->got.len = 0;
	says(process(0), ELICITED);
	was_heard("");
}

/* An empty URI is no beginning of all others. */
static void empty_uri_concerns_nothing(void **state)
{
	struct client *client = begin();

	request(client, SUBSCRIBE("1", ""));
	says(process(0), EMPTY("2"));
	listener = listen_to(client);
	says(process(0), UPDATED("/a"));
	was_heard("");
}

/* bridging §1.1 (5): the progress token inside a server request is its downstream id for the client. */
static void progress_of_the_client(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *front = request(client, CALL("1"));

	hears(p, CALL("2"));
	says(p,
	     "{'jsonrpc':'2.0','method':'sampling/createMessage','params':{'_meta':{'progressToken':'their'}},'id':8}");
	was_told(
		front,
		"{'jsonrpc':'2.0','method':'sampling/createMessage','params':{'_meta':{'progressToken':1000001}},'id':1000001}|");
	notify(client, PROGRESS("1000001", "1"));
	hears(p, PROGRESS("'their'", "1"));
	notify(client, PROGRESS("'their'", "2"));
	notify(client, PROGRESS("1000002", "2"));
	hears_nothing(p);
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears(p, "{'jsonrpc':'2.0','id':8,'result':{}}");
	notify(client, PROGRESS("1000001", "3"));
	hears_nothing(p);
}

/* FRONT-INIT-07, FRONT-INIT-08: held until the client is ready, which any request of it says as well. */
static void asks_wait_for_the_client(void **state)
{
	struct client *client = begin_with(INITIALIZE_WITH(CAPS));
	struct fake_process *p = process(0);

	listener = listen_to(client);
	says(p, ASK("1", "roots/list"));
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}"); /* it cannot know yet */
	is_answered(request(client, "{'jsonrpc':'2.0','id':1,'method':'ping'}"),
		    "{'jsonrpc':'2.0','id':1,'result':{}}");
	was_heard("");
	hears_nothing(p);
	request(client, CALL("2"));
	settle();
	was_heard(ASK("1000001", "roots/list") "|");
	hears(p, CALL("2"));
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears(p, "{'jsonrpc':'2.0','id':1,'result':{}}");
}

/* What is held is bounded in bytes, and what was let go makes room again. */
static void asks_that_wait_are_bounded(void **state)
{
	struct client *client = begin_with(INITIALIZE_WITH(CAPS));
	struct fake_process *p = process(0);
	struct buf text = { 0 };
	size_t asked = 0, filling;
	const char *line;

	listener = listen_to(client);
	/* As it is held, with our id, which has seven digits, each has a sixteenth of what there is room for. */
	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
			      "\"params\":{\"x\":\"");
	filling = 65536 - 6 - 3 - text.len;
	memset(buf_reserve(&text, filling), 'x', filling);
	text.len += filling;
	buf_append_str(&text, "\"}}\n");
	while ((line = fake_process_read(p)) == NULL && asked < 100) {
		fake_process_write(p, buf_terminate(&text));
		settle();
		asked++;
	}
	assert_int_equal(asked, 17);
	assert_non_null(line);
	assert_non_null(strstr(line, "too many requests are unanswered"));
	assert_int_equal(client->server_requests.by_id.count, 16);
	notify(client, INITIALIZED);
	assert_int_equal(client->server_requests.held_bytes, 0);
	buf_fini(&text);
}

#define NOBODY(id)                  \
	"{'jsonrpc':'2.0','id':" id \
	",'error':{'code':-32603,'message':'no client is there to be asked'}}"

/* bridging §1.6: nobody to ask: the server hears it after the hold, and no client gets it later. */
static void unheard_asks_are_refused(void **state)
{
	struct client *client = begin();
	struct client *silent = begin_with(INITIALIZE_WITH(CAPS));

	says(process(0), ASK("'a'", "roots/list"));
	says(process(1), ASK("'b'", "elicitation/create"));
	pass(HOLD_MS - 1);
	hears_nothing(process(0));
	hears_nothing(process(1));
	pass(1);
	hears(process(0), NOBODY("'a'"));
	hears(process(1), NOBODY("'b'"));
	listener = listen_to(client);
	was_heard("");
	notify(silent, INITIALIZED);
	assert_int_equal(silent->session->standalone.count, 0);
	assert_int_equal(client->server_requests.by_id.count, 0);
}

/* Somebody is there but does not answer: in the end the server hears that, the client that it is over. */
static void unanswered_asks_end(void **state)
{
	struct client *client = begin();

	listener = listen_to(client);
	says(process(0), ASK("1", "roots/list"));
	says(process(0), ASK("2", "elicitation/create"));
	was_heard(ASK("1000001", "roots/list") "|" ASK("1000002", "elicitation/create") "|");
	for (uint64_t ms = HOLD_MS; ms < TIMEOUT_MAX_MS; ms += HOLD_MS)
		pass(HOLD_MS);
	hears_nothing(process(0));
	pass(HOLD_MS);
	hears(process(0),
	      "{'jsonrpc':'2.0','id':1,'error':{'code':-32603,'message':'the client did not answer in time'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':2,'result':{'action':'cancel'}}");
	was_heard(CANCEL("1000001") "|" CANCEL("1000002") "|");
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears_nothing(process(0));
}

/* CXL-08: the time of people does not count as the server's silence. */
static void asking_stops_the_clock(void **state)
{
	struct client *client = begin();
	struct front *front = request(client, "{'jsonrpc':'2.0','id':1,'method':'tools/call',"
					      "'params':{'_meta':{'progressToken':1}}}");

	assert_false(router_is_asking(&router));
	says(process(0), ASK("1", "roots/list"));
	says(process(0), PROGRESS("2", "1"));
	pass(TIMEOUT_MS * 5);
	is_open(front);
	assert_true(router_is_asking(&router));
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	assert_false(router_is_asking(&router));
	pass(TIMEOUT_MS - 1);
	is_open(front);
	pass(1);
	is_failed(front, REASON_TIMEOUT);
}

/* What was asked during a call that is over, or whose client has gone, is not waited for much longer. */
static void asks_outlive_their_call(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *front = request(client, CALL("1"));
	struct front *gone = NULL;

	hears(p, CALL("2"));
	says(p, ASK("1", "roots/list"));
	says(p, ASK("2", "roots/list"));
	says(p, RESULT("2"));
	assert_int_equal(front->ending, ENDING_RESPONSE);
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}"); /* it was seen in time */
	hears(p, "{'jsonrpc':'2.0','id':1,'result':{}}");
	pass(HOLD_MS);
	hears(p, NOBODY("2"));

	gone = request(client, CALL("2"));
	hears(p, CALL("3"));
	says(p, ASK("3", "roots/list"));
	gone->refuses = true;
	call_note_unreachable(&gone->call);
	pass(HOLD_MS);
	hears(p, NOBODY("3"));
	is_open(gone);
	pass(TIMEOUT_MS); /* the server's silence counts again */
	is_failed(gone, REASON_TIMEOUT);
	call_note_unreachable(&gone->call);
}

/* CXL-08: the same where the exchange cannot carry the question, and the session's own stream does. */
static void asking_elsewhere_stops_the_clock(void **state)
{
	struct client *client = begin();
	struct front *front;

	listener = listen_to(client);
	front = request(client, CALL("1"));
	front->refuses = true;
	hears(process(0), CALL("2"));
	says(process(0), ASK("1", "roots/list"));
	was_heard(ASK("1000001", "roots/list") "|");
	for (int i = 0; i < 5; i++)
		pass(TIMEOUT_MS);
	is_open(front);
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears(process(0), "{'jsonrpc':'2.0','id':1,'result':{}}");
	pass(TIMEOUT_MS - 1);
	is_open(front);
	pass(1);
	is_failed(front, REASON_TIMEOUT);
}

/* SEP-1699: a client that polls is away again and again; what it is asked waits for it as for one that stays. */
static void asks_wait_for_who_comes_and_goes(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *front;

	servers[0].conf.request_timeout_max_ms = 100 * HOLD_MS;
	front = request(client, CALL("1"));
	hears(p, CALL("2"));
	says(p, ASK("1", "elicitation/create"));
	for (int i = 0; i < 10; i++) {
		front->refuses = true;
		call_note_unreachable(&front->call);
		pass(1000);
		front->refuses = false;
		pass(HOLD_MS + 1000 * (uint64_t)i);
	}
	hears_nothing(p);
	is_open(front);
	front->refuses = true;
	call_note_unreachable(&front->call);
	pass(HOLD_MS);
	pass(HOLD_MS); /* it is away for longer than polls are apart */
	hears(p, "{'jsonrpc':'2.0','id':1,'result':{'action':'cancel'}}");
	front->refuses = false;
	says(p, RESULT("2"));
}

/* The same on the session's own stream, where nobody tells when the reader has left. */
static void standalone_asks_wait_for_who_polls(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);

	servers[0].conf.request_timeout_max_ms = 100 * HOLD_MS;
	listener = listen_to(client);
	says(p, ASK("1", "roots/list"));
	for (int i = 0; i < 10; i++) {
		stream_detach(&listener->reader);
		pass(i % 2 == 0 ? HOLD_MS : 1000); /* at the moment of the look it may be away */
		listener = listen_to(client);
		pass(HOLD_MS);
	}
	hears_nothing(p);
	stream_detach(&listener->reader);
	pass(HOLD_MS);
	pass(HOLD_MS);
	hears(p,
	      "{'jsonrpc':'2.0','id':1,'error':{'code':-32603,'message':'the client did not answer in time'}}");
}

/* CXL-09: the server takes its request back: told on the same way, or the request is not told at all. */
static void server_cancels_its_ask(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *front = request(client, CALL("1"));

	hears(p, CALL("2"));
	says(p, ASK("'a'", "roots/list"));
	says(p,
	     "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':'a','reason':'r'}}");
	was_told(front, ASK("1000001",
			    "roots/list") "|{'jsonrpc':'2.0','method':'notifications/cancelled',"
					  "'params':{'requestId':1000001,'reason':'r'}}|");
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears_nothing(p);
	says(p, CANCEL("'a'"));
	says(p, CANCEL("2")); /* an id of ours is none of its own */
	was_told(front, "");
	is_open(front);
	says(p, RESULT("2"));
	says(p, ASK("'b'", "roots/list"));
	says(p, CANCEL("'c'"));
	assert_int_equal(client->server_requests.by_id.count, 1); /* that is another one */
	says(p, CANCEL("'b'"));
	assert_int_equal(client->server_requests.by_id.count, 0);
	listener = listen_to(client);
	was_heard("");
	pass(TIMEOUT_MS); /* the clock of the ended call was not started again */
}

/* BACK-SEC-01: no more than so many unanswered requests; the next is refused, and later ones pass again. */
static void asks_are_limited(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);

	for (int i = 0; i < 256; i++)
		says(p, ASK("'x'", "roots/list"));
	hears_nothing(p);
	says(p, ASK("'y'", "roots/list"));
	assert_non_null(strstr(fake_process_read(p), "too many requests are unanswered"));
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears(p, "{'jsonrpc':'2.0','id':'x','result':{}}");
	says(p, ASK("'z'", "roots/list"));
	hears_nothing(p);
}

/* REL-28: who is asked on the session's own stream is asked as much as it keeps, and no more. */
static void full_stream_takes_no_asks(void **state)
{
	static char text[2000];
	struct client *client;
	int asked = 0;

	router.sessions.conf.store.stream.max_bytes = 4096;
	client = begin();
	snprintf(text, sizeof(text), "%s",
		 q("{'jsonrpc':'2.0','id':'a','method':'roots/list','params':{'x':'"));
	memset(text + strlen(text), 'x', 1000);
	strcat(text, "\"}}");
	while (client->server_requests.by_id.count == (size_t)asked) {
		assert_true(asked++ < 10);
		says(process(0), text);
	}
	assert_in_range(asked, 4, 6);
	assert_non_null(strstr(fake_process_read(process(0)), "the requests that wait already"));
	hears_nothing(process(0));
	assert_true(client->session->standalone.bytes <= 4096 + sizeof(text));
}

/* ---- notifications ---- */

#define LOG_LINE(level) \
	"{'jsonrpc':'2.0','method':'notifications/message','params':{'level':" level ",'data':1}}"

/* UTIL-LOG-01: levels; bridging §1.7: to the only call in flight, else to the session. */
static void logs_are_filtered(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *front;

	listener = listen_to(client);
	says(p, LOG_LINE("'debug'"));
	was_heard(LOG_LINE("'debug'") "|");
	is_answered(
		request(client,
			"{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{'level':'loud'}}"),
		"{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'Invalid params: unknown log level'}}");
	front = request(
		client,
		"{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{'level':'warning'}}");
	hears(p,
	      "{'jsonrpc':'2.0','id':2,'method':'logging/setLevel','params':{'level':'warning'}}");
	says(p, LOG_LINE("'info'")); /* not yet */
	was_told(front, LOG_LINE("'info'") "|");
	says(p, RESULT("2"));
	front = request(client, CALL("2"));
	says(p, LOG_LINE("'notice'"));
	says(p, LOG_LINE("'error'"));
	was_told(front, LOG_LINE("'error'") "|");
	front->refuses = true;
	says(p, LOG_LINE("'alert'"));
	was_heard(LOG_LINE("'alert'") "|");
	front->refuses = false;
	request(client, CALL("3"));
	says(p, LOG_LINE("'emergency'"));
	was_told(front, "");
	was_heard(LOG_LINE("'emergency'") "|");
}

/* UTIL-LOG-01: without the server's capability there is nothing to set; a refusal changes nothing. */
static void levels_need_the_capability(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));

	says(process(0),
	     "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{}}}");
	front = request(
		front->call.client,
		"{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{'level':'info'}}");
	is_answered(
		front,
		"{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'Method not found: the server does not offer logging'}}");
	assert_int_equal(front->call.client->level, -1);
}

/* UTIL-LIST-01, UTIL-SUBS-01, FRONT-GET-04: what was advertised and subscribed, each once while it waits. */
static void news_are_filtered_and_joined(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);

	says(p, UPDATED("res://a"));
	request(client,
		"{'jsonrpc':'2.0','id':1,'method':'resources/subscribe','params':{'uri':'res://a'}}");
	says(p, UPDATED("res://a"));
	says(p, RESULT("2"));
	request(client,
		"{'jsonrpc':'2.0','id':1,'method':'resources/subscribe','params':{'uri':'res://no'}}");
	says(p, "{'jsonrpc':'2.0','id':3,'error':{'code':-32002,'message':'none'}}");
	says(p, UPDATED("res://no"));
	says(p, UPDATED("res://a"));
	says(p, CHANGED("tools"));
	says(p, UPDATED("res://a/below"));
	says(p, UPDATED("res://ab"));
	says(p, CHANGED("prompts")); /* not advertised */
	says(p, CHANGED("tools"));
	says(p, UPDATED("res://a"));
	listener = listen_to(client);
	was_heard(UPDATED("res://a/below") "|" CHANGED("tools") "|" UPDATED("res://a") "|");
	says(p, UPDATED("res:\\/\\/a")); /* the same, as some write it */
	was_heard(UPDATED("res://a") "|");
	request(client,
		"{'jsonrpc':'2.0','id':1,'method':'resources/unsubscribe','params':{'uri':'res://a'}}");
	says(p, RESULT("4"));
	says(p, UPDATED("res://a"));
	says(p, UPDATED("res:\\/\\/a"));
	was_heard("");
	says(p, "{'jsonrpc':'2.0','method':'notifications/vendor','params':[1]}");
	says(p,
	     "{'jsonrpc':'2.0','method':'notifications/vendor','params':null}"); /* written anew */
	was_heard("{'jsonrpc':'2.0','method':'notifications/vendor','params':[1]}|"
		  "{'jsonrpc':'2.0','method':'notifications/vendor'}|");
}

/* DEF-11: what was asked for at once may be too much, although there was room for each. */
static void subscriptions_at_once_are_bounded(void **state)
{
	struct client *client = begin();
	struct front *front;

	for (unsigned int i = 0; i + 1 < TEXT_SET_MAX; i++) {
		char digits[20];

		text_set_add(&client->subscriptions, slice_of(digits, text_format_u64(i, digits)));
	}
	front = request(client, SUBSCRIBE("1", "r:a"));
	hears(process(0), SUBSCRIBE("2", "r:a"));
	text_set_add(&client->subscriptions, SLICE_LIT("meanwhile"));
	says(process(0), EMPTY("2"));
	assert_non_null(strstr(buf_terminate(&front->response), "too many subscriptions"));
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'resources/unsubscribe','params':{"
			  "'uri':'r:a'}}");
	text_set_remove(&client->subscriptions, SLICE_LIT("meanwhile"));
	front = request(client, SUBSCRIBE("2", "r:b"));
	hears(process(0), SUBSCRIBE("4", "r:b"));
	says(process(0), EMPTY("4"));
	is_answered(front, EMPTY("2"));
	hears_nothing(process(0));
}

/* UTIL-ROOT-03; bridging §2.1: what there is no rule for passes as it is. */
static void notifications_of_the_client(void **state)
{
	struct client *with = begin();
	struct client *without = begin_with(INITIALIZE_WITH("'roots':{'listChanged':false}"));

	notify(with, CHANGED("roots"));
	hears(process(0), CHANGED("roots"));
	notify(without, CHANGED("roots"));
	hears_nothing(process(1));
	notify(without, "{'jsonrpc':'2.0','method':'vendor/x','params':{'a' : 1}}");
	hears(process(1), "{'jsonrpc':'2.0','method':'vendor/x','params':{'a' : 1}}");
}

/* ---- the end of a process ---- */

/* bridging §4: calls fail, asks are taken back; the next request gets a fresh process that knows it all. */
static void session_outlives_its_process(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *a, *b;

	request(client,
		"{'jsonrpc':'2.0','id':1,'method':'resources/subscribe','params':{'uri':'res://\xE2\x80\xA8'}}");
	says(p, RESULT("2"));
	request(client,
		"{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{'level':'error'}}");
	says(p, RESULT("3"));
	a = request(client, CALL("1"));
	says(p, ASK("7", "roots/list"));
	fake_process_write(p, q(RESULT("9") "\n" PROGRESS("4", "1") "\n"));
	exits(p, 256);
	is_failed(a, REASON_CHILD_EXITED);
	was_told(a, ASK("1000001", "roots/list") "|" CANCEL("1000001") "|");
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	notify(client, CHANGED("roots"));
	assert_int_equal(keeper.count, 2);

	a = request(client, CALL("'again'"));
	b = request(client, CALL("2"));
	p = process(1);
	hears(p, HANDSHAKE(CAPS));
	hears_nothing(p);
	listener = listen_to(client);
	says(p, WELCOME);
	hears(p, INITIALIZED);
	hears(p, "{'jsonrpc':'2.0','id':2,'method':'logging/setLevel','params':{'level':'error'}}");
	hears(p,
	      "{'jsonrpc':'2.0','id':3,'method':'resources/subscribe','params':{'uri':'res://\\u2028'}}");
	hears(p, CALL("4"));
	hears(p, CALL("5"));
	was_heard(CHANGED("tools") "|");
	says(p, RESULT("2"));
	says(p, RESULT("3"));
	says(p, RESULT("5"));
	says(p, RESULT("4"));
	is_answered(a, RESULT("'again'"));
	is_answered(b, RESULT("2"));
}

/* bridging.md §4: who has subscribed waits for news, and may never ask again: another process comes at once. */
static void subscribers_need_not_ask(void **state)
{
	struct client *client = begin();

	request(client, SUBSCRIBE("1", "r:a"));
	says(process(0), EMPTY("2"));
	listener = listen_to(client);
	exits(process(0), 256);
	hears(process(1), HANDSHAKE(CAPS));
	says(process(1), WELCOME);
	hears(process(1), INITIALIZED);
	hears(process(1), SUBSCRIBE("2", "r:a"));
	says(process(1), UPDATED("r:a"));
	was_heard(CHANGED("tools") "|" UPDATED("r:a") "|");
	servers[0].backoff.retry_at_ms = now_ms + 2500;
	servers[0].backoff.failures = 3;
	exits(process(1), 256);
	assert_int_equal(keeper.count, 2);
	for (int i = 0; i < 3; i++)
		pass(1000); /* as soon as it may be */
	hears(process(2), HANDSHAKE(CAPS));
	router.is_draining = true;
	exits(process(2), 256);
	pass(20000);
	assert_int_equal(keeper.count, 3);
}

/* REL-28: what it wrote before its end counts. */
static void last_answer_counts(void **state)
{
	struct client *client = begin();
	struct front *a = request(client, CALL("1"));
	struct front *b = request(client, CALL("2"));

	fake_process_write(process(0), q(RESULT("2")));
	exits(process(0), 0);
	is_answered(a, RESULT("1"));
	is_failed(b, REASON_CHILD_EXITED);
}

/* bridging §4: more than three restarts within five minutes end the session; spread out they do not. */
static void restarts_are_limited(void **state)
{
	struct client *client = begin();

	for (size_t i = 0; i < 8; i++) { /* one in 100 s: three in a window */
		fake_process_exit(&keeper, process(i), 0);
		pass(i < 5 ? 100001 : 0);
		if (router.sessions.count == 0) {
			assert_int_equal(i, 6);
			break;
		}
		request(client, CALL("1"));
		says(process(i + 1), WELCOME);
	}
	assert_int_equal(router.sessions.count, 0);
	assert_int_equal(router.calls, 0);
}

/* A restart that fails: the calls that waited for it hear so, the session lives on. */
static void restart_can_fail(void **state)
{
	struct client *client = begin();
	struct front *front;

	exits(process(0), 0);
	front = request(client, CALL("1"));
	says(process(1), "{'jsonrpc':'2.0','id':1,'error':{'code':1,'message':'not again'}}");
	is_failed(front, REASON_HANDSHAKE_REFUSED);
	exits(process(1), 0);
	assert_int_equal(router.sessions.count, 1);
	front = request(client, CALL("1"));
	is_open(front); /* it waits for the back-off */
	assert_int_equal(keeper.count, 2);
	pass(1000);
	assert_int_equal(keeper.count, 3);
	says(process(2), WELCOME);
	says(process(2), RESULT("2"));
	assert_int_equal(front->ending, ENDING_RESPONSE);
}

/* What waits for a restart is bounded in bytes. */
static void waiting_calls_are_bounded(void **state)
{
	struct client *client = begin();
	static char text[40000];
	struct envelope env;
	struct front *front;

	exits(process(0), 0);
	snprintf(text, sizeof(text), "%s", q("{'jsonrpc':'2.0','id':1,'method':'x','params':['"));
	memset(text + strlen(text), 'x', 39000);
	memcpy(text + 38990, "\"]}", 4);
	env = scan(text);
	for (int i = 0; i < 3; i++) {
		front = front_new(&env);
		forward_request(client, &front->call, admit(client, &env));
	}
	is_failed(front, REASON_OVER_LIMIT);
	is_open(front - 1);
	settle();
	says(process(1), WELCOME);
	hears(process(1), HANDSHAKE(CAPS));
	hears(process(1), INITIALIZED);
	for (int i = 0; i < 2; i++) {
		settle();
		assert_int_equal(strlen(fake_process_read(process(1))), 38993);
	}
	hears_nothing(process(1));
}

/* A front may end the session while it hears of the loss. */
static void front_ends_the_session_during_a_loss(void **state)
{
	struct client *client = begin();
	struct front *a = request(client, CALL("1"));
	struct front *b = request(client, CALL("2"));

	says(process(0), ASK("1", "roots/list"));
	a->ends_session = true;
	exits(process(0), 0);
	assert_int_equal(a->ending, ENDING_FAILED);
	assert_int_equal(b->ending, ENDING_FAILED);
	assert_int_equal(router.sessions.count, 0);
}

/* The gateway makes place for another one, which goes on with all sessions. */
static void calls_end_and_sessions_go_on(void **state)
{
	struct client *clients[2];
	struct front *calls[2], *ends;

	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		clients[i] = begin();
		calls[i] = request(clients[i], CALL("1"));
		hears(process(i), CALL("2"));
		says(process(i), ASK("'r'", "roots/list"));
	}
	ends = open_session(INITIALIZE_WITH(""));
	ends->ends_session = true;
	router_end_calls(&router, REASON_DRAINING);
	settle();
	is_failed(ends, REASON_DRAINING);
	assert_int_equal(router.sessions.count, 2);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		is_failed(calls[i], REASON_DRAINING);
		hears(process(i), "{'jsonrpc':'2.0','id':'r','error':{'code':-32603,'message':"
				  "'the gateway stops'}}");
		hears(process(i), "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
				  "'requestId':2,'reason':'the gateway stops'}}");
		request(clients[i], CALL("3"));
		hears(process(i), CALL("3"));
	}
	router_end_sessions(&router, REASON_DRAINING);
	assert_int_equal(router.sessions.count, 0);
}

/* FRONT-SESS-06, FRONT-SESS-09, REL-05, bridging §2.1 (6): everything is answered, the process goes. */
static void session_ends_with_calls_and_asks(void **state)
{
	struct client *client = begin();
	struct fake_process *p = process(0);
	struct front *a = request(client, CALL("1"));
	struct front *b = request(client, "{'jsonrpc':'2.0','id':2,'method':'tools/list'}");

	hears(p, CALL("2"));
	hears(p, "{'jsonrpc':'2.0','id':3,'method':'tools/list'}");
	says(p, ASK("'e'", "elicitation/create"));
	says(p, ASK("'r'", "roots/list"));
	listener = listen_to(client);
	session_end(client->session, REASON_DELETED);
	is_failed(a, REASON_DELETED);
	is_failed(b, REASON_DELETED);
	assert_int_equal(listener->detached, 1);
	pass(0);
	hears(p, "{'jsonrpc':'2.0','id':'e','result':{'action':'cancel'}}");
	hears(p,
	      "{'jsonrpc':'2.0','id':'r','error':{'code':-32603,'message':'the session has ended'}}");
}

/* The same while the process is being started, or its start waits. */
static void session_ends_during_a_restart(void **state)
{
	struct client *client = begin();
	struct front *front;

	keeper.holds = true;
	exits(process(0), 0);
	front = request(client, CALL("1"));
	session_end(client->session, REASON_DELETED);
	is_failed(front, REASON_DELETED);
	fake_keeper_start(&keeper, process(1));
	pass(0);
	hears_nothing(process(1));
	assert_true(process(1)->is_eof);

	backoff_note_failed(&servers[0].backoff);
	front = open_session(INITIALIZE_WITH(""));
	assert_int_equal(servers[0].reserved, 1);
	session_end(front->call.client->session, REASON_DRAINING);
	is_failed(front, REASON_DRAINING);
	assert_int_equal(servers[0].reserved, 0);
	pass(1000);
	assert_int_equal(keeper.count, 2);
}

/* FRONT-SESS-08: calls keep it; without them it goes, and its process with it. */
static void idle_session_ends(void **state)
{
	struct client *client = begin();

	servers[0].conf.request_timeout_ms = servers[0].conf.request_timeout_max_ms = 5000000;
	request(client, CALL("1"));
	pass(3600000);
	assert_int_equal(router.sessions.count, 1);
	says(process(0), RESULT("2"));
	pass(3600000);
	assert_int_equal(router.sessions.count, 0);
	hears(process(0), CALL("2"));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
}

/* FRONT-SESS-08: also one that has lost its process. */
static void idle_session_without_a_process_ends(void **state)
{
	struct client *client = begin();
	struct front *front = request(client, CALL("1"));

	exits(process(0), 0);
	is_failed(front, REASON_CHILD_EXITED);
	pass(3600000 - 1);
	assert_int_equal(router.sessions.count, 1);
	pass(1);
	assert_int_equal(router.sessions.count, 0);
}

/* product §3: what the operator sees of calls. */
static void calls_are_counted(void **state)
{
	struct client *client = begin();
	uint64_t calls = counter_get(COUNTER_CALLS);
	uint64_t cancelled = counter_get(COUNTER_CALLS_CANCELLED);
	const struct server_stats *stats = servers[0].stats;

	for (int i = 0; i < 3; i++)
		request(client, CALL("1"));
	notify(client, CANCEL("1"));
	assert_int_equal(counter_get(COUNTER_CALLS) - calls, 3);
	assert_int_equal(counter_get(COUNTER_CALLS_CANCELLED) - cancelled, 3);
	assert_int_equal(stats->failed + stats->answered.count, 0);
	request(client, CALL("2"));
	says(process(0), RESULT("5"));
	assert_int_equal(stats->answered.count, 1);
	assert_int_equal(pool_own_upstream(client->pool)->child->answered, 1);
	request(client, CALL("3"));
	exits(process(0), 0);
	assert_int_equal(stats->failed, 1);
	assert_int_equal(stats->answered.count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, client_stage_close)

/* Who is told that a call is cancelled may end the session, while another call of the same id is to be cancelled. */
static void cancelled_calls_may_end_the_session(void **state)
{
	struct client *client = begin();
	struct front *one = request(client, CALL("1"));
	struct front *two = request(client, CALL("1"));

	one->ends_session = true;
	notify(client,
	       "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
	assert_int_equal(one->ending, ENDING_CANCELLED);
	is_failed(two, REASON_PEER_CLOSED);
}

/* What a server may ask of a client with these capabilities; nothing that its client could read differently. */
static void what_may_be_asked(void **state)
{
#define FORMS "{'elicitation':{}}"
#define URLS "{'elicitation':{'url':{}}}"
#define BOTH "{'elicitation':{'form':{},'url':{}}}"
#define WITH_TOOLS "{'sampling':{'tools':{}}}"
	static const char elicit[] = "elicitation/create", sample[] = "sampling/createMessage";
	static const struct {
		const char *capabilities, *method, *params;
		bool is_declared, is_possible;
	} rows[] = {
		{ "{'roots':{}}", "roots/list", "{}", true, true },
		{ "{'roots':null}", "roots/list", "{}", false, true },
		{ "{'roots':false}", "roots/list", "{}", false, true },
		{ "{}", "roots/list", "{}", false, true },
		{ "{'tools':{}}", "notifications/tools/list_changed", "{}", false, true },
		{ "{'ping':{}}", "ping", "{}", false, true },
		{ "{'sampling':{}}", sample, "{}", true, true },
		{ "{'sampling':{}}", sample, "{'tools':[]}", true, false },
		{ WITH_TOOLS, sample, "{'tools':[]}", true, true },
		{ WITH_TOOLS, sample, "{'tools':[],'tools':[]}", true, false },
		{ WITH_TOOLS, sample, "{'TOOLS':[]}", true, false },
		{ WITH_TOOLS, sample, "{'t\\u006fols':[]}", true, false },
		{ FORMS, elicit, "{}", true, true },
		{ FORMS, elicit, "{'mode':null}", true, true },
		{ FORMS, elicit, "{'mode':'form','x':1}", true, true },
		{ FORMS, elicit, "{'mode':'url'}", true, false },
		{ FORMS, elicit, "{'mode':'other'}", true, false },
		{ FORMS, elicit, "{'mode':1}", true, false },
		{ FORMS, elicit, "{'mode':'form','mode':'form'}", true, false },
		{ FORMS, elicit, "{'Mode':'form'}", true, false },
		{ URLS, elicit, "{}", true, false },
		{ URLS, elicit, "{'mode':'form'}", true, false },
		{ URLS, elicit, "{'mode':'url'}", true, true },
		{ BOTH, elicit, "{}", true, true },
		{ BOTH, elicit, "{'mode':'url'}", true, true },
		{ WITH_TOOLS, elicit, "{}", false, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct method *method = method_find(slice_str(rows[i].method));
		struct slice capabilities = slice_str(q(rows[i].capabilities));

		if (asking_is_declared(capabilities, method) != rows[i].is_declared ||
		    asking_is_possible(capabilities, method, slice_str(q(rows[i].params))) !=
			    rows[i].is_possible)
			fail_msg("%s %s", rows[i].capabilities, rows[i].params);
	}
#undef FORMS
#undef URLS
#undef BOTH
#undef WITH_TOOLS
}

/* And what it would have to declare. MOD-CAP-01 */
static void what_has_to_be_declared(void **state)
{
	static const struct {
		const char *method, *params, *needed;
	} rows[] = {
		{ "ping", "{}", "{}" },
		{ "roots/list", "{}", "{'roots':{}}" },
		{ "sampling/createMessage", "{}", "{'sampling':{}}" },
		{ "sampling/createMessage", "{'tools':[]}", "{'sampling':{'tools':{}}}" },
		{ "elicitation/create", "{}", "{'elicitation':{'form':{}}}" },
		{ "elicitation/create", "{'mode':'url'}", "{'elicitation':{'url':{}}}" },
	};
	struct buf out = { 0 };
	unsigned int all = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned int needs = asking_needs(method_find(slice_str(rows[i].method)),
						  slice_str(q(rows[i].params)));

		out.len = 0;
		asking_append_needs(&out, needs);
		assert_string_equal(buf_terminate(&out), q(rows[i].needed));
		all |= needs;
	}
	out.len = 0;
	asking_append_needs(&out, all);
	assert_string_equal(
		buf_terminate(&out),
		q("{'roots':{},'sampling':{'tools':{}},'elicitation':{'form':{},'url':{}}}"));
	buf_fini(&out);
}

/* SEC-65: what another process of the server says of itself waits for approval: no client gets it. */
static void unapproved_instructions_are_not_shown(void **state)
{
	static const char *const said[] = { "'first'", "'other'" };

	servers[0].conf.pin = PIN_ENFORCE;
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		struct front *front = open_session(INITIALIZE_WITH(""));
		char text[300];

		assert_non_null(fake_process_read(process(i)));
		snprintf(
			text, sizeof(text),
			"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':"
			"{},'serverInfo':{'name':'s','version':'1'},'instructions':%s}}",
			said[i]);
		says(process(i), text);
		assert_int_equal(front->ending, ENDING_RESPONSE);
		assert_int_equal(strstr(buf_terminate(&front->response), "instructions") != NULL,
				 i == 0);
		assert_non_null(strstr(front->response.data, "serverInfo"));
	}
}

/* UTIL-PROG-01: also with fractions; but what is longer than any number is none. */
static void odd_progress_is_dropped(void **state)
{
	static const struct {
		int digits;
		bool is_told;
	} rows[] = { { 3, true }, { 63, true }, { 64, false }, { 200, false } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char number[300] = "9.", text[500];
		struct front *front =
			request(begin(), "{'jsonrpc':'2.0','id':1,'method':'tools/call',"
					 "'params':{'_meta':{'progressToken':'p'}}}");

		memset(number + 2, '5', (size_t)rows[i].digits - 2);
		snprintf(text, sizeof(text), PROGRESS("2", "%s"), number);
		says(process(i), text);
		says(process(i), text); /* it has not increased */
		snprintf(text, sizeof(text), PROGRESS("'p'", "%s") "|", number);
		was_told(front, rows[i].is_told ? text : "");
		session_end(front->call.client->session, REASON_DELETED);
		settle();
		exits(process(i), 0);
	}
}

/* UTIL-ELIC-01: only an elicitation is ended so. */
static void only_elicitations_are_ended(void **state)
{
	struct client *client = begin();

	listener = listen_to(client);
	says(process(0), "{'jsonrpc':'2.0','id':7,'method':'sampling/createMessage','params':{"
			 "'elicitationId':'e'}}");
	was_heard("{'jsonrpc':'2.0','id':1000001,'method':'sampling/createMessage','params':{"
		  "'elicitationId':'e'}}|");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{"
			 "'elicitationId':'e'}}");
	was_heard("");
}

/* What happens to tasks is told to clients that know them. */
static void older_clients_hear_of_no_tasks(void **state)
{
#define STATUS \
	"{'jsonrpc':'2.0','method':'notifications/tasks/status','params':{'taskId':'a','status':'working'}}"
	uint64_t dropped = counter_get(COUNTER_CHILD_DROPPED);

	listener = listen_to(begin());
	says(process(0), STATUS);
	was_heard(STATUS "|");
	assert_int_equal(counter_get(COUNTER_CHILD_DROPPED) - dropped, 0);
	listener = listen_to(begin_with(
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
		"'2025-06-18','capabilities':{},'clientInfo':{'name':'c','version':'1'}}}"));
	says(process(1), STATUS);
	was_heard("");
	assert_int_equal(counter_get(COUNTER_CHILD_DROPPED) - dropped, 1);
#undef STATUS
}

/* What a legacy server says in words of the modern era means nothing there: it is passed on. */
static void modern_words_are_no_words(void **state)
{
	struct client *client = begin();
	struct front *front = request(client, CALL("1"));

	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'resultType':'input_required'}}");
	is_answered(front, "{'jsonrpc':'2.0','id':1,'result':{'resultType':'input_required'}}");
	front = request(client, CALL("2"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'error':{'code':-32021,'message':'m'}}");
	is_answered(front, "{'jsonrpc':'2.0','id':2,'error':{'code':-32021,'message':'m'}}");
	request(client, "{'jsonrpc':'2.0','id':3,'method':'server/discover'}");
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'server/discover'}");
}

/* UTIL-TASK-01: tasks are for clients whose revision has them. */
static void older_clients_have_no_tasks(void **state)
{
	static const char get[] =
		"{'jsonrpc':'2.0','id':2,'method':'tasks/get','params':{'taskId':'a'}}";
	struct front *front;

	request(begin(), get);
	hears(process(0), get);
	front = request(begin_with("{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
				   "'protocolVersion':'2025-06-18','capabilities':{},'clientInfo':{"
				   "'name':'c','version':'1'}}}"),
			get);
	assert_non_null(strstr(buf_terminate(&front->response), "-32601"));
	hears_nothing(process(1));
}

#define BLOCK "{'type':'text','text':'t'}"
#define SAMPLE(id, content)                                                                      \
	"{'jsonrpc':'2.0','id':" id ",'method':'sampling/createMessage','params':{'messages':[{" \
	"'role':'user','content':" content "}],'maxTokens':1}}"

/* What is asked is in the words of the client's revision, and what it answers in those of the server's. */
static void questions_are_translated(void **state)
{
	struct client *client = begin_with(
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
		"'2025-06-18','capabilities':{" CAPS "},'clientInfo':{'name':'c','version':'1'}}}");

	notify(client, INITIALIZED);
	listener = listen_to(client);
	says(process(0), SAMPLE("7", "[" BLOCK "]"));
	was_heard(SAMPLE("1000001", BLOCK) "|");
}

static void answers_are_translated(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(CAPS));
	struct client *client = front->call.client;

	assert_non_null(fake_process_read(process(0)));
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-06-18',"
			 "'capabilities':{},'serverInfo':{'name':'s','version':'1'}}}");
	hears(process(0), INITIALIZED);
	notify(client, INITIALIZED);
	listener = listen_to(client);
	says(process(0), SAMPLE("7", BLOCK));
	was_heard(SAMPLE("1000001", BLOCK) "|");
	answer(client, "{'jsonrpc':'2.0','id':1000001,'result':{'role':'assistant','model':'m',"
		       "'content':[" BLOCK "]}}");
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'role':'assistant','model':'m',"
			  "'content':" BLOCK "}}");
}

/* SEC-50: also in the list of a session's own process, which is not kept. */
static void denied_tools_are_not_listed(void **state)
{
	static const struct slice all[] = { SLICE("*") }, denied[] = { SLICE("b") };
	struct permissions *permissions = &servers[0].conf.permissions;
	struct client *client = begin();
	struct front *front;

	permissions->kinds[PERMISSION_TOOL].allow = (struct slices){ all, 1 };
	permissions->kinds[PERMISSION_TOOL].deny = (struct slices){ denied, 1 };
	permissions_finish(permissions);
	front = request(client, "{'jsonrpc':'2.0','id':1,'method':'tools/list'}");
	assert_non_null(fake_process_read(process(0)));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[{'name':'a'},{'name':'b'}]}}");
	is_answered(front, "{'jsonrpc':'2.0','id':1,'result':{'tools':[{'name':'a'}]}}");
	permissions_free(permissions);
	*permissions = (struct permissions){ .has_rules = false };
}

/* The token that a process gets is made for its caller, whoever that is for as long as it runs. */
static void processes_for_callers_keep_them(void **state)
{
	servers[0].conf.for_caller = true;
	session_end(begin()->session, REASON_DELETED);
	settle();
	exits(process(0), 0);
	servers[0].conf.isolation = ISOLATION_PRINCIPAL;
	begin_with(INITIALIZE_WITH(""));
}

/* The program of a client is shown by its name, as much of it as there is room for whole characters. */
static void long_names_of_programs_are_cut(void **state)
{
	static const struct {
		size_t ascii, others, shown;
	} rows[] = {
		{ 0, 0, 0 },
		{ 5, 0, 5 },
		{ CLIENT_PROGRAM_BYTES - 1, 0, CLIENT_PROGRAM_BYTES - 1 },
		{ CLIENT_PROGRAM_BYTES, 0, CLIENT_PROGRAM_BYTES - 1 },
		{ CLIENT_PROGRAM_BYTES - 2, 1, CLIENT_PROGRAM_BYTES - 2 },
		{ CLIENT_PROGRAM_BYTES - 3, 2, CLIENT_PROGRAM_BYTES - 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf name = { 0 }, text = { 0 };
		struct client *client;

		for (size_t n = 0; n < rows[i].ascii; n++)
			buf_append_char(&name, 'x');
		for (size_t n = 0; n < rows[i].others; n++)
			buf_append_str(&name, "\xC3\xA9");
		buf_printf(
			&text,
			"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
			"'2025-11-25','capabilities':{},'clientInfo':{'name':'%.*s'}}}",
			SLICE_ARG(buf_slice(&name)));
		client = begin_with(buf_terminate(&text));
		buf_append_char(&name, '\0');
		name.data[rows[i].shown] = '\0';
		assert_string_equal(client_session_program(client->session), name.data);
		session_end(client->session, REASON_DELETED);
		settle();
		exits(process(i), 0);
		buf_fini(&name);
		buf_fini(&text);
	}
}

/* An initialize request is not to be cancelled, whenever a client sends it. */
static void initialize_is_never_cancelled(void **state)
{
	struct client *client = begin();
	struct front *front = request(client, "{'jsonrpc':'2.0','id':1,'method':'initialize'}");

	hears(process(0), "{'jsonrpc':'2.0','id':2,'method':'initialize'}");
	notify(client,
	       "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
	is_open(front);
	pass(120000);
	is_failed(front, REASON_TIMEOUT);
	assert_null(strstr(fake_process_read(process(0)), "cancelled"));
}

/* What a client does not understand of its server's revision; a process that is shared has no tasks of 2025-11-25. */
static void what_clients_lack(void **state)
{
	const struct revision *newest = revision_newest();
	struct client client = { .revision = newest };
	char class[] = "{}";
	struct pool pool = { .class = NULL };
	struct upstream upstream = { .revision = newest };

	assert_int_equal(client_lacks(&client, NULL), 0);
	assert_int_equal(client_lacks(&client, &upstream), 0); /* of no pool any more */
	upstream.pool = &pool;
	assert_int_equal(client_lacks(&client, &upstream), 0);
	pool.class = class;
	assert_int_equal(client_lacks(&client, &upstream), REVISION_TASKS);
	client.revision = revision_find(SLICE_LIT("2025-06-18"));
	pool.class = NULL;
	assert_int_equal(client_lacks(&client, &upstream),
			 newest->features & ~client.revision->features);
	upstream.revision = NULL; /* it has not answered yet */
	assert_int_equal(client_lacks(&client, &upstream), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(what_may_be_asked),
	cmocka_unit_test(what_has_to_be_declared),
	cmocka_unit_test(what_clients_lack),
	TEST(questions_are_translated),
	TEST(answers_are_translated),
	TEST(denied_tools_are_not_listed),
	TEST(processes_for_callers_keep_them),
	TEST(long_names_of_programs_are_cut),
	TEST(modern_words_are_no_words),
	TEST(older_clients_have_no_tasks),
	TEST(odd_progress_is_dropped),
	TEST(only_elicitations_are_ended),
	TEST(older_clients_hear_of_no_tasks),
	TEST(unapproved_instructions_are_not_shown),
	TEST(initialize_is_never_cancelled),
	TEST(cancelled_calls_may_end_the_session),
	TEST(handshake_is_forwarded),
	TEST(handshake_is_lenient_to_servers),
	TEST(handshake_has_its_own_id),
	TEST(server_may_refuse),
	TEST(refusal_comes_with_last_words),
	TEST(server_may_refuse_without_id),
	TEST(bad_answers_fail_the_handshake),
	TEST(start_can_fail),
	TEST(failing_server_backs_off),
	TEST(pool_is_limited),
	TEST(sessions_are_limited),
	TEST(draining_refuses_sessions),
	TEST(client_leaves_during_the_handshake),
	TEST(nothing_is_kept_for_who_left_during_the_handshake),
	TEST(early_requests_of_the_server),
	TEST(ids_are_replaced),
	TEST(meta_is_rebuilt),
	TEST(responses_are_taken_leniently),
	TEST(arrays_are_unpacked),
	TEST(same_id_twice_is_served_twice),
	TEST(stray_responses_are_dropped),
	TEST(sessions_do_not_cross),
	TEST(error_without_id),
	TEST(answers_to_notifications),
	TEST(malformed_answers),
	TEST(malformed_requests),
	TEST(ping_is_answered_here),
	TEST(full_queue_refuses),
	TEST(ids_begin_anew),
	TEST(progress_is_mapped),
	TEST(what_concerns_nobody_is_counted),
	TEST(cancel_is_mapped),
	TEST(cancel_of_a_call_that_waits),
	TEST(silence_times_out),
	TEST(hung_process_is_replaced),
	TEST(progress_renews_the_deadline),
	TEST(progress_that_stands_still),
	TEST(asks_are_mapped),
	TEST(asks_find_a_carrier),
	TEST(undeclared_capabilities),
	TEST(url_mode_only),
	TEST(old_clients_hear_of_no_end),
	TEST(empty_uri_concerns_nothing),
	TEST(progress_of_the_client),
	TEST(asks_wait_for_the_client),
	TEST(asks_that_wait_are_bounded),
	TEST(unheard_asks_are_refused),
	TEST(unanswered_asks_end),
	TEST(asking_stops_the_clock),
	TEST(asks_outlive_their_call),
	TEST(asking_elsewhere_stops_the_clock),
	TEST(asks_wait_for_who_comes_and_goes),
	TEST(standalone_asks_wait_for_who_polls),
	TEST(server_cancels_its_ask),
	TEST(asks_are_limited),
	TEST(full_stream_takes_no_asks),
	TEST(logs_are_filtered),
	TEST(levels_need_the_capability),
	TEST(news_are_filtered_and_joined),
	TEST(subscriptions_at_once_are_bounded),
	TEST(notifications_of_the_client),
	TEST(session_outlives_its_process),
	TEST(subscribers_need_not_ask),
	TEST(last_answer_counts),
	TEST(restarts_are_limited),
	TEST(restart_can_fail),
	TEST(waiting_calls_are_bounded),
	TEST(front_ends_the_session_during_a_loss),
	TEST(calls_end_and_sessions_go_on),
	TEST(session_ends_with_calls_and_asks),
	TEST(session_ends_during_a_restart),
	TEST(idle_session_ends),
	TEST(idle_session_without_a_process_ends),
	TEST(calls_are_counted),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
