/* SPDX-License-Identifier: Apache-2.0 */
/* The parked call: every event in every state, then the rules one by one. bridging.md §2.3.3, §8 (4), (6) */
#include "router/parked_call.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/unit_test.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"

/* A request of the client. */
struct call {
	int number;
};

/* What stands for a server is compared alone. */
struct server {
	int number;
};

enum { GATHER_MS = 20, TTL_MS = 600, MAX_MS = 3000, BEGIN_MS = 1000 };

static const struct parked_calls_conf conf = {
	.gather_ms = GATHER_MS,
	.park_ttl_ms = TTL_MS,
	.call_max_ms = MAX_MS,
	.per_owner = 2,
	.per_server = 3,
	.rounds_max = 4,
};
static struct parked_calls table;
static struct server servers[2];
static int owners[4];
static struct parked_call parked[8];
static struct call calls[8]; /* the first of each */
static struct call second;
static struct buf heard; /* what the operations were told, with commas between */
static uint64_t now_ms;

/* ---- operations ---- */

static void hear(const char *format, ...) printf_like(1, 2);
static void hear(const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	buf_printf(&heard, "%s%s", heard.len > 0 ? ", " : "", text);
}

static void on_ask(struct parked_call *one, struct call *call)
{
	char key[21];

	hear("ask %d round %u", call->number, one->round);
	LIST_FOREACH(node, &one->requests) {
		struct parked_request *request = container_of(node, struct parked_request, link);

		buf_printf(&heard, " %.*s", (int)parked_request_key(request, key), key);
	}
}

static void on_deliver(struct parked_call *one, struct call *call, struct msg *response)
{
	hear("deliver %d %.*s", call->number, SLICE_ARG(response->text));
}

static void on_fail(struct parked_call *one, struct call *call, enum reason reason)
{
	hear("fail %d %s", call->number, reason_get(reason)->text);
}

static void on_answer(struct parked_call *one, const struct parked_request *request,
		      struct slice result)
{
	if (result.p == NULL)
		hear("refuse %.*s", SLICE_ARG(request->id));
	else
		hear("answer %.*s %.*s", SLICE_ARG(request->id), SLICE_ARG(result));
}

static void on_cancel(struct parked_call *one)
{
	hear("cancel");
}

static void on_release(struct parked_call *one)
{
	hear("release");
}

static void on_set_deadline(struct parked_call *one, uint64_t deadline_ms)
{
	assert_int_equal(one->deadline_ms, deadline_ms);
}

static void on_end(struct parked_call *one)
{
	hear("end");
}

static const struct parked_call_ops ops = {
	.ask = on_ask,
	.deliver = on_deliver,
	.fail = on_fail,
	.answer = on_answer,
	.cancel = on_cancel,
	.release = on_release,
	.set_deadline = on_set_deadline,
	.on_end = on_end,
};

/* ---- events ---- */

static void begin(size_t i, size_t owner, size_t server)
{
	parked[i] = (struct parked_call){ .ops = &ops,
					  .server = &servers[server],
					  .server_max = SIZE_MAX,
					  .owner = &owners[owner] };
	calls[i].number = (int)i;
	parked_call_init(&parked[i], &table, &calls[i], now_ms);
}

static bool asks_method(size_t i, const char *method, const char *id)
{
	struct msg *msg = msg_new(slice_str(id));
	bool is_taken = parked_call_on_request(&parked[i], method_find(slice_str(method)), msg,
					       msg->text, now_ms);

	msg_unref(&msg);
	return is_taken;
}

static bool asks(size_t i, const char *id)
{
	return asks_method(i, "elicitation/create", id);
}

static void takes_back(size_t i, const char *id)
{
	parked_call_on_request_cancelled(&parked[i], slice_str(id), now_ms);
}

static void answers(size_t i)
{
	struct msg *msg = msg_new(SLICE_LIT("done"));

	parked_call_on_response(&parked[i], msg, now_ms);
	msg_unref(&msg);
}

