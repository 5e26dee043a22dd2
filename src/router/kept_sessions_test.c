/* SPDX-License-Identifier: Apache-2.0 */
/* What later gateways know of a session, and whom they tell.  bridging.md §4.1, FRONT-SESS-05, SEC-68 */
#include "router/kept_sessions.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/ipc.h"
#include "router/pool_stage.h"

#define IDLE_MS 3600000
#define SAVING_MS 300
#define PARAMS "{\"protocolVersion\":\"2025-06-18\",\n\"capabilities\":{\"roots\":{}}}"

static struct kept_sessions *kept;
static char id[SESSION_ID_LENGTH + 1];
static int memory;
static void *mapped; /* what all gateways share */

static int setup(void **state)
{
	memory = memfd_create("sessions", MFD_CLOEXEC);
	pool_setup_principals(state);
	servers[0].conf.isolation = ISOLATION_SESSION;
	router.sessions.conf.max_age_ms = 2 * (uint64_t)IDLE_MS;
	router.sessions.conf.idle_ms = IDLE_MS;
	kept = &router.kept_sessions;
	assert_true(memory >= 0);
	assert_int_equal(ftruncate(memory, (off_t)KEPT_SESSIONS_FILE_BYTES), 0);
	mapped =
		mmap(NULL, KEPT_SESSIONS_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	assert_true(mapped != MAP_FAILED);
	kept_sessions_open(kept, keeper.spawner, memory, true, &router.sessions.conf);
	return 0;
}

static int teardown(void **state)
{
	close(memory);
	munmap(mapped, KEPT_SESSIONS_FILE_BYTES);
	return pool_teardown_principals(state);
}

/* It has nothing but the memory file. */
static void next_gateway(void)
{
	kept_sessions_fini(kept);
	kept_sessions_init(kept, router.loop);
	kept_sessions_open(kept, keeper.spawner, memory, true, &router.sessions.conf);
}

/* A session of alice's, which is kept. */
static struct client *keep(void)
{
	struct client *client = open_session_as(alice, INITIALIZE)->call.client;

	assert_non_null(fake_process_read(process(keeper.count - 1)));
	says(process(keeper.count - 1), WELCOME);
	assert_int_equal(client->session->state, SESSION_LIVE);
	client->kept = kept_session_new(client, session_id(client->session), SLICE_LIT(PARAMS));
	assert_non_null(client->kept);
	memcpy(id, session_id(client->session).p, SESSION_ID_LENGTH);
	return client;
}

static void end(struct client *client, enum reason reason)
{
	size_t last = keeper.count - 1;

	session_end(client->session, reason);
	settle();
	if (!process(last)->is_exited)
		exits(process(last), 0);
}

static struct client *wake_as(struct principal *principal, enum reason expected)
{
	static const struct peer nowhere;
	enum reason reason;
	struct session *session = client_session_wake(&router, &servers[0], principal, &nowhere,
						      slice_of(id, SESSION_ID_LENGTH), &reason);

	assert_int_equal(reason, expected);
	return session != NULL ? client_session_client(session) : NULL;
}

static struct slice text_of_now(void)
{
	struct slice text;

	settle();
	assert_true(halves_read(kept->file, KEPT_SESSIONS_TEXT_BYTES, &text));
	return text;
}

static struct slice text_of(void)
{
	settle();
	pass(1000);
	return text_of_now();
}

static bool is_in(struct slice text, const char *what)
{
	return memmem(text.p, text.n, what, strlen(what)) != NULL;
}

static bool has(const char *what)
{
	return is_in(text_of(), what);
}

static void a_session_goes_on(void **state)
{
	struct client *client = keep();

	assert_true(has("\"initialize\":{\"protocolVersion\":\"2025-06-18\", \"cap"));
	assert_false(has(id));
	client->level = 4;
	assert_true(text_set_add(&client->subscriptions, SLICE_LIT("r:b")));
	assert_true(text_set_add(&client->subscriptions, SLICE_LIT("r:\\u0061")));
	kept_session_note(client->kept);
	assert_true(has(",\"level\":\"error\",\"subscriptions\":[\"r:b\",\"r:\\u0061\"]}\n"));
	pass(5000);
	end(client, REASON_DRAINING);
	assert_true(has(",\"level\":\"error\""));
	assert_null(wake_as(bob, REASON_NONE));
	client = wake_as(alice, REASON_NONE);
	assert_non_null(client);
	assert_memory_equal(session_id(client->session).p, id, SESSION_ID_LENGTH);
	assert_in_range(session_age_ms(client->session), 0, 6000);
	assert_int_equal(client->level, 4);
	assert_true(text_set_has(&client->subscriptions, text_set_key(SLICE_LIT("r:\\u0061")),
				 SLICE_LIT("r:\\u0061")));
	settle();
	assert_int_equal(keeper.count, 2);        /* a fresh process, before anybody calls */
	assert_null(wake_as(alice, REASON_NONE)); /* it does not sleep */
	end(client, REASON_DELETED);
	assert_null(wake_as(alice, REASON_NONE));
	assert_int_equal(text_of().n, strlen(KEPT_SESSIONS_FIRST_LINE));
}

/* The first of several changes is written at once, the others together and before long, however many there are. */
static void changes_are_written_soon(void **state)
{
	struct client *client = keep();

	pass(SAVING_MS); /* it is written as it is */
	pass(SAVING_MS);
	client->level = 4;
	kept_session_note(client->kept);
	assert_true(is_in(text_of_now(), ",\"level\":\"error\""));
	pass(SAVING_MS);
	client->level = 5;
	kept_session_note(client->kept);
	assert_true(is_in(text_of_now(), ",\"level\":\"critical\""));
	client->level = 6;
	kept_session_note(client->kept);
	pass(SAVING_MS - 1);
	client->level = 7;
	kept_session_note(client->kept);
	assert_true(is_in(text_of_now(), ",\"level\":\"critical\""));
	pass(1);
	assert_true(is_in(text_of_now(), ",\"level\":\"emergency\""));
}

static struct denial_marks marks_of(const char *sub)
{
	return (struct denial_marks){ .issuer = SLICE("https://i.example/\\\"q\"\n"),
				      .names = { [DENIAL_BY_SUB] = slice_str(sub) } };
}

/* The session with which `tried` was asked for, after a denial of `denied` while it slept. */
static struct client *wake_after_denial(const char *tried, const char *denied)
{
	struct denial_marks marks = marks_of(tried), other = marks_of(denied);
	struct client *client = keep();

	session_keep_marks(client->session, &marks);
	kept_session_note(client->kept);
	end(client, REASON_DRAINING);
	next_gateway();
	client = wake_as(alice, REASON_NONE); /* they are read, and written again */
	assert_non_null(client);
	assert_true(slice_is_equal(client->session->marks->issuer, marks.issuer));
	assert_true(slice_is_equal(client->session->marks->names[DENIAL_BY_SUB],
				   marks.names[DENIAL_BY_SUB]));
	kept_session_note(client->kept);
	end(client, REASON_DRAINING);
	next_gateway();
	deny_list_tell(&router.sessions.deny_list, other.issuer, other.names[DENIAL_BY_SUB]);
	return wake_as(alice, REASON_NONE);
}

/* Also a name which JSON writes with escapes is found when its token is denied.  SEC-68 */
static void a_denied_session_does_not_go_on(void **state)
{
	static const char *const names[] = { "alice", "corp\\alice", "\"\\\\\t", "\x01" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct client *client;

		assert_null(wake_after_denial(names[i], names[i]));
		client = wake_after_denial(names[i], "corp\\\\alice");
		assert_non_null(client);
		end(client, REASON_DELETED);
	}
}

/* Nor does one of which anything is damaged: all of it is needed. */
static void a_damaged_session_does_not_go_on(void **state)
{
	static const char *const names[] = { "\"initialize\":", "\"began\":",  "\"offers\":",
					     "\"tells\":",      "\"agreed\":", "\"owner\":",
					     "\"server\":" };
	struct buf *line;

	end(keep(), REASON_DRAINING);
	line = &container_of(kept->asleep.next, struct kept_session, link)->line;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *at = memmem(line->data, line->len, names[i], strlen(names[i])), was;

		assert_non_null(at);
		at++; /* its name is another one */
		was = *at;
		*at = 'x';
		assert_null(wake_as(alice, REASON_NONE));
		*at = was;
	}
	end(wake_as(alice, REASON_NONE), REASON_DELETED);
}

