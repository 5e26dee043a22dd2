/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-store between a gateway and a store, each of which does what it likes. What they do together is
 * c117 of tests/scenario. CLU-SESS-*, CLU-CONN-*
 */
#include "cluster/store_service.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "auth/fetch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/halves.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "cluster/log_copies.h"
#include "cluster/redis.h"
#include "io/ipc.h"
#include "obs/log.h"
#include "router/kept_sessions.h"

#define PATIENCE_MS 20000
#define ID_A "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define ID_B "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define ID_C "DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD"
#define OWNER "\"owner\":\"CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC\",\"server\":\"main\""
#define LINE(id, rest) "{\"id\":\"" id "\"," OWNER rest "}\n"
#define LEG(id) "{\"leg\":\"" id "\"," OWNER "}\n"

/* A connection of the store's. */
struct end {
	int fd;
	redisReader *reader;
	redisReply *command; /* the last one */
	unsigned int pings;  /* that were answered */
};

#define NO_DENIALS "*2\r\n$1\r\n0\r\n*0\r\n" /* a scan that is at its end */

static struct {
	char folder[32], path[64], url[80];
	int listener;
	struct loop *loop;
	struct cluster_conf conf;
	struct store_service *service;
	int gateway; /* the gateway's end */
	int memory;
	struct halves *file;
	int streams;
	struct end commands, channel;
	bool has_ended, has_denials;
	uint32_t last_id;
	/* the last answer */
	uint32_t id;
	int status;
	char etag[16], error[64];
	struct buf body;
	const char *since; /* since when the store has what it has, as a reply */
	int log;
} world;

static void on_end(void *arg)
{
	world.has_ended = true;
}

static void turn(void)
{
	clock_update();
	loop_turn(world.loop, false);
	usleep(200);
}

#define TURN_UNTIL(condition)                                                \
	do {                                                                 \
		uint64_t end_ms = clock_now_ms() + PATIENCE_MS;              \
		while (!(condition)) {                                       \
			turn();                                              \
			assert_true(clock_now_ms() < end_ms || (condition)); \
		}                                                            \
	} while (0)

/* ---- the store ---- */

static void end_close(struct end *end)
{
	if (end->fd >= 0)
		close(end->fd);
	if (end->reader != NULL)
		redisReaderFree(end->reader);
	if (end->command != NULL)
		freeReplyObject(end->command);
	*end = (struct end){ .fd = -1 };
}

