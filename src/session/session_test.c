/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions alone: ids, limits, what keeps them alive, how they end. Time stands still between steps. */
#include "session/session.c"

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/log.h"

#define IDLE_MS 1000
#define AGE_MS 5000

struct owner {
	struct session session;
	unsigned int ends;
	enum reason reason;
	bool was_findable; /* inside on_end */
};

static struct loop *loop;
static struct session_set set;
static uint64_t now_ms;

static struct session *find(struct slice id)
{
	return session_find(&set, id, &set.principals.anonymous);
}

static void on_end(struct session *session, enum reason reason)
{
	struct owner *owner = container_of(session, struct owner, session);

	owner->ends++;
	owner->reason = reason;
	owner->was_findable = find(session_id(session)) != NULL;
}

static const struct session_ops ops = { .on_end = on_end };

static void pass(uint64_t ms)
{
	now_ms += ms;
	clock_freeze(now_ms);
	loop_turn(loop, false);
}

static int setup(void **state)
{
	static const struct session_conf conf = {
		.max_sessions = 3,
		.max_per_principal = 2,
		.idle_ms = IDLE_MS,
		.max_age_ms = AGE_MS,
		.store = { .stream = { .max_bytes = 4096, .replay_age_ms = AGE_MS },
			   .session_bytes = 65536,
			   .total_bytes = 65536 },
	};
	struct error err;

	now_ms = 1000000;
	clock_freeze(now_ms);
	loop = loop_new(&err);
	session_set_init(&set, loop, &conf);
	return loop == NULL;
}

static int teardown(void **state)
{
	session_set_fini(&set);
	loop_free(&loop);
	return 0;
}

static const struct peer nowhere; /* no address */

static int init(struct owner *owner)
{
	return session_init(&owner->session, &set, &set.principals.anonymous, &nowhere, &ops);
}

static void begin(struct owner *owner)
{
	*owner = (struct owner){ .ends = 0 };
	assert_int_equal(init(owner), 0);
	session_begin(&owner->session);
}

