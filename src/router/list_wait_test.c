/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a session with a server of its own that wait for its list of tools, as `pin: enforce` has them wait. */
#include "router/lists.h"

#include <sys/mman.h>
#include <unistd.h>

#include "process/pin_memory.h"
#include "router/client_stage.h"

#define HANDSHAKEN                                                                         \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':" \
	"{'tools':{'listChanged':true}},'serverInfo':{'name':'s','version':'1'}}}"
#define LIST(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list'}"
#define NEXT(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list','params':{'cursor':'2'}}"
#define PAGE(id, more) "{'jsonrpc':'2.0','id':" id ",'result':{'tools':[{'name':'t'}]" more "}}"
#define SCHEMA(id, text) \
	"{'jsonrpc':'2.0','id':" id ",'result':{'tools':[{'name':'t','inputSchema':" text "}]}}"
#define NO(id) "{'jsonrpc':'2.0','id':" id ",'error':{'code':-32603,'message':'m'}}"
#define UNTOLD(id)                                                                   \
	"{'jsonrpc':'2.0','id':" id ",'error':{'code':-32603,'message':'The server " \
	"does not tell its list: nothing that is not known is called'}}"

static struct client *client;
static struct fake_process *server;

static int setup(void **state)
{
	client_stage_open();
	servers[0].conf.pool_max = 3;
	servers[0].conf.queue_max = 100000;
	servers[0].conf.pin = PIN_ENFORCE;
	client = open_session(INITIALIZE_WITH(""))->call.client;
	server = process(0);
	assert_non_null(fake_process_read(server));
	says(server, HANDSHAKEN);
	hears(server, INITIALIZED);
	notify(client, INITIALIZED);
	return 0;
}

static void one_asks_for_all(void **state)
{
	request(client, CALL("1"));
	hears(server, LIST("2"));
	request(client, CALL("2"));
	says(server, PAGE("2", ",'nextCursor':'2'"));
	hears(server, NEXT("3"));
	request(client, CALL("3"));
	hears_nothing(server);
	says(server, PAGE("3", ""));
	hears(server, CALL("4"));
	hears(server, CALL("5"));
	hears(server, CALL("6"));
	request(client, CALL("4"));
	hears(server, CALL("7"));
	hears_nothing(server);
}

/* SEC-68: before a client has it, so that the next gateway takes no other list for the first. */
static void first_lists_are_saved_at_once(void **state)
{
	struct pin_memory memory;
	struct slice text;
	int fd = memfd_create("pins", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)PIN_MEMORY_FILE_BYTES), 0);
	pin_memory_init(&memory, router.loop, keeper.spawner, fd, servers, 1);
	servers[0].pin_memory = &memory;
	request(client, LIST("1"));
	says(server, PAGE("2", ""));
	assert_true(halves_read(memory.file, PIN_MEMORY_TEXT_BYTES, &text));
	assert_non_null(memmem(text.p, text.n, "\ttool\tapproved\t", 15));
	servers[0].pin_memory = NULL;
	pin_memory_fini(&memory);
	close(fd);
}

/* Who asked has gone: the list comes for the others. Once nobody waits, no more of it is asked for. */
static void who_asks_goes(void **state)
{
	struct front *first = request(client, CALL("1")), *second = request(client, CALL("2"));

	hears(server, LIST("2"));
	request(client, CALL("3"));
	call_cancel(&first->call);
	settle();
	hears_nothing(server);
	call_cancel(&second->call);
	says(server, PAGE("2", ""));
	hears(server, CALL("3"));
	hears_nothing(server);
	says(server, CHANGED("tools"));
	first = request(client, CALL("4"));
	hears(server, LIST("4"));
	call_cancel(&first->call);
	says(server, PAGE("4", ",'nextCursor':'2'"));
	hears_nothing(server);
	request(client, CALL("5"));
	hears(server, LIST("5"));
}

static void who_follows_goes(void **state)
{
	struct front *second;

	request(client, CALL("1"));
	hears(server, LIST("2"));
	second = request(client, CALL("2"));
	call_cancel(&second->call);
	says(server, PAGE("2", ""));
	hears(server, CALL("3"));
	hears_nothing(server);
}

/* What was asked for before is not what the server would say now. */
static void changes_are_asked_for_anew(void **state)
{
	request(client, CALL("1"));
	hears(server, LIST("2"));
	says(server, CHANGED("tools"));
	request(client, CALL("2"));
	hears(server, LIST("3"));
	request(client, CALL("3"));
	hears_nothing(server);
	says(server, PAGE("2", ""));
	hears(server, CALL("4"));
	hears_nothing(server);
	says(server, PAGE("3", ""));
	hears(server, CALL("5"));
	hears(server, CALL("6"));
	hears_nothing(server);
}

