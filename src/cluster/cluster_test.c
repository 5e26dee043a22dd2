/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway as a node of a cluster, with an mcpgated-store that the test plays. What nodes do together is c117 of
 * tests/scenario. CLU-SESS-*, CLU-DENY-01
 */
#include "cluster/cluster.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/store_service.h"
#include "io/ipc.h"
#include "router/pool_stage.h"
#include "router/seal.h"

#define ID "b.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define PART_BYTES 16384

static struct cluster cluster;
static int store, memory; /* mcpgated-store's end, and what is kept */
static unsigned int denials_changed, done_count;
static bool was_known;

/* The last question of each kind, and how often one has come. */
static struct {
	uint32_t id;
	unsigned int count;
	struct buf text;
} asked[FETCH_STORE_WATCH + 1];
static unsigned int cancelled;

static void on_denials(void)
{
	denials_changed++;
}

static void connect_store(void)
{
	int ends[2];

	assert_int_equal(ipc_pair(ends, NULL), 0);
	store = ends[0];
	cluster_connect(&cluster, ends[1]);
}

static int setup(void **state)
{
	pool_setup_principals(state);
	memory = memfd_create("sessions", MFD_CLOEXEC);
	assert_int_equal(ftruncate(memory, (off_t)KEPT_SESSIONS_FILE_BYTES), 0);
	kept_sessions_open(&router.kept_sessions, keeper.spawner, memory, true,
			   &router.sessions.conf);
	cluster_init(&cluster, &router, "a", on_denials);
	denials_changed = done_count = cancelled = 0;
	connect_store();
	return 0;
}

static int teardown(void **state)
{
	cluster_fini(&cluster);
	close(store);
	close(memory);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		buf_fini(&asked[i].text);
		asked[i].count = 0;
	}
	return pool_teardown_principals(state);
}

/* ---- mcpgated-store ---- */

static void look(void)
{
	struct ipc_message message;

	settle();
	while (ipc_recv_plain(store, &message, NULL) > 0) {
		uint32_t kind = message.ask.kind;

		if (message.type == IPC_CANCEL) {
			cancelled++;
			continue;
		}
		assert_int_equal(message.type, IPC_ASK);
		assert_in_range(kind, FETCH_STORE_SAVED, FETCH_STORE_WATCH);
		asked[kind].id = message.ask.id;
		asked[kind].count++;
		asked[kind].text.len = 0;
		buf_append_slice(&asked[kind].text, message.texts[1]);
	}
}

/* How often it was asked that since the last time. */
static unsigned int count(enum fetch_kind kind)
{
	unsigned int n;

	look();
	n = asked[kind].count;
	asked[kind].count = 0;
	return n;
}

/* It is asked this, once. */
static void is_asked(enum fetch_kind kind, const char *text)
{
	assert_int_equal(count(kind), 1);
	assert_string_equal(buf_terminate(&asked[kind].text), text);
}

static void sends(enum fetch_kind kind, int status, struct slice body, const char *etag)
{
	uint32_t id = asked[kind].id;
	const struct ipc_message head = { .type = IPC_ANSWER,
					  .answer = { id, status, (uint32_t)body.n, 0 },
					  .texts = {
						  SLICE_LIT("x"), { NULL, 0 }, slice_str(etag) } };

	assert_int_equal(ipc_send(store, &head, NULL), 0);
	while (body.n > 0) {
		size_t n = body.n < PART_BYTES ? body.n : PART_BYTES;
		const struct ipc_message part = { .type = IPC_PART,
						  .part = { id },
						  .texts = { slice_of(body.p, n) } };

		assert_int_equal(ipc_send(store, &part, NULL), 0);
		body = slice_of(body.p + n, body.n - n);
		if (body.n > 0)
			settle();
	}
}

static void answers(enum fetch_kind kind, int status, struct slice body, const char *etag)
{
	look();
	sends(kind, status, body, etag);
	settle();
}

static void says_news(const char *lines)
{
	is_asked(FETCH_STORE_WATCH, "");
	answers(FETCH_STORE_WATCH, 200, slice_str(lines), "");
}

static void catches_up(void)
{
	is_asked(FETCH_STORE_SAVED, "");
	answers(FETCH_STORE_SAVED, 200, SLICE_LIT(""), "");
	pass(2);
	is_asked(FETCH_STORE_LOGGED, "");
	answers(FETCH_STORE_LOGGED, 200, SLICE_LIT(""), "");
	assert_false(cluster_is_busy(&cluster));
}

