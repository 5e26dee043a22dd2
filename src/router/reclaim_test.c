/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with a process each, and fewer processes than sessions: who gives way to whom, when, and how it goes on. */
#include "obs/counters.h"
#include "router/client_stage.h"
#include "router/process_slots.h"
#include "upstream/prestart.h"

#define WELCOME                                                                             \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{" \
	"'logging':{},'tools':{'listChanged':true},'resources':{'subscribe':true}},"        \
	"'serverInfo':{'name':'s','version':'1'}}}"
#define HANDSHAKE                                                                    \
	"{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':" \
	"'2025-11-25','capabilities':{},'clientInfo':{'name':'c','version':'1'}}}"
#define SUBSCRIBE(id)                                                                   \
	"{'jsonrpc':'2.0','id':" id ",'method':'resources/subscribe','params':{'uri':'" \
	"r:a'}}"
#define LEVEL(id)                                                                            \
	"{'jsonrpc':'2.0','id':" id ",'method':'logging/setLevel','params':{'level':'error'" \
	"}}"
#define EMPTY(id) "{'jsonrpc':'2.0','id':" id ",'result':{}}"
#define PING "{'jsonrpc':'2.0','id':9,'method':'ping'}"

#define QUEUE_TIMEOUT_MS 10000

static struct principal *alice, *bob;

static int setup(void **state)
{
	static const struct identity a = { .issuer = SLICE("i"), .subject = SLICE("alice") };
	static const struct identity b = { .issuer = SLICE("i"), .subject = SLICE("bob") };

	client_stage_open();
	router.sessions.conf.max_sessions = router.sessions.conf.max_per_principal = 100;
	for (size_t i = 0; i < 2; i++) {
		struct server_conf *conf = &servers[i].conf;

		conf->pool_max = 3;
		conf->reclaims = RECLAIM_IDLE;
		conf->share_percent = 50;
		conf->queue_calls = 4;
		conf->queue_timeout_ms = QUEUE_TIMEOUT_MS;
		conf->request_timeout_ms = 600000;
	}
	alice = principal_get(&router.sessions.principals, &a);
	bob = principal_get(&router.sessions.principals, &b);
	return 0;
}

static int teardown(void **state)
{
	principal_unref(&alice);
	principal_unref(&bob);
	return client_stage_close(state);
}

/* The i-th process answers initialize, whoever it is for. */
static void welcomes(size_t i)
{
	hears(process(i), HANDSHAKE);
	says(process(i), WELCOME);
	hears(process(i), INITIALIZED);
}

static struct client *begun(struct front *front)
{
	assert_int_equal(front->ending, ENDING_RESPONSE);
	notify(front->call.client, INITIALIZED);
	return front->call.client;
}

/* A session whose process is the i-th that was started. */
static struct client *begin_as(struct principal *principal, size_t i)
{
	struct front *front = open_session_as(principal, INITIALIZE_WITH(""));

	welcomes(i);
	return begun(front);
}

static struct client *begin(size_t i)
{
	return begin_as(&router.sessions.principals.anonymous, i);
}

/* The i-th process has been told to go, and goes. */
static void goes(size_t i)
{
	hears_nothing(process(i));
	assert_true(process(i)->is_eof);
	exits(process(i), 0);
}

static void stays(size_t i)
{
	hears_nothing(process(i));
	assert_false(process(i)->is_eof);
}

/* bridging §1.9 (1), (2): not before two seconds; then the one idle for longest. Its session is there, and goes on. */
static void longest_idle_gives_way(void **state)
{
	uint64_t asleep = counter_get(COUNTER_SESSIONS_ASLEEP);
	struct client *first = begin(0);
	struct front *front;
	struct front *call;

	pass(1000);
	begin(1);
	begin(2);
	front = open_session(INITIALIZE_WITH(""));
	is_open(front);
	stays(0);
	pass(950);
	stays(0);
	pass(50);
	goes(0);
	stays(1);
	stays(2);
	welcomes(3);
	begun(front);
	assert_int_equal(first->session->state, SESSION_LIVE);
	assert_true(is_logged("session_asleep"));
	call = request(first, CALL("7")); /* it wakes: another one gives way, once it may */
	is_open(call);
	pass(1000);
	goes(1);
	welcomes(4);
	hears(process(4), CALL("2"));
	says(process(4), RESULT("2"));
	is_answered(call, RESULT("7"));
	assert_int_equal(count_logged("session_respawn"), 1);
	assert_int_equal(counter_get(COUNTER_SESSIONS_ASLEEP) - asleep, 2);
}

/* §1.9, §4: what its client has asked for is asked again, and what may have changed is told. */
static void nothing_is_forgotten(void **state)
{
	struct client *a;
	struct member *reader;
	struct front *call;

	servers[0].conf.pool_max = 1;
	a = begin(0);
	request(a, LEVEL("1"));
	hears(process(0), LEVEL("2"));
	says(process(0), EMPTY("2"));
	request(a, SUBSCRIBE("2"));
	hears(process(0), SUBSCRIBE("3"));
	says(process(0), EMPTY("3"));
	pass(2000);
	call = open_session(INITIALIZE_WITH(""));
	goes(0);
	welcomes(1);
	begun(call);
	session_end(call->call.client->session, REASON_DELETED);
	settle();
	goes(1); /* there is room: who waits for notifications gets a process without a request */
	hears(process(2), HANDSHAKE);
	says(process(2), WELCOME);
	hears(process(2), INITIALIZED);
	hears(process(2), LEVEL("2"));
	hears(process(2), SUBSCRIBE("3"));
	reader = listen_to(a);
	heard(reader, CHANGED("tools") "|");
}