/* A failure is that of all who wait: the next one asks again. Who waits does so for ten seconds. */
static void failures_are_shared(void **state)
{
	struct front *first = request(client, CALL("1")), *second = request(client, CALL("2"));

	hears(server, LIST("2"));
	says(server, NO("2"));
	is_answered(first, UNTOLD("1"));
	is_answered(second, UNTOLD("2"));
	hears_nothing(server);
	first = request(client, CALL("3"));
	hears(server, LIST("3"));
	pass(9999);
	is_open(first);
	pass(1);
	is_answered(first, UNTOLD("3"));
	hears_nothing(server);
	second = request(client, CALL("4"));
	hears_nothing(server);
	says(server, PAGE("3", "")); /* it comes after all */
	hears(server, CALL("4"));
	is_open(second);
}

/* What waits keeps its text: no more of a session than may wait for a process. */
static void waiting_calls_are_bounded(void **state)
{
	struct front *first, *second, *third;

	servers[0].conf.queue_max = 2 * (sizeof(CALL("1")) - 1); /* just two */
	first = request(client, CALL("1"));
	second = request(client, CALL("2"));
	third = request(client, CALL("3"));
	is_failed(third, REASON_OVER_LIMIT);
	hears(server, LIST("2"));
	call_cancel(&second->call);
	third = request(client, CALL("4"));
	is_failed(request(client, CALL("5")), REASON_OVER_LIMIT);
	is_open(third);
	servers[0].conf.queue_max = 100000; /* of the process */
	says(server, PAGE("2", ""));
	is_open(first);
	hears(server, CALL("3"));
	hears(server, CALL("4"));
	says(server, CHANGED("tools"));
	servers[0].conf.queue_max = 2 * (sizeof(CALL("1")) - 1);
	request(client, CALL("6"));
	request(client, CALL("7"));
	is_failed(request(client, CALL("8")), REASON_OVER_LIMIT);
	hears(server, LIST("5"));
}

/* A list that cannot be kept is read to its end: all of it has to be looked at, and once is enough. */
static void odd_lists_are_read_to_their_end(void **state)
{
	struct front *front = request(client, CALL("1"));

	hears(server, LIST("2"));
	says(server, "{'jsonrpc':'2.0','id':2,'result':{'tools':'none','nextCursor':'2'}}");
	is_open(front);
	hears(server, NEXT("3"));
	says(server, PAGE("3", ""));
	hears(server, CALL("4"));
	request(client, CALL("2"));
	hears(server, CALL("5"));
	says(server, CHANGED("tools"));
	front = request(client, CALL("3"));
	hears(server, LIST("6"));
	says(server, "{'jsonrpc':'2.0','id':6,'result':{'tools':'none','nextCursor':'2'}}");
	hears(server, NEXT("7"));
	says(server, NO("7"));
	is_answered(front, UNTOLD("3"));
	hears_nothing(server);
}

/* What one process has listed says nothing of the next. */
static void lists_are_of_their_process(void **state)
{
	struct front *first;

	servers[0].conf.pin = PIN_OFF;
	servers[0].conf.checks_schemas = true;
	first = request(client, CALL("1"));
	hears(server, LIST("2"));
	says(server, SCHEMA("2", "{}"));
	hears(server, CALL("3"));
	says(server, RESULT("3"));
	is_answered(first, RESULT("1"));
	exits(server, 0);
	first = request(client, CALL("2"));
	server = process(1);
	assert_non_null(fake_process_read(server));
	says(server, HANDSHAKEN);
	hears(server, INITIALIZED);
	hears(server, LIST("2"));
	says(server, SCHEMA("2", "{'required':['a']}"));
	hears_nothing(server);
	assert_int_equal(first->ending, ENDING_RESPONSE);
}

static void sessions_end(void **state)
{
	struct front *first = request(client, CALL("1")), *second = request(client, CALL("2"));

	hears(server, LIST("2"));
	exits(server, 1);
	is_failed(first, REASON_CHILD_EXITED);
	is_failed(second, REASON_CHILD_EXITED);
}

#define WAIT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, client_stage_close)

static const struct CMUnitTest tests[] = {
	WAIT_TEST(one_asks_for_all),
	WAIT_TEST(first_lists_are_saved_at_once),
	WAIT_TEST(who_asks_goes),
	WAIT_TEST(who_follows_goes),
	WAIT_TEST(changes_are_asked_for_anew),
	WAIT_TEST(failures_are_shared),
	WAIT_TEST(waiting_calls_are_bounded),
	WAIT_TEST(lists_are_of_their_process),
	WAIT_TEST(sessions_end),
	WAIT_TEST(odd_lists_are_read_to_their_end),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