/* FRONT-SESS-02: 192 bits, printable, never twice. */
static void ids_are_random_text(void **state)
{
	struct owner owners[2];

	begin(&owners[0]);
	begin(&owners[1]);
	for (size_t i = 0; i < SESSION_ID_LENGTH; i++) {
		char c = owners[0].session.entry.id[i];

		assert_true((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			    (c >= 'a' && c <= 'z') || c == '-' || c == '_');
	}
	assert_false(
		slice_is_equal(session_id(&owners[0].session), session_id(&owners[1].session)));
	session_end(&owners[0].session, REASON_DELETED);
	session_end(&owners[1].session, REASON_DELETED);
}

/* An operator types them: none may look like an option. */
static void ids_begin_with_no_dash(void **state)
{
	char id[SESSION_ID_LENGTH];

	for (int i = 0; i < 2000; i++) {
		session_id_make(slice_of(NULL, 0), id);
		assert_int_not_equal(id[0], '-');
	}
}

static struct slice node_in(const char *id)
{
	return session_id_node(slice_str(id));
}

/* CLU-ID-01: proxies route by it; nothing else in an id looks like it. */
static void ids_name_their_node(void **state)
{
	struct session_entry entries[2];
	struct session_table table = { .by_key = { 0 } };

	session_table_name(&table, SLICE_LIT("node1234"));
	for (int i = 0; i < 2; i++) {
		session_table_add(&table, &entries[i]);
		assert_memory_equal(entries[i].id, "node1234.", 9);
		assert_true(
			slice_is_equal(session_id_node(slice_of(entries[i].id, SESSION_ID_LENGTH)),
				       SLICE_LIT("node1234")));
	}
	assert_memory_not_equal(entries[0].id + 9, entries[1].id + 9, SESSION_ID_LENGTH - 9);
	for (int i = 0; i < 2; i++)
		session_table_remove(&table, &entries[i]);
	session_table_fini(&table);
	assert_true(slice_is_equal(node_in("a.012345678901234567890123456789"), SLICE_LIT("a")));
	assert_true(
		slice_is_equal(node_in("01234567.90123456789012345678901"), SLICE_LIT("01234567")));
	assert_true(slice_is_equal(node_in("012345678.0123456789012345678901"), SLICE_LIT("")));
	assert_true(slice_is_equal(node_in("01234567890123456789012345678901"), SLICE_LIT("")));
	assert_true(slice_is_equal(node_in("a.01234567890123456789012345678"), SLICE_LIT("")));
	assert_true(slice_is_equal(node_in(".0123456789012345678901234567890"), SLICE_LIT("")));
}

/* FRONT-SESS-01, FRONT-SESS-04: findable from begin to end, by all of its id only. */
static void is_found_while_it_lives(void **state)
{
	struct owner owner = { .ends = 0 };
	char id[SESSION_ID_LENGTH];

	assert_int_equal(init(&owner), 0);
	assert_null(find(session_id(&owner.session)));
	session_begin(&owner.session);
	assert_ptr_equal(find(session_id(&owner.session)), &owner.session);
	memcpy(id, owner.session.entry.id, sizeof(id));
	assert_null(find(slice_of(id, sizeof(id) - 1)));
	assert_null(find((struct slice){ NULL, 0 }));
	id[0] ^= 1; /* the look-up key is the same, the secret is not */
	assert_null(find(slice_of(id, sizeof(id))));
	id[0] ^= 1;
	session_end(&owner.session, REASON_DELETED);
	assert_null(find(slice_of(id, sizeof(id))));
	assert_int_equal(owner.ends, 1);
	assert_int_equal(owner.reason, REASON_DELETED);
	assert_false(owner.was_findable);
	session_end(&owner.session, REASON_EXPIRED); /* the second end is none */
	assert_int_equal(owner.ends, 1);
}

/* FRONT-SESS-08: places are counted from the first moment on, and given back. */
static void places_are_limited(void **state)
{
	struct owner owners[4] = { 0 };

	for (int i = 0; i < 3; i++)
		assert_int_equal(init(&owners[i]), 0);
	assert_int_equal(init(&owners[3]), -1);
	session_begin(&owners[0].session);
	assert_int_equal(init(&owners[3]), -1);
	session_end(&owners[1].session, REASON_START_FAILED); /* it never began */
	assert_int_equal(init(&owners[3]), 0);
	session_end(&owners[0].session, REASON_DELETED);
	session_end(&owners[2].session, REASON_DELETED);
	session_end(&owners[3].session, REASON_DELETED);
	assert_int_equal(set.count, 0);
	assert_int_equal(set.reserved, 0);
}

static struct principal *somebody(struct slice subject)
{
	const struct identity identity = { .issuer = SLICE("issuer"), .subject = subject };

	return principal_get(&set.principals, &identity);
}

static struct peer address(const char *text)
{
	struct peer peer = { .family = 0 };

	assert_true(peer_parse(slice_str(text), &peer));
	return peer;
}

static int begin_as(struct owner *owner, struct principal *principal, const struct peer *peer)
{
	*owner = (struct owner){ .ends = 0 };
	if (session_init(&owner->session, &set, principal, peer, &ops) < 0)
		return -1;
	session_begin(&owner->session);
	return 0;
}

/* FRONT-SESS-08: what nobody uses ends for a new one: not at once; of who has most; never what is in use. */
static void idle_ones_make_room(void **state)
{
	const struct peer here = address("192.0.2.1"), there = address("192.0.2.2");
	struct principal *anonymous = &set.principals.anonymous;
	static struct owner a, b, c, d, e; /* they end with the set */

	set.conf.idle_ms = set.conf.max_age_ms = 600000;
	assert_int_equal(begin_as(&b, anonymous, &there), 0);
	pass(10);
	assert_int_equal(begin_as(&a, anonymous, &here), 0);
	pass(10);
	assert_int_equal(begin_as(&c, anonymous, &here), 0);
	assert_int_equal(begin_as(&d, anonymous, &there), -1);
	assert_int_equal(session_set_wait_ms(&set, anonymous), 1980);
	pass(1980);
	session_hold(&b.session);
	assert_int_equal(begin_as(&d, anonymous, &there), -1);
	assert_int_equal(session_set_wait_ms(&set, anonymous), 10);
	pass(2000);
	assert_int_equal(session_set_wait_ms(&set, anonymous), 0);
	assert_int_equal(begin_as(&d, anonymous, &there), 0);
	assert_int_equal(a.ends, 1); /* here has two, and this was idle for longest */
	assert_int_equal(a.reason, REASON_RECLAIMED);
	pass(2000);
	assert_int_equal(begin_as(&e, anonymous, &here), 0);
	assert_int_equal(d.ends, 1); /* there has two, of which one is in use */
	assert_int_equal(b.ends + c.ends, 0);
	session_release(&b.session);
}

/* FRONT-SESS-08: using each of many now and then does not keep the others out; but nobody loses more than makes it even. */
static void who_has_two_more_is_left_no_moment(void **state)
{
	const struct peer here = address("192.0.2.1"), there = address("192.0.2.2");
	struct principal *anonymous = &set.principals.anonymous;
	static struct owner pinged[3], in, again; /* they end with the set */

	set.conf.idle_ms = set.conf.max_age_ms = 600000;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(begin_as(&pinged[i], anonymous, &here), 0);
		pass(10);
	}
	session_hold(&pinged[0].session);
	assert_int_equal(begin_as(&in, anonymous, &there), 0);
	assert_int_equal(pinged[1].ends, 1);
	assert_int_equal(begin_as(&again, anonymous, &there), -1); /* it has one, here has two */
	assert_int_equal(pinged[0].ends + pinged[2].ends + in.ends, 0);
	session_release(&pinged[0].session);
}