/* REL-54: what each that sleeps says is read once, however many names are denied. */
static void denials_read_each_once(void **state)
{
	struct denial_marks alice_marks = marks_of("alice"), other = marks_of("other");
	struct deny_list *deny_list = &router.sessions.deny_list;
	struct client *client = keep();
	struct buf *line;
	char *name;

	session_keep_marks(client->session, &alice_marks);
	kept_session_note(client->kept);
	end(client, REASON_DRAINING);
	next_gateway();
	settle();
	assert_non_null(container_of(kept->asleep.next, struct kept_session, link)->facts);
	deny_list_tell(deny_list, other.issuer, other.names[DENIAL_BY_SUB]);
	assert_false(list_is_empty(&kept->asleep));
	line = &container_of(kept->asleep.next, struct kept_session, link)->line;
	name = memmem(line->data, line->len, "\"alice\"", 7);
	assert_non_null(name);
	memcpy(name, "\"ALICE\"", 7);
	deny_list_tell(deny_list, other.issuer, slice_str("ALICE"));
	assert_false(list_is_empty(&kept->asleep));
	deny_list_tell(deny_list, other.issuer, alice_marks.names[DENIAL_BY_SUB]);
	assert_true(list_is_empty(&kept->asleep));
}

static void how_a_session_ends(void **state)
{
	for (enum reason reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
		end(keep(), reason);
		assert_int_equal(!list_is_empty(&kept->asleep), reason == REASON_DRAINING);
		kept_sessions_use(kept, false);
		kept_sessions_use(kept, true);
		assert_true(list_is_empty(&kept->asleep));
		if (keeper.count + 1 >= FAKE_PROCESSES_MAX)
			break;
	}
}