static enum parked_retry retries(size_t i, uint32_t round, const char *responses)
{
	struct json value = { .type = JSON_ABSENT };

	second.number = 9;
	if (responses != NULL)
		value = (struct json){ .type = scan_type(slice_str(responses)),
				       .text = slice_str(responses) };
	return parked_call_on_retry(&parked[i], &second, round, value, now_ms);
}

static void due(size_t i)
{
	if (parked[i].deadline_ms > 0)
		now_ms = parked[i].deadline_ms;
	parked_call_on_deadline(&parked[i], now_ms);
}

/* What was heard since the last time. */
static void heard_is(const char *expected)
{
	assert_string_equal(buf_terminate(&heard), expected);
	heard.len = 0;
}

#define ACCEPT "{\"action\":\"accept\"}"

/* RUNNING to PARKED, with r1, which the server calls 5. */
static void park(size_t i)
{
	assert_true(asks(i, "5"));
	due(i);
	assert_int_equal(parked[i].state, PARKED_PARKED);
	heard.len = 0;
}

/* The first call, of owner 0 at server 0, in that state. */
static void bring_to(enum parked_state state)
{
	begin(0, 0, 0);
	if (state == PARKED_ENDED)
		answers(0);
	if (state == PARKED_GATHERING)
		assert_true(asks(0, "5"));
	if (state == PARKED_PARKED || state == PARKED_SETTLED || state == PARKED_LOST)
		park(0);
	if (state == PARKED_SETTLED)
		answers(0);
	if (state == PARKED_LOST)
		parked_call_on_exit(&parked[0], REASON_CHILD_EXITED, now_ms);
	assert_int_equal(parked[0].state, state);
	heard.len = 0;
}

static int setup(void **state)
{
	now_ms = BEGIN_MS;
	parked_calls_init(&table, &conf);
	return 0;
}

static int teardown(void **state)
{
	while (table.by_id.count > 0) {
		for (size_t i = 0; i < ARRAY_LEN(parked); i++) {
			if (parked[i].table != NULL)
				parked_call_abandon(&parked[i], REASON_DRAINING, now_ms);
		}
	}
	assert_true(table.by_id.count == 0 && list_is_empty(&table.kept));
	memset(parked, 0, sizeof(parked));
	buf_fini(&heard);
	return 0;
}

/* ---- the matrix ---- */

enum column {
	ASKED,
	TAKEN_BACK,
	TAKEN_BACK_UNKNOWN,
	RESPONSE,
	EXITED,
	DISCONNECTED,
	DISCONNECTED_BEFORE, /* a request that was answered has gone */
	RETRIED,
	RETRIED_EMPTY,
	RETRIED_LATER, /* of a round that is not yet */
	RETRIED_BADLY,
	DEADLINE,
	DEADLINE_EARLY,
	ABANDONED,
	COLUMNS,
};

static void retry_and_hear(uint32_t round, const char *responses)
{
	static const char *const names[] = { [PARKED_RETRY_TAKEN] = "taken",
					     [PARKED_RETRY_STALE] = "stale",
					     [PARKED_RETRY_MALFORMED] = "malformed" };

	hear("%s", names[retries(0, round, responses)]);
}

static void let_happen(enum column column)
{
	switch (column) {
	case ASKED:
		hear("%s", asks(0, "6") ? "taken" : "too many");
		return;
	case TAKEN_BACK:
		takes_back(0, "5");
		return;
	case TAKEN_BACK_UNKNOWN:
		takes_back(0, "\"5\"");
		return;
	case RESPONSE:
		answers(0);
		return;
	case EXITED:
		parked_call_on_exit(&parked[0], REASON_CHILD_EXITED, now_ms);
		return;
	case DISCONNECTED:
		parked_call_on_disconnect(&parked[0], &calls[0], now_ms);
		return;
	case DISCONNECTED_BEFORE:
		parked_call_on_disconnect(&parked[0], &second, now_ms);
		return;
	case RETRIED:
		retry_and_hear(1, "{\"r1\":" ACCEPT "}");
		return;
	case RETRIED_EMPTY:
		retry_and_hear(1, NULL);
		return;
	case RETRIED_LATER:
		retry_and_hear(2, "{\"r1\":" ACCEPT "}");
		return;
	case RETRIED_BADLY:
		retry_and_hear(1, "{\"r1\":null}");
		return;
	case DEADLINE:
		due(0);
		return;
	case DEADLINE_EARLY:
		parked_call_on_deadline(&parked[0],
					parked[0].deadline_ms > 0 ? parked[0].deadline_ms - 1 : 0);
		return;
	case ABANDONED:
		parked_call_abandon(&parked[0], REASON_DRAINING, now_ms);
		return;
	case COLUMNS:
		break;
	}
	fail();
}

