/* SPDX-License-Identifier: Apache-2.0 */
/* Clients and models of pools that do anything in any order. */
#include "router/pool.h"

#include "router/pool_stage.h"

static uint64_t random_state;

static uint64_t any(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

/* A server's side of a call: what it heard. */
struct heard {
	unsigned long id;
	unsigned long mark;
};

struct random_server {
	struct heard calls[64]; /* the last ones */
	size_t count;
};

static struct random_server models[FAKE_PROCESSES_MAX];

static void server_listen(size_t i)
{
	struct random_server *model = &models[i];
	const char *line;

	while ((line = fake_process_read(process(i))) != NULL) {
		if (strstr(line, "\"initialize\"") != NULL) {
			fake_process_write(process(i), q(WELCOME));
			fake_process_write(process(i), "\n");
		}
		struct heard *heard = &model->calls[model->count % ARRAY_LEN(model->calls)];
		const char *mark = strstr(line, "\"mark\":");

		if (mark == NULL)
			continue;
		assert_int_equal(sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &heard->id), 1);
		heard->mark = strtoul(mark + 7, NULL, 10);
		model->count++;
	}
}

/* It answers one of its calls: the right one, one again, one that was cancelled, or none at all. */
static void server_answer(size_t i)
{
	struct random_server *model = &models[i];
	size_t kept =
		model->count < ARRAY_LEN(model->calls) ? model->count : ARRAY_LEN(model->calls);
	const struct heard *heard;
	char text[300];

	if (kept == 0)
		return;
	heard = &model->calls[any(kept)];
	if (any(8) == 0)
		snprintf(text, sizeof(text), PROGRESS("%lu", "%lu"), heard->id, heard->mark);
	else if (any(16) == 0)
		snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%lu,'result':{'mark':666}}",
			 heard->id + 100000);
	else
		snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%lu,'result':{'mark':%lu}}",
			 heard->id, heard->mark);
	fake_process_write(process(i), q(text));
	fake_process_write(process(i), "\n");
}

static void client_act(struct member *member)
{
	static unsigned long mark = 1000;
	char text[300];
	struct envelope env;
	struct front *front;

	if (front_count + STAGE_MEMBERS_MAX >= STAGE_FRONTS_MAX)
		return;
	if (any(8) == 0) {
		snprintf(text, sizeof(text), CANCELLED("%lu"), (unsigned long)any(4));
		env = scan(q(text));
		forward_notification(member->client, admit(member->client, &env));
		return;
	}
	mark++;
	snprintf(text, sizeof(text),
		 "{'jsonrpc':'2.0','id':%lu,'method':'%s','params':{'mark':%lu,'_meta':{"
		 "'progressToken':%lu}}}",
		 (unsigned long)any(4), any(4) == 0 ? "tools/list" : "tools/call", mark, mark);
	env = scan(q(text));
	front = front_new(&env);
	front->mark = mark;
	forward_request(member->client, &front->call, admit(member->client, &env));
}

/* Each call has had what belongs to it, or nothing. */
static void check_marks(void)
{
	size_t answered = 0, told = 0;
	char expected[64];

	for (size_t i = 0; i < front_count; i++) {
		struct front *front = &fronts[i];

		if (front->mark == 0)
			continue;
		snprintf(expected, sizeof(expected), "\"mark\":%lu}}", front->mark);
		answered += front->ending == ENDING_RESPONSE;
		told += front->messages.len > 0;
		if (front->ending == ENDING_RESPONSE)
			assert_non_null(strstr(buf_terminate(&front->response), expected));
		snprintf(expected, sizeof(expected), "\"progress\":%lu}}", front->mark);
		if (front->messages.len > 0)
			assert_non_null(strstr(buf_terminate(&front->messages), expected));
	}
	print_message("# %zu calls, %zu answered, %zu with progress\n", front_count, answered,
		      told);
	assert_true(answered > 1000 && told > 50);
}

/* SEC-06, I1, I2: fifty clients with the same few ids; answers late, twice, unknown, after cancellation; crashes. */
static void nothing_crosses(void **state)
{
	struct member *all[50];
	size_t dead = 0;

	random_state = 20251125;
	memset(models, 0, sizeof(models));
	servers[0].conf.pool_max = 4;
	servers[0].conf.calls_per_process = 8;
	servers[0].conf.queue_calls = 64;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = begin();
	for (size_t step = 0; step < 12000; step++) {
		size_t i = any(keeper.count);

		if (any(2) == 0)
			client_act(all[any(ARRAY_LEN(all))]);
		if (!process(i)->is_started || process(i)->is_exited)
			continue;
		if (any(500) == 0 && dead < 20) {
			dead++;
			exits(process(i), 0);
			continue;
		}
		server_listen(i);
		for (uint64_t n = any(8); n > 0; n--)
			server_answer(i);
		if (step % 4 == 0)
			settle();
	}
	check_marks();
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		heard(all[i], "");
}

/* A server's side of lists: what each process was asked for, and the number of changes that there were. */
struct random_lists {
	struct {
		unsigned long id;
		bool is_list;
	} asked[64];
	size_t count;
};

static struct random_lists lists[FAKE_PROCESSES_MAX];
static unsigned long version;

static void lists_listen(size_t i)
{
	const char *line;

	while ((line = fake_process_read(process(i))) != NULL) {
		bool is_list = strstr(line, "\"tools/list\"") != NULL;
		unsigned long id;

		if (strstr(line, "\"initialize\"") != NULL)
			says(process(i), WELCOME);
		else if (strstr(line, "\"ping\"") != NULL &&
			 sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &id) == 1) {
			char text[100];

			snprintf(text, sizeof(text), EMPTY("%lu"), id);
			says(process(i), text);
		}
		if (!is_list && strstr(line, "\"tools/call\"") == NULL)
			continue;
		assert_int_equal(sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &id), 1);
		assert_true(lists[i].count < ARRAY_LEN(lists[i].asked));
		lists[i].asked[lists[i].count].id = id;
		lists[i].asked[lists[i].count++].is_list = is_list;
	}
}