/* FRONT-SESS-08: without a token one address has a quarter, once half is taken; this machine may be everybody. */
static void one_address_has_a_quarter(void **state)
{
	const struct peer here = address("192.0.2.1"), there = address("192.0.2.2");
	const struct peer local = address("127.0.0.1");
	struct principal *anonymous = &set.principals.anonymous;
	static struct owner of_here[21], of_local[10], more; /* they end with the set */

	set.conf.max_sessions = 40;
	set.conf.idle_ms = set.conf.max_age_ms = 600000;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(begin_as(&of_here[i], anonymous, &here), 0);
		session_hold(&of_here[i].session);
	}
	assert_int_equal(begin_as(&more, anonymous, &here), -1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(begin_as(&of_local[i], anonymous, &local), 0);
	session_release(&of_here[3].session);
	assert_int_equal(begin_as(&of_here[20], anonymous, &here), -1);
	assert_int_equal(begin_as(&more, anonymous, &there), 0);
	pass(2000);
	assert_int_equal(begin_as(&of_here[20], anonymous, &here), 0);
	assert_int_equal(of_here[3].ends, 1); /* one of its own */
	for (int i = 0; i < 10; i++)
		assert_int_equal(of_local[i].ends, 0);
	for (int i = 0; i < 20; i++) {
		if (i != 3)
			session_release(&of_here[i].session);
	}
}

/* limits.sessions_per_principal: one's own makes room, and nobody else's. */
static void own_ones_make_room(void **state)
{
	struct principal *alice = somebody(SLICE_LIT("alice"));
	static struct owner owners[3], of_bob; /* they end with the set */
	struct principal *bob = somebody(SLICE_LIT("bob"));

	set.conf.idle_ms = set.conf.max_age_ms = 600000;
	assert_int_equal(begin_as(&of_bob, bob, &nowhere), 0);
	pass(10);
	for (int i = 0; i < 2; i++)
		assert_int_equal(begin_as(&owners[i], alice, &nowhere), 0);
	session_hold(&owners[0].session);
	assert_int_equal(begin_as(&owners[2], alice, &nowhere), -1);
	pass(2000);
	assert_int_equal(begin_as(&owners[2], alice, &nowhere), 0);
	assert_int_equal(owners[1].ends, 1);
	assert_int_equal(of_bob.ends + owners[0].ends, 0);
	principal_unref(&alice);
	principal_unref(&bob);
}