static void comes_up(void)
{
	says_news("up\n");
	catches_up();
}

/* ---- what is kept ---- */

static void ends(const char *id, char *digest_r)
{
	struct kept_sessions *kept = &router.kept_sessions;
	at_end(buf_fini) struct buf text = { 0 };

	kept_session_name(&text, slice_str(id), alice);
	snprintf(digest_r, DIGEST_TEXT + 1, "%.*s", DIGEST_TEXT, text.data + strlen("{\"id\":\""));
	digest_bytes(slice_str(id), &kept->ended[kept->ended_count++]);
}

/* CLU-CONN-02: what has ended, until the store has been told; changes meanwhile together. */
static void what_is_kept_is_told(void **state)
{
	struct kept_sessions *kept = &router.kept_sessions;
	at_end(mem_free) char *told = NULL;
	char digest[DIGEST_TEXT + 1];

	comes_up();
	ends(ID, digest);
	told = mem_printf("%s ", digest);
	kept->on_saved(kept);
	assert_true(cluster_is_busy(&cluster));
	is_asked(FETCH_STORE_SAVED, told);
	kept->on_saved(kept);
	kept->on_saved(kept);
	assert_int_equal(count(FETCH_STORE_SAVED), 0);
	answers(FETCH_STORE_SAVED, 503, SLICE_LIT(""), "");
	is_asked(FETCH_STORE_SAVED, told);
	answers(FETCH_STORE_SAVED, 200, SLICE_LIT(""), "");
	assert_int_equal(count(FETCH_STORE_SAVED), 0);
	kept->on_saved(kept);
	is_asked(FETCH_STORE_SAVED, "");
}

/* CLU-SESS-04: soon, and changes within that time or while the store is busy together. */
static void logs_are_told(void **state)
{
	struct stream_logs *logs = &router.kept_sessions.logs;

	logs->on_change(logs);
	pass(10);
	assert_int_equal(count(FETCH_STORE_LOGGED), 0);
	comes_up();
	logs->on_change(logs);
	assert_true(cluster_is_busy(&cluster));
	pass(1);
	logs->on_change(logs);
	assert_int_equal(count(FETCH_STORE_LOGGED), 0);
	pass(1);
	is_asked(FETCH_STORE_LOGGED, "");
	assert_true(cluster_is_busy(&cluster));
	for (int i = 0; i < 2; i++) {
		logs->on_change(logs);
		pass(2);
		assert_int_equal(count(FETCH_STORE_LOGGED), 0);
		answers(FETCH_STORE_LOGGED, i == 0 ? 200 : 503, SLICE_LIT(""), "");
		pass(2);
		assert_int_equal(count(FETCH_STORE_LOGGED), i == 0);
	}
	assert_false(cluster_is_busy(&cluster));
	logs->on_change(logs);
	says_news("down why\n");
	pass(2);
	assert_int_equal(count(FETCH_STORE_LOGGED), 0);
	assert_false(cluster_is_busy(&cluster));
}

/* ---- denials ---- */

#define DENIED "0001700000000000 1 18446744073709551615"

static void deny(const char *name)
{
	assert_non_null(deny_list_add(&router.sessions.deny_list, SLICE_LIT("i"), DENIAL_BY_SUB,
				      slice_str(name), UINT64_MAX));
	cluster_tell_denials(&cluster);
}

static bool is_told(const char *name)
{
	return strstr(buf_terminate(&asked[FETCH_STORE_DENY].text), name) != NULL;
}