static void nobody_comes_back(void **state)
{
	end(keep(), REASON_DRAINING);
	pass(IDLE_MS);
	assert_false(list_is_empty(&kept->asleep)); /* this gateway only ends */
	next_gateway();
	pass(IDLE_MS - 1);
	assert_false(list_is_empty(&kept->asleep));
	pass(1);
	assert_true(list_is_empty(&kept->asleep));
	assert_int_equal(text_of().n, strlen(KEPT_SESSIONS_FIRST_LINE));
}

static void it_cannot_go_on_now(void **state)
{
	end(keep(), REASON_DRAINING);
	router.is_draining = true;
	assert_null(wake_as(alice, REASON_DRAINING));
	router.is_draining = false;
	router.sessions.conf.max_sessions = 0;
	assert_null(wake_as(alice, REASON_OVER_LIMIT));
	router.sessions.conf.max_sessions = 4;
	servers[0].is_retired = true;
	assert_null(wake_as(alice, REASON_NONE));
	servers[0].is_retired = false;
	router.sessions.conf.max_age_ms = 0;
	assert_null(wake_as(alice, REASON_NONE));
	router.sessions.conf.max_age_ms = IDLE_MS;
	assert_non_null(wake_as(alice, REASON_NONE));
}

static void they_are_too_many(void **state)
{
	struct client *client = keep();
	struct kept_session *more[17];
	struct buf params = { 0 };

	buf_append_str(&params, "{\"x\":\"");
	memset(buf_reserve(&params, 1000 * 1000), 'x', 1000 * 1000);
	params.len += 1000 * 1000;
	buf_append_str(&params, "\"}");
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		more[i] = kept_session_new(client, session_id(client->session), buf_slice(&params));
		assert_true(text_of().n <= KEPT_SESSIONS_TEXT_BYTES);
	}
	assert_true(kept->is_full);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		kept_session_end(&more[i], REASON_DELETED);
	assert_true(has("\"initialize\":"));
	buf_fini(&params);
}

