/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_stage.h. */
#include "router/pool_stage.h"

#include "base/clock.h"

struct principal *alice, *bob;

int pool_setup(void **state)
{
	struct server_conf *conf = &servers[0].conf;

	client_stage_open();
	router.sessions.conf.max_sessions = router.sessions.conf.max_per_principal =
		STAGE_MEMBERS_MAX;
	conf->isolation = ISOLATION_SHARED;
	conf->pool_max = 2;
	conf->calls_per_process = 2;
	conf->sessions_per_process = STAGE_MEMBERS_MAX;
	conf->queue_calls = 4;
	conf->queue_timeout_ms = POOL_QUEUE_TIMEOUT_MS;
	conf->idle_ms = POOL_IDLE_MS;
	conf->request_timeout_ms = 60000;
	return 0;
}

int pool_setup_principals(void **state)
{
	static const struct identity a = { .issuer = SLICE("i"), .subject = SLICE("alice") };
	static const struct identity b = { .issuer = SLICE("i"), .subject = SLICE("bob") };

	pool_setup(state);
	servers[0].conf.isolation = ISOLATION_PRINCIPAL;
	alice = principal_get(&router.sessions.principals, &a);
	bob = principal_get(&router.sessions.principals, &b);
	return 0;
}

int pool_teardown_principals(void **state)
{
	principal_unref(&alice);
	principal_unref(&bob);
	return client_stage_close(state);
}

struct member *join(struct front *front)
{
	struct member *member;

	assert_int_equal(front->ending, ENDING_RESPONSE);
	member = listen_to(front->call.client);
	notify(member->client, INITIALIZED);
	return member;
}

void get_ready(size_t i)
{
	assert_non_null(fake_process_read(process(i)));
	says(process(i), WELCOME);
	hears(process(i), INITIALIZED);
}

struct member *begin(void)
{
	struct front *front = open_session(INITIALIZE);

	if (front->ending == ENDING_NONE)
		get_ready(0);
	return join(front);
}

struct member *begin_asking(struct principal *principal, size_t i)
{
	struct front *front = open_session_as(principal, INITIALIZE_WITH("'elicitation':{}"));

	if (front->ending == ENDING_NONE) {
		hears(process(i), HANDSHAKE("'elicitation':{'form':{}}"));
		says(process(i), WELCOME);
		hears(process(i), INITIALIZED);
	}
	return join(front);
}

struct member *begin_plain(struct principal *principal)
{
	struct front *front = open_session_as(principal, INITIALIZE_WITH(""));

	get_ready(0);
	return join(front);
}

static struct timer busy;

static void on_busy(struct timer *timer)
{
	now_ms += 5;
	clock_freeze(now_ms);
	timer_start(router.loop, timer, 0);
}

void stage_is_busy(uint64_t ms)
{
	timer_init(&busy, on_busy);
	timer_start(router.loop, &busy, ms);
}

void stage_rest(void)
{
	timer_stop(&busy);
}

bool is_error(struct front *front, const char *code)
{
	assert_int_equal(front->ending, ENDING_RESPONSE);
	return strstr(buf_terminate(&front->response), code) != NULL;
}
