/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router between a front that writes into buffers and a server that is played line by line. Time
 * stands still between steps. Messages are written here with ' for ", so that they can be read.
 */
#include "router/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "backend/fake_keeper.h"
#include "base/clock.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/forward.h"
#include "router/lane.h"

#define TIMEOUT_MS 60000
#define TIMEOUT_MAX_MS 600000
#define START_TIMEOUT_MS 20000
#define HOLD_MS 60000
#define FRONTS_MAX 4200
#define QUEUE_MAX 100000

enum ending { ENDING_NONE, ENDING_RESPONSE, ENDING_FAILED, ENDING_CANCELLED };

struct front {
	struct call call;
	struct buf messages; /* each followed by a bar */
	struct buf response;
	enum ending ending;
	enum reason reason;
	unsigned int endings;
	bool refuses;      /* its client cannot be given messages */
	bool ends_session; /* when it is told */
};

struct listener {
	struct stream_reader reader;
	struct buf got; /* each followed by a bar */
	unsigned int detached;
};

static struct loop *loop;
static struct fake_keeper keeper;
static struct backend backend;
static struct router router;
static struct front *fronts;
static size_t front_count;
static struct listener listener;
static uint64_t now_ms;
static int log_fd;

/* ---- the fake front ---- */

static void front_end(struct front *front, enum ending ending)
{
	front->ending = ending;
	front->endings++;
	assert_int_equal(front->endings, 1); /* bridging I3 */
	if (front->ends_session)
		session_end(&front->call.route->session, REASON_PEER_CLOSED);
}

static bool on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct front *front = container_of(call, struct front, call);

	(void)kind;
	(void)key;
	assert_int_equal(front->endings, 0);
	if (front->refuses || call->method->id == METHOD_INITIALIZE)
		return false;
	buf_append_slice(&front->messages, msg->text);
	buf_append_char(&front->messages, '|');
	return true;
}

static void on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct front *front = container_of(call, struct front, call);

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&front->response, parts[i]);
	front_end(front, ENDING_RESPONSE);
}

static void on_failed(struct call *call, enum reason reason)
{
	struct front *front = container_of(call, struct front, call);

	front->reason = reason;
	front_end(front, ENDING_FAILED);
}

static void on_cancelled(struct call *call)
{
	front_end(container_of(call, struct front, call), ENDING_CANCELLED);
}

static const struct call_ops front_ops = {
	.on_message = on_message,
	.on_response = on_response,
	.on_failed = on_failed,
	.on_cancelled = on_cancelled,
};

static void on_wake(struct stream_reader *reader)
{
	struct listener *l = container_of(reader, struct listener, reader);
	struct msg *msg;

	while ((msg = stream_take(reader)) != NULL) {
		buf_append_slice(&l->got, msg->text);
		buf_append_char(&l->got, '|');
		msg_unref(&msg);
	}
}

static void on_detached(struct stream_reader *reader, enum reason reason)
{
	(void)reason;
	container_of(reader, struct listener, reader)->detached++;
}

static const struct stream_reader_ops listener_ops = { on_wake, on_detached };

/* ---- words for the stories ---- */

