/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions and denials, whatever a gateway and a store do. What they do together is c117 of tests/scenario.
 * CLU-SESS-*, CLU-CONN-*, CLU-DENY-01
 */
#include "cluster/store_stage.h"

#include <sys/socket.h>

#include "router/kept_sessions.h"

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
	hears(asks(FETCH_STORE_SAVED, ID_B " " ID_C " "), 503, "");
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
		assert_string_equal(word(&world.commands, 16), "3600000");
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
	static const char *const odd[] = {
		"", "m", KEPT_SESSIONS_FIRST_LINE LINE(ID_A, "") "x",
		"mcpgated sessions 2\n" LINE(ID_A, ""),
		/* an id that would be whole with the next line */
		KEPT_SESSIONS_FIRST_LINE
		"{\"id\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n\"," OWNER "}\n"
	};

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

/* CLU-RATE-01: counts go to the channel, and from it to the gateway, but those of this node; and nothing else comes that way. */
static void counts_are_passed_on(void **state)
{
	uint32_t id;

	hears(asks(FETCH_STORE_COUNT, "\"x\""), 503, "");
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	hears(asks(FETCH_STORE_COUNT, "\"x\""), 200, "");
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 0), "PUBLISH");
	assert_string_equal(word(&world.commands, 1), "p:news");
	assert_string_equal(word(&world.commands, 2), "counts a \"x\"");
	answers(&world.commands, ":1\r\n");
	id = asks(FETCH_STORE_WATCH, "");
	store_announces("counts a \"y\"");
	store_announces("counts b \"z\"\nlost " ID_A "\n");
	hears(id, 200, "counts \"z\"\n");
	/* Neither without end, while the gateway does not listen, nor what no node would say. */
	for (size_t i = 0; i < 7; i++) {
		at_end(mem_free) char *much =
			mem_printf("counts b %0*d", i == 0 ? 40000 : 20000, 7);

		store_announces(much);
		store_is_given_nothing();
	}
	for (size_t i = 0; i < 4; i++) {
		asks(FETCH_STORE_WATCH, "");
		TURN_UNTIL(is_answered());
		assert_int_equal(world.body.len, strlen("counts ") + 20000 + 1);
	}
	id = asks(FETCH_STORE_WATCH, "");
	store_announces("counts b \"z\"");
	hears(id, 200, "counts \"z\"\n");
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_stage_open, store_stage_close)

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
		CASE(denials_are_written),
		CASE(counts_are_passed_on),
		CASE(denials_of_others_are_told),
		CASE(denials_in_the_store_are_read),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