struct cell {
	enum parked_state next;
	const char *heard;
};

#define SAME(text)          \
	{                   \
		STATE, text \
	}

static const struct cell matrix[PARKED_STATES][COLUMNS] = {
#define STATE PARKED_RUNNING
	[STATE] = {
		[ASKED] = { PARKED_GATHERING, "taken" },
		[TAKEN_BACK] = SAME(""),
		[TAKEN_BACK_UNKNOWN] = SAME(""),
		[RESPONSE] = { PARKED_ENDED, "release, deliver 0 done, end" },
		[EXITED] = { PARKED_ENDED, "fail 0 child_exited, end" },
		[DISCONNECTED] = { PARKED_ENDED, "cancel, end" },
		[DISCONNECTED_BEFORE] = SAME(""),
		[RETRIED] = SAME("stale"),
		[RETRIED_EMPTY] = SAME("stale"),
		[RETRIED_LATER] = SAME("stale"),
		[RETRIED_BADLY] = SAME("stale"),
		[DEADLINE] = SAME(""),
		[DEADLINE_EARLY] = SAME(""),
		[ABANDONED] = { PARKED_ENDED, "cancel, fail 0 draining, end" },
	},
#undef STATE
#define STATE PARKED_GATHERING
	[STATE] = {
		[ASKED] = SAME("taken"),
		[TAKEN_BACK] = { PARKED_RUNNING, "" },
		[TAKEN_BACK_UNKNOWN] = SAME(""),
		[RESPONSE] = { PARKED_ENDED, "refuse 5, release, deliver 0 done, end" },
		[EXITED] = { PARKED_ENDED, "fail 0 child_exited, end" },
		[DISCONNECTED] = { PARKED_ENDED, "refuse 5, cancel, end" },
		[DISCONNECTED_BEFORE] = SAME(""),
		[RETRIED] = SAME("stale"),
		[RETRIED_EMPTY] = SAME("stale"),
		[RETRIED_LATER] = SAME("stale"),
		[RETRIED_BADLY] = SAME("stale"),
		[DEADLINE] = { PARKED_PARKED, "ask 0 round 1 r1" },
		[DEADLINE_EARLY] = SAME(""),
		[ABANDONED] = { PARKED_ENDED, "refuse 5, cancel, fail 0 draining, end" },
	},
#undef STATE
#define STATE PARKED_PARKED
	[STATE] = {
		[ASKED] = SAME("taken"),
		[TAKEN_BACK] = SAME(""),
		[TAKEN_BACK_UNKNOWN] = SAME(""),
		[RESPONSE] = { PARKED_SETTLED, "refuse 5, release" },
		[EXITED] = { PARKED_LOST, "" },
		[DISCONNECTED] = SAME(""),
		[DISCONNECTED_BEFORE] = SAME(""),
		[RETRIED] = { PARKED_RUNNING, "answer 5 " ACCEPT ", taken" },
		[RETRIED_EMPTY] = SAME("ask 9 round 2 r1, taken"),
		[RETRIED_LATER] = SAME("stale"),
		[RETRIED_BADLY] = SAME("malformed"),
		[DEADLINE] = { PARKED_ENDED, "refuse 5, cancel, end" },
		[DEADLINE_EARLY] = SAME(""),
		[ABANDONED] = { PARKED_ENDED, "refuse 5, cancel, end" },
	},
#undef STATE
#define STATE PARKED_SETTLED
	[STATE] = {
		[ASKED] = SAME("too many"),
		[TAKEN_BACK] = SAME(""),
		[TAKEN_BACK_UNKNOWN] = SAME(""),
		[RESPONSE] = SAME(""),
		[EXITED] = SAME(""),
		[DISCONNECTED] = SAME(""),
		[DISCONNECTED_BEFORE] = SAME(""),
		[RETRIED] = { PARKED_ENDED, "deliver 9 done, end, taken" },
		[RETRIED_EMPTY] = { PARKED_ENDED, "deliver 9 done, end, taken" },
		[RETRIED_LATER] = SAME("stale"),
		[RETRIED_BADLY] = { PARKED_ENDED, "deliver 9 done, end, taken" }, /* nothing is outstanding */
		[DEADLINE] = { PARKED_ENDED, "end" },
		[DEADLINE_EARLY] = SAME(""),
		[ABANDONED] = { PARKED_ENDED, "end" },
	},
#undef STATE
#define STATE PARKED_LOST
	[STATE] = {
		[ASKED] = SAME("too many"),
		[TAKEN_BACK] = SAME(""),
		[TAKEN_BACK_UNKNOWN] = SAME(""),
		[RESPONSE] = SAME(""),
		[EXITED] = SAME(""),
		[DISCONNECTED] = SAME(""),
		[DISCONNECTED_BEFORE] = SAME(""),
		[RETRIED] = { PARKED_ENDED, "fail 9 parked_call_lost, end, taken" },
		[RETRIED_EMPTY] = { PARKED_ENDED, "fail 9 parked_call_lost, end, taken" },
		[RETRIED_LATER] = SAME("stale"),
		[RETRIED_BADLY] = { PARKED_ENDED, "fail 9 parked_call_lost, end, taken" },
		[DEADLINE] = { PARKED_ENDED, "end" },
		[DEADLINE_EARLY] = SAME(""),
		[ABANDONED] = { PARKED_ENDED, "end" },
	},
#undef STATE
#define STATE PARKED_ENDED
	[STATE] = {
		[ASKED] = SAME("too many"),
		[TAKEN_BACK] = SAME(""),
		[TAKEN_BACK_UNKNOWN] = SAME(""),
		[RESPONSE] = SAME(""),
		[EXITED] = SAME(""),
		[DISCONNECTED] = SAME(""),
		[DISCONNECTED_BEFORE] = SAME(""),
		[RETRIED] = SAME("stale"),
		[RETRIED_EMPTY] = SAME("stale"),
		[RETRIED_LATER] = SAME("stale"),
		[RETRIED_BADLY] = SAME("stale"),
		[DEADLINE] = SAME(""),
		[DEADLINE_EARLY] = SAME(""),
		[ABANDONED] = SAME(""),
	},
#undef STATE
};