static bool has_command(struct end *end)
{
	char bytes[4096];
	void *command = NULL;
	ssize_t n = recv(end->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		assert_int_equal(redisReaderFeed(end->reader, bytes, (size_t)n), REDIS_OK);
	assert_int_equal(redisReaderGetReply(end->reader, &command), REDIS_OK);
	if (command == NULL)
		return false;
	if (end->command != NULL)
		freeReplyObject(end->command);
	end->command = command;
	return true;
}

static void answers(const struct end *end, const char *text)
{
	assert_int_equal(send(end->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The arguments of the last command. */
static const char *word(const struct end *end, size_t i)
{
	assert_true(i < end->command->elements);
	assert_int_equal(strlen(end->command->element[i]->str), end->command->element[i]->len);
	return end->command->element[i]->str;
}

/*
 * What asks whether the store is there, and since when, is answered, and does not count; nor what looks for denials,
 * unless the test has some.
 */
static bool has_order(struct end *end)
{
	while (has_command(end)) {
		bool is_eval = strcmp(word(end, 0), "EVAL") == 0;
		bool is_scan = strcmp(word(end, 0), "HSCAN") == 0;
		const char *text = is_eval ? world.since : is_scan ? NO_DENIALS : "+PONG\r\n";

		if (is_eval ? strcmp(word(end, 3), "p:since") != 0 : is_scan && world.has_denials)
			return true;
		end->pings += !is_eval && !is_scan;
		/* It may have left. */
		(void)!send(end->fd, text, strlen(text), MSG_NOSIGNAL);
	}
	return false;
}

static bool accepts(struct end *end)
{
	end->fd = accept(world.listener, NULL, NULL);
	if (end->fd < 0)
		return false;
	end->reader = redisReaderCreate();
	return true;
}

/* The next two connections, of which one subscribes. */
static void store_accepts(void)
{
	struct end *ends[] = { &world.commands, &world.channel };
	bool is_swapped = false;

	end_close(&world.commands);
	end_close(&world.channel);
	for (int i = 0; i < 2; i++) {
		TURN_UNTIL(accepts(ends[i]));
		TURN_UNTIL(has_command(ends[i]));
		if (strcmp(word(ends[i], 0), "AUTH") == 0) {
			assert_string_equal(word(ends[i], 1), "user");
			assert_string_equal(word(ends[i], 2), "secret");
			answers(ends[i], "+OK\r\n");
			TURN_UNTIL(has_command(ends[i]));
		}
		is_swapped |= i == 0 && strcmp(word(ends[i], 0), "SUBSCRIBE") == 0;
	}
	if (is_swapped) {
		struct end one = world.commands;

		world.commands = world.channel;
		world.channel = one;
	}
	assert_string_equal(word(&world.channel, 1), "p:news");
	answers(&world.channel, "*3\r\n$9\r\nsubscribe\r\n$6\r\np:news\r\n:1\r\n");
	answers(&world.commands, "+PONG\r\n");
}

static void store_announces(const char *text)
{
	at_end(mem_free) char *message =
		mem_printf("*3\r\n$7\r\nmessage\r\n$6\r\np:news\r\n$%zu\r\n%s\r\n", strlen(text),
			   text);

	answers(&world.channel, message);
}

/* ---- the gateway ---- */

static void keeps(const char *lines)
{
	at_end(mem_free) char *text = mem_printf("%s%s", KEPT_SESSIONS_FIRST_LINE, lines);

	memcpy(halves_begin(world.file, KEPT_SESSIONS_TEXT_BYTES), text, strlen(text));
	halves_end(world.file, KEPT_SESSIONS_TEXT_BYTES, strlen(text));
}

static uint32_t asks(enum fetch_kind kind, const char *text)
{
	const struct ipc_message message = { .type = IPC_ASK,
					     .ask = { ++world.last_id, (uint32_t)kind, 0, 0 },
					     .texts = { slice_of(NULL, 0), slice_str(text) } };

	assert_int_equal(ipc_send(world.gateway, &message, NULL), 0);
	return world.last_id;
}

/* The whole of an answer; its body comes in parts. */
static bool is_answered(void)
{
	struct ipc_message message;

	if (ipc_recv_plain(world.gateway, &message, NULL) <= 0)
		return false;
	assert_int_equal(message.type, IPC_ANSWER);
	world.id = message.answer.id;
	world.status = message.answer.status;
	snprintf(world.error, sizeof(world.error), "%.*s", SLICE_ARG(message.texts[0]));
	snprintf(world.etag, sizeof(world.etag), "%.*s", SLICE_ARG(message.texts[2]));
	world.body.len = 0;
	for (uint32_t size = message.answer.body_bytes; world.body.len < size;) {
		TURN_UNTIL(ipc_recv_plain(world.gateway, &message, NULL) > 0);
		assert_int_equal(message.type, IPC_PART);
		buf_append_slice(&world.body, message.texts[0]);
	}
	return true;
}

static void hears(uint32_t id, int status, const char *body)
{
	TURN_UNTIL(is_answered());
	assert_int_equal(world.id, id);
	assert_int_equal(world.status, status);
	assert_true(slice_is_equal(buf_slice(&world.body), slice_str(body)));
}

static void saves(const char *lines)
{
	keeps(lines);
	hears(asks(FETCH_STORE_SAVED, ""), 200, "");
}

/* ---- both ---- */

static int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct store_service_conf conf = { .cluster = &world.conf, .idle_ms = 3600000 };
	struct error err;
	int ends[2];

	clock_update();
	memset(&world, 0, sizeof(world));
	world.commands.fd = world.channel.fd = -1;
	world.since = ":1\r\n";
	world.log = memfd_create("log", MFD_CLOEXEC);
	log_set(world.log, LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	strcpy(world.folder, "/tmp/mcpgated-XXXXXX");
	assert_non_null(mkdtemp(world.folder));
	snprintf(world.path, sizeof(world.path), "%s/s", world.folder);
	snprintf(world.url, sizeof(world.url), "unix://%s", world.path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", world.path);
	world.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(world.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(world.listener, 8), 0);
	world.memory = memfd_create("sessions", MFD_CLOEXEC);
	assert_int_equal(ftruncate(world.memory, (off_t)KEPT_SESSIONS_FILE_BYTES), 0);
	world.file = mmap(NULL, KEPT_SESSIONS_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  world.memory, 0);
	assert_true(world.file != MAP_FAILED);
	world.conf = (struct cluster_conf){ .node = mem_strdup("a"),
					    .store = world.url,
					    .username = mem_strdup("user"),
					    .password = mem_strdup("secret"),
					    .prefix = mem_strdup("p") };
	world.loop = loop_new(&err);
	assert_non_null(world.loop);
	assert_int_equal(ipc_pair(ends, &err), 0);
	world.gateway = ends[0];
	conf.sessions = world.memory;
	world.streams = memfd_create("streams", MFD_CLOEXEC);
	assert_int_equal(ftruncate(world.streams, (off_t)STREAM_LOG_FILE_BYTES), 0);
	conf.streams = world.streams;
	world.service = store_service_new(world.loop, &conf, ends[1], on_end, NULL, &err);
	assert_non_null(world.service);
	return 0;
}

static int teardown(void **state)
{
	store_service_free(&world.service);
	loop_free(&world.loop);
	end_close(&world.commands);
	end_close(&world.channel);
	close(world.gateway);
	close(world.listener);
	close(world.memory);
	close(world.streams);
	close(world.log);
	munmap(world.file, KEPT_SESSIONS_FILE_BYTES);
	unlink(world.path);
	rmdir(world.folder);
	free(world.conf.node);
	free(world.conf.username);
	free(world.conf.password);
	free(world.conf.prefix);
	buf_fini(&world.body);
	return 0;
}

/* Time goes by, after the store has answered what it was asked whether it is there. */
static void pass(uint64_t ms)
{
	unsigned int commands = world.commands.pings, channel = world.channel.pings;

	while (world.commands.pings == commands || world.channel.pings == channel) {
		clock_advance(50);
		turn();
		assert_false(has_order(&world.commands) || has_order(&world.channel));
	}
	turn();
	turn();
	clock_advance(ms);
}

static unsigned int count_logged(const char *text)
{
	char all[8192];
	ssize_t n = pread(world.log, all, sizeof(all) - 1, 0);
	unsigned int count = 0;

	assert_true(n >= 0);
	all[n] = '\0';
	for (const char *at = all; (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

/* EVAL SCRIPT 1 KEY NODE OWNER LINE LIFE ID */
static void store_is_given(const char *id, const char *line)
{
	at_end(mem_free) char *key = mem_printf("p:s:%s", id);

	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 0), "EVAL");
	assert_non_null(strstr(word(&world.commands, 1), "HSET"));
	assert_string_equal(word(&world.commands, 3), key);
	assert_string_equal(word(&world.commands, 4), "a");
	assert_string_equal(word(&world.commands, 5), OWNER);
	assert_memory_equal(word(&world.commands, 6), line, strlen(line) - 1);
	assert_string_equal(word(&world.commands, 7), "3600000");
	answers(&world.commands, ":1\r\n");
}

/* Nothing is on its way: what was asked last would have come behind it. */
static void store_is_given_nothing(void)
{
	hears(asks(FETCH_STORE_SAVED, ""), 200, "");
	for (int i = 0; i < 50; i++) {
		turn();
		assert_false(has_order(&world.commands));
	}
}

/* CLU-CONN-02: what is there is written, once; then what has changed; what has gone is removed; after a loss all, anew. */
static void what_has_changed_is_written(void **state)
{
	keeps(LINE(ID_A, ""));
	store_accepts();
	store_is_given(ID_A, LINE(ID_A, ""));
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	store_is_given_nothing();
	saves(LINE(ID_A, ",\"level\":\"error\"")
		      LEG(ID_B) "{\"pool\":\"x\"}\n{\"id\":\"short\"}\n");
	store_is_given(ID_A, LINE(ID_A, ",\"level\":\"error\""));
	store_is_given(ID_B, LEG(ID_B));
	store_is_given_nothing();
	/* One that is cut off names no server. */
	saves("{\"id\":\"" ID_A "\",\"owner\":\"" ID_C "\",\"server\":\"main\n" LEG(ID_B));
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "DEL"));
	assert_string_equal(word(&world.commands, 3), "p:s:" ID_A);
	answers(&world.commands, ":1\r\n");
	asks(FETCH_STORE_WATCH, "");
	end_close(&world.commands);
	hears(world.last_id, 200, "down it has closed the connection\n");
	keeps(LEG(ID_B) LINE(ID_A, ""));
	hears(asks(FETCH_STORE_SAVED, ID_B " "), 503, "");
	end_close(&world.channel);
	store_accepts();
	store_is_given(ID_B, LEG(ID_B));
	store_is_given(ID_A, LINE(ID_A, ""));
	asks(FETCH_STORE_SAVED, ID_C " " ID_A " x "); /* of these one is there, and one is no id */
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "DEL"));
	assert_string_equal(word(&world.commands, 3), "p:s:" ID_C);
	answers(&world.commands, ":1\r\n");
	hears(world.last_id, 200, "");
	store_is_given_nothing();
}

/* What is announced may be over: EVAL SCRIPT 1 KEY NODE ID */
static void store_is_asked_whose(const char *id)
{
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "HGET"));
	assert_string_equal(word(&world.commands, 4), "a");
	assert_string_equal(word(&world.commands, 5), id);
}

