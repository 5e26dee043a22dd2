/* SPDX-License-Identifier: Apache-2.0 */
/* Whose stream is over, and when. */
#include "endpoint/caller.h"

#include "base/clock.h"
#include "router/stage.h"

#define DAY_MS (24 * 3600 * UINT64_C(1000))

static struct frontend frontend;
static struct deny_list deny_list;
static struct access access;
static struct caller caller;
static struct token_watch *token_watch;
static enum reason ended;
static struct rights told;
static struct server server;
static struct endpoint endpoint = { .server = &server, .place = { .server = SLICE("main") } };

static void on_over(void *owner, enum reason reason)
{
	ended = reason;
}

static void on_rights(void *owner, const struct rights *rights)
{
	told = *rights;
}

static const struct token_watch_ops watch_ops = { .on_over = on_over, .on_rights = on_rights };

static int setup(void **state)
{
	const struct identity identity = { .issuer = SLICE("static"), .subject = SLICE("ci") };
	const struct http_request http = { .seen = 0 };
	const struct endpoint_request request = {
		.frontend = &frontend, .endpoint = &endpoint, .access = &access, .http = &http
	};

	router_stage_open();
	deny_list_init(&deny_list);
	frontend.router = &router;
	frontend.authorization = (struct authorization){ .conf = { .mode = AUTHORIZATION_TOKEN },
							 .principals = &router.sessions.principals,
							 .deny_list = &deny_list };
	list_init(&frontend.authorization.watches);
	access =
		(struct access){ .principal = principal_get(&router.sessions.principals, &identity),
				 .ends_at_ms = clock_wall_ms() + DAY_MS };
	ended = REASON_DONE;
	token_watch = token_watch_new(&request, &watch_ops, NULL);
	caller = (struct caller){ .endpoint = &endpoint, .access = access };
	token_watch_begin(token_watch, &caller);
	assert_int_equal(server.users, 1);
	return token_watch != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	token_watch_end(&token_watch);
	assert_int_equal(server.users, 0);
	access_fini(&access);
	deny_list_fini(&deny_list);
	return router_stage_close(state);
}

static void stream_stays_as_long_as_its_token(void **state)
{
	pass(DAY_MS);
	assert_int_equal(ended, REASON_DONE); /* the wall clock says otherwise */
}

/* AUTH-SES-06, REL-49: the token's end is a date; the machine may sleep, or its clock be put right. */
static void a_clock_that_jumps_is_noticed(void **state)
{
	pass(1000);
	token_watch->access.ends_at_ms = clock_wall_ms(); /* as if it had become a day later */
	pass(60000);
	assert_int_equal(ended, REASON_EXPIRED);
}

/* Less than the shortest time that a watch waits. */
static void the_last_moment_is_watched(void **state)
{
	token_watch->access.ends_at_ms = clock_wall_ms() + 50;
	pass(60000);
	token_watch->access.ends_at_ms = clock_wall_ms();
	pass(100);
	assert_int_equal(ended, REASON_EXPIRED);
}

/* AUTH-SES-07 */
static void a_denied_token_ends_its_stream(void **state)
{
	assert_non_null(deny_list_add(&deny_list, SLICE_LIT("static"), DENIAL_BY_SUB,
				      SLICE_LIT("bob"), UINT64_MAX));
	assert_int_equal(ended, REASON_DONE);
	assert_non_null(deny_list_add(&deny_list, SLICE_LIT("static"), DENIAL_BY_SUB,
				      SLICE_LIT("ci"), UINT64_MAX));
	assert_int_equal(ended, REASON_DENIED);
}

/* mcpgated.yaml(5): by the rules that hold now, with the rights that follow from them. */
static void another_configuration_judges(void **state)
{
	struct static_token token = { .name = SLICE("ci"), .rights = { .needs_scopes = true } };
	struct authorization_conf *conf = &frontend.authorization.conf;
	static const struct scope_table none;

	conf->scopes = &none;
	conf->tokens = (struct static_tokens){ &token, 1 };
	token.rights.scopes.words[0] = 1 << 3;
	token_watch_judge_all(&frontend.authorization);
	assert_int_equal(ended, REASON_DONE);
	assert_memory_equal(&told, &token.rights, sizeof(told));
	endpoint.place.base.words[0] = 1 << 4;
	token_watch_judge_all(&frontend.authorization);
	assert_int_equal(ended, REASON_REVOKED);
	ended = REASON_DONE;
	token_watch_judge_all(&frontend.authorization);
	assert_int_equal(ended, REASON_DONE); /* it is over */
	endpoint.place.base.words[0] = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stream_stays_as_long_as_its_token, setup, teardown),
		cmocka_unit_test_setup_teardown(a_clock_that_jumps_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_moment_is_watched, setup, teardown),
		cmocka_unit_test_setup_teardown(a_denied_token_ends_its_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(another_configuration_judges, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