/* CLU-DENY-01: as soon as the store can be reached; what does not fit into one question goes with the next one. */
static void orders_are_told(void **state)
{
	char names[6][2001];

	deny("early");
	assert_int_equal(count(FETCH_STORE_DENY), 0);
	comes_up();
	assert_int_equal(count(FETCH_STORE_DENY), 1);
	assert_true(is_told("\tsub\ti\tearly\n"));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		memset(names[i], 'a' + (int)i, 2000);
		names[i][2000] = '\0';
		deny(names[i]);
	}
	assert_int_equal(count(FETCH_STORE_DENY), 0);
	answers(FETCH_STORE_DENY, 200, SLICE_LIT(""), "");
	assert_int_equal(count(FETCH_STORE_DENY), 1);
	assert_true(is_told(names[0]) && !is_told(names[5]) && !is_told("early"));
	answers(FETCH_STORE_DENY, 200, SLICE_LIT(""), "");
	assert_int_equal(count(FETCH_STORE_DENY), 1);
	assert_true(is_told(names[5]) && !is_told(names[0]));
	deny("late");
	answers(FETCH_STORE_DENY, 503, SLICE_LIT(""), "");
	assert_int_equal(count(FETCH_STORE_DENY), 0);
	says_news("down why\nup\n");
	assert_int_equal(count(FETCH_STORE_DENY), 1);
	assert_true(is_told("early"));
	cluster_tell_denials(&cluster);
	answers(FETCH_STORE_DENY, 200, SLICE_LIT(""), "");
	assert_int_equal(count(FETCH_STORE_DENY), 1);
	assert_true(is_told("late"));
	answers(FETCH_STORE_DENY, 200, SLICE_LIT(""), "");
	assert_int_equal(count(FETCH_STORE_DENY), 0);
}

/* CLU-DENY-01: once for all that comes together, and only if it changes something. */
static void orders_of_others_hold(void **state)
{
	comes_up();
	says_news("denial " DENIED "\tsub\ti\tx\ndenial odd\ndenial " DENIED
		  "\tsub\ti\ty\nother " DENIED "\tsub\ti\tz\n");
	assert_int_equal(denials_changed, 1);
	assert_int_equal(router.sessions.deny_list.count, 2);
	assert_true(is_logged("denial_taken"));
	says_news("denial " DENIED "\tsub\ti\tx\ndenial odd\n");
	assert_int_equal(denials_changed, 1);
	assert_int_equal(count(FETCH_STORE_DENY), 0);
	says_news("denial 0001700000000001 0 18446744073709551615\tsub\ti\tx\n");
	assert_int_equal(denials_changed, 2);
	assert_true(is_logged("effect=allowed"));
}

/* Without room for all, they are asked for again when the operator has made some. */
static void orders_of_others_may_be_too_many(void **state)
{
	enum { EACH = 2500 };

	comes_up();
	for (int i = 0; i < 4; i++) {
		at_end(buf_fini) struct buf lines = { 0 };

		for (int k = 0; k < EACH; k++)
			buf_printf(&lines, "denial " DENIED "\tsub\ti\t%d\n", i * EACH + k);
		is_asked(FETCH_STORE_WATCH, "");
		answers(FETCH_STORE_WATCH, 200, buf_slice(&lines), "");
	}
	assert_int_equal(router.sessions.deny_list.count, DENY_LIST_MAX - DENY_LIST_OWN);
	assert_int_equal(count_logged("denials_full"), 1);
	cluster_tell_denials(&cluster);
	is_asked(FETCH_STORE_DENY, "");
	answers(FETCH_STORE_DENY, 200, SLICE_LIT(""), "");
	assert_int_equal(count(FETCH_STORE_DENY), 0);
}

/* ---- what all count together ---- */

static char text_of_counts[32 * 1024];
static const struct identity nobody;

/* What others understand; they have the same key. */
static const char *unsealed(void)
{
	const struct buf *text = &asked[FETCH_STORE_COUNT].text;
	struct buf plain = { 0 };
	struct digest digest;
	struct error err;
	struct seal seal;

	digest_bytes(SLICE_LIT("counts"), &digest);
	assert_int_equal(seal_open(&router.seal_keys,
				   &(struct seal_binding){ SLICE_LIT("cluster"), &nobody, &digest },
				   (struct json){ .type = JSON_STRING, .text = buf_slice(text) },
				   clock_wall_ms() / 1000, &plain, &seal, &err),
			 0);
	snprintf(text_of_counts, sizeof(text_of_counts), "%.*s", SLICE_ARG(seal.text));
	buf_fini(&plain);
	return text_of_counts;
}

static void is_told_counts(const char *lines)
{
	assert_int_equal(count(FETCH_STORE_COUNT), 1);
	assert_string_equal(unsealed(), lines);
}

