/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets which token, how often it is asked for, and what of it a reload, a refusal and time leave. BACK-URL-10 */
#include "upstream/credential.h"

#include <unistd.h>

#include "auth/fetch_client.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/unit_test.h"
#include "io/ipc.h"
#include "obs/log.h"
#include "process/server.h"
#include "session/principal.h"

#define WAITS 4

struct told {
	struct credential_wait wait;
	bool is_told;
	char token[32];
	char error[128];
	uint64_t good_until_ms;
};

static struct {
	struct loop *loop;
	struct fetch_client *client;
	int fd; /* the fetcher's end */
	struct credentials credentials;
	struct principal_set principals;
	struct server own, exchanged;
	struct told told[WAITS];
	struct ipc_message asked;
} world;

static void take_answer(struct told *told, const struct credential_answer *answer)
{
	assert_false(told->is_told);
	told->is_told = true;
	snprintf(told->token, sizeof(told->token), "%.*s", SLICE_ARG(answer->token));
	snprintf(told->error, sizeof(told->error), "%s",
		 answer->error != NULL ? answer->error : "");
	told->good_until_ms = answer->good_until_ms;
}

static void on_done(struct credential_wait *wait, const struct credential_answer *answer)
{
	take_answer(container_of(wait, struct told, wait), answer);
}

static void use_fetcher(void)
{
	struct fetch_client *before = world.client;
	int fds[2];

	if (world.fd >= 0)
		close(world.fd);
	assert_int_equal(ipc_pair(fds, NULL), 0);
	world.fd = fds[1];
	world.client = fetch_client_new(world.loop);
	fetch_client_connect(world.client, fds[0]);
	credentials_use(&world.credentials, world.client);
	fetch_client_free(&before);
}