static void lists_write_answer(char *text, size_t size, unsigned long id)
{
	if (any(12) == 0)
		snprintf(text, size, "{'jsonrpc':'2.0','id':%lu,'error':{'code':1,'message':'m'}}",
			 id);
	else if (any(3) == 0)
		snprintf(text, size,
			 "{'jsonrpc':'2.0','id':%lu,'result':{'tools':[%lu],'nextCursor':'%d'}}",
			 id, version, (int)any(1000));
	else
		snprintf(text, size, TOOLS("%lu", "%lu"), id, version);
}

/* It answers what it was asked for in any order: the list as it is now, a part of it, an error; or asks itself. */
static void lists_answer(size_t i)
{
	char text[200];
	size_t at;

	if (lists[i].count == 0)
		return;
	at = any(lists[i].count);
	if (!lists[i].asked[at].is_list && any(3) == 0) {
		says(process(i), ASK("9"));
		return;
	}
	if (lists[i].asked[at].is_list)
		lists_write_answer(text, sizeof(text), lists[i].asked[at].id);
	else
		snprintf(text, sizeof(text), RESULT("%lu"), lists[i].asked[at].id);
	lists[i].asked[at] = lists[i].asked[--lists[i].count];
	says(process(i), text);
}

static void ask_for_something(struct member *member)
{
	char text[200];

	if (any(6) == 0) {
		snprintf(text, sizeof(text), CANCELLED("%d"), (int)any(4));
		notify(member->client, text);
	} else if (any(5) == 0) {
		snprintf(text, sizeof(text), CALL("%d"), (int)any(4));
		request(member->client, text);
	} else {
		snprintf(text, sizeof(text), LIST("%d"), (int)any(4));
		request(member->client, text)->mark = version + 1;
	}
}

/* Nobody was shown a list that was older than the last change when he asked. */
static void check_versions(void)
{
	size_t answered = 0;

	for (size_t i = 0; i < front_count; i++) {
		const char *tools;

		if (fronts[i].mark == 0 || fronts[i].ending != ENDING_RESPONSE)
			continue;
		tools = strstr(buf_terminate(&fronts[i].response), "\"tools\":[");
		if (tools == NULL)
			continue;
		answered++;
		assert_true(strtoul(tools + 9, NULL, 10) + 1 >= fronts[i].mark);
	}
	print_message("# %zu requests, %zu lists, %lu changes, %d processes\n", front_count,
		      answered, version, (int)keeper.count);
	assert_true(answered > 1000 && version > 50);
}

/* At all processes: they know nothing of each other. */
static void change_lists(void)
{
	version++;
	for (size_t i = 0; i < keeper.count; i++) {
		if (process(i)->is_started && !process(i)->is_exited)
			says(process(i), CHANGED("tools"));
	}
}

static void random_step(struct member **all, size_t count)
{
	size_t i = any(keeper.count);

	ask_for_something(all[any(count)]);
	if (any(200) == 0)
		pass(1000 + any(40000));
	if (!process(i)->is_started || process(i)->is_exited)
		return;
	if (process(i)->is_eof || process(i)->last_signal != 0 ||
	    (any(250) == 0 && keeper.count < FAKE_PROCESSES_MAX - 4)) {
		exits(process(i), 0);
		return;
	}
	lists_listen(i);
	for (uint64_t n = any(4); n > 0; n--)
		lists_answer(i);
	if (any(10) == 0)
		change_lists();
}

static void begin_randomly(enum isolation isolation)
{
	random_state = 20260728;
	memset(lists, 0, sizeof(lists));
	version = 0;
	servers[0].conf.isolation = isolation;
	servers[0].conf.pool_max = 4;
	servers[0].conf.calls_per_process = 3;
	servers[0].conf.queue_calls = 64;
	servers[0].conf.backoff_min_ms = 1;
}

static void act_randomly(struct member **all, size_t count)
{
	for (size_t step = 0; step < 6000; step++) {
		random_step(all, count);
		if (step % 700 == 699) {
			size_t leaves = any(count);

			session_end(all[leaves]->client->session, REASON_DELETED);
			all[leaves] = all[--count];
		}
	}
	check_versions();
}

/* bridging.md §1.8: whatever comes between: changes, errors, parts, crashes, time-outs, clients that go. */
static void lists_are_never_old(void **state)
{
	struct member *all[40];

	begin_randomly(ISOLATION_SHARED);
	all[0] = begin_plain(alice);
	for (size_t i = 1; i < ARRAY_LEN(all); i++)
		all[i] = i % 3 == 0 ? begin() :
				      join(open_session_as(i % 3 == 1 ? alice : bob, INITIALIZE));
	act_randomly(all, ARRAY_LEN(all));
}

/* The same beside calls that have their process for themselves, and are asked something. */
static void leased_lists_are_never_old(void **state)
{
	struct member *all[20];

	begin_randomly(ISOLATION_PRINCIPAL);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = begin_asking(i % 2 == 0 ? alice : bob, i);
	act_randomly(all, ARRAY_LEN(all));
}

static const struct CMUnitTest tests[] = {
	TEST(nothing_crosses),
	TEST_PRINCIPALS(lists_are_never_old),
	TEST_PRINCIPALS(leased_lists_are_never_old),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
