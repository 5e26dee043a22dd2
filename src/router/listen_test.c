/* SPDX-License-Identifier: Apache-2.0 */
/* What changes at a modern server, and who hears of it. bridging §2.2, BACK-MSG-03 */
#include "router/router.h"

#include "obs/counters.h"
#include "router/era_stage.h"
#include "router/process_slots.h"

#define TELLS "'tools':{'listChanged':true},'resources':{'subscribe':true}"
#define META_NOBODY META_OF("", CLIENT) "}"
#define LISTEN(id, filter) \
	REQUEST(id, "subscriptions/listen", META_NOBODY ",'notifications':{" filter "}")
#define LISTS "'toolsListChanged':true"
#define URIS(uris) LISTS ",'resourceSubscriptions':[" uris "]"
#define BY(id) "'_meta':{'" META "subscriptionId':" id "}"
#define AGREES(id, filter)                                                                    \
	"{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged','params':{" BY( \
		id) ",'notifications':{" filter "}}}"
#define CHANGED_BY(id) \
	"{'jsonrpc':'2.0','method':'notifications/tools/list_changed','params':{" BY(id) "}}"
#define CHANGE "{'jsonrpc':'2.0','method':'notifications/tools/list_changed','params':{}}|"
#define UPDATED_BY(id, uri)                                                                 \
	"{'jsonrpc':'2.0','method':'notifications/resources/updated','params':{'uri':'" uri \
	"'," BY(id) "}}"
#define UPDATE(uri) \
	"{'jsonrpc':'2.0','method':'notifications/resources/updated','params':{'uri':'" uri "'}}|"
#define GIVEN_UP(id, why)                                                               \
	"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':" id \
	",'reason':'" why "'}}"
#define REPLACED(id) GIVEN_UP(id, "another one has taken its place")

/* A session whose server has agreed to tell it. */
static struct member *begin_listening(void)
{
	struct member *member = begin_with("", TELLS);

	hears(process(0), LISTEN("2", LISTS));
	says(process(0), AGREES("2", LISTS));
	return member;
}

static void only_the_agreed_is_heard(void **state)
{
	struct member *member = begin_with("", TELLS);
	uint64_t dropped;

	hears(process(0), LISTEN("2", LISTS));
	says(process(0), CHANGED_BY("2"));
	dropped = counter_get(COUNTER_CHILD_DROPPED);
	says(process(0), AGREES("3", LISTS));
	assert_int_equal(counter_get(COUNTER_CHILD_DROPPED) - dropped, 1);
	says(process(0), CHANGED_BY("2"));
	heard(member, "");
	says(process(0), AGREES("2", LISTS));
	says(process(0), CHANGED_BY("1"));
	says(process(0), CHANGED_BY("'x'"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
	heard(member, "");
	says(process(0), CHANGED_BY("'2'"));
	heard(member, CHANGE);
	/* It is no work. */
	assert_int_equal(upstream_load(pool_own_upstream(member->client->pool)), 0);
}

static void subscription_waits_for_the_server(void **state)
{
	struct member *member = begin_listening();
	struct front *front = request(member->client, SUBSCRIBE("5"));

	hears(process(0), LISTEN("4", URIS("'r:a'")));
	is_open(front);
	says(process(0), CHANGED_BY("2"));
	heard(member, CHANGE);
	says(process(0), AGREES("4", URIS("'r\\u003aa'")));
	is_answered(front, EMPTY("5"));
	hears(process(0), REPLACED("2"));
	says(process(0), CHANGED_BY("2"));
	heard(member, "");
	says(process(0), UPDATED_BY("4", "r:a"));
	heard(member, UPDATE("r:a"));
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications/message','params':{'uri':'r:a'," BY(
		     "4") "}}"); /* is no update */
	heard(member, "");
	is_answered(request(member->client, UNSUBSCRIBE("6")), EMPTY("6"));
	hears(process(0), LISTEN("5", LISTS));
	says(process(0), AGREES("5", LISTS));
	hears(process(0), REPLACED("4"));
}