/* CLU-RATE-01: what comes together is told together; nothing while the store is away. */
static void counts_are_told(void **state)
{
	struct tally *rates = &router.rates.shared;
	struct tally failures;

	tally_init(&failures, NULL);
	cluster_share(&cluster, CLUSTER_FAILURES, &failures);
	tally_add(rates, 1, 5);
	pass(200);
	assert_int_equal(count(FETCH_STORE_COUNT), 0);
	comes_up();
	tally_add(rates, 2, 7);
	tally_add(rates, 2, 1);
	tally_reset(&failures, 9);
	tally_add(&failures, 9, 3);
	pass(199);
	assert_int_equal(count(FETCH_STORE_COUNT), 0);
	assert_true(cluster_is_busy(&cluster));
	pass(1);
	is_told_counts("failures 9 0\nfailures 9 3\nrate 2 8\n");
	tally_reset(&failures, 9);
	pass(200);
	assert_int_equal(count(FETCH_STORE_COUNT), 0);
	answers(FETCH_STORE_COUNT, 503, SLICE_LIT(""), "");
	pass(200);
	is_told_counts("failures 9 0\n");
	answers(FETCH_STORE_COUNT, 200, SLICE_LIT(""), "");
	assert_false(cluster_is_busy(&cluster));
	for (uint64_t i = 0; i < TALLY_KEYS_MAX; i++)
		tally_add(rates, UINT64_MAX - i, 1);
	for (size_t n = 0; n < TALLY_KEYS_MAX;) {
		pass(200);
		assert_int_equal(count(FETCH_STORE_COUNT), 1);
		assert_in_range(asked[FETCH_STORE_COUNT].text.len, 1, 30 * 1024);
		for (const char *at = unsealed(); (at = strchr(at, '\n')) != NULL; at++)
			n++;
		answers(FETCH_STORE_COUNT, 200, SLICE_LIT(""), "");
	}
	tally_fini(&failures);
	cluster.tallies[CLUSTER_FAILURES] = NULL;
}

static void say_counts(const char *lines, uint64_t expires_at_s, enum seal_kind kind)
{
	at_end(buf_fini) struct buf news = { 0 };
	struct digest digest;

	digest_bytes(SLICE_LIT("counts"), &digest);
	buf_append_str(&news, "counts ");
	seal_append(&news, &router.seal_keys,
		    &(struct seal_binding){ SLICE_LIT("cluster"), &nobody, &digest },
		    &(struct seal){ .kind = kind,
				    .issued_at_s = clock_wall_ms() / 1000,
				    .expires_at_s = expires_at_s,
				    .text = slice_str(lines) });
	buf_append_char(&news, '\n');
	says_news(buf_terminate(&news));
}

/* CLU-RATE-01: if they are of a node with the same key, and not old. */
static void counts_of_others_count(void **state)
{
	const struct rate_rule rule = { .calls = 10, .per_ms = 1000 };
	const uint64_t later_s = clock_wall_ms() / 1000 + 60;

	comes_up();
	says_news("rate 7 1000000\ncounts rate 7 1000000\ncounts \"rate 7 1000000\"\ncounts\n");
	say_counts("rate 7 1000000\n", later_s, SEAL_WRAPPED);
	say_counts("rate 7 1000000\n", 1, SEAL_COUNTS);
	assert_int_equal(router.rates.count, 0);
	say_counts("rate 7 1000000\nrate x 1\nrate 8\nrate 9 -1\nfailures 7 1\nrates 6 1000000\n\n",
		   later_s, SEAL_COUNTS);
	assert_int_equal(router.rates.count, 1);
	assert_int_not_equal(rate_wait(&router.rates, 7, &rule, 1, clock_now_ms()), 0);
	assert_int_equal(rate_wait(&router.rates, 6, &rule, 1, clock_now_ms()), 0);
}

/* ---- sessions of others ---- */

static void on_done(struct cluster_ask *ask, bool is_known)
{
	assert_null(ask->cluster);
	done_count++;
	was_known = is_known;
}

static void start(struct cluster_ask *ask, struct principal *principal)
{
	*ask = (struct cluster_ask){ .on_done = on_done };
	cluster_ask_start(&cluster, ask, SLICE_LIT(ID), principal, &servers[0]);
}

/* Of the session ID, as a node writes it. */
static char *line_of(struct principal *principal)
{
	at_end(buf_fini) struct buf line = { 0 };

	kept_session_name(&line, SLICE_LIT(ID), principal);
	return mem_printf("%s,\"server\":\"test\"}\n", buf_terminate(&line));
}

