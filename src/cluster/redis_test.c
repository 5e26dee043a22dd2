/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a store that the test plays, over TCP; time stands still between steps. CLU-CONN-* */
#include "cluster/redis.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "io/tls.h"
#include "obs/log.h"

#define TURNS_MAX 20000

static struct {
	struct loop *loop;
	struct redis *redis;
	struct redis_conf conf;
	char url[64];
	int listener, fd; /* of the store; -1: not connected */
	unsigned int ready, lost, failed, replies, unanswered;
	char why[160];
	struct buf messages, reply;
} world;

static void on_ready(void *arg)
{
	world.ready++;
}

static void on_lost(void *arg, const char *why)
{
	world.lost++;
	snprintf(world.why, sizeof(world.why), "%s", why);
}

static void on_failed(void *arg, const char *why)
{
	world.failed++;
	snprintf(world.why, sizeof(world.why), "%s", why);
}

static void on_message(void *arg, struct slice message)
{
	buf_append_slice(&world.messages, message);
	buf_append_char(&world.messages, '|');
}

static const struct redis_ops ops = { on_ready, on_lost, on_failed, on_message };

static void on_reply(void *arg, const redisReply *reply)
{
	assert_ptr_equal(arg, &world);
	world.replies += reply != NULL;
	world.unanswered += reply == NULL;
	world.reply.len = 0;
	buf_append_slice(&world.reply, redis_text(reply));
}

static void turn(void)
{
	loop_turn(world.loop, false);
}

/* What is on its way arrives within a few turns, however slow the machine is. */
#define TURN_UNTIL(condition)                                        \
	do {                                                         \
		int turns = 0;                                       \
		for (; !(condition) && turns < TURNS_MAX; turns++) { \
			turn();                                      \
			usleep(100);                                 \
		}                                                    \
		assert_true(turns < TURNS_MAX);                      \
	} while (0)

/* What was sent has arrived. */
static void settle(void)
{
	for (int i = 0; i < 100; i++) {
		turn();
		usleep(100);
	}
}

static void pass(uint64_t ms)
{
	clock_advance(ms);
	for (int i = 0; i < 5; i++)
		turn();
}