/* Both are about a resource, and name none. */
static void requests_without_uri_are_refused(void **state)
{
	struct member *member = begin_listening();

	assert_true(is_error(request(member->client, "{'jsonrpc':'2.0','id':5,'method':"
						     "'resources/subscribe','params':{}}"),
			     "-32602"));
	assert_true(is_error(request(member->client, "{'jsonrpc':'2.0','id':6,'method':"
						     "'resources/unsubscribe','params':{}}"),
			     "-32602"));
	hears_nothing(process(0));
}

static void server_may_not_know_the_resource(void **state)
{
	struct member *member = begin_listening();
	struct front *front = request(member->client, SUBSCRIBE("5"));

	says(process(0), AGREES("4", LISTS));
	assert_true(is_error(front, "-32602"));
	assert_int_equal(member->client->subscriptions.count, 0);
}

static void server_may_refuse(void **state)
{
	struct member *member = begin_listening();
	struct front *front = request(member->client, SUBSCRIBE("5"));

	says(process(0), ERROR("4", "-32601"));
	assert_true(is_error(front, "-32602"));
	says(process(0), CHANGED_BY("2"));
	heard(member, CHANGE);
}

static void server_may_be_silent(void **state)
{
	struct member *member = begin_listening();
	struct front *front = request(member->client, SUBSCRIBE("5"));

	hears(process(0), LISTEN("4", URIS("'r:a'")));
	pass(9999);
	is_open(front);
	pass(1);
	assert_true(is_error(front, "-32602"));
	hears(process(0), GIVEN_UP("4", "it was not acknowledged in time"));
	says(process(0), AGREES("4", URIS("'r:a'")));
	says(process(0), CHANGED_BY("4"));
	heard(member, "");
}

/* At most one is on its way. */
static void changes_meanwhile_are_for_the_next(void **state)
{
	struct member *member = begin_listening();
	struct front *first = request(member->client, SUBSCRIBE("5"));
	struct front *second =
		request(member->client,
			"{'jsonrpc':'2.0','id':6,'method':'resources/subscribe','params'"
			":{'uri':'r:\\u0062'}}");

	hears(process(0), LISTEN("4", URIS("'r:a'")));
	hears_nothing(process(0));
	says(process(0), AGREES("4", URIS("'r:a'")));
	is_answered(first, EMPTY("5"));
	is_open(second);
	hears(process(0), REPLACED("2"));
	hears(process(0), LISTEN("6", URIS("'r:a','r:b'")));
	says(process(0), AGREES("6", URIS("'r:a','r:b'")));
	is_answered(second, EMPTY("6"));
}

/* Both ways to say so end it. BACK-MSG-03 */
static void server_may_end_it(void **state)
{
	static const char *const ways[] = {
		"{'jsonrpc':'2.0','id':2,'result':{'resultType':'complete'}}",
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2}}",
		"{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':'m'}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct member *member = begin_listening();

		says(process(0), ways[i]);
		says(process(0), CHANGED_BY("2"));
		heard(member, "");
		hears_nothing(process(0));
		client_stage_close(state);
		era_setup_modern(state);
	}
}

/* A client that has gone does not keep others from being answered. */
static void subscriber_may_go(void **state)
{
	struct member *member = begin_listening();
	struct front *front = request(member->client, SUBSCRIBE("5"));

	notify(member->client, CANCELLED("5"));
	assert_int_equal(front->ending, ENDING_CANCELLED);
	says(process(0), AGREES("4", URIS("'r:a'")));
	assert_int_equal(member->client->subscriptions.count, 0);
	front = request(member->client, SUBSCRIBE("7"));
	session_end(member->client->session, REASON_DELETED);
	assert_int_equal(front->endings, 1);
}

static struct front *subscribe_to(struct member *member, int id, const char *uri)
{
	struct buf text = { 0 };
	struct front *front;

	buf_printf(&text,
		   "{'jsonrpc':'2.0','id':%d,'method':'resources/subscribe','params':{'uri':'%s'}}",
		   id, uri);
	front = request(member->client, buf_terminate(&text));
	buf_fini(&text);
	return front;
}