static void every_event_in_every_state(void **state)
{
	for (unsigned int i = 0; i < PARKED_STATES * COLUMNS; i++) {
		const struct cell *cell = &matrix[i / COLUMNS][i % COLUMNS];

		now_ms = BEGIN_MS;
		bring_to((enum parked_state)(i / COLUMNS));
		let_happen((enum column)(i % COLUMNS));
		if (strcmp(buf_terminate(&heard), cell->heard) != 0 ||
		    parked[0].state != cell->next)
			fail_msg("state %u, event %u: %s", i / COLUMNS, i % COLUMNS, heard.data);
		parked_call_abandon(&parked[0], REASON_DRAINING, now_ms);
		assert_int_equal(table.by_id.count, 0);
	}
}

/* ---- the rules ---- */

static void a_seal_finds_its_call(void **state)
{
	unsigned char id[SEAL_CALL_BYTES];

	bring_to(PARKED_PARKED);
	begin(1, 1, 0);
	assert_ptr_equal(parked_calls_find(&table, parked[0].id), &parked[0]);
	assert_ptr_equal(parked_calls_find(&table, parked[1].id), &parked[1]);
	memcpy(id, parked[0].id, sizeof(id));
	id[SEAL_CALL_BYTES - 1] ^= 1;
	assert_null(parked_calls_find(&table, id));
	id[SEAL_CALL_BYTES - 1] ^= 1;
	answers(0);
	assert_ptr_equal(parked_calls_find(&table, id), &parked[0]);
	retries(0, 1, NULL);
	assert_null(parked_calls_find(&table, id));
}