/* However many legs there are: first come all sessions. Nothing but their endpoint's session leads to them. END-12 */
static void legs_take_no_room(void **state)
{
	static const struct slice leg =
		SLICE("0123456789abcdef0123456789abcdef0123456789abcdef/main");
	struct client *client = keep(), *other = keep();
	struct server_capabilities capabilities;
	struct kept_session *more[17];
	const struct peer nowhere = { 0 };
	struct buf params = { 0 };
	enum reason reason;
	struct slice text;

	buf_append_str(&params, "{\"x\":\"");
	memset(buf_reserve(&params, 1000 * 1000), 'x', 1000 * 1000);
	params.len += 1000 * 1000;
	buf_append_str(&params, "\"}");
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		more[i] = kept_session_new(client, leg,
					   i == 0 ? SLICE_LIT(PARAMS) : buf_slice(&params));
	kept_session_end(&client->kept, REASON_DELETED);
	client->kept = kept_session_new(client, session_id(client->session), buf_slice(&params));
	text = text_of();
	assert_true(kept->is_full);
	text = slice_of(text.p + strlen(KEPT_SESSIONS_FIRST_LINE),
			text.n - strlen(KEPT_SESSIONS_FIRST_LINE));
	assert_true(slice_has_prefix(slice_cut(&text, '\n'), SLICE_LIT("{\"id\":")));
	assert_true(slice_has_prefix(slice_cut(&text, '\n'), SLICE_LIT("{\"id\":")));
	assert_true(slice_has_prefix(slice_cut(&text, '\n'), SLICE_LIT("{\"leg\":")));
	for (size_t i = 1; i < ARRAY_LEN(more); i++)
		kept_session_end(&more[i], REASON_DELETED);
	kept_session_end(&more[0], REASON_DRAINING);
	end(other, REASON_DRAINING);
	end(client, REASON_DRAINING);
	router.sessions.conf.max_sessions = 1; /* two of which may sleep, and any leg */
	next_gateway();
	router.sessions.conf.max_sessions = 4;
	assert_null(client_session_wake(&router, &servers[0], alice, &nowhere, leg, &reason));
	assert_null(
		client_session_wake_part(&router, &servers[0], bob, &nowhere, leg, &capabilities));
	assert_non_null(client_session_wake_part(&router, &servers[0], alice, &nowhere, leg,
						 &capabilities));
	assert_null(client_session_wake_part(&router, &servers[0], alice, &nowhere, leg,
					     &capabilities));
	buf_fini(&params);
}

/* ---- shared pools ---- */

/* A process is offered as that of the pool, or the session, with this id. */
static bool offer_for(const char *id_text, size_t size)
{
	struct ipc_message message;
	unsigned char owner[IPC_OWNER_BYTES] = { 0 };
	size_t n;

	assert_int_equal(text_from_base64url(slice_of(id_text, 43), owner, &n), 0);
	fake_keeper_offer(&keeper, slice_of((const char *)owner, size), &message);
	if (kept_sessions_inherit(kept, &servers[0], &message))
		return true;
	for (size_t i = 0; i < message.fd_count; i++)
		close(message.fds[i]);
	return false;
}

