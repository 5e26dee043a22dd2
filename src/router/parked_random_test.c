/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parked calls to which anything happens in any order, beside a simple model. No request of a client is answered twice
 * or forgotten, no state is taken twice, each request of a server is answered once and with the answer to its key, each
 * process is given back once, and the caps hold. bridging.md §2.3.3, I3
 */
#include "router/parked_call.h"

#include "base/check.h"
#include "base/unit_test.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"

#define CALLS 10000 /* in all */
#define LIVE 16     /* at once */
#define OWNERS 4
#define SERVERS 2
#define PER_OWNER 3
#define PER_SERVER 5
#define KEYS 200 /* of a call: it is abandoned before */
#define ROUNDS 8

struct call {
	struct model *model;
};

struct server {
	int number;
};

enum fate { NEVER = 0, OPEN, ANSWERED, TAKEN_BACK, DROPPED };

/* What is known of a call without the machine. */
struct model {
	struct parked_call parked;
	struct call calls[2];  /* the one that waits, and the next one */
	struct call *waiting;  /* NULL: none */
	enum fate fates[KEYS]; /* of the server's requests, by their keys */
	size_t asked;          /* so many there were */
	uint32_t round;        /* that was given out last */
	bool is_round_open;    /* and nobody has taken it */
	bool is_answered;      /* the server has answered, or was told to stop, or is gone: */
	bool is_released, is_cancelled, is_gone;
	bool is_ended;
};

static struct parked_calls table;
static struct server servers[SERVERS];
static int owners[OWNERS];
static struct model models[LIVE];
static uint64_t now_ms;
static uint64_t random_state;
static size_t counts[7]; /* of what happened, so that a walk that goes nowhere is noticed */
enum { ASKS, DELIVERIES, FAILURES, ANSWERS, REFUSALS, STALE, MALFORMED };