/* Nothing of those who have cancelled meanwhile is asked for. */
static void who_has_left_is_not_asked_for(void **state)
{
	struct member *member = begin_listening();
	struct front *first = request(member->client, SUBSCRIBE("5"));
	struct front *second = subscribe_to(member, 6, "r:b");

	hears(process(0), LISTEN("4", URIS("'r:a'")));
	notify(member->client, CANCELLED("6"));
	assert_int_equal(second->ending, ENDING_CANCELLED);
	hears(process(0), CANCELLED("5"));
	says(process(0), AGREES("4", URIS("'r:a'")));
	is_answered(first, EMPTY("5"));
	hears(process(0), REPLACED("2"));
	hears_nothing(process(0));
}

/* DEF-11: while the server does not agree, only so many can wait for that. */
static void waiting_for_agreement_is_bounded(void **state)
{
	struct member *member = begin_listening();
	struct front *first = request(member->client, SUBSCRIBE("5"));
	struct front *last = first;
	char uri[8001] = "";
	int id = 6;

	memset(uri, 'u', sizeof(uri) - 1);
	while (last->ending == ENDING_NONE && id < 200) {
		uri[0] = (char)('a' + id % 26); /* each another one */
		uri[1] = (char)('a' + id / 26);
		last = subscribe_to(member, id++, uri);
	}
	assert_true(is_error(last, "-32602"));
	assert_true(id > 100);
	is_open(first);
	notify(member->client, CANCELLED("6"));
	is_open(subscribe_to(member, id, uri));
}

/* BACK-PROC-05 */
static void next_process_is_asked_anew(void **state)
{
	struct member *member = begin_listening();
	struct front *front = request(member->client, SUBSCRIBE("5"));

	says(process(0), AGREES("4", URIS("'r:a'")));
	is_answered(front, EMPTY("5"));
	exits(process(0), 1);
	pass(1000);
	hears(process(1), DISCOVER("", CLIENT));
	says(process(1), DISCOVERED_WITH(TELLS));
	hears(process(1), LISTEN("2", URIS("'r:a'")));
}

/* In a shared pool every process tells what it knows; each subscription is told to who has it. */
static int setup_shared(void **state)
{
	pool_setup(state);
	servers[0].conf.era = ERA_MODERN;
	return 0;
}

static void pools_listen_once(void **state)
{
	struct member *one, *two;
	struct front *front;

	one = join((front = open_session(INITIALIZE_WITH("")),
		    says(process(0), DISCOVERED_WITH(TELLS)), front));
	two = join(open_session(INITIALIZE_WITH("")));
	assert_non_null(fake_process_read(process(0)));
	hears(process(0), REQUEST("2", "subscriptions/listen",
				  META_OF("", GATEWAY) "},'notifications':{" LISTS "}"));
	says(process(0), AGREES("2", LISTS));
	front = request(one->client, SUBSCRIBE("5"));
	says(process(0), AGREES("4", URIS("'r:a'")));
	is_answered(front, EMPTY("5"));
	is_answered(request(two->client, SUBSCRIBE("6")), EMPTY("6"));
	says(process(0), UPDATED_BY("4", "r:a"));
	says(process(0), CHANGED_BY("4"));
	pass(100);
	heard(one, UPDATE("r:a") "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}|");
	heard(two, UPDATE("r:a") "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}|");
	while (fake_process_read(process(0)) != NULL)
		;
	is_answered(request(one->client, UNSUBSCRIBE("7")), EMPTY("7"));
	hears_nothing(process(0));
	is_answered(request(two->client, UNSUBSCRIBE("8")), EMPTY("8"));
	hears(process(0), REQUEST("5", "subscriptions/listen",
				  META_OF("", GATEWAY) "},'notifications':{" LISTS "}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MODERN_TEST(only_the_agreed_is_heard),
		MODERN_TEST(subscription_waits_for_the_server),
		MODERN_TEST(requests_without_uri_are_refused),
		MODERN_TEST(server_may_not_know_the_resource),
		MODERN_TEST(server_may_refuse),
		MODERN_TEST(server_may_be_silent),
		MODERN_TEST(changes_meanwhile_are_for_the_next),
		MODERN_TEST(server_may_end_it),
		MODERN_TEST(subscriber_may_go),
		MODERN_TEST(who_has_left_is_not_asked_for),
		MODERN_TEST(waiting_for_agreement_is_bounded),
		MODERN_TEST(next_process_is_asked_anew),
		cmocka_unit_test_setup_teardown(pools_listen_once, setup_shared,
						client_stage_close),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
