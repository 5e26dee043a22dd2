/* SPDX-License-Identifier: Apache-2.0 */
/* subscriptions/listen at a legacy server: what is acknowledged, and how many there may be. MOD-SUB-01 */
#include "router/change_listener.h"

#include "router/client_request.h"
#include "router/request_stage.h"

#define LISTEN(id, filter)                                                        \
	"{'jsonrpc':'2.0','id':" id ",'method':'subscriptions/listen','params':{" \
	"'notifications':{" filter "}," ASKER_META("") "}}"
#define ALL_LISTS "'toolsListChanged':true,'promptsListChanged':true,'resourcesListChanged':true"
#define ID(id) "'_meta':{'io.modelcontextprotocol/subscriptionId':" id "}"
#define ACKNOWLEDGED(id, what)                                                                \
	"{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged','params':{" ID( \
		id) ",'notifications':{" what "}}}|"

static void has_heard(struct asker *asker, const char *text)
{
	assert_string_equal(buf_terminate(&asker->messages), q(text));
	asker->messages.len = 0;
}

/* The server tells of tools and resources, and offers prompts all the same. */
static void only_what_is_told_is_acknowledged(void **state)
{
	struct asker *asker = ask(LISTEN("1", ALL_LISTS)), *other;

	get_ready(0);
	has_heard(asker, ACKNOWLEDGED("1", "'toolsListChanged':true,'resourcesListChanged':true"));
	other = ask(LISTEN("2", "'toolsListChanged':true,'resourcesListChanged':false"));
	has_heard(other, ACKNOWLEDGED("2", "'toolsListChanged':true"));
	says(process(0), CHANGED("prompts"));
	says(process(0), CHANGED("resources"));
	pass(1000);
	has_heard(asker, "{'jsonrpc':'2.0','method':'notifications/resources/list_changed',"
			 "'params':{" ID("1") "}}|");
	has_heard(other, "");
	call_cancel(&asker->call);
	call_cancel(&other->call);
}

/* SEC-50: what the client may not read, it does not hear of, nor does the server of it. */
static void nothing_is_heard_of_what_is_denied(void **state)
{
	struct permissions *permissions = &servers[0].conf.permissions;
	const struct slice all[] = { SLICE("*") }, denied[] = { SLICE("r:b") };
	struct asker *asker;

	for (size_t i = 0; i < PERMISSION_KINDS; i++)
		permissions->kinds[i].allow = (struct slices){ all, 1 };
	permissions->kinds[PERMISSION_RESOURCE].deny = (struct slices){ denied, 1 };
	permissions_finish(permissions);
	asker = ask(LISTEN("1", "'resourceSubscriptions':['r:b','R:\\u0062','r:a','r:\\u0061']"));
	get_ready(0);
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	has_heard(asker, ACKNOWLEDGED("1", "'resourceSubscriptions':['r:a']"));
	hears_nothing(process(0));
	call_cancel(&asker->call);
	permissions_free(permissions);
	*permissions = (struct permissions){ .has_rules = false };
}

/* A server that does not answer is not waited for, and what it tells before nobody hears. */
static void what_is_not_answered_is_left_out(void **state)
{
	struct asker *asker;

	asker = ask(LISTEN("1", "'toolsListChanged':true,'resourceSubscriptions':['r:a']"));
	get_ready(0);
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), CHANGED("tools"));
	pass(9999);
	has_heard(asker, "");
	pass(1);
	has_heard(asker, ACKNOWLEDGED("1", "'toolsListChanged':true"));
	reads_one(0); /* the cancellation */
	says(process(0), EMPTY("2"));
	says(process(0), UPDATED("r:a"));
	says(process(0), CHANGED("tools"));
	pass(1000);
	has_heard(asker, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed',"
			 "'params':{" ID("1") "}}|");
	call_cancel(&asker->call);
}

/* bridging.md §1.5: the last one who goes takes the subscription with it, and the next begins it anew. */
static void who_goes_is_forgotten(void **state)
{
	struct asker *askers[2];

	for (size_t i = 0; i < 2; i++) {
		askers[i] = ask(LISTEN("1", "'resourceSubscriptions':['r:a']"));
		if (i == 0) {
			get_ready(0);
			hears(process(0), SUBSCRIBE("2"));
			says(process(0), EMPTY("2"));
		}
		has_heard(askers[i], ACKNOWLEDGED("1", "'resourceSubscriptions':['r:a']"));
	}
	call_cancel(&askers[0]->call);
	settle();
	hears_nothing(process(0));
	call_cancel(&askers[1]->call);
	settle();
	hears(process(0), UNSUBSCRIBE("3"));
	askers[0] = ask(LISTEN("1", "'resourceSubscriptions':['r:a']"));
	hears(process(0), SUBSCRIBE("4"));
	call_cancel(&askers[0]->call);
}

static void each_caller_has_so_many(void **state)
{
	struct asker *askers[2];

	router.sessions.conf.max_per_principal = 2;
	for (size_t i = 0; i < 2; i++) {
		askers[i] = ask(LISTEN("1", "'toolsListChanged':true"));
		if (i == 0)
			get_ready(0);
		has_heard(askers[i], ACKNOWLEDGED("1", "'toolsListChanged':true"));
	}
	was_refused(ask(LISTEN("1", "")), "-32603", "");
	call_cancel(&askers[0]->call);
	askers[0] = ask(LISTEN("1", ""));
	has_heard(askers[0], ACKNOWLEDGED("1", ""));
	for (size_t i = 0; i < 2; i++)
		call_cancel(&askers[i]->call);
}

#define LISTEN_TEST(name) cmocka_unit_test_setup_teardown(name, request_setup, request_teardown)

/* Who leaves before anything is known of the server leaves nothing. */
static void who_leaves_early_leaves_nothing(void **state)
{
	struct asker *asker = ask(LISTEN("1", "'resourceSubscriptions':['r:a','r:b']"));

	call_cancel(&asker->call);
	asker = ask(LISTEN("1", "'resourceSubscriptions':['r:a','r:b']"));
	get_ready(0);
	hears(process(0), SUBSCRIBE("2"));
	call_cancel(&asker->call); /* the server has not agreed yet */
	settle();
}

/* What ends are the streams to that server; or those of callers without a name. */
static void streams_end_with_their_server(void **state)
{
	struct asker *askers[] = { ask(LISTEN("1", "'toolsListChanged':true")), NULL };

	get_ready(0);
	askers[1] = ask_as(alice, LISTEN("2", "'toolsListChanged':true"));
	get_ready(1);
	client_request_drain_some(&router, &servers[1]);
	settle();
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(askers[i]->ending, ENDING_NONE);
	client_request_drain_some(&router, NULL);
	settle();
	assert_int_equal(askers[0]->ending, ENDING_RESPONSE);
	assert_int_equal(askers[1]->ending, ENDING_NONE);
	client_request_drain_some(&router, &servers[0]);
	settle();
	assert_int_equal(askers[1]->ending, ENDING_RESPONSE);
}

static const struct CMUnitTest tests[] = {
	LISTEN_TEST(who_leaves_early_leaves_nothing),
	LISTEN_TEST(streams_end_with_their_server),
	LISTEN_TEST(only_what_is_told_is_acknowledged),
	LISTEN_TEST(nothing_is_heard_of_what_is_denied),
	LISTEN_TEST(what_is_not_answered_is_left_out),
	LISTEN_TEST(who_goes_is_forgotten),
	LISTEN_TEST(each_caller_has_so_many),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
