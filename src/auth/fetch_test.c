/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines, with a clock of our own for everybody: it goes on a little with each look at it, as a busy
 * machine's does between two looks, and stands still otherwise. So no test waits. And with a libcurl that keeps
 * to what its manual promises: it says when to call it only if that has changed.
 */
#include "auth/fetch.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/unit_test.h"

#define LOOK_NS 300000
#define LOOKS_MAX 200000
#define SAME_NS 3000000

/* ---- what the program has in front of the libraries' own ---- */

static uint64_t now_ns = 1000 * UINT64_C(1000000000);
static size_t looks;

int clock_gettime(clockid_t id, struct timespec *time)
{
	if (id == CLOCK_REALTIME)
		return (int)syscall(SYS_clock_gettime, id, time);
	looks++;
	now_ns += LOOK_NS;
	time->tv_sec = (time_t)(now_ns / 1000000000);
	time->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

static curl_multi_timer_callback tell;
static uint64_t told_ns; /* when libcurl wants to be called, as it has said; 0: never */

static int on_wish(CURLM *multi, long wait_ms, void *arg)
{
	uint64_t wish_ns = wait_ms >= 0 ? now_ns + (uint64_t)wait_ms * 1000000 : 0;
	bool is_same = told_ns > 0 && wish_ns > 0 && wish_ns + SAME_NS > told_ns &&
		       wish_ns < told_ns + SAME_NS;

	told_ns = wish_ns;
	return is_same && wait_ms > 0 ? 0 : tell(multi, wait_ms, arg);
}

#undef curl_multi_setopt
CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	void *symbol = dlsym(RTLD_NEXT, "curl_multi_setopt");
	CURLMcode (*set)(CURLM *, CURLMoption, ...);
	CURLMcode code;
	va_list args;

	memcpy(&set, &symbol, sizeof(set));
	va_start(args, option);
	if (option == CURLMOPT_TIMERFUNCTION) {
		tell = va_arg(args, curl_multi_timer_callback);
		code = set(multi, option, on_wish);
	} else if (option == CURLMOPT_MAXCONNECTS) {
		code = set(multi, option, va_arg(args, long));
	} else {
		code = set(multi, option, va_arg(args, void *));
	}
	va_end(args);
	return code;
}

/* ---- the world ---- */

/* A server that takes connections and never says a word. */
static struct {
	struct loop *loop;
	struct fetcher *fetcher;
	struct fetch fetch;
	int listener;
	char url[64];
	bool is_done;
	struct fetch_answer answer;
} world;

static void on_done(struct fetch *fetch, const struct fetch_answer *answer)
{
	assert_false(world.is_done);
	world.is_done = true;
	world.answer = *answer;
}

static int open_world(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	struct error err = { ERROR_NONE, "" };

	memset(&world, 0, sizeof(world));
	told_ns = 0;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	world.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(world.listener, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(world.listener, 8), 0);
	assert_int_equal(getsockname(world.listener, (struct sockaddr *)&at, &size), 0);
	snprintf(world.url, sizeof(world.url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
	assert_int_equal(fetch_prepare(&err), 0);
	world.loop = loop_new(&err);
	assert_non_null(world.loop);
	world.fetcher = fetcher_new(world.loop);
	world.fetch.on_done = on_done;
	return 0;
}

static int close_world(void **state)
{
	fetcher_free(&world.fetcher);
	loop_free(&world.loop);
	close(world.listener);
	return 0;
}

static void start(void)
{
	const struct fetch_request request = {
		.url = world.url,
		.address_filter = { .loopback = true },
		.allow_http = true,
	};

	fetch_start(world.fetcher, &world.fetch, &request);
}

/* Turns until the answer is there, or nobody can believe any more that it comes. */
static void finish(void)
{
	size_t end = looks + LOOKS_MAX;

	while (!world.is_done && looks < end)
		loop_turn(world.loop, false);
	assert_true(world.is_done);
}

/* ---- deadlines ---- */

/* AUTH-KEY-01: libcurl's deadline comes, though each look at the clock is behind the one before. */
static void a_silent_server_is_left_in_time(void **state)
{
	uint64_t begin_ms;
	uint64_t took_ms;

	clock_update();
	begin_ms = clock_now_ms();
	start();
	finish();
	took_ms = clock_now_ms() - begin_ms;
	assert_int_equal(world.answer.status, 0);
	assert_in_range(took_ms, FETCH_TOTAL_MS, FETCH_TOTAL_MS + 100);
	assert_false(fetch_is_running(&world.fetch));
}

/* The same, when the turn that began the fetch had taken long: its clock was behind by far. */
static void a_late_turn_changes_nothing(void **state)
{
	uint64_t begin_ms;

	clock_update();
	begin_ms = clock_now_ms();
	now_ns += 700 * 1000000;
	start();
	finish();
	assert_int_equal(world.answer.status, 0);
	assert_in_range(clock_now_ms() - begin_ms, FETCH_TOTAL_MS, FETCH_TOTAL_MS + 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_silent_server_is_left_in_time, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(a_late_turn_changes_nothing, open_world,
						close_world),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