/* (a): the second presentation of one state is stale, whatever became of the first. */
static void a_round_is_taken_once(void **state)
{
	bring_to(PARKED_PARKED);
	assert_int_equal(retries(0, 1, NULL), PARKED_RETRY_TAKEN);
	assert_int_equal(retries(0, 1, NULL), PARKED_RETRY_STALE);
	assert_int_equal(retries(0, 2, "{\"r1\":" ACCEPT "}"), PARKED_RETRY_TAKEN);
	assert_int_equal(retries(0, 2, "{\"r1\":" ACCEPT "}"), PARKED_RETRY_STALE);
	heard_is("ask 9 round 2 r1, answer 5 " ACCEPT);
	answers(0);
	heard_is("release, deliver 9 done, end");
	assert_int_equal(retries(0, 2, NULL), PARKED_RETRY_STALE);
}

/* Keys are never used again in a call. */
static void each_round_has_new_keys(void **state)
{
	bring_to(PARKED_PARKED);
	assert_int_equal(retries(0, 1, "{\"r1\":" ACCEPT "}"), PARKED_RETRY_TAKEN);
	assert_true(asks(0, "5"));
	assert_true(asks(0, "\"x\""));
	takes_back(0, "5");
	assert_true(asks(0, "5"));
	due(0);
	heard_is("answer 5 " ACCEPT ", ask 9 round 2 r3 r4");
	/* what was answered before is nothing now */
	assert_int_equal(retries(0, 2,
				 "{\"r1\":" ACCEPT ",\"r4\":{\"action\":\"decline\"},\"r2\":1}"),
			 PARKED_RETRY_TAKEN);
	heard_is("answer 5 {\"action\":\"decline\"}, ask 9 round 3 r3");
	assert_int_equal(retries(0, 3, "{\"r3\":{\"action\":\"cancel\",\"x\":[1, 2]}}"),
			 PARKED_RETRY_TAKEN);
	heard_is("answer \"x\" {\"action\":\"cancel\",\"x\":[1, 2]}");
}

/* What is outstanding has so many bytes together; what was taken back has none. */
static void long_requests_have_little_room(void **state)
{
	const size_t size = 3 * 1024 * 1024;
	char *text = malloc(size + 1);

	memset(text, '1', size);
	text[size] = '\0';
	bring_to(PARKED_GATHERING);
	assert_true(asks(0, text));
	assert_false(asks(0, text));
	takes_back(0, text);
	assert_true(asks(0, text));
	takes_back(0, text);
	free(text);
}

static void requests_gather_for_a_while(void **state)
{
	begin(0, 0, 0);
	assert_int_equal(parked[0].deadline_ms, 0);
	assert_true(asks(0, "1"));
	assert_int_equal(parked[0].deadline_ms, BEGIN_MS + GATHER_MS);
	now_ms += GATHER_MS - 1;
	assert_true(asks(0, "2"));
	assert_int_equal(parked[0].deadline_ms, BEGIN_MS + GATHER_MS); /* not longer */
	due(0);
	assert_true(asks(0, "3")); /* in the next round */
	heard_is("ask 0 round 1 r1 r2");
	assert_int_equal(retries(0, 1, "{\"r2\":" ACCEPT ",\"r1\":" ACCEPT "}"),
			 PARKED_RETRY_TAKEN);
	heard_is("answer 1 " ACCEPT ", answer 2 " ACCEPT ", ask 9 round 2 r3");
}