static uint64_t any(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

static struct model *model_of(struct parked_call *parked)
{
	return container_of(parked, struct model, parked);
}

/* ---- operations ---- */

/* It is answered: it was waiting, and does so no more. */
static void answered(struct model *model, struct call *call)
{
	assert_false(model->is_ended);
	assert_non_null(call);
	assert_ptr_equal(model->waiting, call);
	model->waiting = NULL;
}

static void on_ask(struct parked_call *parked, struct call *call)
{
	struct model *model = model_of(parked);
	uint64_t key = 0;
	size_t open = 0;

	answered(model, call);
	assert_false(model->is_round_open);
	assert_int_equal(parked->round, model->round + 1);
	assert_true(parked->round <= ROUNDS);
	model->round = parked->round;
	model->is_round_open = true;
	LIST_FOREACH(node, &parked->requests) {
		struct parked_request *request = container_of(node, struct parked_request, link);

		assert_true(request->key > key);
		key = request->key;
		assert_int_equal(model->fates[key], OPEN);
		open++;
	}
	assert_true(open > 0);
	for (size_t i = 1; i <= model->asked; i++)
		open -= model->fates[i] == OPEN;
	assert_int_equal(open, 0); /* it asks all */
	counts[ASKS]++;
}

static void on_deliver(struct parked_call *parked, struct call *call, struct msg *response)
{
	struct model *model = model_of(parked);

	answered(model, call);
	assert_true(model->is_released);
	assert_string_equal(response->text.p, "done");
	counts[DELIVERIES]++;
}

static void on_fail(struct parked_call *parked, struct call *call, enum reason reason)
{
	answered(model_of(parked), call);
	counts[FAILURES]++;
}

static void on_answer(struct parked_call *parked, const struct parked_request *request,
		      struct slice result)
{
	struct model *model = model_of(parked);
	char expected[60];

	assert_false(model->is_gone || model->is_released || model->is_cancelled);
	assert_int_equal(model->fates[request->key], OPEN);
	model->fates[request->key] = ANSWERED;
	snprintf(expected, sizeof(expected), "q%lu", (unsigned long)request->key);
	assert_true(slice_is_equal(request->id, slice_str(expected)));
	snprintf(expected, sizeof(expected), "{\"action\":\"accept\",\"key\":%lu}",
		 (unsigned long)request->key);
	assert_true(result.p == NULL || slice_is_equal(result, slice_str(expected)));
	counts[result.p == NULL ? REFUSALS : ANSWERS]++;
}

static void on_cancel(struct parked_call *parked)
{
	struct model *model = model_of(parked);

	assert_false(model->is_gone || model->is_released || model->is_cancelled);
	model->is_cancelled = true;
}

static void on_release(struct parked_call *parked)
{
	struct model *model = model_of(parked);

	assert_false(model->is_gone || model->is_released || model->is_cancelled);
	assert_true(model->is_answered);
	model->is_released = true;
}

static void on_set_deadline(struct parked_call *parked, uint64_t deadline_ms)
{
	assert_true(deadline_ms == 0 || deadline_ms > now_ms);
}

static void on_end(struct parked_call *parked)
{
	struct model *model = model_of(parked);

	assert_false(model->is_ended);
	model->is_ended = true;
	assert_null(model->waiting);
	assert_int_equal(model->is_released + model->is_cancelled + model->is_gone, 1);
	for (size_t i = 1; i <= model->asked; i++)
		assert_true(model->fates[i] != OPEN);
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

/* ---- what happens ---- */

static void begin(struct model *model)
{
	memset(model, 0, sizeof(*model));
	model->parked.ops = &ops;
	model->parked.server = &servers[any(SERVERS)];
	model->parked.owner = &owners[any(OWNERS)];
	model->parked.server_max = SIZE_MAX;
	model->waiting = &model->calls[0];
	parked_call_init(&model->parked, &table, model->waiting, now_ms);
}

/* The server has a part in it, and may say something. */
static bool is_working(const struct model *model)
{
	return !model->is_answered && !model->is_gone && !model->is_cancelled;
}

static void server_asks(struct model *model)
{
	char id[30];
	struct msg *msg;

	if (!is_working(model) || model->asked + 1 == KEYS)
		return;
	snprintf(id, sizeof(id), "q%zu", model->asked + 1);
	msg = msg_new(slice_str(id));
	model->fates[model->asked + 1] = OPEN;
	if (parked_call_on_request(&model->parked, method_find(SLICE_LIT("elicitation/create")),
				   msg, msg->text, now_ms))
		model->asked++;
	else
		model->fates[model->asked + 1] = NEVER;
	msg_unref(&msg);
}

static void server_takes_back(struct model *model)
{
	uint64_t key = any(model->asked + 1);
	char id[30];

	snprintf(id, sizeof(id), "q%lu", (unsigned long)key);
	if (!is_working(model))
		return;
	if (model->fates[key] == OPEN)
		model->fates[key] = TAKEN_BACK;
	parked_call_on_request_cancelled(&model->parked, slice_str(id), now_ms);
}

static void server_answers(struct model *model)
{
	struct msg *msg;

	if (!is_working(model))
		return;
	model->is_answered = true;
	msg = msg_new(slice_of("done", 5)); /* with its NUL */
	parked_call_on_response(&model->parked, msg, now_ms);
	msg_unref(&msg);
	assert_true(model->is_released);
}

static void server_exits(struct model *model)
{
	if (!is_working(model))
		return;
	model->is_gone = true;
	for (size_t i = 1; i <= model->asked; i++) {
		if (model->fates[i] == OPEN)
			model->fates[i] = DROPPED;
	}
	parked_call_on_exit(&model->parked, REASON_CHILD_EXITED, now_ms);
}

static void client_leaves(struct model *model)
{
	struct call *call = &model->calls[any(2)];
	bool was_waiting = model->waiting == call;

	if (was_waiting)
		model->waiting = NULL;
	parked_call_on_disconnect(&model->parked, call, now_ms);
	assert_int_equal(model->is_ended, was_waiting || model->is_ended);
	assert_true(!was_waiting || model->is_cancelled);
}

/* Some keys, in any order, some that are none any more; perhaps one answer that is none to an outstanding one. */
static bool write_responses(const struct model *model, char *text, size_t size)
{
	bool is_bad = false;
	int n = snprintf(text, size, "{");

	for (size_t i = 1; i <= model->asked && size - (size_t)n > 100; i++) {
		bool is_open = model->fates[i] == OPEN;
		bool spoils = any(30) == 0;

		if (any(3) == 0 || (!is_open && any(8) != 0))
			continue;
		n += snprintf(text + n, size - (size_t)n,
			      "\"r%zu\":{\"action\":\"%s\",\"key\":%zu},", i,
			      spoils ? "what" : "accept", i);
		is_bad = is_bad || (is_open && spoils);
	}
	snprintf(text + n, size - (size_t)n, "\"x\":0}");
	return is_bad;
}

static void client_retries(struct model *model)
{
	static char text[4096];
	bool is_bad = write_responses(model, text, sizeof(text));
	struct json value = { .type = JSON_OBJECT, .text = slice_str(text) };
	uint32_t round = any(4) == 0 ? (uint32_t)any(ROUNDS + 1) : model->round;
	bool is_good = model->is_round_open && round == model->round && !model->is_ended;
	struct call *call =
		model->waiting == &model->calls[0] ? &model->calls[1] : &model->calls[0];
	enum parked_retry retry;

	/* what the server asked is withdrawn once it has answered or is gone */
	is_bad = is_bad && is_working(model);
	if (is_good && !is_bad) {
		assert_null(model->waiting);
		model->waiting = call;
		model->is_round_open = false;
	}
	retry = parked_call_on_retry(&model->parked, call, round, value, now_ms);
	if (!is_good)
		assert_int_equal(retry, PARKED_RETRY_STALE);
	else
		assert_int_equal(retry, is_bad ? PARKED_RETRY_MALFORMED : PARKED_RETRY_TAKEN);
	counts[STALE] += retry == PARKED_RETRY_STALE;
	counts[MALFORMED] += retry == PARKED_RETRY_MALFORMED;
}

static void gateway_abandons(struct model *model)
{
	if (any(20) != 0)
		return;
	parked_call_abandon(&model->parked, REASON_DRAINING, now_ms);
	assert_true(model->is_ended);
}

static void time_passes(struct model *model)
{
	now_ms += any(30);
	for (size_t i = 0; i < LIVE; i++)
		parked_call_on_deadline(&models[i].parked, now_ms);
}

static void check_caps(void)
{
	size_t of_owner[OWNERS] = { 0 };
	size_t of_server[SERVERS] = { 0 };
	size_t live = 0;

	LIST_FOREACH(node, &table.kept) {
		struct parked_call *parked = container_of(node, struct parked_call, kept);

		assert_null(parked->call);
		of_owner[(const int *)parked->owner - owners]++;
		of_server[parked->server - servers]++;
	}
	for (size_t i = 0; i < OWNERS; i++)
		assert_true(of_owner[i] <= PER_OWNER);
	for (size_t i = 0; i < SERVERS; i++)
		assert_true(of_server[i] <= PER_SERVER);
	for (size_t i = 0; i < LIVE; i++) {
		live += !models[i].is_ended;
		assert_ptr_equal(models[i].waiting, models[i].parked.call);
	}
	assert_int_equal(table.by_id.count, live);
}

static void (*const acts[])(struct model *) = {
	server_asks,    server_asks,      server_asks,   server_asks,    server_takes_back,
	server_answers, server_exits,     client_leaves, client_retries, client_retries,
	client_retries, gateway_abandons, time_passes,   time_passes,
};

static void anything_in_any_order(void **state)
{
	static const struct parked_calls_conf conf = {
		.gather_ms = 20,
		.park_ttl_ms = 500,
		.call_max_ms = 2000,
		.per_owner = PER_OWNER,
		.per_server = PER_SERVER,
		.rounds_max = ROUNDS,
	};
	size_t begun = 0;

	parked_calls_init(&table, &conf);
	for (size_t i = 0; i < LIVE; i++, begun++)
		begin(&models[i]);
	while (begun < CALLS) {
		struct model *model = &models[any(LIVE)];

		acts[any(ARRAY_LEN(acts))](model);
		check_caps();
		if (!model->is_ended || any(4) != 0) /* things happen to ended ones, too */
			continue;
		begin(model);
		begun++;
	}
	for (size_t i = 0; i < LIVE; i++)
		parked_call_abandon(&models[i].parked, REASON_DRAINING, now_ms);
	check_caps();
	assert_true(table.by_id.count == 0 && list_is_empty(&table.kept));
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		assert_true(counts[i] > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(anything_in_any_order) };

	random_state = getenv("SEED") != NULL ? strtoul(getenv("SEED"), NULL, 10) : 1;
	printf("# seed %lu\n", (unsigned long)random_state);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