/* The text with " for '. Good for the next few calls. */
static const char *q(const char *text)
{
	static char texts[8][65536];
	static unsigned int next;
	char *to = texts[next++ % 8];

	assert_true(strlen(text) < sizeof(texts[0]));
	strcpy(to, text);
	for (char *at = to; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	return to;
}

static void pass(uint64_t ms)
{
	now_ms += ms;
	clock_freeze(now_ms);
	fake_keeper_settle(&keeper);
}

static struct envelope scan(const char *text)
{
	struct envelope env;
	struct error err;

	if (scan_envelope(slice_str(text), &router.limits, 0, &env, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return env;
}

static struct front *front_new(const struct envelope *env)
{
	struct front *front = &fronts[front_count++];

	assert_true(front_count < FRONTS_MAX);
	call_init(&front->call, &front_ops, env);
	return front;
}

/* An initialize request of a client; what comes of it is to be seen. */
static struct front *open_session(const char *text)
{
	struct envelope env = scan(q(text));
	struct front *front = front_new(&env);

	route_open(&router, &backend, &front->call, &env);
	fake_keeper_settle(&keeper);
	return front;
}

static struct front *request(struct route *route, const char *text)
{
	struct envelope env = scan(q(text));
	struct front *front = front_new(&env);

	forward_request(route, &front->call, &env);
	fake_keeper_settle(&keeper);
	return front;
}

static void notify(struct route *route, const char *text)
{
	struct envelope env = scan(q(text));

	forward_notification(route, &env);
	fake_keeper_settle(&keeper);
}

static void answer(struct route *route, const char *text)
{
	struct envelope env = scan(q(text));

	forward_answer(route, &env);
	fake_keeper_settle(&keeper);
}

/* The server writes a line. */
static void says(struct fake_process *p, const char *text)
{
	fake_process_write(p, q(text));
	fake_process_write(p, "\n");
	fake_keeper_settle(&keeper);
}

/* The server reads exactly this line next. */
static void hears(struct fake_process *p, const char *text)
{
	const char *line = fake_process_read(p);

	if (line == NULL)
		fail_msg("nothing came instead of %s", text);
	assert_string_equal(line, q(text));
}

static void hears_nothing(struct fake_process *p)
{
	const char *line = fake_process_read(p);

	if (line != NULL)
		fail_msg("nothing was to come, but %s", line);
}

static void is_answered(struct front *front, const char *text)
{
	assert_int_equal(front->ending, ENDING_RESPONSE);
	assert_string_equal(buf_terminate(&front->response), q(text));
}

static void is_failed(const struct front *front, enum reason reason)
{
	assert_int_equal(front->ending, ENDING_FAILED);
	assert_string_equal(reason_get(front->reason)->text, reason_get(reason)->text);
}

static void is_open(const struct front *front)
{
	assert_int_equal(front->ending, ENDING_NONE);
}

/* What the client of this call has been told since the last look. */
static void was_told(struct front *front, const char *text)
{
	assert_string_equal(buf_terminate(&front->messages), q(text));
	front->messages.len = 0;
}

/* The same on the session's own stream. */
static void was_heard(const char *text)
{
	assert_string_equal(buf_terminate(&listener.got), q(text));
	listener.got.len = 0;
}

static void listen_to(struct route *route)
{
	stream_attach(&route->session.standalone, &listener.reader, &listener_ops);
	fake_keeper_settle(&keeper);
}

static struct fake_process *process(size_t i)
{
	assert_true(i < keeper.count);
	return &keeper.processes[i];
}

#define CAPS "'roots':{'listChanged':true},'sampling':{},'elicitation':{}"
#define INITIALIZE(caps)                                                                           \
	"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-11-25',"  \
	"'capabilities':{" caps "},'clientInfo':{'name':'c','version':'1'}}}"
#define HANDSHAKE(caps)                                                                            \
	"{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':'2025-11-25',"  \
	"'capabilities':{" caps "},'clientInfo':{'name':'c','version':'1'}}}"
#define WELCOME                                                                                    \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{"        \
	"'logging':{},'tools':{'listChanged':true},'resources':{'subscribe':true}},"               \
	"'serverInfo':{'name':'s','version':'1'}}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"

/* A session of a client with these capabilities; its process has heard what is usual. */
static struct route *begin_with(const char *initialize)
{
	struct front *front = open_session(initialize);
	struct fake_process *p = process(keeper.count - 1);

	assert_non_null(fake_process_read(p));
	says(p, WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	hears(p, INITIALIZED);
	return front->call.route;
}

static struct route *begin(void)
{
	struct route *route = begin_with(INITIALIZE(CAPS));

	notify(route, INITIALIZED);
	return route;
}

#define CALL(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t'}}"
#define RESULT(id) "{'jsonrpc':'2.0','id':" id ",'result':{'ok':1}}"

/* ---- before and after ---- */

static uint64_t tool_timeout(const struct backend_conf *conf, struct slice tool)
{
	(void)conf;
	return slice_is_equal(tool, SLICE_LIT("slow")) ? 2 * TIMEOUT_MS : 0;
}

static int setup(void **state)
{
	static const struct session_conf sessions = {
		.max_sessions = 4,
		.idle_ms = 3600000,
		.max_age_ms = 86400000,
		.stream = { .max_bytes = 1 << 20 },
	};
	static const struct backend_conf conf = {
		.name = "test",
		.pool_max = 3,
		.line_max = 1 << 20,
		.queue_max = QUEUE_MAX,
		.start_timeout_ms = START_TIMEOUT_MS,
		.backoff_min_ms = 1000,
		.backoff_max_ms = 8000,
		.give_up_after = 3,
		.stop_grace_ms = 5000,
		.stop_term_ms = 3000,
		.stall_ms = 30000,
		.request_timeout_ms = TIMEOUT_MS,
		.request_timeout_max_ms = TIMEOUT_MAX_MS,
		.tool_timeout_ms = tool_timeout,
	};
	struct error err;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	now_ms = 1000000;
	clock_freeze(now_ms);
	log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	loop = loop_new(&err);
	fake_keeper_init(&keeper, loop);
	backend_init(&backend, loop, keeper.spawner, &conf);
	router = (struct router){ .loop = loop, .limits = { 64, 200 } };
	session_set_init(&router.sessions, loop, &sessions);
	fronts = calloc(FRONTS_MAX, sizeof(*fronts));
	front_count = 0;
	listener = (struct listener){ .detached = 0 };
	return 0;
}

/* Whatever a test did: every call ends once, every process goes, and nothing is left. */
static int teardown(void **state)
{
	(void)state;
	session_set_fini(&router.sessions);
	fake_keeper_settle(&keeper);
	for (size_t i = 0; i < keeper.count; i++) {
		if (!keeper.processes[i].is_started)
			fake_keeper_start(&keeper, &keeper.processes[i]);
		if (!keeper.processes[i].is_exited)
			fake_process_exit(&keeper, &keeper.processes[i], 0);
	}
	fake_keeper_settle(&keeper);
	assert_int_equal(backend.count + backend.reserved, 0);
	assert_int_equal(router.calls, 0);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	for (size_t i = 0; i < front_count; i++) {
		assert_int_equal(fronts[i].endings, 1);
		buf_fini(&fronts[i].messages);
		buf_fini(&fronts[i].response);
	}
	free(fronts);
	buf_fini(&listener.got);
	buf_fini(&router.scratch);
	fake_keeper_fini(&keeper);
	loop_free(&loop);
	close(log_fd);
	return 0;
}

/* ---- the handshake ---- */

/* BACK-INIT-01, BACK-INIT-02, BACK-INIT-03, FRONT-SESS-01: verbatim but for the id; `initialized` after it. */
static void handshake_is_forwarded(void **state)
{
	struct front *front = open_session(INITIALIZE(CAPS));
	struct fake_process *p = process(0);

	(void)state;
	hears(p, HANDSHAKE(CAPS));
	hears_nothing(p);
	is_open(front);
	says(p, WELCOME);
	is_answered(front, "{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-11-25',"
			   "'capabilities':{'logging':{},'tools':{'listChanged':true},"
			   "'resources':{'subscribe':true}},"
			   "'serverInfo':{'name':'s','version':'1'}}}");
	assert_int_equal(front->call.route->session.state, SESSION_LIVE);
	hears(p, INITIALIZED);
	notify(front->call.route, INITIALIZED); /* the client's own is consumed */
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

	(void)state;
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

/* bridging §2.1 (1): the server's error is the client's; no session, the process goes. */
static void server_may_refuse(void **state)
{
	struct front *front = open_session(INITIALIZE(""));
	struct fake_process *p = process(0);

	(void)state;
	says(p, "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'no'}}");
	is_answered(front, "{'jsonrpc':'2.0','id':0,'error':{'code':-32602,'message':'no'}}");
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	hears(p, HANDSHAKE(""));
	hears_nothing(p);
	assert_true(p->is_eof);
}

/* BACK-FRAME-05: an error without id is about the only request there is. */
static void server_may_refuse_without_id(void **state)
{
	struct front *front = open_session(INITIALIZE(""));

	(void)state;
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

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct front *front = open_session(INITIALIZE(""));
		struct fake_process *p = process(keeper.count - 1);

		is_open(front);
		says(p, answers[i]);
		is_failed(front, REASON_HANDSHAKE_REFUSED);
		assert_int_equal(p->last_signal, SIGKILL);
		fake_process_exit(&keeper, p, SIGKILL);
		backend_note_started(&backend); /* no back-off in this test */
	}
}

/* BACK-INIT-04, BACK-PROC-06: silence, an exit, a start that fails. */
static void start_can_fail(void **state)
{
	struct front *silent = open_session(INITIALIZE(""));
	struct front *exits;
	struct front *refused;

	(void)state;
	pass(START_TIMEOUT_MS - 1);
	is_open(silent);
	pass(1);
	is_failed(silent, REASON_START_TIMEOUT);
	assert_int_equal(process(0)->last_signal, SIGKILL);

	backend_note_started(&backend);
	exits = open_session(INITIALIZE(""));
	fake_process_exit(&keeper, process(1), 256);
	pass(0);
	is_failed(exits, REASON_START_FAILED);

	backend_note_started(&backend);
	keeper.refuses = ENOENT;
	refused = open_session(INITIALIZE(""));
	is_failed(refused, REASON_START_FAILED);
}

/* BACK-PROC-04: the next start waits for the back-off; then callers hear at once that it is down. */
static void failing_server_backs_off(void **state)
{
	struct front *waits;

	(void)state;
	keeper.refuses = ENOENT;
	is_failed(open_session(INITIALIZE("")), REASON_START_FAILED);
	waits = open_session(INITIALIZE(""));
	is_open(waits);
	pass(1000);
	is_failed(waits, REASON_START_FAILED);
	waits = open_session(INITIALIZE(""));
	pass(2000);
	is_failed(waits, REASON_START_FAILED);
	is_failed(open_session(INITIALIZE("")), REASON_BACKEND_DOWN);
	pass(4000);
	keeper.refuses = 0;
	waits = open_session(INITIALIZE(""));
	says(process(0), WELCOME);
	assert_int_equal(waits->ending, ENDING_RESPONSE);
}

/* pool.max holds for those that wait for the back-off, too. */
static void pool_is_limited(void **state)
{
	(void)state;
	backend_note_failed(&backend);
	for (int i = 0; i < 3; i++)
		is_open(open_session(INITIALIZE("")));
	is_failed(open_session(INITIALIZE("")), REASON_OVER_LIMIT);
	assert_int_equal(keeper.count, 0);
	pass(1000);
	assert_int_equal(keeper.count, 3);
	assert_int_equal(backend.reserved, 0);
	is_failed(open_session(INITIALIZE("")), REASON_OVER_LIMIT);
}

/* FRONT-SESS-08: limits.sessions; the long id tells the leak checker where it was kept. */
static void sessions_are_limited(void **state)
{
	(void)state;
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
	struct front *half = open_session(INITIALIZE(""));

	(void)state;
	router.is_draining = true;
	is_failed(open_session(INITIALIZE("")), REASON_DRAINING);
	assert_int_equal(keeper.count, 1);
	session_end(&half->call.route->session, REASON_DRAINING);
	is_failed(half, REASON_DRAINING);
	pass(0);
	assert_null(fake_process_read(process(0)) == NULL ? NULL : fake_process_read(process(0)));
	assert_true(process(0)->is_eof);
}

/* The client has left meanwhile: its front ends the session while it is told. */
static void client_leaves_during_the_handshake(void **state)
{
	struct front *front = open_session(INITIALIZE(""));

	(void)state;
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

/* bridging I3: what a server asks too early is answered; ping at any time (BACK-MSG-07). */
static void early_requests_of_the_server(void **state)
{
	struct front *front = open_session(INITIALIZE(CAPS));
	struct fake_process *p = process(0);

	(void)state;
	hears(p, HANDSHAKE(CAPS));
	says(p, "{'jsonrpc':'2.0','id':'p','method':'ping'}");
	hears(p, "{'jsonrpc':'2.0','id':'p','result':{}}");
	says(p, "{'jsonrpc':'2.0','id':9,'method':'roots/list'}");
	hears(p, "{'jsonrpc':'2.0','id':9,'error':{'code':-32600,'message':"
		 "'Invalid request: the handshake is not through'}}");
	says(p, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'info'}}");
	says(p, WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	listen_to(front->call.route);
	was_heard("");
}

/* ---- requests and responses ---- */

/* RPC-04, BACK-FRAME-01, BACK-FRAME-08, FRONT-POST-11: id and token, wherever they stand; nothing else. */
static void ids_are_replaced(void **state)
{
	struct route *route = begin();
	struct fake_process *p = process(0);
	struct front *a, *b, *c;

	(void)state;
	a = request(route, "{'jsonrpc':'2.0','id':'x\\u0041','method':'tools/call','params':"
			   "{'name':'t','n':1.0E+2,'_meta':{'progressToken':'tok','v/k':[1 , 2]}}}");
	hears(p, "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':"
		 "{'name':'t','n':1.0E+2,'_meta':{'progressToken':2,'v/k':[1 , 2]}}}");
	b = request(route, "{'params':{'_meta':{'progressToken':7}},'method':'x/y','jsonrpc':'2.0','id':-5}");
	hears(p, "{'params':{'_meta':{'progressToken':3}},'method':'x/y','jsonrpc':'2.0','id':3}");
	c = request(route, "{'jsonrpc':'2.0',\n'id':12345678901234567,\r\n\t'method':'x','params':['\xE2\x80\xA8']}");
	hears(p, "{'jsonrpc':'2.0', 'id':4,  \t'method':'x','params':['\\u2028']}");
	says(p, "{'jsonrpc':'2.0','id':3,'result':{ 'a' : 2.50}}");
	says(p, "{'result':['id',4],'id':4,'jsonrpc':'2.0'}");
	says(p, "{'jsonrpc':'2.0','error':{'code':-1,'message':'m','data':null},'id':2}");
	is_answered(a, "{'jsonrpc':'2.0','error':{'code':-1,'message':'m','data':null},'id':'x\\u0041'}");
	is_answered(b, "{'jsonrpc':'2.0','id':-5,'result':{ 'a' : 2.50}}");
	is_answered(c, "{'result':['id',4],'id':12345678901234567,'jsonrpc':'2.0'}");
}

/* BACK-MSG-06: what only the modern era says goes; the rest of _meta stays, also beside a token. */
static void meta_is_rebuilt(void **state)
{
	struct route *route = begin();
	struct fake_process *p = process(0);

	(void)state;
	request(route, "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{'_meta':{"
		       "'io.modelcontextprotocol/protocolVersion':'x','traceparent':'00-1',"
		       "'progressToken':'k','io.modelcontextprotocol/related-task':{'taskId':'1'},"
		       "'io.modelcontextprotocol/clientCapabilities':{'a':[1]}},'cursor':''}}");
	hears(p, "{'jsonrpc':'2.0','id':2,'method':'tools/list','params':{'_meta':{"
		 "'traceparent':'00-1','progressToken':2,"
		 "'io.modelcontextprotocol/related-task':{'taskId':'1'}},'cursor':''}}");
	request(route, "{'jsonrpc':'2.0','method':'tools/list','params':{'_meta':{"
		       "'io.modelcontextprotocol/logLevel':'info'}},'id':'after'}");
	hears(p, "{'jsonrpc':'2.0','method':'tools/list','params':{'_meta':{}},'id':3}");
	notify(route, "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{"
		      "'io.modelcontextprotocol/logLevel':'info','y':1}}}");
	hears(p, "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{'y':1}}}");
}

/* BACK-FRAME-03, BACK-FRAME-04, BACK-FRAME-05: responses that are written in unusual ways. */
static void responses_are_taken_leniently(void **state)
{
	static const char *const answers[][2] = {
		{ "{'jsonrpc':'2.0','id':'2','result':{}}", "{'jsonrpc':'2.0','id':9,'result':{}}" },
		{ "{'id':3,'result':{'a':[]}}", "{'jsonrpc':'2.0','id':9,'result':{'a':[]}}" },
		{ "{'jsonrpc':'2.0',\r'id':4,\r'result':{\r}}", "{'jsonrpc':'2.0','id':9,'result':{ }}" },
		{ "{'jsonrpc':'2.0','id':5,'result':1,'error':null}", "{'jsonrpc':'2.0','id':9,'result':1}" },
		{ "ready> {'jsonrpc':'2.0','id':6,'result':2}", "{'jsonrpc':'2.0','id':9,'result':2}" },
		{ "[log] {'jsonrpc':'2.0','id':7,'result':3}", "{'jsonrpc':'2.0','id':9,'result':3}" },
		{ "[{'jsonrpc':'2.0','id':8,'result':4}]", "{'jsonrpc':'2.0','id':9,'result':4}" },
	};
	struct route *route = begin();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct front *front = request(route, CALL("9"));

		says(process(0), answers[i][0]);
		is_answered(front, answers[i][1]);
	}
}

/* BACK-FRAME-04: an array of the server is several messages, in order, good and bad ones. */
static void arrays_are_unpacked(void **state)
{
	struct route *route = begin();
	struct front *a = request(route, CALL("1"));
	struct front *b = request(route, CALL("2"));

	(void)state;
	says(process(0), "[" RESULT("3") ",{},5," RESULT("2") ",[" RESULT("3") "]]");
	is_answered(a, RESULT("1"));
	is_answered(b, RESULT("2"));
	says(process(0), "[]");
	says(process(0), "[1,");
}

/* FRONT-POST-12, bridging I4: same id twice; each gets its own answer, whatever the order. */
static void same_id_twice_is_served_twice(void **state)
{
	struct route *route = begin();
	struct front *a = request(route, CALL("5"));
	struct front *b = request(route, CALL("5"));

	(void)state;
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':'b'}");
	is_open(a);
	is_answered(b, "{'jsonrpc':'2.0','id':5,'result':'b'}");
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':'a'}");
	is_answered(a, "{'jsonrpc':'2.0','id':5,'result':'a'}");
}

/* SEC-06, REL-23, CXL-06, bridging I3: double, late, forged answers reach nobody and are counted. */
static void stray_responses_are_dropped(void **state)
{
	struct route *route = begin();
	struct front *a = request(route, CALL("1"));
	struct front *b = request(route, CALL("2"));
	uint64_t strays = counter_get(COUNTER_CHILD_STRAY_RESPONSES);

	(void)state;
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
	struct route *first = begin();
	struct route *second = begin();
	struct front *a = request(first, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':"
					 "{'_meta':{'progressToken':'mine'}}}");
	struct front *b = request(second, CALL("1"));

	(void)state;
	listen_to(first);
	says(process(1), "{'jsonrpc':'2.0','id':2,'result':'for b'}");
	is_open(a);
	is_answered(b, "{'jsonrpc':'2.0','id':1,'result':'for b'}");
	says(process(1), "{'jsonrpc':'2.0','id':2,'result':'forged'}");
	says(process(1), "{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':2,'progress':1}}");
	says(process(1), "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
	says(process(1), "{'jsonrpc':'2.0','id':1,'method':'roots/list'}");
	is_open(a);
	was_told(a, "");
	was_heard("");
	/* SEC-48, SEC-49, FRONT-POST-04: nor does a client. */
	says(process(0), "{'jsonrpc':'2.0','id':'q','method':'roots/list'}");
	answer(second, "{'jsonrpc':'2.0','id':1000001,'result':{'to':'second'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'_meta':{'progressToken':2}}}");
	hears_nothing(process(0));
	notify(second, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
	hears_nothing(process(0));
	is_open(a);
}

/* BACK-FRAME-05: an error without id fails the only call; with two in flight, none. */
static void error_without_id(void **state)
{
	struct route *route = begin();
	struct front *a = request(route, CALL("1"));
	struct front *b = request(route, CALL("2"));

	(void)state;
	says(process(0), "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'x'}}");
	is_open(a);
	is_open(b);
	says(process(0), RESULT("2"));
	says(process(0), "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'x'}}");
	is_answered(b, "{'jsonrpc':'2.0','id':2,'error':{'code':-32700,'message':'x'}}");
}

/* REL-23: JSON about a call, but no response, fails that call; REL-20, REL-21: what is not JSON does nothing. */
static void malformed_answers(void **state)
{
	struct route *route = begin();
	struct front *a = request(route, CALL("1"));
	struct front *b = request(route, CALL("2"));
	uint64_t garbage = counter_get(COUNTER_CHILD_GARBAGE);

	(void)state;
	says(process(0), "{'jsonrpc':'2.0','id':2,'method':3}"); /* a bad request, not an answer */
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':");
	says(process(0), "'id'");
	says(process(0), "17");
	is_open(a);
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':'no'}");
	is_failed(a, REASON_CHILD_PROTOCOL_ERROR);
	is_open(b);
	assert_int_equal(counter_get(COUNTER_CHILD_GARBAGE) - garbage, 5);
}

/* UTIL-PING-01: answered here, for either side; also while no process runs. */
static void ping_is_answered_here(void **state)
{
	struct route *route = begin();
	struct fake_process *p = process(0);

	(void)state;
	is_answered(request(route, "{'jsonrpc':'2.0','id':'p','method':'ping'}"),
		    "{'jsonrpc':'2.0','id':'p','result':{}}");
	says(p, "{'jsonrpc':'2.0','id':3,'method':'ping','params':{}}");
	hears(p, "{'jsonrpc':'2.0','id':3,'result':{}}");
	fake_process_exit(&keeper, p, 0);
	pass(0);
	is_answered(request(route, "{'jsonrpc':'2.0','id':4,'method':'ping'}"),
		    "{'jsonrpc':'2.0','id':4,'result':{}}");
	assert_int_equal(keeper.count, 1);
}

/* REL-26, REL-46: when its stdin queue is full, a call fails at once. */
static void full_queue_refuses(void **state)
{
	struct route *route = begin();
	static char text[QUEUE_MAX + 1000];
	struct envelope env;
	struct front *front;

	(void)state;
	snprintf(text, sizeof(text), "%s", q("{'jsonrpc':'2.0','id':1,'method':'x','params':['"));
	memset(text + strlen(text), 'x', QUEUE_MAX);
	memcpy(text + QUEUE_MAX - 3, "\"]}", 4);
	env = scan(text);
	for (int i = 0; i < 2; i++) { /* the pipe takes some of the first */
		front = front_new(&env);
		forward_request(route, &front->call, &env);
	}
	is_failed(front, REASON_OVER_LIMIT);
	is_open(front - 1);
	assert_int_equal(router.calls, 1);
}

/* The number of calls is bounded, too: who leaves does not cancel (CXL-01). */
static void calls_are_limited(void **state)
{
	struct route *route = begin();
	struct envelope env = scan(q(CALL("1")));
	struct front *front = NULL;

	(void)state;
	backend.conf.queue_max = SIZE_MAX / 2;
	for (int i = 0; i < 4097; i++) {
		front = front_new(&env);
		forward_request(route, &front->call, &env);
	}
	is_failed(front, REASON_OVER_LIMIT);
	is_open(front - 1);
}

/* BACK-FRAME-08: below 2^31, and none that is in use. */
static void ids_begin_anew(void **state)
{
	struct route *route = begin();
	struct front *first = request(route, CALL("1"));

	(void)state;
	route->lane->last_bid = INT32_MAX - 1;
	hears(process(0), CALL("2"));
	request(route, CALL("1"));
	hears(process(0), CALL("2147483647"));
	request(route, CALL("1"));
	hears(process(0), CALL("1"));
	request(route, CALL("1"));
	hears(process(0), CALL("3"));
	says(process(0), RESULT("2"));
	assert_int_equal(first->ending, ENDING_RESPONSE);
}

#include "router/router_test_more.h"