/* It answers the ping that it has been sent. */
static void pongs(struct fake_process *process)
{
	const char *ping = fake_process_read(process);
	struct buf text = { 0 };

	assert_non_null(ping);
	assert_non_null(strstr(ping, "\"method\":\"ping\""));
	buf_printf(&text, "{'jsonrpc':'2.0','id':%lu,'result':{}}",
		   strtoul(strstr(ping, "\"id\":") + 5, NULL, 10));
	says(process, buf_terminate(&text));
	buf_fini(&text);
}

/* The next gateway reads `now` in place of `before`, and has no pool yet. */
static void next_gateway_reads(const char *before, const char *now)
{
	struct buf text = { 0 };
	struct slice was = text_of();
	const char *at = memmem(was.p, was.n, before, strlen(before));

	assert_non_null(at);
	buf_append(&text, was.p, (size_t)(at - was.p));
	buf_append_str(&text, now);
	buf_append(&text, at + strlen(before), was.n - (size_t)(at - was.p) - strlen(before));
	pool_end_all(&router, REASON_DRAINING);
	settle();
	kept_sessions_fini(kept);
	kept_sessions_init(kept, router.loop);
	memcpy(halves_begin(mapped, KEPT_SESSIONS_TEXT_BYTES), text.data, text.len);
	halves_end(mapped, KEPT_SESSIONS_TEXT_BYTES, text.len);
	kept_sessions_open(kept, keeper.spawner, memory, true, &router.sessions.conf);
	buf_fini(&text);
}

static struct stream_log_owner *on_other(void *arg, struct slice text)
{
	return NULL;
}

/* Another process leaves a log with this text, and one of a session that nobody knows. */
static void gateway_leaves(int fd, struct slice text)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct stream_log_owner owner;
		struct stream_logs logs;
		struct stream_log *log;

		stream_log_owner_init(&owner);
		stream_logs_open(&logs, fd, on_other, NULL);
		stream_log_new(&logs, &owner, &log);
		stream_log_append(&log, SLICE_LIT("of A 1 0 1 "), SLICE_LIT(""));
		stream_log_new(&logs, &owner, &log);
		stream_log_append(&log, slice_of(text.p, text.n - 1), SLICE_LIT(""));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* FRONT-RES-11: what its client could still get, by logs; those of nobody go. */
static void streams_go_on(void **state)
{
	int fd = memfd_create("streams", MFD_CLOEXEC);
	at_end(buf_fini) struct buf text = { 0 };
	struct client *client;
	struct msg *msg = msg_new(SLICE_LIT("{}"));
	uint32_t epoch;

	assert_int_equal(ftruncate(fd, (off_t)STREAM_LOG_FILE_BYTES), 0);
	kept_sessions_open_streams(kept, fd);
	client = keep();
	stream_push(&client->session->standalone, STREAM_NOTIFICATION, 0, msg);
	msg_unref(&msg);
	assert_int_equal(kept->logs.count, 1);
	stream_log_read(client->session->standalone.log, &text);
	epoch = client->session->replay_store.epoch;
	end(client, REASON_DRAINING);
	next_gateway();
	gateway_leaves(fd, buf_slice(&text));
	kept_sessions_open_streams(kept, fd);
	assert_int_equal(kept->logs.count, 1);
	client = wake_as(alice, REASON_NONE);
	assert_int_equal(client->session->standalone.count, 3); /* and two lists that may differ */
	assert_int_equal(client->session->replay_store.epoch, epoch);
	assert_int_equal(kept->logs.count, 1);
	assert_non_null(client->session->standalone.log);
	end(client, REASON_DELETED);
	assert_int_equal(kept->logs.count, 0);
	close(fd);
}

static void leave_pool(char name, size_t size)
{
	struct buf line = { 0 };

	buf_append_str(&line, "{\"pool\":\"");
	buf_append_char(&line, name);
	memset(buf_reserve(&line, size), 'A', size);
	line.len += DIGEST_TEXT - 1;
	buf_append_str(&line, "\",\"x\":\"");
	line.len += size - line.len - 2;
	buf_append_str(&line, "\"}");
	assert_int_equal(line.len, size);
	assert_true(kept_pools_take_line(&kept->pools, buf_slice(&line)));
	buf_fini(&line);
}