/* CLU-SESS-03: by the reply to a write, or by what another node announces of this one. */
static void what_others_have_is_told(void **state)
{
	uint32_t id;

	keeps(LINE(ID_A, "") LEG(ID_B));
	store_accepts();
	store_is_given(ID_A, LINE(ID_A, ""));
	store_is_given(ID_B, LEG(ID_B));
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	id = asks(FETCH_STORE_WATCH, "");
	store_announces("taken b " ID_A);
	store_announces("taken a xx");
	store_announces("taken a " ID_B);
	store_is_asked_whose(ID_B);
	answers(&world.commands, "$43\r\n" ID_B "\r\n");
	hears(id, 200, "lost " ID_B "\n");
	saves(LINE(ID_A, ",\"level\":\"error\"") LEG(ID_B));
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 8), ID_A);
	answers(&world.commands, "$43\r\n" ID_A "\r\n");
	hears(asks(FETCH_STORE_WATCH, ""), 200, "lost " ID_A "\n");
}

/* What does not fit into one answer is told by the next. */
static void many_are_lost(void **state)
{
	enum { ALL = 200 };
	at_end(buf_fini) struct buf lines = { 0 };
	size_t count = 0;

	for (int i = 0; i < ALL; i++)
		buf_printf(&lines, "{\"id\":\"%043d\"," OWNER "}\n", i);
	keeps(buf_terminate(&lines));
	store_accepts();
	for (int i = 0; i < ALL; i++) {
		at_end(mem_free) char *reply = mem_printf("$43\r\n%043d\r\n", i);

		TURN_UNTIL(has_order(&world.commands));
		answers(&world.commands, reply);
	}
	store_is_given_nothing();
	for (int i = 0; i < 2; i++) {
		asks(FETCH_STORE_WATCH, "");
		TURN_UNTIL(is_answered());
		assert_in_range(world.body.len, 1, STORE_LINES_BYTES_MAX + 64);
		for (size_t k = 0; k < world.body.len; k++)
			count += world.body.data[k] == '\n';
	}
	assert_int_equal(count, 1 + ALL); /* "up" */
}

/* A node that takes back what another one has taken keeps it, whatever it is told late. */
static void what_is_taken_back_stays(void **state)
{
	keeps(LINE(ID_A, "") LEG(ID_B));
	store_accepts();
	TURN_UNTIL(has_order(&world.commands));
	answers(&world.commands, "$43\r\n" ID_A "\r\n");
	store_is_given(ID_B, LEG(ID_B));
	asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
	TURN_UNTIL(has_order(&world.commands));
	answers(&world.commands, "*2\r\n$1\r\nb\r\n$4\r\nline\r\n");
	hears(world.last_id, 200, "line\n");
	store_announces("taken a " ID_A);
	store_is_asked_whose(ID_A);
	answers(&world.commands, ":1\r\n");
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	asks(FETCH_STORE_WATCH, "");
	for (int i = 0; i < 50; i++) {
		turn();
		assert_false(is_answered());
	}
}