/* CLU-SESS-01, CLU-SESS-02: what the store answers, and what that means for who asks. */
static void sessions_are_asked_for(void **state)
{
	at_end(mem_free) char *line = line_of(alice);
	const struct {
		int status;
		const char *body, *node;
		bool is_known;
		size_t sleeping;
	} rows[] = {
		{ 503, "", "", false, 0 },   { 404, "", "", true, 0 },
		{ 0, "", "", false, 0 },     { 200, line, "a", true, 1 },
		{ 200, line, "b", true, 1 }, { 503, "", "", true, 1 }, /* it sleeps here */
	};
	struct cluster_ask ask;

	assert_true(cluster_must_ask(&cluster, SLICE_LIT(ID)));
	assert_false(cluster_must_ask(&cluster, SLICE_LIT("without-the-name-of-a-node")));
	start(&ask, alice); /* before anybody knows */
	assert_int_equal(count(FETCH_STORE_TAKE), 0);
	comes_up();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(count(FETCH_STORE_TAKE), 1);
		says_news("up\n"); /* once more: it is not sent again */
		assert_int_equal(count(FETCH_STORE_TAKE), 0);
		assert_int_equal(done_count, i);
		answers(FETCH_STORE_TAKE, rows[i].status, slice_str(rows[i].body), rows[i].node);
		assert_int_equal(done_count, i + 1);
		assert_int_equal(was_known, rows[i].is_known);
		assert_int_equal(router.kept_sessions.by_id.count, rows[i].sleeping);
		assert_int_equal(count_logged("session_taken"), i >= 4);
		start(&ask, alice);
	}
	assert_int_equal(count(FETCH_STORE_TAKE), 1);
	pass(CLUSTER_ASK_MS - 1);
	assert_int_equal(done_count, ARRAY_LEN(rows));
	pass(1);
	assert_int_equal(done_count, ARRAY_LEN(rows) + 1);
	look();
	assert_int_equal(cancelled, 1);
	start(&ask, alice);
	cluster_ask_cancel(&ask);
	cluster_ask_cancel(&ask);
	settle();
	assert_int_equal(done_count, ARRAY_LEN(rows) + 1);
}

static void expect_refusal(struct principal *principal)
{
	unsigned int before = done_count;
	struct cluster_ask ask;

	start(&ask, principal);
	assert_int_equal(done_count, before);
	settle();
	assert_int_equal(done_count, before + 1);
	assert_false(was_known);
	assert_int_equal(count(FETCH_STORE_TAKE), 0);
}

/* Nobody waits for a store that is away; who asks too much, or of a gateway that leaves, neither. */
static void sessions_are_not_asked_for(void **state)
{
	static struct cluster_ask asks[CLUSTER_ASKING_MAX];
	static struct principal *callers[CLUSTER_ASKING_MAX / CLUSTER_ASKING_EACH];
	struct cluster_ask refused;

	start(&asks[0], alice);
	says_news("down it is away\n");
	assert_string_equal(cluster.why, "it is away");
	assert_int_equal(done_count, 1);
	assert_false(was_known);
	expect_refusal(alice);
	is_asked(FETCH_STORE_WATCH, "");
	sends(FETCH_STORE_WATCH, 200, SLICE_LIT("up\n"), "");
	start(&refused, alice);
	assert_int_equal(count(FETCH_STORE_TAKE), 0); /* too late for it */
	assert_int_equal(done_count, 3);
	catches_up();
	router.is_draining = true;
	expect_refusal(alice);
	router.is_draining = false;
	for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
		at_end(mem_free) char *name = mem_printf("%zu", i);
		const struct identity who = { .issuer = SLICE_LIT("i"),
					      .subject = slice_str(name) };

		callers[i] = principal_get(&router.sessions.principals, &who);
		for (size_t k = 0; k < CLUSTER_ASKING_EACH; k++)
			start(&asks[i * CLUSTER_ASKING_EACH + k], callers[i]);
		assert_int_equal(count(FETCH_STORE_TAKE), CLUSTER_ASKING_EACH);
		if (i == 0)
			expect_refusal(callers[i]);
	}
	expect_refusal(alice);
	cluster_ask_cancel(&asks[0]);
	start(&asks[0], alice);
	assert_int_equal(count(FETCH_STORE_TAKE), 1);
	for (size_t i = 0; i < ARRAY_LEN(asks); i++)
		cluster_ask_cancel(&asks[i]);
	for (size_t i = 0; i < ARRAY_LEN(callers); i++)
		principal_unref(&callers[i]);
}