static void the_server_takes_all_back(void **state)
{
	bring_to(PARKED_PARKED);
	takes_back(0, "5");
	assert_int_equal(retries(0, 1, "{\"r1\":" ACCEPT "}"), PARKED_RETRY_TAKEN);
	assert_int_equal(parked[0].state, PARKED_RUNNING);
	heard_is("");
	answers(0);
	heard_is("release, deliver 9 done, end");
}

/* park_ttl begins anew with each round; call_max does not. */
static void a_parked_call_does_not_wait_for_ever(void **state)
{
	bring_to(PARKED_PARKED);
	assert_int_equal(parked[0].deadline_ms, now_ms + TTL_MS);
	now_ms += TTL_MS - 1;
	assert_int_equal(retries(0, 1, NULL), PARKED_RETRY_TAKEN);
	assert_int_equal(parked[0].deadline_ms, now_ms + TTL_MS);
	now_ms = BEGIN_MS + MAX_MS - 5;
	assert_int_equal(retries(0, 2, NULL), PARKED_RETRY_TAKEN);
	assert_int_equal(parked[0].deadline_ms, BEGIN_MS + MAX_MS);
	heard.len = 0;
	due(0);
	heard_is("refuse 5, cancel, end");
}

/* What is stored waits no longer than the question would have. */
static void a_result_does_not_wait_for_ever(void **state)
{
	uint64_t deadline_ms;

	bring_to(PARKED_PARKED);
	deadline_ms = parked[0].deadline_ms;
	now_ms += 100;
	answers(0);
	assert_int_equal(parked[0].deadline_ms, deadline_ms);
	heard.len = 0;
	due(0);
	heard_is("end");
}

/* (h) */
static void rounds_are_bounded(void **state)
{
	bring_to(PARKED_PARKED);
	for (uint32_t round = 1; round < conf.rounds_max; round++)
		assert_int_equal(retries(0, round, NULL), PARKED_RETRY_TAKEN);
	heard.len = 0;
	assert_int_equal(retries(0, conf.rounds_max, NULL), PARKED_RETRY_TAKEN);
	heard_is("refuse 5, cancel, fail 9 too_many_rounds, end");
}

/* The client that was bound first is not the one that counts. */
static void only_the_latest_request_of_the_client_counts(void **state)
{
	bring_to(PARKED_PARKED);
	assert_int_equal(retries(0, 1, "{\"r1\":" ACCEPT "}"), PARKED_RETRY_TAKEN);
	heard.len = 0;
	parked_call_on_disconnect(&parked[0], &calls[0], now_ms);
	heard_is("");
	parked_call_on_disconnect(&parked[0], &second, now_ms);
	heard_is("cancel, end");
}

/* (c), (f) */
static void answers_are_looked_at(void **state)
{
	static const struct {
		const char *method;
		const char *responses;
		bool is_good;
	} rows[] = {
		{ "elicitation/create", "{\"r1\":{\"action\":\"accept\",\"content\":{}}}", true },
		{ "elicitation/create", "{\"r1\":{\"action\":\"cancel\"}}", true },
		{ "elicitation/create", "{\"r1\":{\"action\":\"\"}}", false },
		{ "elicitation/create", "{\"r1\":{\"action\":\"Accept\"}}", false },
		{ "elicitation/create", "{\"r1\":{\"action\":true}}", false },
		{ "elicitation/create", "{\"r1\":{}}", false },
		{ "elicitation/create", "{\"r1\":[]}", false },
		{ "elicitation/create", "{\"r1\":\"accept\"}", false },
		{ "elicitation/create", "{\"r1\":" ACCEPT ",\"r1\":" ACCEPT "}", false },
		{ "elicitation/create", "{\"r2\":null,\"x\":1,\"r1\":" ACCEPT "}", true },
		{ "elicitation/create", "[]", false },
		{ "elicitation/create", "null", false },
		{ "roots/list", "{\"r1\":{\"roots\":[]}}", true },
		{ "roots/list", "{\"r1\":{\"roots\":{}}}", false },
		{ "roots/list", "{\"r1\":" ACCEPT "}", false },
		{ "sampling/createMessage",
		  "{\"r1\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":{}}}", true },
		{ "sampling/createMessage",
		  "{\"r1\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":[]}}", true },
		{ "sampling/createMessage",
		  "{\"r1\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":\"\"}}", false },
		{ "sampling/createMessage", "{\"r1\":{\"role\":\"assistant\",\"content\":{}}}",
		  false },
		{ "sampling/createMessage", "{\"r1\":{\"model\":\"m\",\"content\":{}}}", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin(0, 0, 0);
		assert_true(asks_method(0, rows[i].method, "5"));
		due(0);
		heard.len = 0;
		assert_int_equal(retries(0, 1, rows[i].responses),
				 rows[i].is_good ? PARKED_RETRY_TAKEN : PARKED_RETRY_MALFORMED);
		assert_int_equal(heard.len > 0, rows[i].is_good);
		if (!rows[i].is_good) { /* the round is still to be had, and nothing is left of the try */
			assert_int_equal(retries(0, 1, NULL), PARKED_RETRY_TAKEN);
			heard_is("ask 9 round 2 r1");
		}
		parked_call_abandon(&parked[0], REASON_DRAINING, now_ms);
	}
}