/* CLU-SESS-01, CLU-SESS-02 */
static void a_session_is_taken_over(void **state)
{
	static const struct {
		const char *reply; /* of the store */
		int status;
		const char *body, *node;
	} rows[] = {
		{ "*3\r\n$1\r\nb\r\n$5\r\nline1\r\n$5\r\nline2\r\n", 200, "line1\nline2\n", "b" },
		{ "*3\r\n$1\r\nb\r\n$5\r\nline1\r\n$0\r\n\r\n", 200, "line1\n", "b" },
		{ "*3\r\n$1\r\nb\r\n$5\r\na\nb\nc\r\n$5\r\nline2\r\n", 200, "line2\n", "b" },
		{ "*5\r\n$1\r\nb\r\n$5\r\nline1\r\n$0\r\n\r\n$0\r\n\r\n$4\r\nof\nx\r\n", 200,
		  "line1\nlog 4\nof\nx", "b" },
		{ "*4\r\n$1\r\nb\r\n$5\r\nlog 9\r\n$5\r\nline2\r\n$1\r\nx\r\n", 200,
		  "line2\nlog 1\nx", "b" },
		{ "*4\r\n$1\r\nb\r\n$0\r\n\r\n$0\r\n\r\n$1\r\nx\r\n", 404, "", "" },
		{ "*0\r\n", 404, "", "" },
		{ "$-1\r\n", 404, "", "" },
		{ ":7\r\n", 404, "", "" },
		{ "*2\r\n:1\r\n*1\r\n:2\r\n", 404, "", "" },
		{ "*2\r\n$9\r\nninechars\r\n$5\r\nline1\r\n", 404, "", "" },
		{ "-NOPERM no\r\n", 503, "", "" },
	};

	static const size_t logs[] = { 3700000, 3700000, 100000 }; /* the second does not fit */
	at_end(buf_fini) struct buf reply = { 0 };

	buf_append_str(&reply, "*5\r\n$1\r\nb\r\n$5\r\nline1\r\n");
	hears(asks(FETCH_STORE_TAKE, OWNER "\n" ID_A), 503, "");
	assert_string_equal(world.error, "it has not been reached yet");
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t id = asks(FETCH_STORE_TAKE, OWNER "\n" ID_A " " ID_B);

		TURN_UNTIL(has_order(&world.commands));
		assert_string_equal(word(&world.commands, 2), "2");
		assert_string_equal(word(&world.commands, 3), "p:s:" ID_A);
		assert_string_equal(word(&world.commands, 4), "p:s:" ID_B);
		assert_string_equal(word(&world.commands, 5), "a");
		assert_string_equal(word(&world.commands, 6), OWNER);
		assert_string_equal(word(&world.commands, 8), "p:news");
		assert_string_equal(word(&world.commands, 9), "p:since");
		assert_string_equal(word(&world.commands, 10), "logs");
		assert_string_equal(word(&world.commands, 14), ID_B);
		assert_string_equal(word(&world.commands, 15), "p:e:" ID_A);
		answers(&world.commands, rows[i].reply);
		hears(id, rows[i].status, rows[i].body);
		assert_string_equal(world.etag, rows[i].node);
	}
	for (size_t i = 0; i < ARRAY_LEN(logs); i++)
		buf_printf(&reply, "$%zu\r\n%0*d\r\n", logs[i], (int)logs[i], 0);
	asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
	TURN_UNTIL(has_order(&world.commands));
	while (reply.len > 0) {
		ssize_t n = send(world.commands.fd, reply.data, reply.len, MSG_DONTWAIT);

		buf_consume(&reply, n > 0 ? (size_t)n : 0);
		turn();
	}
	TURN_UNTIL(is_answered());
	assert_int_equal(world.status, 200);
	assert_int_equal(world.body.len, strlen("line1\nlog 3700000\nlog 100000\n") + 3800000);
	asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
	TURN_UNTIL(has_order(&world.commands));
	end_close(&world.commands);
	hears(world.last_id, 503, "");
}

/* What was taken over is lost, or has ended, also before it is in the gateway's file; it is not removed for not being there. */
static void what_was_taken_is_not_yet_in_the_file(void **state)
{
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	for (int i = 0; i < 2; i++) {
		asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
		TURN_UNTIL(has_order(&world.commands));
		answers(&world.commands, "*2\r\n$1\r\nb\r\n$5\r\nline1\r\n");
		hears(world.last_id, 200, "line1\n");
		store_is_given_nothing();
		if (i == 0) {
			asks(FETCH_STORE_WATCH, "");
			store_announces("taken a " ID_A);
			TURN_UNTIL(has_order(&world.commands));
			answers(&world.commands, "$43\r\n" ID_A "\r\n");
			hears(world.last_id, 200, "lost " ID_A "\n");
		}
	}
	asks(FETCH_STORE_SAVED, ID_A);
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "DEL"));
	answers(&world.commands, ":1\r\n");
	hears(world.last_id, 200, "");
	asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
	TURN_UNTIL(has_order(&world.commands));
	answers(&world.commands, "*2\r\n$1\r\nb\r\n$5\r\nline1\r\n");
	hears(world.last_id, 200, "line1\n");
	saves("");
	store_announces("taken a " ID_A);
	store_is_asked_whose(ID_A);
	answers(&world.commands, ":1\r\n");
	pass(2000); /* it came too late for the gateway */
	saves("");
	store_announces("taken a " ID_A);
	store_is_given_nothing();
}