/* CLU-SESS-03: it sleeps here no longer, and whose request came before that is told to try again. */
static void what_another_node_takes_is_lost(void **state)
{
	at_end(mem_free) char *line = line_of(alice);
	at_end(mem_free) char *lost = mem_printf("lost %.*s\n", DIGEST_TEXT, line + 7);
	at_end(buf_fini) struct buf many = { 0 };
	char digest[DIGEST_TEXT + 1], id[SESSION_ID_LENGTH + 1];

	comes_up();
	kept_sessions_take(&router.kept_sessions, slice_str(line), false);
	assert_int_equal(router.kept_sessions.by_id.count, 1);
	says_news("lost x\nlost AAAA\nother\n");
	assert_int_equal(cluster.lost_count, 0);
	says_news(lost);
	assert_int_equal(router.kept_sessions.by_id.count, 0);
	assert_true(cluster_has_lost(&cluster, SLICE_LIT(ID), 0));
	assert_false(cluster_has_lost(&cluster, SLICE_LIT("another"), 0));
	assert_false(cluster_has_lost(&cluster, SLICE_LIT(ID), 1));
	for (int i = 0; i < CLUSTER_LOST_MAX; i++) {
		snprintf(id, sizeof(id), "b.%030d", i);
		ends(id, digest);
		buf_printf(&many, "lost %s\n", digest);
	}
	says_news(buf_terminate(&many));
	assert_true(cluster_has_lost(&cluster, SLICE_LIT("another"), 0)); /* nobody knows */
	assert_false(cluster_has_lost(&cluster, SLICE_LIT("another"), 1));
	assert_false(cluster_has_lost(&cluster, SLICE_LIT(ID), 1));
	assert_true(cluster_has_lost(&cluster, slice_str(id), 1));
	snprintf(id, sizeof(id), "b.%030d", 0);
	assert_true(cluster_has_lost(&cluster, slice_str(id), 1));
	assert_false(cluster_has_lost(&cluster, slice_str(id), 2));
}

/* It may end, and another one takes its place: who comes meanwhile waits for that one. */
static void mcpgated_store_may_end(void **state)
{
	struct cluster_ask ask;
	int last;

	comes_up();
	start(&ask, alice);
	assert_int_equal(count(FETCH_STORE_TAKE), 1);
	close(store);
	settle();
	assert_int_equal(done_count, 1);
	assert_false(was_known);
	assert_string_equal(cluster.why, "mcpgated-store does not run");
	start(&ask, alice);
	settle();
	assert_int_equal(done_count, 2);
	asked[FETCH_STORE_WATCH].count = 0;
	connect_store();
	assert_string_equal(cluster.why, "it has not been reached yet");
	start(&ask, alice);
	settle();
	assert_int_equal(done_count, 2);
	comes_up();
	assert_int_equal(count(FETCH_STORE_TAKE), 1);
	answers(FETCH_STORE_TAKE, 404, SLICE_LIT(""), "");
	assert_int_equal(done_count, 3);
	assert_true(was_known);
	/* The next one may come before it is known that this one has ended. */
	last = store;
	look();
	asked[FETCH_STORE_WATCH].count = 0;
	connect_store();
	close(last);
	assert_string_equal(cluster.why, "it has not been reached yet");
	assert_false(cluster.is_judged);
}

/* A daemon alone. */
static void there_may_be_no_cluster(void **state)
{
	struct cluster none;

	cluster_init(&none, &router, NULL, on_denials);
	cluster_tell_denials(&none);
	assert_false(cluster_is_busy(&none));
	assert_false(cluster_must_ask(&none, SLICE_LIT(ID)));
	cluster_fini(&none);
	assert_non_null(router.kept_sessions.on_saved); /* of the other one */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_kept_is_told),
		CASE(logs_are_told),
		CASE(orders_are_told),
		CASE(orders_of_others_hold),
		CASE(orders_of_others_may_be_too_many),
		CASE(counts_are_told),
		CASE(counts_of_others_count),
		CASE(sessions_are_asked_for),
		CASE(sessions_are_not_asked_for),
		CASE(what_another_node_takes_is_lost),
		CASE(mcpgated_store_may_end),
		CASE(there_may_be_no_cluster),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