static int open_world(void **state)
{
	struct error err;

	memset(&world, 0, sizeof(world));
	clock_freeze(1000000);
	log_set(2, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	world.fd = -1;
	world.loop = loop_new(&err);
	assert_non_null(world.loop);
	credentials_init(&world.credentials, world.loop);
	principal_set_init(&world.principals);
	world.own.conf.name = "own";
	world.own.conf.credential = 1;
	world.exchanged.conf.name = "exchanged";
	world.exchanged.conf.credential = 2;
	world.exchanged.conf.for_caller = true;
	use_fetcher();
	return 0;
}

static int close_world(void **state)
{
	for (size_t i = 0; i < WAITS; i++)
		credential_cancel(&world.told[i].wait);
	credentials_fini(&world.credentials);
	fetch_client_free(&world.client);
	close(world.fd);
	loop_free(&world.loop);
	return 0;
}

static struct principal *person(const char *name, const char *token)
{
	const struct identity identity = { SLICE("https://i"), slice_str(name), SLICE("") };
	struct principal *principal = principal_get(&world.principals, &identity);

	if (token != NULL)
		principal_keep_token(principal, SLICE_LIT("exchanged"), slice_str(token));
	return principal;
}

/* Asks for it in this place. */
static struct told *get(size_t at, const struct server *server, struct principal *principal)
{
	struct told *told = &world.told[at];
	struct credential_answer answer;

	*told = (struct told){ .wait = { .on_done = on_done } };
	if (credential_get(&world.credentials, server, principal, &told->wait, &answer))
		take_answer(told, &answer);
	return told;
}

/* Whether the fetcher is asked something more. */
static bool is_asked(void)
{
	struct error err;

	loop_turn(world.loop, false);
	return ipc_recv(world.fd, &world.asked, &err) == 1;
}

static void assert_asked(uint32_t number, const char *subject)
{
	assert_true(is_asked());
	assert_int_equal(world.asked.type, IPC_ASK);
	assert_int_equal(world.asked.ask.kind, FETCH_TOKEN);
	assert_int_equal(world.asked.ask.issuer, number);
	assert_true(slice_is_equal(world.asked.texts[1], slice_str(subject)));
}

/* Answers what was asked last. */
static void answer(int status, const char *token, uint32_t good_s, const char *error)
{
	uint32_t id = world.asked.ask.id;
	struct error err;

	assert_int_equal(ipc_send(world.fd,
				  &(struct ipc_message){
					  .type = IPC_ANSWER,
					  .answer = { id, status, (uint32_t)strlen(token), good_s },
					  .texts = { slice_str(error) } },
				  &err),
			 0);
	if (token[0] != '\0')
		assert_int_equal(ipc_send(world.fd,
					  &(struct ipc_message){ .type = IPC_PART,
								 .part = { id },
								 .texts = { slice_str(token) } },
					  &err),
				 0);
	loop_turn(world.loop, false);
}

static void assert_got(const struct told *told, const char *token)
{
	assert_true(told->is_told);
	assert_string_equal(told->error, "");
	assert_string_equal(told->token, token);
}

static void one_question_for_all_who_wait(void **state)
{
	struct told *first = get(0, &world.own, NULL), *second = get(1, &world.own, NULL);

	assert_asked(0, "");
	credential_cancel(&get(2, &world.own, NULL)->wait);
	assert_false(is_asked());
	answer(200, "t1", 3600, "");
	assert_got(first, "t1");
	assert_got(second, "t1");
	assert_false(world.told[2].is_told);
	assert_int_equal(first->good_until_ms, 1000000 + 3600 * 1000 - 30000);
	assert_got(get(3, &world.own, NULL), "t1");
	assert_false(is_asked());
}

static void each_caller_his_own(void **state)
{
	struct principal *alice = person("alice", "a"), *bob = person("bob", "b"),
			 *none = person("none", NULL);
	struct told *of_alice = get(0, &world.exchanged, alice), *of_bob;
	struct ipc_message asked_for_alice;

	assert_asked(1, "a");
	asked_for_alice = world.asked;
	of_bob = get(1, &world.exchanged, bob);
	assert_asked(1, "b");
	answer(200, "for-b", 60, "");
	assert_got(of_bob, "for-b");
	assert_false(of_alice->is_told);
	world.asked = asked_for_alice;
	answer(200, "for-a", 60, "");
	assert_got(of_alice, "for-a");
	assert_int_equal(of_alice->good_until_ms, 1000000 + 45000);
	/* Another token of hers is another subject. */
	principal_keep_token(alice, SLICE_LIT("exchanged"), SLICE_LIT("a2"));
	get(0, &world.exchanged, alice);
	assert_asked(1, "a2");
	assert_string_equal(get(2, &world.exchanged, none)->token, "");
	assert_non_null(strstr(world.told[2].error, "has shown no token"));
	assert_non_null(strstr(get(3, &world.exchanged, NULL)->error, "has shown no token"));
	assert_false(is_asked());
	credential_cancel(&world.told[0].wait);
	principal_unref(&alice);
	principal_unref(&bob);
	principal_unref(&none);
}

static void before_its_end_it_is_got_anew(void **state)
{
	struct told *told = get(0, &world.own, NULL);

	assert_asked(0, "");
	answer(200, "t1", 100, "");
	assert_got(told, "t1");
	clock_freeze(told->good_until_ms - 1);
	assert_got(get(0, &world.own, NULL), "t1");
	clock_freeze(told->good_until_ms);
	assert_false(get(0, &world.own, NULL)->is_told);
	assert_asked(0, "");
	answer(200, "t2", 100, "");
	assert_got(told, "t2");
	clock_freeze(told->good_until_ms);
	assert_false(get(0, &world.own, NULL)->is_told);
	assert_asked(0, "");
	answer(200, "t3", 0, "");
	assert_string_equal(told->error, "the token that came is over already");
}

/* It tells its time by the wall clock, and so does whoever judges it. */
static void a_machine_that_has_slept_gets_it_anew(void **state)
{
	struct told *told = get(0, &world.own, NULL);

	assert_asked(0, "");
	answer(200, "t1", 100, "");
	assert_got(told, "t1");
	clock_step_wall(60000);
	clock_freeze(clock_now_ms() + 1);
	assert_got(get(0, &world.own, NULL), "t1");
	clock_step_wall(60000);
	clock_freeze(clock_now_ms() + 1);
	assert_false(get(0, &world.own, NULL)->is_told);
	assert_asked(0, "");
	answer(200, "t2", 100, "");
	assert_got(told, "t2");
}

static void a_failure_counts_for_a_while(void **state)
{
	struct told *told = get(0, &world.own, NULL);

	assert_asked(0, "");
	answer(0, "", 0, "it refused: invalid_client");
	assert_string_equal(told->error, "it refused: invalid_client");
	clock_freeze(1000000 + 4999);
	assert_string_equal(get(0, &world.own, NULL)->error, "it refused: invalid_client");
	assert_false(is_asked());
	clock_freeze(1000000 + 5000);
	assert_false(get(0, &world.own, NULL)->is_told);
	assert_asked(0, "");
	answer(200, "t1", 60, "");
	assert_got(told, "t1");
}

static void one_that_is_refused(void **state)
{
	uint64_t until_ms;

	get(0, &world.own, NULL);
	assert_asked(0, "");
	answer(200, "t1", 3600, "");
	until_ms = world.told[0].good_until_ms;
	assert_false(credential_refused(&world.credentials, &world.own, NULL, until_ms, 0));
	assert_got(get(0, &world.own, NULL), "t1");
	clock_freeze(1000000 + 10000);
	assert_true(credential_refused(&world.credentials, &world.own, NULL, until_ms, 0));
	assert_false(get(0, &world.own, NULL)->is_told);
	assert_asked(0, "");
	answer(200, "t2", 3600, "");
	/* One that was started since has been told what was got before. */
	assert_false(credential_refused(&world.credentials, &world.own, NULL,
					world.told[0].good_until_ms, clock_now_ms()));
	assert_true(credential_refused(&world.credentials, &world.own, NULL,
				       world.told[0].good_until_ms, clock_now_ms() + 1));
	assert_false(get(0, &world.own, NULL)->is_told);
	assert_asked(0, "");
	answer(200, "t3", 3600, "");
	/* Another process has not heard of it. */
	assert_true(credential_refused(&world.credentials, &world.own, NULL, until_ms, 0));
	assert_got(get(1, &world.own, NULL), "t3");
	assert_false(is_asked());
}

static void a_reload_asks_again(void **state)
{
	struct told *told = get(0, &world.own, NULL), *gone;

	assert_asked(0, "");
	gone = get(1, &world.exchanged, NULL);
	assert_true(gone->is_told);
	world.own.conf.credential = 7;
	use_fetcher();
	assert_false(told->is_told);
	assert_asked(6, "");
	answer(200, "t1", 60, "");
	assert_got(told, "t1");
	get(0, &world.own, NULL);
	credentials_use(&world.credentials, world.client); /* nothing has changed */
	assert_got(get(0, &world.own, NULL), "t1");
	/* One whose server is no more is told so, waiting or not. */
	use_fetcher();
	assert_false(get(0, &world.own, NULL)->is_told);
	world.own.is_retired = true;
	use_fetcher();
	assert_true(world.told[0].is_told);
	assert_non_null(strstr(world.told[0].error, "configuration"));
	assert_non_null(strstr(get(1, &world.own, NULL)->error, "configuration"));
	world.own.is_retired = false;
	credentials_use(&world.credentials, NULL);
	assert_non_null(strstr(get(1, &world.own, NULL)->error, "configuration"));
}

/* A fetcher that was taken over; and what is over is not kept. */
static void what_is_no_token_is_not_kept(void **state)
{
	static const char *const rows[] = { "a\nb", "a b", "" };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		clock_freeze(2000000 + i * 10000);
		get(0, &world.own, NULL);
		assert_asked(0, "");
		answer(200, rows[i], 60, "");
		assert_string_equal(world.told[0].token, "");
		assert_string_equal(world.told[0].error, "what came is no token");
	}
	clock_freeze(3000000);
	get(0, &world.own, NULL);
	assert_asked(0, "");
	answer(200, "t", 60, "");
	assert_got(&world.told[0], "t");
	assert_int_equal(world.credentials.count, 1);
	clock_freeze(3000000 + 61000);
	loop_turn(world.loop, false);
	assert_int_equal(world.credentials.count, 0);
}