static size_t count_pools(void)
{
	struct slice text = text_of();
	size_t count = 0;

	while (text.n > 0)
		count += slice_has_prefix(slice_cut(&text, '\n'), SLICE_LIT(KEPT_POOL_BEGIN));
	return count;
}

/* A server that says much of itself takes no room from others, and none that nobody would read. */
static void long_pools_take_no_room(void **state)
{
	leave_pool('A', KEPT_SESSIONS_TEXT_BYTES - 1000);
	leave_pool('B', 2000);
	end(keep(), REASON_DRAINING);
	assert_int_equal(count_pools(), 1);
	assert_int_equal(count_logged("sessions_unsaved"), 1);
	for (char name = 'C'; name < 'C' + 17; name++)
		leave_pool(name, 1000000);
	leave_pool('Z', 1000);
	kept->pools.on_change(&kept->pools, false);
	assert_int_equal(count_pools(), 18);
	assert_int_equal(count_logged("sessions_unsaved"), 1);
	next_gateway();
	assert_int_equal(count_pools(), 18);
	/* No process of theirs has come. */
	kept_pools_forget_idle(&kept->pools);
	kept->pools.on_change(&kept->pools, false);
	assert_int_equal(count_pools(), 0);
}

/* What the gateway before has left, and whether its process is used without another handshake. */
static void a_pool_goes_on(void **state)
{
	static const struct {
		const char *before, *now;
		bool is_retired, is_taken, is_asked, goes_on;
	} rows[] = {
		{ "{\"pool\":", "{\"pool\":", false, true, true, true },
		{ "\"agreed\":\"2025-11-25\"", "\"agreed\":\"1999-01-01\"", false, true, false,
		  false },
		{ "\"described\":{", "\"described\":{\"x\":", false, true, false, false },
		{ "\"described\":{", "\"other\":{", false, true, true, false },
		{ "\"described\":{", "\"described\":[1],\"x\":{", false, true, true, false },
		{ "\"protocolVersion\"", "\"x\"", false, true, true, false },
		{ "{\"pool\":", "{\"hole\":", false, false, false, false },
		{ "{\"pool\":", "{\"pool\":", true, false, false, false },
	};

	servers[0].conf.isolation = ISOLATION_SHARED;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct front *front = open_session_as(alice, INITIALIZE);
		size_t old = keeper.count - 1;
		char pool_id[43];
		struct slice text;
		const char *at;

		assert_non_null(fake_process_read(process(old)));
		says(process(old), WELCOME);
		hears(process(old), INITIALIZED);
		text = text_of();
		at = memmem(text.p, text.n, "{\"pool\":\"", 9);
		assert_non_null(at);
		memcpy(pool_id, at + 9, sizeof(pool_id));
		session_end(front->call.client->session, REASON_DELETED);
		next_gateway_reads(rows[i].before, rows[i].now);
		exits(process(old), 0);
		servers[0].is_retired = rows[i].is_retired;
		assert_int_equal(offer_for(pool_id, DIGEST_BYTES), rows[i].is_taken);
		servers[0].is_retired = false;
		kept_pools_forget_idle(&kept->pools);
		front = open_session_as(alice, INITIALIZE);
		if (rows[i].is_asked)
			pongs(process(old + 1));
		assert_int_equal(front->call.client->session->state == SESSION_LIVE,
				 rows[i].goes_on);
		if (rows[i].is_taken && !rows[i].goes_on)
			hears_nothing(process(old + 1));
		if (rows[i].is_taken)
			assert_int_equal(process(old + 1)->is_eof, !rows[i].goes_on);
		assert_null(rows[i].goes_on ? fake_process_read(process(old + 1)) : NULL);
		assert_int_equal(keeper.count, old + (rows[i].goes_on ? 2 : 3));
		session_end(front->call.client->session, REASON_DELETED);
		pool_end_all(&router, REASON_DRAINING);
		settle();
		for (size_t j = old + 1; j < keeper.count; j++)
			exits(process(j), 0);
	}
}