/* CLU-SESS-02: a few at a time; those that nobody waits for any more are not asked for; logs only if they are wanted. */
static void many_sessions_are_taken_over(void **state)
{
	enum { ALL = STORE_TAKING_MAX + 2 };
	struct ipc_message cancel = { .type = IPC_CANCEL };
	uint32_t ids[ALL];

	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	for (int i = 0; i < ALL; i++)
		ids[i] =
			asks(FETCH_STORE_TAKE, i % 2 == 0 ? OWNER "\n" ID_A : OWNER "\n" ID_A "\n");
	for (int i = 0; i < STORE_TAKING_MAX; i++) {
		TURN_UNTIL(has_order(&world.commands));
		assert_string_equal(word(&world.commands, 9), i % 2 == 0 ? "logs" : "");
	}
	cancel.cancel.id = ids[ALL - 2];
	assert_int_equal(ipc_send(world.gateway, &cancel, NULL), 0);
	store_is_given_nothing();
	answers(&world.commands, "*0\r\n");
	hears(ids[0], 404, "");
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 9), "");
	for (int i = 1; i < STORE_TAKING_MAX; i++) {
		answers(&world.commands, "*0\r\n");
		hears(ids[i], 404, "");
	}
	answers(&world.commands, "*0\r\n");
	hears(ids[ALL - 1], 404, "");
}

/* CLU-CONN-02: before it expires; with the next look, if the store has refused it, which is logged once. */
static void what_is_there_is_written_again(void **state)
{
	keeps(LINE(ID_A, ""));
	store_accepts();
	store_is_given(ID_A, LINE(ID_A, ""));
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	pass(1190000);
	store_is_given_nothing();
	pass(10000);
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "HSET"));
	answers(&world.commands, "-NOPERM no\r\n");
	store_is_given_nothing();
	for (int i = 0; i < 2; i++) {
		pass(5000);
		TURN_UNTIL(has_order(&world.commands));
		assert_non_null(strstr(word(&world.commands, 1), "HSET"));
		answers(&world.commands, i == 0 ? "-NOPERM no\r\n" : ":1\r\n");
		hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n"); /* which tells its denials, too */
		store_is_given_nothing();
	}
	assert_int_equal(count_logged("NOPERM"), 1);
	pass(5000);
	store_is_given_nothing();
	saves(LINE(ID_A, ",\"level\":\"error\""));
	TURN_UNTIL(has_order(&world.commands));
	answers(&world.commands, "-NOPERM no\r\n");
	store_is_given_nothing();
	assert_int_equal(count_logged("NOPERM"), 2);
}

/* CLU-CONN-05: as after a loss. */
static void an_emptied_store_is_written_anew(void **state)
{
	keeps(LINE(ID_A, ""));
	world.since = "$3\r\n1.5\r\n";
	store_accepts();
	store_is_given(ID_A, LINE(ID_A, ""));
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	pass(5000);
	store_is_given_nothing();
	world.since = "$32\r\n11111111111111111111111111111111\r\n"; /* none */
	pass(5000);
	store_is_given_nothing();
	world.since = "$3\r\n2.5\r\n";
	pass(5000);
	store_is_given(ID_A, LINE(ID_A, ""));
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	store_is_given_nothing();
	/* What is said too late is of a connection that is not used. */
	world.since = "";
	pass(5000);
	store_is_given_nothing();
	end_close(&world.channel);
	hears(asks(FETCH_STORE_WATCH, ""), 200, "down it has closed the connection\n");
	asks(FETCH_STORE_WATCH, "");
	answers(&world.commands, "$3\r\n3.5\r\n");
	for (int k = 0; k < 50; k++) {
		turn();
		assert_false(has_order(&world.commands) || is_answered());
	}
}

/* CLU-CONN-02: what waits for it is told that it is away. */
static void a_silent_store_is_left(void **state)
{
	struct ipc_message cancel = { .type = IPC_CANCEL };

	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	cancel.cancel.id = asks(FETCH_STORE_WATCH, "");
	assert_int_equal(ipc_send(world.gateway, &cancel, NULL), 0);
	for (int i = 0; i < STORE_TAKING_MAX + 1; i++)
		asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
	TURN_UNTIL(has_command(&world.commands) && strcmp(word(&world.commands, 0), "EVAL") == 0);
	clock_advance(2000);
	turn();
	assert_false(is_answered());
	clock_advance(2000);
	for (int i = 0; i < STORE_TAKING_MAX + 1; i++) {
		TURN_UNTIL(is_answered());
		assert_int_equal(world.status, 503);
		assert_string_equal(world.error,
				    i < STORE_TAKING_MAX ? "no answer" : "it does not answer");
	}
	hears(asks(FETCH_STORE_WATCH, ""), 200, "down it does not answer\n");
	assert_int_equal(count_logged("it does not answer"), 1);
}

/* What cannot be read is not written. */
static void odd_memory_is_not_written(void **state)
{
	static const char *const odd[] = { "", "m", KEPT_SESSIONS_FIRST_LINE LINE(ID_A, "") "x",
					   "mcpgated sessions 2\n" LINE(ID_A, "") };

	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		memcpy(halves_begin(world.file, KEPT_SESSIONS_TEXT_BYTES), odd[i], strlen(odd[i]));
		halves_end(world.file, KEPT_SESSIONS_TEXT_BYTES, strlen(odd[i]));
		store_is_given_nothing();
	}
}