/* FRONT-SESS-08: one caller has a share of the places; another is not hindered by him. */
static void places_of_one_are_limited(void **state)
{
	struct owner owners[4] = { 0 };
	struct principal *alice = somebody(SLICE_LIT("alice"));
	struct principal *bob = somebody(SLICE_LIT("bob"));

	for (int i = 0; i < 2; i++)
		assert_int_equal(session_init(&owners[i].session, &set, alice, &nowhere, &ops), 0);
	assert_int_equal(session_init(&owners[2].session, &set, alice, &nowhere, &ops), -1);
	assert_int_equal(session_init(&owners[3].session, &set, bob, &nowhere, &ops), 0);
	session_end(&owners[0].session, REASON_START_FAILED);
	assert_int_equal(session_init(&owners[2].session, &set, alice, &nowhere, &ops), 0);
	for (int i = 1; i < 4; i++)
		session_end(&owners[i].session, REASON_DELETED);
	assert_int_equal(alice->sessions, 0);
	principal_unref(&alice);
	principal_unref(&bob);
	assert_int_equal(set.principals.by_key.count, 0);
}

/* FRONT-SESS-05, AUTH-SES-01: it is found by nobody but the one who began it. */
static void is_found_by_its_principal_only(void **state)
{
	struct owner owner = { .ends = 0 };
	struct principal *alice = somebody(SLICE_LIT("alice"));
	struct principal *bob = somebody(SLICE_LIT("bob"));
	struct slice id;

	assert_int_equal(session_init(&owner.session, &set, alice, &nowhere, &ops), 0);
	session_begin(&owner.session);
	id = session_id(&owner.session);
	assert_ptr_equal(session_find(&set, id, alice), &owner.session);
	assert_null(session_find(&set, id, bob));
	assert_null(find(id));
	principal_unref(&alice);
	principal_unref(&bob);
	alice = somebody(SLICE_LIT("alice")); /* the session kept it */
	assert_ptr_equal(session_find(&set, id, alice), &owner.session);
	session_end(&owner.session, REASON_DELETED);
	principal_unref(&alice);
}

/* FRONT-SESS-08: idle counts from the last release; held, it does not idle. */
static void idles_out_only_when_free(void **state)
{
	struct owner owner;

	begin(&owner);
	pass(IDLE_MS - 1);
	session_hold(&owner.session);
	session_hold(&owner.session);
	pass(IDLE_MS);
	session_release(&owner.session);
	pass(IDLE_MS);
	assert_int_equal(owner.ends, 0);
	session_release(&owner.session);
	pass(IDLE_MS - 1);
	assert_int_equal(owner.ends, 0);
	pass(1);
	assert_int_equal(owner.ends, 1);
	assert_int_equal(owner.reason, REASON_EXPIRED);
}

/* Whose id nobody may have heard of goes after a minute; who is heard of stays as long as others. */
static void doubtful_one_goes_soon(void **state)
{
	struct owner lost, used;

	set.conf.idle_ms = 600000;
	set.conf.max_age_ms = 86400000;
	begin(&lost);
	begin(&used);
	session_doubt(&lost.session);
	session_doubt(&used.session);
	pass(59000);
	assert_int_equal(session_idle_ms(&used.session), 59000);
	session_hold(&used.session);
	session_release(&used.session);
	pass(1000);
	assert_int_equal(lost.reason, REASON_EXPIRED);
	pass(598999);
	assert_int_equal(session_idle_ms(&used.session), 599999);
	assert_int_equal(used.ends, 0);
	pass(1);
	assert_int_equal(used.ends, 1);
	set.conf.idle_ms = IDLE_MS;
	begin(&lost);
	session_doubt(&lost.session);
	pass(IDLE_MS);
	assert_int_equal(lost.ends, 1);
}