/* Of those that may ask the caller, the next gateway takes one that is the only one of its pool. */
static void one_that_may_ask_goes_on_alone(void **state)
{
	struct client *hers;

	servers[0].conf.isolation = ISOLATION_PRINCIPAL;
	servers[0].conf.pool_max = 3;
	hers = begin_asking(alice, 0)->client;
	request(hers, CALL("1"));
	request(hers, CALL("2"));
	get_ready(1);
	says(process(0), RESULT("2"));
	says(process(1), RESULT("2"));
	begin_asking(bob, 2);
	router_hand_over(&router);
	assert_int_equal(count_pools(), 1);
}

/* It is written no longer, and what is written of the pool that takes its place stays when it ends. */
static void a_retired_pool_has_its_own_line(void **state)
{
	struct front *old;

	servers[0].conf.isolation = ISOLATION_SHARED;
	servers[1].conf = servers[0].conf;
	old = open_session_as(alice, INITIALIZE);
	get_ready(0);
	assert_int_equal(count_pools(), 1);
	router_retire_server(&router, &servers[0]);
	open_session_at(&servers[1], alice, INITIALIZE);
	get_ready(1);
	assert_int_equal(count_pools(), 1);
	session_end(old->call.client->session, REASON_DELETED);
	settle();
	exits(process(0), 0);
	assert_int_equal(count_pools(), 1);
	servers[0].is_retired = false;
}

/* A process of the gateway before that nobody comes for: it is ended when its time is over, and not before. */
static void is_held_for(const char *line, size_t size, uint64_t ms)
{
	struct slice text = text_of();
	const char *at = memmem(text.p, text.n, line, strlen(line));
	char owner[43];

	assert_non_null(at);
	memcpy(owner, at + strlen(line), sizeof(owner));
	next_gateway_reads(line, line);
	exits(process(0), 0);
	assert_true(offer_for(owner, size));
	for (uint64_t passed = 0; passed < ms; passed += 1000) {
		hears_nothing(process(1));
		assert_false(process(1)->is_eof);
		pass(1000);
	}
	pass(1000);
	hears_nothing(process(1));
	assert_true(process(1)->is_eof);
}

static void what_is_held_of_sessions_has_its_time(void **state)
{
	servers[0].conf.sleep_gone_ms = 20000;
	session_end(keep()->session, REASON_DRAINING);
	is_held_for("{\"id\":\"", IPC_OWNER_BYTES, 20000);
}

static void what_is_held_of_pools_has_its_time(void **state)
{
	struct front *front;

	servers[0].conf.isolation = ISOLATION_SHARED;
	servers[0].conf.idle_ms = 20000;
	front = open_session_as(alice, INITIALIZE);
	assert_non_null(fake_process_read(process(0)));
	says(process(0), WELCOME);
	session_end(front->call.client->session, REASON_DELETED);
	is_held_for("{\"pool\":\"", DIGEST_BYTES, 20000);
}

/* ---- of other nodes ---- */

/* The line of alice's session, as this gateway writes it; it sleeps from now on. */
static char *line_of_a_sleeping_one(void)
{
	struct slice text, line;

	end(keep(), REASON_DRAINING);
	text = text_of();
	line = slice_cut(&text, '\n');
	line = slice_cut(&text, '\n');
	return mem_printf("%.*s\n", SLICE_ARG(line));
}

