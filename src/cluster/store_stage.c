/* SPDX-License-Identifier: Apache-2.0 */
/* See store_stage.h. */
#include "cluster/store_stage.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "obs/log.h"
#include "router/kept_sessions.h"

struct store_stage world;

static void on_end(void *arg)
{
	world.has_ended = true;
}

void turn(void)
{
	clock_update();
	loop_turn(world.loop, false);
	usleep(200);
}

/* ---- the store ---- */

void end_close(struct end *end)
{
	if (end->fd >= 0)
		close(end->fd);
	if (end->reader != NULL)
		redisReaderFree(end->reader);
	if (end->command != NULL)
		freeReplyObject(end->command);
	*end = (struct end){ .fd = -1 };
}

bool has_command(struct end *end)
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

void answers(const struct end *end, const char *text)
{
	assert_int_equal(send(end->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

const char *word(const struct end *end, size_t i)
{
	assert_true(i < end->command->elements);
	assert_int_equal(strlen(end->command->element[i]->str), end->command->element[i]->len);
	return end->command->element[i]->str;
}

bool has_order(struct end *end)
{
	while (has_command(end)) {
		bool is_eval = strcmp(word(end, 0), "EVAL") == 0;
		bool is_scan = strcmp(word(end, 0), "HSCAN") == 0;
		const char *text = is_eval ? world.since : is_scan ? NO_DENIALS : "+PONG\r\n";

		if (is_eval ? strcmp(word(end, 3), "p:since") != 0 :
		    is_scan ? world.has_denials :
			      strcmp(word(end, 0), "PUBLISH") == 0)
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

void store_accepts(void)
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

void store_announces(const char *text)
{
	at_end(mem_free) char *message =
		mem_printf("*3\r\n$7\r\nmessage\r\n$6\r\np:news\r\n$%zu\r\n%s\r\n", strlen(text),
			   text);

	answers(&world.channel, message);
}

/* ---- the gateway ---- */

void keeps(const char *lines)
{
	at_end(mem_free) char *text = mem_printf("%s%s", KEPT_SESSIONS_FIRST_LINE, lines);

	memcpy(halves_begin(world.file, KEPT_SESSIONS_TEXT_BYTES), text, strlen(text));
	halves_end(world.file, KEPT_SESSIONS_TEXT_BYTES, strlen(text));
}

uint32_t asks(enum fetch_kind kind, const char *text)
{
	const struct ipc_message message = { .type = IPC_ASK,
					     .ask = { ++world.last_id, (uint32_t)kind, 0, 0 },
					     .texts = { slice_of(NULL, 0), slice_str(text) } };

	assert_int_equal(ipc_send(world.gateway, &message, NULL), 0);
	return world.last_id;
}

bool is_answered(void)
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

void hears(uint32_t id, int status, const char *body)
{
	TURN_UNTIL(is_answered());
	assert_int_equal(world.id, id);
	assert_int_equal(world.status, status);
	assert_true(slice_is_equal(buf_slice(&world.body), slice_str(body)));
}

void saves(const char *lines)
{
	keeps(lines);
	hears(asks(FETCH_STORE_SAVED, ""), 200, "");
}

/* ---- both ---- */

int store_stage_open(void **state)
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

int store_stage_close(void **state)
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

void pass(uint64_t ms)
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

unsigned int count_logged(const char *text)
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

void store_is_given(const char *id, const char *line)
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

void store_is_given_nothing(void)
{
	hears(asks(FETCH_STORE_SAVED, ""), 200, "");
	for (int i = 0; i < 50; i++) {
		turn();
		assert_false(has_order(&world.commands));
	}
}