/* sessions.max_age: nothing keeps it longer. */
static void age_ends_it_even_when_held(void **state)
{
	struct owner owner;

	begin(&owner);
	session_hold(&owner.session);
	pass(AGE_MS);
	assert_int_equal(owner.ends, 1);
	session_release(&owner.session); /* the holder learns of it later */
	pass(IDLE_MS);
	assert_int_equal(owner.ends, 1);
}

/* Another configuration goes for open sessions, too; their times go on from where they are. */
static void renewed_times_go_for_open_ones(void **state)
{
	struct session_conf conf = set.conf;
	struct owner used, unused;

	conf.idle_ms = conf.max_age_ms = 600000;
	session_set_renew(&set, &conf);
	begin(&used);
	begin(&unused);
	session_hold(&used.session);
	pass(300000);
	conf.max_age_ms = 900000;
	session_set_renew(&set, &conf);
	assert_int_equal(session_age_ms(&used.session), 300000);
	assert_int_equal(session_idle_ms(&unused.session), 300000);
	conf.idle_ms = 300000;
	session_set_renew(&set, &conf);
	pass(0);
	assert_int_equal(unused.reason, REASON_EXPIRED);
	pass(300001); /* its first max_age */
	assert_int_equal(used.ends, 0);
	conf.max_age_ms = 600000;
	session_set_renew(&set, &conf);
	pass(0);
	assert_int_equal(used.reason, REASON_EXPIRED);
	session_release(&used.session);
}

/* And for what waits in them. */
static void renewed_bounds_go_for_open_ones(void **state)
{
	struct session_conf conf = set.conf;
	struct msg *msg = msg_new(SLICE_LIT("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}"));
	struct owner owner;
	size_t bytes;

	begin(&owner);
	for (int i = 0; i < 8; i++)
		stream_push(&owner.session.standalone, STREAM_NOTIFICATION, 0, msg);
	msg_unref(&msg);
	bytes = set.store.budget.bytes;
	conf.store.session_bytes = bytes / 2;
	session_set_renew(&set, &conf);
	assert_int_equal(owner.session.standalone.count, 4);
	conf.store.total_bytes = bytes / 4;
	session_set_renew(&set, &conf);
	assert_int_equal(owner.session.standalone.count, 2);
	session_end(&owner.session, REASON_DELETED);
}

struct reader {
	struct stream_reader reader;
	unsigned int detached;
	enum reason reason;
};

static void on_wake(struct stream_reader *reader)
{
}

static void on_detached(struct stream_reader *reader, enum reason reason)
{
	struct reader *r = container_of(reader, struct reader, reader);

	r->detached++;
	r->reason = reason;
}

static const struct stream_reader_ops reader_ops = { .on_wake = on_wake,
						     .on_detached = on_detached };

/* FRONT-SESS-09: its stream's reader is told. */
static void end_lets_go_of_the_reader(void **state)
{
	struct reader reader = { .detached = 0 };
	struct owner owner;

	begin(&owner);
	assert_true(stream_attach(&owner.session.standalone, &reader.reader, &reader_ops,
				  STREAM_FROM_HERE));
	session_end(&owner.session, REASON_DELETED);
	assert_int_equal(reader.detached, 1);
	assert_int_equal(reader.reason, REASON_DELETED);
	assert_null(reader.reader.stream);
}

/* REL-41: whoever stops everything finds those in their handshake, too. */
static void set_knows_new_sessions(void **state)
{
	struct owner owners[2] = { 0 };

	assert_int_equal(init(&owners[0]), 0);
	begin(&owners[1]);
	session_set_fini(&set);
	assert_int_equal(owners[0].ends, 1);
	assert_int_equal(owners[1].ends, 1);
	assert_int_equal(owners[0].reason, REASON_DRAINING);
}

static const struct denial *deny(struct slice issuer, struct slice subject)
{
	return deny_list_add(&set.deny_list, issuer, DENIAL_BY_SUB, subject, UINT64_MAX);
}