/* A store that does not keep to the protocol, or sends replies to nothing: connected to again, as to one that has gone. */
static void an_odd_store_is_left(void **state)
{
	static const char *const odd[] = { "?\r\n",
					   "+ok\r\n",
					   "*-7\r\n",
					   ":x\r\n",
					   "$99999999999999999999\r\n",
					   "HTTP/1.1 400 Bad Request\r\n",
					   "*1\r\n$7\r\nmessage\r\n",
					   "*3\r\n$1\r\nx\r\n$6\r\np:news\r\n$1\r\nx\r\n" };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		struct end *odd_one;
		char byte;

		store_accepts();
		hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
		odd_one = odd[i][0] == '*' && odd[i][1] != '-' ? &world.channel : &world.commands;
		answers(odd_one, odd[i]);
		TURN_UNTIL(has_order(odd_one) || recv(odd_one->fd, &byte, 1, MSG_DONTWAIT) == 0);
		TURN_UNTIL(is_answered() || asks(FETCH_STORE_WATCH, "") > 0);
		end_close(&world.channel);
		TURN_UNTIL(is_answered());
		assert_memory_equal(world.body.data, "down ", 5);
	}
}

/* A gateway that asks for what there is not, too much, or breaks the form. */
static void an_odd_gateway(void **state)
{
	at_end(buf_fini) struct buf question = { 0 };

	store_accepts();
	hears(asks(FETCH_KEYS, ""), 0, "");
	buf_append_str(&question, OWNER "\n");
	for (int i = 0; i < 500; i++)
		buf_append_str(&question, ID_A " ");
	asks(FETCH_STORE_TAKE, buf_terminate(&question));
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 2), "66");
	answers(&world.commands, "*0\r\n");
	hears(world.last_id, 404, "");
	asks(FETCH_STORE_TAKE, "");
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 2), "0");
	answers(&world.commands, "*0\r\n");
	hears(world.last_id, 404, "");
	assert_int_equal(ipc_send(world.gateway, &(struct ipc_message){ .type = IPC_READY }, NULL),
			 0);
	TURN_UNTIL(world.has_ended);
}

/* ---- logs of streams ---- */

static struct stream_log_owner *on_found(void *arg, struct slice text)
{
	return NULL;
}

/* EVAL SCRIPT 3 SESSION STREAMS STREAM NODE NUMBER FROM TEXT LIFE ID */
static void store_is_given_text(const char *from, const char *text)
{
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "APPEND"));
	assert_string_equal(word(&world.commands, 3), "p:s:" ID_A);
	assert_string_equal(word(&world.commands, 4), "p:e:" ID_A);
	assert_string_equal(word(&world.commands, 5), "p:e:" ID_A ":3");
	assert_string_equal(word(&world.commands, 6), "a");
	assert_string_equal(word(&world.commands, 7), "3");
	assert_string_equal(word(&world.commands, 8), from);
	assert_string_equal(word(&world.commands, 9), text);
	assert_string_equal(word(&world.commands, 11), ID_A);
}

#define FIRST "of " ID_A " 7 3 1 9"

static void store_removes(const char *log)
{
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "DEL"));
	assert_string_equal(word(&world.commands, 5), log);
	answers(&world.commands, ":1\r\n");
}

/* CLU-SESS-04: as they grow, each byte once; anew if the store has lost them; and they go. */
static void logs_are_copied(void **state)
{
	static struct stream_log *log, *odd;
	struct stream_log_owner owner;
	struct stream_logs logs;

	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	hears(asks(FETCH_STORE_LOGGED, ""), 503, "");
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	stream_log_new(&logs, &owner, &odd);
	stream_log_append(&odd, SLICE_LIT("of nobody 1 1 1 "), SLICE_LIT(""));
	stream_log_new(&logs, &owner, &log);
	stream_log_append(&log, SLICE_LIT(FIRST), SLICE_LIT(""));
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	/* Nothing more, and no answer, before the store has answered. */
	stream_log_append(&log, SLICE_LIT("waits 1 4 "), SLICE_LIT("{}"));
	hears(asks(FETCH_STORE_SAVED, ""), 200, "");
	assert_false(has_order(&world.commands));
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_nothing();
	answers(&world.commands, ":1\r\n");
	store_is_given_text("55", "waits 1 4 {}\n");
	answers(&world.commands, "$5\r\nother\r\n");
	store_is_given_text("0", FIRST "\nwaits 1 4 {}\n");
	answers(&world.commands, ":1\r\n");
	hears(world.last_id - 1, 200, "");
	store_is_given_nothing();
	/* Another one of the same stream takes its place: nothing is removed. */
	stream_log_replace(&log, SLICE_LIT(FIRST "\n"));
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	hears(world.last_id, 200, "");
	store_is_given_nothing();
	store_accepts();
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, "-OOM\r\n");
	hears(asks(FETCH_STORE_LOGGED, ""), 200, "");
	store_is_given_nothing(); /* before all is looked at again */
	pass(5000);
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	store_is_given_nothing();
	pass(1200000); /* before it expires */
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	store_is_given_nothing();
	store_accepts();
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	hears(world.last_id, 200, "");
	stream_log_free(&log);
	stream_log_free(&odd);
	asks(FETCH_STORE_LOGGED, "");
	store_removes("p:e:" ID_A ":3");
	hears(world.last_id, 200, "");
	store_is_given_nothing();
	stream_logs_fini(&logs);
}