/* CLU-SESS-02: what the store is asked for begins with what is in the line. */
static void the_store_is_asked_by_the_line(void **state)
{
	at_end(buf_fini) struct buf question = { 0 };
	at_end(mem_free) char *line = line_of_a_sleeping_one();
	struct slice rest, owner;

	kept_sessions_question(kept, &question, slice_of(id, SESSION_ID_LENGTH), alice,
			       &servers[0]);
	rest = buf_slice(&question);
	owner = slice_cut(&rest, '\n');
	assert_non_null(memmem(line, strlen(line), owner.p, owner.n));
	assert_int_equal(rest.n, DIGEST_TEXT);
	assert_memory_equal(line + strlen("{\"id\":\""), rest.p, rest.n);
}

/* CLU-SESS-01: as if this gateway had written it; the copy of this node itself is older. */
static void what_another_node_had_goes_on(void **state)
{
	at_end(mem_free) char *line = line_of_a_sleeping_one();
	struct slice lines = slice_str(line);
	struct client *client;

	next_gateway();
	kept_sessions_take(kept, lines, true);
	assert_int_equal(kept->by_id.count, 1);
	kept_sessions_take(kept, lines, false);
	assert_int_equal(kept->by_id.count, 1);
	client = wake_as(alice, REASON_NONE);
	assert_non_null(client);
	kept_sessions_take(kept, lines, false); /* it is live */
	assert_int_equal(kept->by_id.count, 0);
	settle();
	end(client, REASON_DELETED);
	kept_sessions_take(kept, lines, false); /* what is read of the store was written before */
	assert_int_equal(kept->by_id.count, 0);
	kept->ended_count = 0; /* long ago */
	kept_sessions_take(kept, SLICE_LIT("no line\n{\"id\":\"short\"}\n\n"), false);
	assert_int_equal(kept->by_id.count, 0);
	kept_sessions_take(kept, lines, false);
	assert_int_equal(kept->by_id.count, 1);
	pass(IDLE_MS); /* nobody comes for it */
	settle();
	assert_int_equal(kept->by_id.count, 0);
	kept_sessions_use(kept, false);
	kept_sessions_take(kept, lines, false);
	assert_int_equal(kept->by_id.count, 0);
}

/* CLU-SESS-03 */
static void what_another_node_has_taken_ends(void **state)
{
	at_end(mem_free) char *line = line_of_a_sleeping_one();
	struct slice digest = slice_of(line + strlen("{\"id\":\""), DIGEST_TEXT);
	size_t last;

	kept_sessions_lose(kept, SLICE_LIT("x"));
	kept_sessions_lose(kept, slice_of(line, DIGEST_TEXT)); /* no digest */
	assert_int_equal(kept->by_id.count, 1);
	kept_sessions_lose(kept, digest);
	assert_int_equal(kept->by_id.count, 0);
	kept_sessions_take(kept, slice_str(line), false);
	assert_non_null(wake_as(alice, REASON_NONE));
	settle();
	last = keeper.count - 1;
	kept_sessions_lose(kept, digest);
	settle();
	assert_int_equal(router.sessions.count, 0);
	if (!process(last)->is_exited)
		exits(process(last), 0);
	kept_sessions_lose(kept, digest);
	assert_false(has("\"id\""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_session_goes_on),
		CASE(changes_are_written_soon),
		CASE(a_denied_session_does_not_go_on),
		CASE(a_damaged_session_does_not_go_on),
		CASE(denials_read_each_once),
		CASE(how_a_session_ends),
		CASE(nobody_comes_back),
		CASE(it_cannot_go_on_now),
		CASE(they_are_too_many),
		CASE(legs_take_no_room),
		CASE(streams_go_on),
		CASE(long_pools_take_no_room),
		CASE(a_pool_goes_on),
		CASE(one_that_may_ask_goes_on_alone),
		CASE(a_retired_pool_has_its_own_line),
		CASE(what_is_held_of_sessions_has_its_time),
		CASE(what_is_held_of_pools_has_its_time),
		CASE(the_store_is_asked_by_the_line),
		CASE(what_another_node_had_goes_on),
		CASE(what_another_node_has_taken_ends),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