/* What is shown at one place is not for another. */
static void tokens_are_of_places(void **state)
{
	struct principal *alice = person("alice", "a");

	principal_keep_token(alice, SLICE_LIT("elsewhere"), SLICE_LIT("e"));
	assert_true(slice_is_equal(buf_slice(&credential_subject(&world.exchanged, alice)->token),
				   SLICE_LIT("a")));
	assert_null(credential_subject(&world.own, alice));
	principal_keep_token(alice, SLICE_LIT("exchanged"), SLICE_LIT(""));
	assert_null(credential_subject(&world.exchanged, alice));
	assert_non_null(principal_token(alice, SLICE_LIT("elsewhere")));
	principal_unref(&alice);
}

static void so_many_are_kept(void **state)
{
	struct principal *many = person("many", "0");
	char token[32];

	for (int i = 0; i <= CREDENTIALS_MAX; i++) {
		snprintf(token, sizeof(token), "%d", i);
		principal_keep_token(many, SLICE_LIT("exchanged"), slice_str(token));
		get(0, &world.exchanged, many);
		assert_asked(1, token);
		answer(200, token, 3600, "");
		assert_got(&world.told[0], token);
	}
	assert_int_equal(world.credentials.count, CREDENTIALS_MAX);
	principal_keep_token(many, SLICE_LIT("exchanged"), SLICE_LIT("1"));
	assert_got(get(0, &world.exchanged, many), "1");
	principal_keep_token(many, SLICE_LIT("exchanged"), SLICE_LIT("0"));
	assert_false(get(0, &world.exchanged, many)->is_told);
	credential_cancel(&world.told[0].wait);
	principal_unref(&many);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(one_question_for_all_who_wait), TEST(each_caller_his_own),
		TEST(before_its_end_it_is_got_anew), TEST(a_machine_that_has_slept_gets_it_anew),
		TEST(a_failure_counts_for_a_while),  TEST(one_that_is_refused),
		TEST(a_reload_asks_again),           TEST(what_is_no_token_is_not_kept),
		TEST(tokens_are_of_places),          TEST(so_many_are_kept),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