/* AUTH-SES-07 */
static void ends_when_its_token_is_denied(void **state)
{
	const struct denial_marks alice = { SLICE("i"), { SLICE("alice") } };
	const struct denial_marks bob = { SLICE("i"), { SLICE("bob") } };
	struct owner owners[3];

	begin(&owners[0]);
	begin(&owners[1]);
	begin(&owners[2]); /* of nobody in particular */
	session_keep_marks(&owners[0].session, &alice);
	session_keep_marks(&owners[1].session, &bob);
	assert_non_null(deny(SLICE_LIT("j"), SLICE_LIT("alice")));
	assert_int_equal(owners[0].ends, 0);
	assert_non_null(deny(SLICE_LIT("i"), SLICE_LIT("alice")));
	assert_int_equal(owners[0].ends, 1);
	assert_int_equal(owners[0].reason, REASON_DENIED);
	assert_int_equal(owners[1].ends + owners[2].ends, 0);
	session_end(&owners[1].session, REASON_DELETED);
	assert_non_null(deny(SLICE_LIT("i"), SLICE_LIT("bob"))); /* it is no longer a holder */
	assert_int_equal(owners[1].ends, 1);
	session_end(&owners[2].session, REASON_DELETED);
}

/* Each step is a line of debug, with as much of the id as may be shown, and no more. */
/* Under the id that it had before, for what is left of its age; not while another has that id. */
static void begins_again(void **state)
{
	char id[SESSION_ID_LENGTH];
	struct owner first, second = { .ends = 0 };

	begin(&first);
	memcpy(id, session_id(&first.session).p, sizeof(id));
	assert_int_equal(init(&second), 0);
	assert_false(session_begin_again(&second.session, slice_of(id, sizeof(id)), 0));
	assert_ptr_equal(find(slice_of(id, sizeof(id))), &first.session);
	session_end(&first.session, REASON_DELETED);
	assert_true(session_begin_again(&second.session, slice_of(id, sizeof(id)),
					AGE_MS - IDLE_MS / 2));
	assert_ptr_equal(find(slice_of(id, sizeof(id))), &second.session);
	pass(IDLE_MS - 1);
	assert_int_equal(second.ends, 1);
	assert_int_equal(second.reason, REASON_EXPIRED);
}

static void steps_are_logged(void **state)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char text[4096] = "", line[64];
	struct owner owner;

	log_set(fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	begin(&owner);
	session_end(&owner.session, REASON_EXPIRED);
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "session=%.*s from=%s", SESSION_ID_SHOWN,
			 owner.session.entry.id, i == 0 ? "new to=live" : "live to=ended");
		assert_non_null(strstr(text, line));
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids_are_random_text, setup, teardown),
		cmocka_unit_test(ids_begin_with_no_dash),
		cmocka_unit_test(ids_name_their_node),
		cmocka_unit_test_setup_teardown(is_found_while_it_lives, setup, teardown),
		cmocka_unit_test_setup_teardown(places_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(places_of_one_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_ones_make_room, setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_two_more_is_left_no_moment, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_address_has_a_quarter, setup, teardown),
		cmocka_unit_test_setup_teardown(own_ones_make_room, setup, teardown),
		cmocka_unit_test_setup_teardown(is_found_by_its_principal_only, setup, teardown),
		cmocka_unit_test_setup_teardown(idles_out_only_when_free, setup, teardown),
		cmocka_unit_test_setup_teardown(doubtful_one_goes_soon, setup, teardown),
		cmocka_unit_test_setup_teardown(age_ends_it_even_when_held, setup, teardown),
		cmocka_unit_test_setup_teardown(end_lets_go_of_the_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(renewed_times_go_for_open_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(renewed_bounds_go_for_open_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(set_knows_new_sessions, setup, teardown),
		cmocka_unit_test_setup_teardown(begins_again, setup, teardown),
		cmocka_unit_test_setup_teardown(ends_when_its_token_is_denied, setup, teardown),
		cmocka_unit_test_setup_teardown(steps_are_logged, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