/* CLU-SESS-04: what the store has not answered is written anew; what nobody would take goes, as does what another node has. */
static void a_log_may_be_written_in_vain(void **state)
{
	static const char *const odd[] = { "of " ID_A " 7 x 1 9", "of " ID_A " 7",
					   "to " ID_A " 7 3 1 9" };
	static struct stream_log *log, *other;
	struct stream_log_owner owner;
	struct stream_logs logs;
	at_end(mem_free) char *text = mem_alloc(LOG_COPY_BYTES_MAX);
	uint32_t id;

	memset(text, 'x', LOG_COPY_BYTES_MAX);
	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		stream_log_new(&logs, &owner, &other);
		stream_log_append(&other, slice_str(odd[i]), SLICE_LIT(""));
		other->holder = NULL;
	}
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	hears(asks(FETCH_STORE_LOGGED, ""), 200, "");
	stream_log_new(&logs, &owner, &log);
	stream_log_append(&log, SLICE_LIT(FIRST), SLICE_LIT(""));
	id = asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	end_close(&world.commands);
	hears(id, 503, "");
	hears(asks(FETCH_STORE_LOGGED, ""), 503, "");
	end_close(&world.channel);
	store_accepts();
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	hears(asks(FETCH_STORE_LOGGED, ""), 200, "");
	stream_log_append(&log, SLICE_LIT("x"), SLICE_LIT(""));
	id = asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("55", "x\n");
	/* As long as may be; then longer. */
	stream_log_append(&log, slice_of(text, LOG_COPY_BYTES_MAX - 58), SLICE_LIT(""));
	answers(&world.commands, ":1\r\n");
	hears(id, 200, "");
	id = asks(FETCH_STORE_LOGGED, "");
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 8), "57");
	answers(&world.commands, ":1\r\n");
	hears(id, 200, "");
	stream_log_append(&log, SLICE_LIT(""), SLICE_LIT(""));
	id = asks(FETCH_STORE_LOGGED, "");
	store_removes("p:e:" ID_A ":3");
	hears(id, 200, "");
	store_is_given_nothing();
	stream_log_replace(&log, SLICE_LIT(FIRST "\n"));
	id = asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	stream_log_owner_fini(&owner); /* it is answered when there is none */
	answers(&world.commands, "-OOM\r\n");
	hears(id, 200, "");
	id = asks(FETCH_STORE_LOGGED, "");
	store_removes("p:e:" ID_A ":3");
	hears(id, 200, "");
	store_is_given_nothing();
	stream_logs_fini(&logs);
}

/* CLU-SESS-04: no more than the store has answered for, and what is gone goes when all else is there. */
static void many_logs_are_copied(void **state)
{
	enum {
		EACH = 256 * 1024,
		FIRST_BYTES = sizeof(FIRST),
		TEXT_BYTES = EACH - FIRST_BYTES - 1
	};
	static struct stream_log *many[5]; /* a fourth of what is sent at once each */
	struct stream_log_owner owner;
	struct stream_logs logs;
	at_end(mem_free) char *text = mem_alloc(TEXT_BYTES + 1);

	memset(text, 'x', TEXT_BYTES);
	text[TEXT_BYTES] = '\0';
	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	for (int i = 0; i < 5; i++) {
		at_end(mem_free) char *first = mem_printf("of " ID_A " 7 %d 1 9\n", i + 1);

		stream_log_new(&logs, &owner, &many[i]);
		stream_log_append(&many[i], slice_str(first), slice_str(text));
		assert_int_equal(many[i]->size, EACH);
	}
	asks(FETCH_STORE_LOGGED, "");
	for (int i = 0; i < 4; i++)
		TURN_UNTIL(has_order(&world.commands));
	stream_log_free(&many[0]);
	for (int i = 0; i < 50; i++) {
		turn();
		assert_false(has_order(&world.commands));
	}
	for (int i = 0; i < 4; i++)
		answers(&world.commands, ":1\r\n");
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 5), "p:e:" ID_A ":5");
	answers(&world.commands, ":1\r\n");
	store_removes("p:e:" ID_A ":1");
	hears(world.last_id, 200, "");
	stream_log_owner_fini(&owner);
	stream_logs_fini(&logs);
}

/* Whatever is under way, it leaves nothing: by teardown. */
static void a_gateway_may_end_at_any_time(void **state)
{
	static struct stream_log *log;
	struct stream_log_owner owner;
	struct stream_logs logs;

	keeps(LINE(ID_A, ""));
	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	stream_log_new(&logs, &owner, &log);
	stream_log_append(&log, SLICE_LIT(FIRST), SLICE_LIT(""));
	store_accepts();
	store_is_given(ID_A, LINE(ID_A, ""));
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	store_announces("denial 0001700000000000 1 18446744073709551615\tsub\ti\tx");
	asks(FETCH_STORE_LOGGED, "");
	TURN_UNTIL(has_order(&world.commands));
	for (int i = 0; i < STORE_TAKING_MAX + 2; i++)
		asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
	TURN_UNTIL(has_order(&world.commands));
	stream_log_owner_fini(&owner);
	stream_logs_fini(&logs);
}

/* ---- denials ---- */

#define DENIED "0001700000000000 1 18446744073709551615"
#define EXPIRED "0001700000000000 1 00000001700000001000"
#define AHEAD "0009000000000000 1 18446744073709551615" /* nobody could say anything later */
#define ALICE "sub\thttps://id.example\talice"
#define BOB "sub\thttps://id.example\tbob"