/* §1.9 (1): a call, or a question of the server, is work; a ping is none. */
static void who_works_keeps_it(void **state)
{
	struct client *calls = begin(0), *is_asked, *pings;
	struct front *front = open_session(INITIALIZE_WITH("'roots':{}"));
	struct front *call = request(calls, CALL("1"));

	assert_non_null(fake_process_read(process(1)));
	says(process(1), WELCOME);
	hears(process(1), INITIALIZED);
	is_asked = begun(front);
	listen_to(is_asked);
	pings = begin(2);
	hears(process(0), CALL("2"));
	says(process(1), "{'jsonrpc':'2.0','id':5,'method':'roots/list'}");
	pass(1900);
	request(pings, PING);
	front = open_session(INITIALIZE_WITH(""));
	pass(100);
	stays(0);
	stays(1);
	goes(2);
	welcomes(3);
	begun(front);
	front = open_session(INITIALIZE_WITH(""));
	settle();
	stays(1);
	answer(is_asked, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears(process(1), "{'jsonrpc':'2.0','id':5,'result':{}}");
	goes(1);
	welcomes(4);
	begun(front);
	is_open(call);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
}

/* §1.9 (2): without a stream before with one; of the caller who has most before others. */
static void some_go_before_others(void **state)
{
	struct client *listens = begin_as(alice, 0);
	struct front *front;

	listen_to(listens);
	pass(10);
	begin_as(bob, 1);
	pass(10);
	begin_as(alice, 2);
	pass(5000);
	servers[0].conf.share_percent = 100;
	front = open_session_as(bob, INITIALIZE_WITH(""));
	stays(0);
	stays(1);
	goes(2); /* alice has two; of hers, the one that nobody listens to */
	welcomes(3);
	begun(front);
	pass(5000);
	front = open_session_as(alice, INITIALIZE_WITH(""));
	stays(0);
	goes(1);
	welcomes(4);
	begun(front);
}

/* §1.9 (2): who waits for notifications goes after who does not, although it has been idle for longer. */
static void subscribers_go_after_others(void **state)
{
	struct front *front;

	request(begin(0), SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	pass(10);
	begin(1);
	pass(10);
	begin(2);
	pass(5000);
	front = open_session(INITIALIZE_WITH(""));
	stays(0);
	stays(2);
	goes(1);
	welcomes(3);
	begun(front);
}

/* §1.9 (3): as long as all are busy it is waited, but not for ever; and who waits for too much is refused. */
static void waiting_is_limited(void **state)
{
	struct front *calls[3], *late[5];

	for (size_t i = 0; i < 3; i++) {
		calls[i] = request(begin(i), CALL("1"));
		hears(process(i), CALL("2"));
	}
	for (size_t i = 0; i < 4; i++)
		is_open(late[i] = open_session(INITIALIZE_WITH("")));
	late[4] = open_session(INITIALIZE_WITH(""));
	is_failed(late[4], REASON_OVER_LIMIT); /* queue_calls */
	is_open(late[4] = open_session_as(alice, INITIALIZE_WITH("")));
	is_failed(late[3], REASON_OVER_LIMIT); /* it was of the one who waits with most */
	pass(QUEUE_TIMEOUT_MS - 1);
	is_open(late[0]);
	is_open(late[4]);
	pass(1);
	for (size_t i = 0; i < 5; i++)
		is_failed(late[i], REASON_OVER_LIMIT);
	for (size_t i = 0; i < 3; i++) {
		stays(i);
		is_open(calls[i]);
	}
}

/* queue_calls is of each server. */
static void servers_have_their_own_queues(void **state)
{
	struct front *front, *late[2];

	for (size_t i = 0; i < 2; i++) {
		servers[i].conf.pool_max = servers[i].conf.queue_calls = 1;
		front = open_session_at(&servers[i], bob, INITIALIZE_WITH(""));
		welcomes(i);
		request(begun(front), CALL("1"));
		hears(process(i), CALL("2"));
	}
	for (size_t i = 0; i < 2; i++)
		is_open(late[i] = open_session_at(&servers[i], alice, INITIALIZE_WITH("")));
	for (size_t i = 0; i < 2; i++)
		is_failed(open_session_at(&servers[i], bob, INITIALIZE_WITH("")),
			  REASON_OVER_LIMIT);
	for (size_t i = 0; i < 2; i++)
		is_open(late[i]);
}

/* Nobody is turned away for one who would then wait with as much himself. */
static void equals_do_not_push_each_other_out(void **state)
{
	struct front *first[2], *others[2];

	for (size_t i = 0; i < 3; i++) {
		request(begin(i), CALL("1"));
		hears(process(i), CALL("2"));
	}
	for (size_t i = 0; i < 2; i++)
		first[i] = open_session(INITIALIZE_WITH(""));
	others[0] = open_session_as(alice, INITIALIZE_WITH(""));
	others[1] = open_session_as(bob, INITIALIZE_WITH(""));
	is_failed(open_session_as(alice, INITIALIZE_WITH("")), REASON_OVER_LIMIT);
	for (size_t i = 0; i < 2; i++) {
		is_open(first[i]);
		is_open(others[i]);
	}
}

/* §1.9 (3): as long as a process takes to go, who waits for its place waits. */
static void what_leaves_is_waited_for(void **state)
{
	struct front *front;

	servers[0].conf.pool_max = 1;
	servers[0].conf.stop_grace_ms = 60000;
	begin(0);
	pass(5000);
	front = open_session(INITIALIZE_WITH(""));
	pass(2 * QUEUE_TIMEOUT_MS);
	is_open(front);
	goes(0);
	welcomes(1);
	begun(front);
}

/* Also one that begins to go meanwhile, or that another one waited for who has gone. */
static void what_leaves_later_is_waited_for(void **state)
{
	struct front *leaves, *front, *next;

	servers[0].conf.pool_max = 1;
	servers[0].conf.stop_grace_ms = 60000;
	leaves = open_session_as(alice, INITIALIZE_WITH("")); /* its process does not answer */
	front = open_session_as(bob, INITIALIZE_WITH(""));
	next = open_session(INITIALIZE_WITH(""));
	session_end(leaves->call.client->session, REASON_PEER_CLOSED);
	settle();
	pass(QUEUE_TIMEOUT_MS);
	is_open(front);
	is_failed(next, REASON_OVER_LIMIT);
	next = open_session(INITIALIZE_WITH(""));
	session_end(front->call.client->session, REASON_PEER_CLOSED);
	settle();
	pass(QUEUE_TIMEOUT_MS);
	is_open(next);
	assert_non_null(fake_process_read(process(0)));
	goes(0);
	welcomes(1);
	begun(next);
}

/* §1.9 (4): a process that ends anyway is enough. */
static void no_more_than_needed_go(void **state)
{
	struct client *leaves = begin(0);
	struct front *front;

	begin(1);
	begin(2);
	pass(5000);
	assert_false(process_slots_has_leaving(&servers[0]));
	session_end(leaves->session, REASON_DELETED);
	assert_true(process_slots_has_leaving(&servers[0]));
	front = open_session(INITIALIZE_WITH(""));
	settle();
	assert_false(process_slots_has_leaving(&servers[0])); /* it is this one's now */
	stays(1);
	stays(2);
	goes(0);
	welcomes(3);
	begun(front);
	stays(1);
	stays(2);
}

/* §1.9 (6): who has more than a share gives a process away as soon as it rests, if another one has waited. */
static void shares_are_kept(void **state)
{
	struct client *busy[3];
	struct front *calls[3], *front;

	for (size_t i = 0; i < 3; i++) {
		busy[i] = begin_as(alice, i);
		calls[i] = request(busy[i], CALL("1"));
		hears(process(i), CALL("2"));
	}
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(2000);
	is_open(front);
	says(process(1), RESULT("2"));
	is_answered(calls[1], RESULT("1"));
	goes(1);
	welcomes(3);
	begun(front);
	stays(0);
	stays(2);
	/* Her own next session has no such right to what is hers, and none to his. */
	calls[1] = request(busy[1], CALL("3"));
	pass(1000);
	says(process(0), RESULT("2"));
	pass(900);
	stays(0);
	stays(3);
	is_open(calls[1]);
}

/* §1.9 (6): whose calls overlap is never at rest, and gives what is more than a share all the same; nothing is cut short. */
static void overlapping_calls_are_no_excuse(void **state)
{
	struct client *busy[3], *his;
	struct front *calls[3], *more, *late, *front;

	for (size_t i = 0; i < 3; i++) {
		busy[i] = begin_as(alice, i);
		calls[i] = request(busy[i], CALL("1"));
		hears(process(i), CALL("2"));
	}
	for (size_t i = 0; i < 3; i += 2) {
		more = request(busy[i], CALL("2"));
		hears(process(i), CALL("3"));
	}
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(4000);
	late = request(busy[1], CALL("3"));
	stays(1); /* it had least to do: it finishes that, and is given no more */
	request(busy[2], CALL("3"));
	hears(process(2), CALL("4"));
	says(process(1), RESULT("2"));
	is_answered(calls[1], RESULT("1"));
	goes(1);
	welcomes(3);
	his = begun(front);
	request(his, CALL("1"));
	hears(process(3), CALL("2"));
	pass(QUEUE_TIMEOUT_MS - 1);
	is_open(late);
	pass(1);
	is_failed(late, REASON_OVER_LIMIT);
	for (size_t i = 0; i < 4; i += i == 0 ? 2 : 1)
		stays(i); /* they have as much as she has, or are hers */
	is_open(calls[0]);
	is_open(more);
	assert_int_equal(busy[1]->session->state, SESSION_LIVE);
}

/* §1.9 (6): callers who have no more than a share each give to one who has less, but do not change places with him. */
static void nobody_has_two_more_than_who_waits(void **state)
{
	struct principal *hers[] = { alice, alice, bob, bob };
	struct client *busy[4];
	struct front *first, *second;

	servers[0].conf.pool_max = 4;
	for (size_t i = 0; i < 4; i++) {
		busy[i] = begin_as(hers[i], i);
		request(busy[i], CALL("1"));
		hears(process(i), CALL("2"));
	}
	first = open_session(INITIALIZE_WITH(""));
	pass(2000);
	says(process(2), RESULT("2"));
	goes(2);
	welcomes(4);
	request(begun(first), CALL("1"));
	hears(process(4), CALL("2"));
	second = open_session(INITIALIZE_WITH(""));
	pass(4000);
	for (size_t i = 0; i < 2; i++) { /* she has two, he one like who waits */
		request(busy[i], CALL("3"));
		hears(process(i), CALL("3"));
	}
	request(busy[3], CALL("3"));
	hears(process(3), CALL("3"));
	is_open(second);
}

/* §1.9 (6): who retires finishes, sleeps, and goes on, also if nobody waits for its place any more. */
static void who_retires_goes_on(void **state)
{
	struct client *busy[3];
	struct front *calls[3], *late, *front;

	for (size_t i = 0; i < 3; i++) {
		busy[i] = begin_as(alice, i);
		calls[i] = request(busy[i], CALL("1"));
		hears(process(i), CALL("2"));
	}
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(3999);
	request(busy[2], CALL("2"));
	hears(process(2), CALL("3"));
	pass(1);
	session_end(front->call.client->session, REASON_PEER_CLOSED);
	late = request(busy[0], CALL("2"));
	stays(0);
	says(process(0), RESULT("2"));
	is_answered(calls[0], RESULT("1"));
	goes(0);
	welcomes(3);
	hears(process(3), CALL("2"));
	says(process(3), RESULT("2"));
	is_answered(late, RESULT("2"));
	stays(1);
	stays(2);
}

/* Sessions of the caller at the first server, with a call each, whose processes are the next ones. */
static void begin_busy(struct principal *principal, struct client **busy, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t next = keeper.count;

		busy[i] = begin_as(principal, next);
		request(busy[i], CALL("1"));
		hears(process(next), CALL("2"));
	}
}

/* How many of these, whose processes are those from `first` on, get no more calls. */
static size_t count_retired(struct client **busy, size_t first, size_t count)
{
	size_t retired = 0;

	for (size_t i = 0; i < count; i++) {
		request(busy[i], CALL("3"));
		retired += fake_process_read(process(first + i)) == NULL;
	}
	return retired;
}

/* §1.9 (6): one for each who waits, however long that one takes. */
static void one_retires_for_each(void **state)
{
	struct client *busy[4];
	struct front *front;

	servers[0].conf.pool_max = 4;
	begin_busy(alice, busy, 4);
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(4000);
	open_session_as(alice,
			INITIALIZE_WITH("")); /* to whom nothing is owed: it is looked once more */
	pass(4000);
	assert_int_equal(count_retired(busy, 0, 4), 1);
	is_open(front);
}

/* Nor does one that is being started: it has nothing to finish. */
static void none_retires_that_starts(void **state)
{
	struct client *busy[2];

	begin_busy(alice, busy, 2);
	open_session_as(alice, INITIALIZE_WITH(""));
	open_session_as(bob, INITIALIZE_WITH(""));
	pass(4000);
	stays(0);
	hears(process(2), HANDSHAKE);
	stays(2);
	assert_int_equal(count_retired(busy, 0, 2), 1);
}

/* Only who retires is stopped when it has nothing to do, not who rests meanwhile. */
static void who_rests_does_not_retire(void **state)
{
	struct client *busy[2], *rests;
	struct front *call;

	begin_busy(alice, busy, 2);
	rests = begin(2);
	pass(10);
	open_session_as(bob, INITIALIZE_WITH(""));
	pass(1900);
	call = request(rests, CALL("1"));
	pass(2050);
	hears(process(2), CALL("2"));
	says(process(2), RESULT("2"));
	is_answered(call, RESULT("1"));
	pass(50);
	assert_int_equal(count_retired(busy, 0, 2), 1);
	open_session_as(alice, INITIALIZE_WITH("")); /* it is looked again */
	stays(2);
}

/* §1.9 (6): what rests before the one that finishes its calls goes first. */
static void who_waits_gets_what_rests_first(void **state)
{
	struct client *busy[3];
	struct front *front;

	begin_busy(alice, busy, 3);
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(4000);
	says(process(1), RESULT("2"));
	goes(1);
	welcomes(3);
	begun(front);
	assert_int_equal(count_retired(busy, 0, 1), 1);
}

/* Where there is room, a process is started, and none is stopped. */
static void room_is_used_first(void **state)
{
	struct client *busy[3];
	struct front *front;

	begin_busy(alice, busy, 3);
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(2000);
	servers[0].conf.pool_max = 4;
	says(process(0), RESULT("2"));
	welcomes(3);
	begun(front);
	stays(0);
}

/* Nor does any for one to whom a place is promised that becomes free otherwise. */
static void none_retires_for_what_leaves(void **state)
{
	struct client *busy[4];
	struct front *front;

	servers[0].conf.pool_max = 5;
	servers[0].conf.stop_grace_ms = 60000;
	begin_busy(alice, busy, 4);
	begin_as(alice, 4);
	pass(5000);
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(9000);
	hears_nothing(process(4));
	assert_true(process(4)->is_eof);
	assert_int_equal(count_retired(busy, 0, 4), 0);
	goes(4);
	welcomes(5);
	begun(front);
}

/* Nor for one who only wants its process back. */
static void none_retires_for_who_sleeps(void **state)
{
	struct client *busy[3], *sleeps;
	struct front *front;

	sleeps = begin_as(bob, 0);
	request(sleeps, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	begin_busy(alice, busy, 2);
	pass(5000);
	front = open_session_as(alice, INITIALIZE_WITH(""));
	goes(0);
	welcomes(3);
	busy[2] = begun(front);
	request(busy[2], CALL("1"));
	hears(process(3), CALL("2"));
	pass(9000);
	assert_int_equal(count_retired(busy, 1, 3), 0);
}

/* limits.processes: nor at another server, unless that makes room, and its processes may be taken. */
static void some_retire_at_another_server(void **state)
{
	struct client *busy[3];
	struct front *front;

	fleet.max = 4;
	servers[1].conf.pool_max = 1;
	begin_busy(alice, busy, 3);
	front = open_session_at(&servers[1], alice, INITIALIZE_WITH(""));
	welcomes(3);
	request(begun(front), CALL("1"));
	hears(process(3), CALL("2"));
	for (size_t i = 0; i < 3; i++) {
		front = open_session_at(&servers[1], bob, INITIALIZE_WITH(""));
		pass(9000);
		is_open(front);
		assert_int_equal(count_retired(busy, 0, 3), i == 2);
		session_end(front->call.client->session, REASON_PEER_CLOSED);
		servers[1].conf.pool_max = 2;
		servers[0].conf.reclaims = i == 0 ? RECLAIM_NEVER : RECLAIM_IDLE;
	}
}

/* §1.9 (6): as many retire as are to go, whoever waits for more. */
static void no_more_retire_than_are_owed(void **state)
{
	struct principal *hers[] = { alice, alice, bob, bob };
	struct front *calls[4], *late[2];
	struct client *busy[4];
	size_t retired = 0;

	servers[0].conf.pool_max = 4;
	for (size_t i = 0; i < 4; i++) {
		busy[i] = begin_as(hers[i], i);
		calls[i] = request(busy[i], CALL("1"));
		hears(process(i), CALL("2"));
	}
	for (size_t i = 0; i < 2; i++)
		late[i] = open_session(INITIALIZE_WITH(""));
	pass(4000);
	for (size_t i = 0; i < 4; i++) {
		request(busy[i], CALL("3"));
		retired += fake_process_read(process(i)) == NULL;
	}
	assert_int_equal(retired, 1);
	hears_nothing(process(0));
	says(process(0), RESULT("2"));
	is_answered(calls[0], RESULT("1"));
	goes(0);
	welcomes(4);
	begun(late[0]);
	is_open(late[1]);
}

/* §1.9 (6): what comes while a process finishes what it has to do is for the next one. */
static void who_finishes_gets_another(void **state)
{
	struct front *front, *call, *late;
	struct client *hers, *other;

	servers[0].conf.pool_max = 2;
	front = open_session_as(alice, INITIALIZE_WITH("'roots':{}"));
	assert_non_null(fake_process_read(process(0)));
	says(process(0), WELCOME);
	hears(process(0), INITIALIZED);
	hers = begun(front);
	call = request(hers, CALL("1"));
	hears(process(0), CALL("2"));
	says(process(0), "{'jsonrpc':'2.0','id':5,'method':'roots/list'}");
	other = begin_as(alice, 1);
	for (size_t i = 0; i < 2; i++)
		request(other, CALL("1"));
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(4000);
	late = request(hers, CALL("3"));
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	stays(0); /* what its server asks is unanswered */
	answer(hers, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
	hears(process(0), "{'jsonrpc':'2.0','id':5,'result':{}}");
	goes(0);
	welcomes(2);
	session_end(begun(front)->session, REASON_DELETED);
	settle();
	goes(2);
	assert_non_null(fake_process_read(process(3)));
	says(process(3), WELCOME);
	hears(process(3), INITIALIZED);
	hears(process(3), CALL("2"));
	says(process(3), RESULT("2"));
	is_answered(late, RESULT("3"));
}

/* §1.9 (3): who has least comes first, although others have waited for longer. */
static void least_comes_first(void **state)
{
	struct front *hers, *his;

	for (size_t i = 0; i < 3; i++) {
		request(begin_as(alice, i), CALL("1"));
		hears(process(i), CALL("2"));
	}
	hers = open_session_as(alice, INITIALIZE_WITH(""));
	pass(1000);
	his = open_session_as(bob, INITIALIZE_WITH(""));
	says(process(0), RESULT("2"));
	pass(2000);
	goes(0);
	welcomes(3);
	begun(his);
	is_open(hers);
}

/* §1.9 (6): nor does one who waits, for longer or not, and has no such right, keep it from who has. */
static void least_is_given_to_first(void **state)
{
	for (size_t hers = 0; hers < 2; hers++) {
		size_t first = keeper.count;
		struct front *late[2];
		struct client *busy[3];

		begin_busy(alice, busy, 3);
		for (size_t i = 0; i < 2; i++) {
			late[i] = open_session_as(i == hers ? alice : bob, INITIALIZE_WITH(""));
			pass(100);
		}
		pass(2000);
		says(process(first), RESULT("2"));
		goes(first);
		welcomes(first + 3);
		is_open(late[hers]);
		session_end(late[hers]->call.client->session, REASON_PEER_CLOSED);
		session_end(begun(late[!hers])->session, REASON_DELETED);
		for (size_t i = 0; i < 3; i++)
			session_end(busy[i]->session, REASON_DELETED);
		stage_end_processes();
	}
}

/* pool.reclaim: never. */
static void memory_may_be_worth_more(void **state)
{
	servers[0].conf.pool_max = 1;
	servers[0].conf.reclaims = RECLAIM_NEVER;
	begin(0);
	pass(60000);
	is_failed(open_session(INITIALIZE_WITH("")), REASON_OVER_LIMIT);
	stays(0);
}

/* limits.processes: a server whose own sessions have none gets that of another's, unless that keeps its own. */
static void servers_give_way_to_each_other(void **state)
{
	struct front *front;

	fleet.max = 2;
	servers[1].conf.reclaims = RECLAIM_NEVER;
	open_session_at(&servers[1], &router.sessions.principals.anonymous, INITIALIZE_WITH(""));
	welcomes(0);
	pass(10);
	begin(1);
	pass(5000);
	front = open_session(INITIALIZE_WITH(""));
	stays(0);
	goes(1);
	welcomes(2);
	begun(front);
}

/* limits.processes, pool.max: what makes no room stays, at another server and at a full one. */
static void servers_keep_what_helps_nobody(void **state)
{
	struct front *front;

	fleet.max = 2;
	servers[0].conf.pool_max = 1;
	request(begin(0), CALL("1"));
	hears(process(0), CALL("2"));
	front = open_session_at(&servers[1], alice, INITIALIZE_WITH(""));
	welcomes(1);
	begun(front);
	pass(5000);
	front = open_session(INITIALIZE_WITH(""));
	pass(5000);
	is_open(front);
	stays(0);
	stays(1);
	fleet.max = 3;
	pass(1000);
	stays(1);
}

/* A place that has become free is for whoever waits, before anything else that is to be started in the same turn. */
static void who_waits_comes_before_spares(void **state)
{
	struct front *front;

	fleet.max = 1;
	servers[0].conf.warm = 1;
	prestart_keep_warm(&router.prestart, &servers[0]);
	settle();
	assert_int_equal(keeper.count, 1);
	front = open_session_at(&servers[1], alice, INITIALIZE_WITH(""));
	is_open(front);
	exits(process(0), 0);
	assert_int_equal(keeper.count, 2);
	welcomes(1);
	begun(front);
}

/* pool.sleep_after: although nobody waits. Who waits for notifications does not sleep. */
static void sleep_comes_by_itself(void **state)
{
	struct client *a, *b;
	struct front *call;

	servers[0].conf.sleep_after_ms = 60000;
	a = begin(0);
	b = begin(1);
	request(b, SUBSCRIBE("1"));
	hears(process(1), SUBSCRIBE("2"));
	says(process(1), EMPTY("2"));
	pass(59999);
	stays(0);
	pass(1);
	goes(0);
	pass(60000);
	stays(1);
	call = request(a, CALL("1"));
	welcomes(2);
	hears(process(2), CALL("2"));
	says(process(2), RESULT("2"));
	is_answered(call, RESULT("1"));
}

/* pool.sleep_when_gone: who has closed its stream, and calls no more; not who is there, nor who never had a stream. */
static void who_is_gone_sleeps(void **state)
{
	struct client *gone, *there;
	struct member *stream;
	struct front *call;

	servers[0].conf.sleep_gone_ms = 120000;
	gone = begin(0);
	there = begin(1);
	begin(2);
	stream = listen_to(gone);
	listen_to(there);
	pass(500000);
	stream_detach(&stream->reader);
	pass(119999);
	call = request(gone, CALL("1"));
	hears(process(0), CALL("2"));
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	pass(119999);
	stays(0);
	pass(1);
	goes(0);
	stays(1);
	stays(2);
	call = request(gone, CALL("2"));
	welcomes(3);
	hears(process(3), CALL("2"));
	says(process(3), RESULT("2"));
	is_answered(call, RESULT("2"));
	listen_to(gone);
	pass(500000);
	stays(3);
	servers[0].conf.sleep_gone_ms = 0; /* a reload: nobody goes, and no timer spins */
	pass(500000);
	stays(1);
}

/* Who has gone while it waited needs nothing: nothing is started, and nothing stopped, for it. */
static void who_left_is_not_waited_for(void **state)
{
	struct client *a, *b;
	struct front *call;

	servers[0].conf.pool_max = 1;
	a = begin(0);
	pass(5000);
	call = open_session(INITIALIZE_WITH(""));
	goes(0);
	welcomes(1);
	b = begun(call);
	call = request(a, CALL("5"));
	is_open(call);
	call_cancel(&call->call);
	pass(5000);
	stays(1);
	session_end(b->session, REASON_DELETED);
	settle();
	goes(1);
	assert_int_equal(keeper.count, 2);
}

/* Retry-After says what is known: when somebody may give way, when the back-off ends, how long calls take. */
static void refusals_say_when(void **state)
{
	struct principal *anonymous = &router.sessions.principals.anonymous;
	struct front *call;

	assert_int_equal(retry_after_s(&router, &servers[0], alice, REASON_START_FAILED), 1);
	servers[0].conf.backoff_min_ms = servers[0].conf.backoff_max_ms = 40000;
	backoff_note_failed(&servers[0].backoff);
	assert_in_range(retry_after_s(&router, &servers[0], alice, REASON_BACKEND_DOWN), 31, 41);
	backoff_forget_failures(&servers[0].backoff);
	servers[0].conf.pool_max = 1;
	call = request(begin_as(alice, 0), CALL("1"));
	hears(process(0), CALL("2"));
	assert_int_equal(retry_after_s(&router, &servers[0], bob, REASON_OVER_LIMIT), 2);
	pass(20000);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	assert_int_equal(retry_after_s(&router, &servers[0], bob, REASON_OVER_LIMIT), 3);
	servers[0].conf.isolation =
		ISOLATION_SHARED; /* there, or where there is room, the end of a call matters */
	assert_in_range(retry_after_s(&router, &servers[0], bob, REASON_OVER_LIMIT), 20, 40);
	servers[0].conf.isolation = ISOLATION_SESSION;
	servers[0].conf.pool_max = 2;
	assert_in_range(retry_after_s(&router, &servers[0], bob, REASON_OVER_LIMIT), 20, 40);
	servers[0].conf.pool_max = 1;
	pass(1500);
	assert_int_equal(retry_after_s(&router, &servers[0], bob, REASON_OVER_LIMIT), 2);
	servers[0].conf.reclaims = RECLAIM_NEVER;
	router.sessions.conf.max_per_principal = 1;
	assert_int_equal(retry_after_s(&router, &servers[0], bob, REASON_OVER_LIMIT), 301);
	router.sessions.conf.max_sessions = 1;
	assert_int_equal(retry_after_s(&router, &servers[0], anonymous, REASON_OVER_LIMIT), 2);
	/* Where calls take twenty seconds, one who waits for the end of one had better wait for so long. */
	call = request(call->call.client, CALL("2"));
	assert_in_range(retry_after_s(&router, &servers[0], anonymous, REASON_OVER_LIMIT), 20, 40);
}

/* start.rate: who leaves before its process was started gives its turn back; who is refused hears when there is one. */
static void turns_are_given_back(void **state)
{
	struct front *late[5], *call;

	servers[0].conf.pool_max = 10;
	call = request(begin(0), CALL("1"));
	hears(process(0), CALL("2"));
	pass(20000);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	servers[0].conf.start_rate = 1;
	servers[0].conf.start_timeout_ms = 2000;
	for (size_t i = 0; i < 4; i++)
		is_open(late[i] = open_session(INITIALIZE_WITH("")));
	assert_int_equal(keeper.count, 3); /* two at once, the others wait for their turns */
	is_failed(open_session(INITIALIZE_WITH("")), REASON_OVER_LIMIT);
	assert_int_equal(retry_after_s(&router, &servers[0], NULL, REASON_OVER_LIMIT), 2);
	session_end(late[3]->call.client->session, REASON_PEER_CLOSED);
	is_open(late[4] = open_session(INITIALIZE_WITH("")));
	is_failed(open_session(INITIALIZE_WITH("")), REASON_OVER_LIMIT);
	pass(2000);
	assert_int_equal(keeper.count, 5);
}

/* §1.9 (2), (6): what is more than a share goes first, whoever listens; and is for those alone who have less. */
static void shares_are_for_who_has_less(void **state)
{
	struct client *hers = NULL, *anonymous;
	struct front *call, *calls[3], *front;

	servers[0].conf.pool_max = 4;
	for (size_t i = 0; i < 3; i++) {
		hers = begin_as(alice, i);
		listen_to(hers);
		pass(10);
	}
	begin_as(bob, 3);
	pass(5000);
	front = open_session(INITIALIZE_WITH(""));
	stays(3);
	goes(0);
	welcomes(4);
	anonymous = begun(front);
	servers[0].conf.share_percent = 25;
	call = request(hers, CALL("1"));
	hears(process(2), CALL("2"));
	front = open_session_as(bob, INITIALIZE_WITH(""));
	goes(1);
	welcomes(5);
	calls[0] = request(begun(front), CALL("1"));
	calls[1] = request(anonymous, CALL("1"));
	front = open_session_as(alice, INITIALIZE_WITH(""));
	goes(3); /* his other one */
	welcomes(6);
	calls[2] = request(begun(front), CALL("1"));
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(2500);
	says(process(2), RESULT("2"));
	is_answered(call, RESULT("1"));
	pass(1999);
	stays(2); /* she has two, of one that is her share, but he has one: for him it is as for anybody */
	pass(1);
	goes(2);
	welcomes(7);
	begun(front);
	for (size_t i = 0; i < 3; i++)
		is_open(calls[i]);
}

/* §1.9 (6): a moment is left to who has more than a share, too, until somebody has waited for it. */
static void moments_are_left(void **state)
{
	struct front *front;

	for (size_t i = 0; i < 3; i++)
		begin_as(alice, i);
	pass(500);
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(1499);
	for (size_t i = 0; i < 3; i++)
		stays(i);
	pass(1);
	goes(0);
	welcomes(3);
	begun(front);
}

/* The same for one that comes to rest meanwhile. */
static void moments_are_left_to_who_rests(void **state)
{
	struct front *calls[3], *front;

	for (size_t i = 0; i < 3; i++) {
		calls[i] = request(begin_as(alice, i), CALL("1"));
		hears(process(i), CALL("2"));
	}
	front = open_session_as(bob, INITIALIZE_WITH(""));
	pass(1000);
	says(process(1), RESULT("2"));
	is_answered(calls[1], RESULT("1"));
	pass(999);
	stays(1);
	pass(1);
	goes(1);
	welcomes(3);
	begun(front);
}

/* §1.9 (5): who only wants its process back comes after all who wait for one. */
static void subscribers_come_last(void **state)
{
	struct client *a;
	struct front *front, *next;

	servers[0].conf.pool_max = 1;
	a = begin(0);
	request(a, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	pass(2000);
	front = open_session(INITIALIZE_WITH(""));
	goes(0);
	welcomes(1);
	begun(front);
	next = open_session(INITIALIZE_WITH(""));
	session_end(front->call.client->session, REASON_DELETED);
	settle();
	goes(1);
	welcomes(2);
	begun(next);
	session_end(next->call.client->session, REASON_DELETED);
	settle();
	goes(2);
	hears(process(3), HANDSHAKE); /* for whom nobody waits any more */
	next = open_session(INITIALIZE_WITH(""));
	pass(5000);
	stays(3); /* it is not there yet */
	says(process(3), WELCOME);
	hears(process(3), INITIALIZED);
	hears(process(3), SUBSCRIBE("2"));
	says(process(3), EMPTY("2"));
	pass(1999);
	stays(3);
	pass(1);
	goes(3);
	welcomes(4);
	begun(next);
	pass(10000);
	stays(4); /* nobody is stopped for whom nobody waits */
}

/* §1.9, §4: what was subscribed to may have changed while there was no process to tell. */
static void updates_are_not_missed(void **state)
{
	struct client *a;
	struct member *reader;
	struct front *front;

	servers[0].conf.pool_max = 1;
	a = begin(0);
	reader = listen_to(a);
	request(a, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	pass(2000);
	front = open_session(INITIALIZE_WITH(""));
	goes(0);
	welcomes(1);
	begun(front);
	heard(reader, "");
	pass(500);
	session_end(front->call.client->session, REASON_DELETED);
	settle();
	goes(1);
	welcomes(2);
	hears(process(2), SUBSCRIBE("2"));
	heard(reader, CHANGED("tools") "|" UPDATED("r:a") "|");
}

/* §1.9 (3): sessions that only want their processes back do not make their caller one who waits with most. */
static void who_sleeps_does_not_wait(void **state)
{
	struct front *front, *hers, *his;

	servers[0].conf.queue_calls = 2;
	servers[0].conf.pool_max = 2;
	for (size_t i = 0; i < 2; i++) {
		request(begin_as(alice, i), SUBSCRIBE("1"));
		hears(process(i), SUBSCRIBE("2"));
		says(process(i), EMPTY("2"));
	}
	pass(2000);
	for (size_t i = 0; i < 2; i++) {
		front = open_session(INITIALIZE_WITH(""));
		goes(i);
		welcomes(2 + i);
		request(begun(front), CALL("1"));
	}
	assert_int_equal(count_logged("session_asleep"), 2);
	hers = open_session_as(alice, INITIALIZE_WITH(""));
	his = open_session_as(bob, INITIALIZE_WITH(""));
	is_failed(open_session_as(bob, INITIALIZE_WITH("")), REASON_OVER_LIMIT);
	is_open(hers);
	is_open(his);
}

/* A place comes when the server is not to be started: who waited hears why, and who sleeps is not forgotten. */
static void failing_servers_are_not_waited_for(void **state)
{
	struct client *leaves, *sleeps;
	struct front *front;

	servers[0].conf.pool_max = 1;
	sleeps = begin(0);
	request(sleeps, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	pass(2000);
	front = open_session(INITIALIZE_WITH(""));
	goes(0);
	welcomes(1);
	leaves = begun(front);
	front = open_session(INITIALIZE_WITH(""));
	is_open(front);
	servers[0].conf.backoff_min_ms = servers[0].conf.backoff_max_ms = 40000;
	servers[0].conf.give_up_after = 1;
	backoff_note_failed(&servers[0].backoff);
	session_end(leaves->session, REASON_DELETED);
	settle();
	goes(1);
	is_failed(front, REASON_BACKEND_DOWN);
	assert_int_equal(keeper.count, 2);
	for (int i = 0; i < 41; i++)
		pass(1000);
	welcomes(2);
	hears(process(2), SUBSCRIBE("2"));
}

/* ---- anything in any order ---- */

#define RANDOM_SESSIONS 9

static uint64_t random_state;

static uint64_t any(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

/* The process answers all that it has heard, each with the name of its session; and goes when it is to. */
static void play(size_t i, unsigned long owner[])
{
	unsigned long id, session;
	const char *line;
	char text[200];

	if (!process(i)->is_started || process(i)->is_exited)
		return;
	while ((line = fake_process_read(process(i))) != NULL) {
		const char *mark = strstr(line, "\"session\":");

		if (strstr(line, "\"initialize\"") != NULL) {
			says(process(i), WELCOME);
			continue;
		}
		if (mark == NULL)
			continue;
		assert_int_equal(sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &id), 1);
		session = strtoul(mark + 10, NULL, 10);
		assert_true(owner[i] == 0 || owner[i] == session); /* it is of one session alone */
		owner[i] = session;
		snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%lu,'result':{'of':%lu}}", id,
			 session);
		says(process(i), text);
	}
	if (process(i)->is_eof || process(i)->last_signal != 0)
		exits(process(i), 0);
}

static struct front *call_of_session(struct client *client, unsigned long session)
{
	char text[200];
	struct front *front;

	snprintf(text, sizeof(text),
		 "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'session':%lu}}",
		 session);
	front = request(client, text);
	front->mark = session;
	return front;
}

/* Sessions come and go, call or not, processes take their time: all get what is theirs, and nobody is left waiting. */
static void all_get_their_turn(void **state)
{
	struct principal *principals[] = { alice, bob, &router.sessions.principals.anonymous };
	struct front *sessions[RANDOM_SESSIONS] = { NULL };
	static unsigned long owner[FAKE_PROCESSES_MAX];
	unsigned long numbers[RANDOM_SESSIONS], last = 0;
	size_t answered = 0;

	random_state = 20251122;
	memset(owner, 0, sizeof(owner));
	while (keeper.count + 10 < FAKE_PROCESSES_MAX && front_count + 10 < STAGE_FRONTS_MAX &&
	       last < 5000) {
		size_t i = any(RANDOM_SESSIONS);

		if (sessions[i] == NULL) {
			sessions[i] = open_session_as(principals[any(3)], INITIALIZE_WITH(""));
			numbers[i] = ++last;
		} else if (sessions[i]->ending == ENDING_FAILED) {
			is_failed(sessions[i], REASON_OVER_LIMIT);
			sessions[i] = NULL;
		} else if (sessions[i]->ending == ENDING_RESPONSE && any(40) == 0) {
			session_end(sessions[i]->call.client->session, REASON_DELETED);
			sessions[i] = NULL;
		} else if (sessions[i]->ending == ENDING_RESPONSE) {
			call_of_session(sessions[i]->call.client, numbers[i]);
		}
		for (size_t n = any(4); n > 0 && keeper.count > 0; n--)
			play(keeper.count - 1 - any(keeper.count < 8 ? keeper.count : 8), owner);
		if (any(3) == 0)
			pass(any(4) * 700);
		assert_true(servers[0].count + servers[0].reserved <= servers[0].conf.pool_max);
	}
	for (int round = 0; round < 60; round++) {
		for (size_t i = 0; i < keeper.count; i++)
			play(i, owner);
		pass(1000);
	}
	for (size_t i = 0; i < front_count; i++) {
		char expected[40];

		assert_int_equal(fronts[i].endings, 1);
		snprintf(expected, sizeof(expected), "\"of\":%lu}", fronts[i].mark);
		if (fronts[i].mark == 0 || fronts[i].ending != ENDING_RESPONSE)
			continue;
		assert_non_null(strstr(buf_terminate(&fronts[i].response), expected));
		answered++;
	}
	print_message("# %zu processes, %lu sessions, %zu answered of %zu\n", (size_t)keeper.count,
		      last, answered, front_count);
	assert_true(answered > 300 && count_logged("session_asleep") > 50);
	assert_true(list_is_empty(&router.slots.waiting));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(longest_idle_gives_way),
	TEST(nothing_is_forgotten),
	TEST(who_works_keeps_it),
	TEST(some_go_before_others),
	TEST(subscribers_go_after_others),
	TEST(waiting_is_limited),
	TEST(servers_have_their_own_queues),
	TEST(equals_do_not_push_each_other_out),
	TEST(what_leaves_is_waited_for),
	TEST(what_leaves_later_is_waited_for),
	TEST(no_more_than_needed_go),
	TEST(shares_are_kept),
	TEST(overlapping_calls_are_no_excuse),
	TEST(who_finishes_gets_another),
	TEST(nobody_has_two_more_than_who_waits),
	TEST(who_retires_goes_on),
	TEST(one_retires_for_each),
	TEST(none_retires_that_starts),
	TEST(who_rests_does_not_retire),
	TEST(who_waits_gets_what_rests_first),
	TEST(room_is_used_first),
	TEST(none_retires_for_what_leaves),
	TEST(none_retires_for_who_sleeps),
	TEST(some_retire_at_another_server),
	TEST(no_more_retire_than_are_owed),
	TEST(least_comes_first),
	TEST(least_is_given_to_first),
	TEST(memory_may_be_worth_more),
	TEST(servers_give_way_to_each_other),
	TEST(servers_keep_what_helps_nobody),
	TEST(who_waits_comes_before_spares),
	TEST(sleep_comes_by_itself),
	TEST(who_is_gone_sleeps),
	TEST(who_left_is_not_waited_for),
	TEST(shares_are_for_who_has_less),
	TEST(moments_are_left),
	TEST(moments_are_left_to_who_rests),
	TEST(subscribers_come_last),
	TEST(updates_are_not_missed),
	TEST(who_sleeps_does_not_wait),
	TEST(failing_servers_are_not_waited_for),
	TEST(refusals_say_when),
	TEST(turns_are_given_back),
	TEST(all_get_their_turn),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