static int setup(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);

	memset(&world, 0, sizeof(world));
	clock_freeze(1000000);
	world.fd = -1;
	world.loop = loop_new(NULL);
	world.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(world.listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(world.listener, 8), 0);
	assert_int_equal(getsockname(world.listener, (struct sockaddr *)&address, &size), 0);
	snprintf(world.url, sizeof(world.url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
	world.conf = (struct redis_conf){ .url = world.url };
	return 0;
}

static void leave(void)
{
	if (world.fd >= 0)
		close(world.fd);
	world.fd = -1;
}

static int teardown(void **state)
{
	redis_free(&world.redis);
	redis_free(&world.redis);
	leave();
	close(world.listener);
	loop_free(&world.loop);
	buf_fini(&world.messages);
	buf_fini(&world.reply);
	return 0;
}

static void begin(void)
{
	world.redis = redis_new(world.loop, &world.conf, &ops, NULL);
}

static bool has_come(void)
{
	const int on = 1;

	world.fd = accept4(world.listener, NULL, NULL, SOCK_CLOEXEC);
	return world.fd >= 0 &&
	       setsockopt(world.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

/* The store gets this next. */
static void gets(const char *text)
{
	char bytes[512];
	size_t n = 0;

	while (n < strlen(text)) {
		ssize_t got;

		TURN_UNTIL((got = recv(world.fd, bytes + n, strlen(text) - n, MSG_DONTWAIT)) > 0);
		n += (size_t)got;
	}
	assert_memory_equal(bytes, text, n);
}

static void gets_nothing(void)
{
	char byte;

	settle();
	assert_true(recv(world.fd, &byte, 1, MSG_DONTWAIT) < 0);
}

static void answers(const char *text)
{
	assert_int_equal(send(world.fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

#define PING "*1\r\n$4\r\nPING\r\n"

static void connects(void)
{
	unsigned int before = world.ready;

	TURN_UNTIL(has_come());
	gets(PING);
	answers("+PONG\r\n");
	TURN_UNTIL(world.ready > before);
	assert_true(redis_is_ready(world.redis));
}

static void asks(const char *word)
{
	redis_send(world.redis, (struct slice[]){ slice_str(word) }, 1, on_reply, &world);
}

/* CLU-CONN-02: later and later; each reason is told once; from the beginning after a success. */
static void it_is_tried_again(void **state)
{
	static const uint64_t waits_ms[] = { 50, 100, 200, 400, 800, 1000, 1000 };

	begin();
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < ARRAY_LEN(waits_ms); i++) {
			if (k == 0 || i > 0)
				TURN_UNTIL(has_come());
			leave();
			if (k == 1 && i == 0)
				TURN_UNTIL(world.lost == 1);
			settle();
			pass(waits_ms[i] - 1);
			assert_false(has_come());
			pass(1);
		}
		assert_int_equal(world.failed, 1); /* the second time its loss has told that */
		assert_string_equal(world.why, "it has closed the connection");
		connects();
	}
	assert_int_equal(world.lost, 1);
}

/* Nobody is there, over each kind of socket. */
static void nobody_may_be_there(void **state)
{
	close(world.listener);
	begin();
	TURN_UNTIL(world.failed == 1);
	assert_string_equal(world.why, "Connection refused");
	redis_free(&world.redis);
	world.conf.url = "unix:///nowhere/at/all";
	begin();
	TURN_UNTIL(world.failed == 2);
	assert_string_equal(world.why, "No such file or directory");
	assert_false(redis_is_ready(world.redis));
	world.listener = socket(AF_INET, SOCK_STREAM, 0);
}

/* A name may have several addresses, at one of which nobody is, or none. */
static void names_are_resolved(void **state)
{
	at_end(mem_free) char *url = mem_printf("redis://localhost%s", strrchr(world.url, ':'));

	world.conf.url = url;
	begin();
	connects();
	redis_free(&world.redis);
	world.conf.url = "redis://a-name-with-a-part-of-more-than-63-characters-0123456789"
			 "0123456789.example";
	begin();
	TURN_UNTIL(world.failed == 1);
	assert_string_not_equal(world.why, "");
	assert_string_not_equal(world.why, strerror(0));
}

/* CLU-CONN-03 */
static void it_says_who_it_is(void **state)
{
	at_end(mem_free) char *odd = mem_alloc(400);

	memset(odd, 'x', 399);
	odd[399] = '\0';
	memcpy(odd, "-WRONGPASS ", 11);
	strcpy(odd + 397, "\r\n");
	world.conf.password = "secret";
	begin();
	TURN_UNTIL(has_come());
	gets("*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n" PING);
	answers(odd);
	TURN_UNTIL(world.failed == 1);
	assert_memory_equal(world.why, "it answers: WRONGPASS xxx", 25);
	assert_int_equal(strlen(world.why), strlen("it answers: ") + 100);
	redis_free(&world.redis);
	leave();
	world.conf.username = "user";
	world.conf.channel = "news";
	begin();
	TURN_UNTIL(has_come());
	gets("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$4\r\nnews\r\n");
	answers("+OK\r\n");
	turn();
	assert_int_equal(world.ready, 0);
	answers("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
		"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\none\r\n*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n:2\r\n");
	TURN_UNTIL(world.messages.len >= 5);
	assert_int_equal(world.ready, 1);
	assert_string_equal(buf_terminate(&world.messages), "one||");
}

/* Replies come in the order of commands, in any pieces; what has none when the connection is lost is told. */
static void commands_have_replies(void **state)
{
	begin();
	connects();
	asks("A");
	asks("");
	redis_send_script(world.redis, "return", (struct slice[]){ SLICE_LIT("0") }, 1, on_reply,
			  &world);
	gets("*1\r\n$1\r\nA\r\n*1\r\n$0\r\n\r\n*3\r\n$4\r\nEVAL\r\n$6\r\nreturn\r\n$1\r\n0\r\n");
	answers("$3\r\none\r\n+t");
	TURN_UNTIL(world.replies == 1);
	assert_string_equal(buf_terminate(&world.reply), "one");
	answers("wo\r\n");
	TURN_UNTIL(world.replies == 2);
	assert_string_equal(buf_terminate(&world.reply), "two");
	answers(":3\r\n");
	TURN_UNTIL(world.replies == 3);
	assert_int_equal(world.reply.len, 0);
	asks("A");
	asks("B");
	leave();
	TURN_UNTIL(world.lost == 1);
	assert_int_equal(world.unanswered, 2);
	assert_int_equal(world.replies, 3);
	pass(50);
	connects();
	asks("C");
	gets("*1\r\n$1\r\nC\r\n"); /* and nothing of what was not sent before */
	redis_free(&world.redis);
	assert_int_equal(world.unanswered, 2);
}

/* CLU-CONN-02: one that is there answers a PING; while it answers anything, a command may take its time. */
static void a_store_may_be_silent(void **state)
{
	begin();
	TURN_UNTIL(has_come());
	gets(PING);
	for (int i = 0; i < 2; i++)
		pass(1000);
	assert_int_equal(world.failed, 0);
	pass(1000);
	assert_int_equal(world.failed, 1);
	assert_string_equal(world.why, "it cannot be reached in time");
	leave();
	pass(50);
	connects();
	gets_nothing();
	pass(999);
	gets_nothing();
	pass(1);
	gets(PING);
	pass(1000);
	pass(1000);
	assert_int_equal(world.lost, 0);
	gets_nothing();
	pass(1000);
	assert_int_equal(world.lost, 1);
	assert_string_equal(world.why, "it does not answer");
	leave();
	pass(50);
	connects();
	asks("A");
	answers("$20\r\n");
	for (int i = 1; i < 15; i++) {
		answers("x");
		settle();
		pass(1000);
		assert_int_equal(world.lost, 1);
	}
	answers("x");
	settle();
	pass(1000);
	assert_int_equal(world.lost, 2);
	assert_string_equal(world.why, "it does not answer");
}

/* Neither what it sends nor what it does not read may be without end. */
static void a_store_may_be_endless(void **state)
{
	static char many[1024 * 1024];
	char bytes[64];

	memset(many, 'x', sizeof(many));
	begin();
	connects();
	asks("A");
	answers("$99999999\r\n");
	for (size_t sent = 0; world.lost == 0;) {
		ssize_t n = send(world.fd, many, sizeof(many), MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		assert_true(sent < 2 * REDIS_REPLY_BYTES_MAX);
		turn();
	}
	assert_string_equal(world.why, "its reply is too long");
	leave();
	pass(50);
	connects();
	for (size_t i = 0; i < 70; i++)
		redis_send(world.redis, (struct slice[]){ slice_of(many, sizeof(many)) }, 1,
			   on_reply, &world);
	turn();
	assert_int_equal(world.lost, 1);
	pass(1000);
	assert_int_equal(world.lost, 2);
	assert_string_equal(world.why, "it does not answer");
	assert_true(recv(world.fd, bytes, sizeof(bytes), 0) > 0);
}

/* What the socket does not take at once goes later, whole. */
static void much_is_written(void **state)
{
	enum { BYTES = 8 * 1024 * 1024 };
	at_end(mem_free) char *many = mem_alloc(BYTES), *read = mem_alloc(BYTES);
	size_t n = 0;

	memset(many, 'x', BYTES);
	memcpy(many + BYTES / 2, "y", 1);
	begin();
	connects();
	redis_send(world.redis, (struct slice[]){ slice_of(many, BYTES) }, 1, on_reply, &world);
	gets("*1\r\n$8388608\r\n");
	while (n < BYTES) {
		ssize_t got = 0;

		TURN_UNTIL((got = recv(world.fd, read + n, BYTES - n, MSG_DONTWAIT)) > 0);
		n += (size_t)got;
	}
	assert_memory_equal(read, many, BYTES);
	gets("\r\n");
	gets_nothing();
	asks("A");
	gets("*1\r\n$1\r\nA\r\n");
}

/* CLU-CONN-04 */
static void a_store_may_not_speak_tls(void **state)
{
	struct tls_client *trust = tls_client_new(slice_of(NULL, 0), NULL);
	at_end(mem_free) char *url = mem_printf("rediss%s", world.url + strlen("redis"));
	char hello[16];

	assert_non_null(trust);
	world.conf.trust = trust;
	world.conf.url = url;
	begin();
	for (int i = 0; i < 3; i++) {
		TURN_UNTIL(has_come());
		TURN_UNTIL(recv(world.fd, hello, sizeof(hello), MSG_DONTWAIT) > 0);
		assert_int_equal(hello[0], 22); /* a handshake, not a PING */
		if (i == 0)
			answers("-ERR Protocol error\r\n");
		else if (i == 1)
			leave();
		else
			break;
		TURN_UNTIL(world.failed == (unsigned int)i + 1);
		leave();
		pass(200);
	}
	assert_int_equal(world.ready + world.lost, 0);
	redis_free(&world.redis); /* in its handshake */
	tls_client_free(&trust);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_is_tried_again),         CASE(nobody_may_be_there),
		CASE(names_are_resolved),        CASE(it_says_who_it_is),
		CASE(commands_have_replies),     CASE(a_store_may_be_silent),
		CASE(a_store_may_be_endless),    CASE(much_is_written),
		CASE(a_store_may_not_speak_tls),
	};

	log_set_level(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	redis_prepare();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