/* A name is a key only as it was given out. */
static void other_names_are_ignored(void **state)
{
	static const char *const names[] = { "r01", "R1",       "1",
					     "r",   "",         "r-1",
					     "r1 ", "\\u00721", "r18446744073709551617" };
	char text[100];

	bring_to(PARKED_PARKED);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(text, sizeof(text), "{\"%s\":null}", names[i]);
		if (parked[0].round == conf.rounds_max) {
			parked_call_abandon(&parked[0], REASON_DRAINING, now_ms);
			bring_to(PARKED_PARKED);
		}
		assert_int_equal(retries(0, parked[0].round, text), PARKED_RETRY_TAKEN);
	}
}

/* One of several is bad: none is taken. */
static void a_bad_answer_spoils_the_good_ones(void **state)
{
	begin(0, 0, 0);
	assert_true(asks(0, "5"));
	assert_true(asks(0, "6"));
	due(0);
	heard.len = 0;
	assert_int_equal(retries(0, 1, "{\"r1\":" ACCEPT ",\"r2\":{}}"), PARKED_RETRY_MALFORMED);
	assert_int_equal(retries(0, 1, "{\"r2\":" ACCEPT "}"), PARKED_RETRY_TAKEN);
	heard_is("answer 6 " ACCEPT ", ask 9 round 2 r1");
}

static void questions_are_bounded(void **state)
{
	struct buf large = { 0 };
	char id[20];
	int count = 0;

	bring_to(PARKED_PARKED);
	do
		snprintf(id, sizeof(id), "%d", 100 + count);
	while (count++ < 1000 && asks(0, id));
	assert_int_equal(count, 32);
	/* a single one of any size, but not two */
	begin(1, 1, 0);
	while (large.len < 5000000)
		buf_append_str(&large, "0123456789");
	assert_true(asks(1, buf_terminate(&large)));
	assert_false(asks(1, "1"));
	takes_back(1, large.data);
	assert_true(asks(1, "1"));
	buf_fini(&large);
}

/* ---- caps ---- */

static void the_oldest_of_the_same_owner_gives_way(void **state)
{
	for (size_t i = 0; i < 3; i++)
		begin(i, 0, i % 2);
	begin(3, 1, 0);
	park(3);
	park(0);
	park(1);
	assert_int_equal(retries(0, 1, NULL), PARKED_RETRY_TAKEN); /* now the other one is older */
	heard.len = 0;
	assert_true(asks(2, "5"));
	due(2);
	heard_is("refuse 5, cancel, end, ask 2 round 1 r1");
	assert_int_equal(parked[1].state, PARKED_ENDED);
	assert_int_equal(parked[0].state, PARKED_PARKED);
	assert_int_equal(parked[3].state, PARKED_PARKED);
}