/* CLU-DENY-01: what the gateway's operator says goes to the store, one script for each. */
static void denials_are_written(void **state)
{
	asks(FETCH_STORE_DENY, DENIED "\t" ALICE "\n");
	hears(world.last_id, 503, "");
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	asks(FETCH_STORE_DENY, "z\t" ALICE "\n" DENIED "\t" ALICE "\nx\n\n" AHEAD "\t" BOB
			       "\n" EXPIRED "\t" BOB "\n");
	hears(world.last_id, 200, "");
	for (int i = 0; i < 2; i++) {
		TURN_UNTIL(has_order(&world.commands));
		assert_string_equal(word(&world.commands, 3), "p:denials");
		assert_string_equal(word(&world.commands, 4), i == 0 ? ALICE : BOB);
		assert_string_equal(word(&world.commands, 5), i == 0 ? DENIED : EXPIRED);
		assert_string_equal(word(&world.commands, 6), "p:news");
		answers(&world.commands, ":1\r\n");
	}
}

/* CLU-DENY-01: also without end, while the gateway does not listen: then they are read anew. */
static void denials_of_others_are_told(void **state)
{
	bool is_scanning;
	uint32_t id;

	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	id = asks(FETCH_STORE_WATCH, "");
	store_announces("denial " DENIED "\t" ALICE);
	hears(id, 200, "denial " DENIED "\t" ALICE "\n");
	store_announces("");
	store_announces("denial " DENIED "\t" BOB);
	store_is_given_nothing();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "denial " DENIED "\t" BOB "\n");
	for (int i = 0; i < 20; i++) {
		at_end(mem_free) char *one = mem_printf("denial " DENIED "\tsub\ti\t%d", i);

		store_announces(one);
	}
	store_is_given_nothing();
	for (int i = 0; i < 2; i++) {
		size_t lines = 0;

		asks(FETCH_STORE_WATCH, "");
		TURN_UNTIL(is_answered());
		for (size_t k = 0; k < world.body.len; k++)
			lines += world.body.data[k] == '\n';
		assert_int_equal(lines, i == 0 ? 16 : 4);
	}
	world.has_denials = true;
	for (int i = 0; i < 80; i++) {
		at_end(mem_free) char *many =
			mem_printf("denial " DENIED "\tsub\thttps://id.example\t%01024d", i);

		store_announces(many);
	}
	store_is_given_nothing();
	for (is_scanning = false; !is_scanning;) {
		asks(FETCH_STORE_WATCH, "");
		TURN_UNTIL(is_answered() || (is_scanning = has_order(&world.commands)));
	}
	assert_string_equal(word(&world.commands, 0), "HSCAN");
}

/* CLU-DENY-01: those that were there before, as fast as the gateway takes them; what has expired goes. */
static void denials_in_the_store_are_read(void **state)
{
	static const char *const odd[] = { "*0\r\n",
					   "*2\r\n:1\r\n*0\r\n",
					   "*2\r\n$1\r\n7\r\n$1\r\nx\r\n",
					   "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nx\r\n",
					   "-NOPERM no\r\n",
					   "*2\r\n$24\r\n111111111111111111111111\r\n*0\r\n" };
	uint32_t id;

	world.has_denials = true;
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		store_accepts();
		TURN_UNTIL(has_order(&world.commands));
		assert_string_equal(word(&world.commands, 0), "HSCAN");
		assert_string_equal(word(&world.commands, 1), "p:denials");
		answers(&world.commands, odd[i]);
		store_is_given_nothing();
	}
	assert_int_equal(count_logged("NOPERM"), 1);
	store_accepts();
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 2), "0");
	answers(&world.commands,
		"*2\r\n$2\r\n77\r\n*6\r\n$1\r\nx\r\n$1\r\ny\r\n$28\r\n" ALICE "\r\n$39\r\n" DENIED
		"\r\n$26\r\n" BOB "\r\n$39\r\n" EXPIRED "\r\n");
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "HDEL"));
	assert_string_equal(word(&world.commands, 4), "x");
	assert_string_equal(word(&world.commands, 5), "y");
	answers(&world.commands, ":1\r\n");
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "HDEL"));
	assert_string_equal(word(&world.commands, 4), BOB);
	assert_string_equal(word(&world.commands, 5), EXPIRED);
	answers(&world.commands, ":1\r\n");
	store_is_given_nothing();
	id = asks(FETCH_STORE_WATCH, "");
	TURN_UNTIL(is_answered());
	assert_int_equal(world.id, id);
	assert_non_null(memmem(world.body.data, world.body.len, "denial " DENIED "\t" ALICE "\n",
			       strlen("denial " DENIED "\t" ALICE "\n")));
	assert_null(memmem(world.body.data, world.body.len, "bob", 3));
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 0), "HSCAN");
	assert_string_equal(word(&world.commands, 2), "77");
	id = asks(FETCH_STORE_WATCH, "");
	store_is_given_nothing();
	answers(&world.commands, "*2\r\n$1\r\n0\r\n*2\r\n$26\r\n" BOB "\r\n$39\r\n" DENIED "\r\n");
	hears(id, 200, "denial " DENIED "\t" BOB "\n");
	store_is_given_nothing();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_has_changed_is_written),
		CASE(what_others_have_is_told),
		CASE(a_session_is_taken_over),
		CASE(many_sessions_are_taken_over),
		CASE(what_was_taken_is_not_yet_in_the_file),
		CASE(many_are_lost),
		CASE(what_is_taken_back_stays),
		CASE(what_is_there_is_written_again),
		CASE(an_emptied_store_is_written_anew),
		CASE(a_silent_store_is_left),
		CASE(odd_memory_is_not_written),
		CASE(an_odd_store_is_left),
		CASE(an_odd_gateway),
		CASE(logs_are_copied),
		CASE(a_log_may_be_written_in_vain),
		CASE(many_logs_are_copied),
		CASE(a_gateway_may_end_at_any_time),
		CASE(denials_are_written),
		CASE(denials_of_others_are_told),
		CASE(denials_in_the_store_are_read),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