/* FRONT-SESS-08: at a server that is full, who has most gives way; nobody who has no more than the other. */
static void who_has_most_gives_way(void **state)
{
	for (size_t i = 0; i < 4; i++) /* the server is full of others' */
		begin(i, i < 2 ? 1 : 2, i < 3 ? 0 : 1);
	for (size_t i = 0; i < 4; i++)
		park(i);
	begin(4, 0, 1); /* of the owner, but at another server */
	park(4);
	begin(5, 0, 0);
	assert_true(asks(5, "7"));
	due(5);
	heard_is("refuse 5, cancel, end, ask 5 round 1 r1");
	assert_int_equal(parked[0].state, PARKED_ENDED);
	for (size_t i = 1; i < 5; i++)
		assert_int_equal(parked[i].state, PARKED_PARKED);
	begin(7, 3, 0); /* now each has one there */
	assert_true(asks(7, "7"));
	due(7);
	heard_is("refuse 7, cancel, fail 7 parked_over_limit, end");
	/* who has one there gives that */
	begin(6, 2, 0);
	assert_true(asks(6, "7"));
	due(6);
	heard_is("refuse 5, cancel, end, ask 6 round 1 r1");
	assert_int_equal(parked[2].state, PARKED_ENDED);
}

/* FRONT-SESS-08: who cannot be told apart has no limit of his own; that of the server holds, and takes from them alone. */
static void a_crowd_has_the_servers_limit(void **state)
{
	static const char *const ids[] = { "0", "1", "2", "3" };

	for (size_t i = 0; i < 3; i++) {
		begin(i, 0, 0);
		parked[i].is_of_crowd = true;
		assert_true(asks(i, ids[i]));
		due(i);
	}
	heard_is("ask 0 round 1 r1, ask 1 round 1 r1, ask 2 round 1 r1");
	begin(3, 0, 0);
	parked[3].is_of_crowd = true;
	assert_true(asks(3, ids[3]));
	due(3);
	heard_is("refuse 0, cancel, end, ask 3 round 1 r1");
	begin(4, 1, 0);
	assert_true(asks(4, "4"));
	due(4);
	heard_is("refuse 1, cancel, end, ask 4 round 1 r1");
}

/* Results and losses that nobody has heard of count; calls that run do not. */
static void what_is_stored_counts(void **state)
{
	for (size_t i = 0; i < 4; i++)
		begin(i, 0, 0);
	park(0);
	answers(0);
	park(1);
	parked_call_on_exit(&parked[1], REASON_CHILD_EXITED, now_ms);
	heard.len = 0;
	assert_true(asks(2, "5"));
	due(2);
	heard_is("end, ask 2 round 1 r1");
	assert_int_equal(parked[0].state, PARKED_ENDED);
	assert_int_equal(retries(2, 1, "{\"r1\":" ACCEPT "}"), PARKED_RETRY_TAKEN);
	heard.len = 0;
	assert_true(asks(3, "5"));
	due(3);
	heard_is("ask 3 round 1 r1");
	assert_int_equal(parked[1].state, PARKED_LOST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(every_event_in_every_state),
	TEST(a_seal_finds_its_call),
	TEST(a_round_is_taken_once),
	TEST(each_round_has_new_keys),
	TEST(long_requests_have_little_room),
	TEST(requests_gather_for_a_while),
	TEST(the_server_takes_all_back),
	TEST(a_parked_call_does_not_wait_for_ever),
	TEST(a_result_does_not_wait_for_ever),
	TEST(rounds_are_bounded),
	TEST(only_the_latest_request_of_the_client_counts),
	TEST(answers_are_looked_at),
	TEST(other_names_are_ignored),
	TEST(a_bad_answer_spoils_the_good_ones),
	TEST(questions_are_bounded),
	TEST(the_oldest_of_the_same_owner_gives_way),
	TEST(who_has_most_gives_way),
	TEST(what_is_stored_counts),
	TEST(a_crowd_has_the_servers_limit),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
