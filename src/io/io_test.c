/* SPDX-License-Identifier: Apache-2.0 */
/* Turns, timers, tasks and deferred frees; wires, queues and listeners. */
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "io/listen.h"
#include "io/outq.h"
#include "io/wire.h"
#include "obs/log.h"

static struct loop *loop;
static struct error err;
static uint64_t frozen_ms = 1000000;
static char trace[64]; /* what ran, in order */

static int setup(void **state)
{
	trace[0] = '\0';
	loop = loop_new(&err);
	return loop != NULL ? 0 : -1;
}

/* The clock cannot be unfrozen, so these tests come last. */
static int setup_frozen(void **state)
{
	clock_freeze(frozen_ms);
	return setup(state);
}

static int teardown(void **state)
{
	loop_free(&loop);
	return 0;
}

static void note(char who)
{
	size_t length = strlen(trace);

	assert_true(length < sizeof(trace) - 1);
	trace[length] = who;
	trace[length + 1] = '\0';
}

static void advance(uint64_t by_ms)
{
	frozen_ms += by_ms;
	clock_freeze(frozen_ms);
	loop_turn(loop, false);
}

static uint64_t kernel_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void make_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
}

/* ---- timers ---- */

struct player {
	struct timer timer;
	struct task task;
	struct watch watch;
	char name;
	uint64_t again_ms;     /* restarts itself */
	struct player *stops;  /* stopped when this one runs */
	struct player *starts; /* started with 10 ms when this one runs */
	uint64_t seen_ms;
};

static void player_act(struct player *player)
{
	note(player->name);
	player->seen_ms = clock_now_ms();
	if (player->stops != NULL) {
		timer_stop(&player->stops->timer);
		task_cancel(&player->stops->task);
	}
	if (player->starts != NULL)
		timer_start(loop, &player->starts->timer, 10);
}

static void player_on_due(struct timer *timer)
{
	struct player *player = container_of(timer, struct player, timer);

	player_act(player);
	if (player->again_ms > 0)
		timer_start(loop, timer, player->again_ms);
}

static void player_on_task(struct task *task)
{
	player_act(container_of(task, struct player, task));
}

static struct player player_make(char name)
{
	return (struct player){ .name = name };
}

/* The list nodes hold their own addresses, so call this when the struct has its final place. */
static void player_init(struct player *player)
{
	timer_init(&player->timer, player_on_due);
	task_init(&player->task, player_on_task);
}

static void timer_wakes_a_waiting_loop(void **state)
{
	struct player a = player_make('a');
	uint64_t begin_ms = kernel_ms();

	player_init(&a);
	clock_update();
	timer_start(loop, &a.timer, 30);
	for (int i = 0; i < 100 && trace[0] == '\0'; i++)
		loop_turn(loop, true);
	assert_string_equal(trace, "a");
	assert_in_range(kernel_ms() - begin_ms, 30, 5000);
}

static void watch_ignores(struct watch *watch)
{
}

/* A queue waits for its second timer when the first has fired or was stopped. */
static void every_timer_wakes_a_waiting_loop(void **state)
{
	struct player a = player_make('a'), b = player_make('b'), c = player_make('c');
	int fds[2];

	make_pair(fds);
	player_init(&a);
	player_init(&b);
	player_init(&c);
	watch_init(&a.watch, loop, fds[0], WATCH_READ, watch_ignores);
	watch_set(&a.watch, true); /* without descriptors the loop does not wait at all */
	timer_start(loop, &a.timer, 20);
	usleep(10 * 1000);
	clock_update();
	timer_start(loop, &b.timer, 20);
	usleep(10 * 1000);
	clock_update();
	timer_start(loop, &c.timer, 20);
	timer_stop(&b.timer);
	while (timer_is_running(&c.timer))
		loop_turn(loop, true);
	assert_string_equal(trace, "ac");
	watch_set(&a.watch, false);
	close(fds[0]);
	close(fds[1]);
}

static void watch_starts_timer(struct watch *watch)
{
	struct player *player = container_of(watch, struct player, watch);

	timer_start(loop, &player->timer, 100);
	watch_set(watch, false);
}

/* SEC-25: time spent sleeping in the loop does not shorten deadlines started afterwards. */
static void deadline_begins_when_its_event_came(void **state)
{
	struct player a = player_make('a');
	uint64_t begin_ms;
	int fds[2];

	make_pair(fds);
	player_init(&a);
	watch_init(&a.watch, loop, fds[0], WATCH_READ, watch_starts_timer);
	watch_set(&a.watch, true);
	loop_turn(loop, false);
	usleep(60 * 1000);
	begin_ms = kernel_ms();
	assert_int_equal(write(fds[1], "x", 1), 1);
	loop_turn(loop, true);
	assert_true(timer_is_running(&a.timer));
	assert_true(a.timer.due_ms >= begin_ms + 100);
	timer_stop(&a.timer);
	close(fds[0]);
	close(fds[1]);
}

static void timer_stops_loop(struct timer *timer)
{
	loop_stop(loop);
}

static void loop_runs_until_it_is_stopped(void **state)
{
	struct timer timer;

	timer_init(&timer, timer_stops_loop);
	timer_start(loop, &timer, 5);
	loop_run(loop);
	assert_false(timer_is_running(&timer));
}

static void timer_is_due_exactly_once_and_not_early(void **state)
{
	struct player a = player_make('a');

	player_init(&a);
	timer_start(loop, &a.timer, 50);
	assert_true(timer_is_running(&a.timer));
	advance(49);
	assert_string_equal(trace, "");
	advance(1);
	assert_string_equal(trace, "a");
	assert_false(timer_is_running(&a.timer));
	advance(1000);
	assert_string_equal(trace, "a");
}

static void timer_that_runs_starts_anew(void **state)
{
	struct player a = player_make('a'), b = player_make('b');

	player_init(&a);
	player_init(&b);
	timer_start(loop, &a.timer, 50);
	advance(20);
	timer_start(loop, &b.timer, 50);
	timer_start(loop, &a.timer, 50); /* now after b, although due at the same time */
	advance(49);
	assert_string_equal(trace, "");
	advance(1);
	assert_string_equal(trace, "ba");
	timer_start(loop, &a.timer, 50);
	timer_start(loop, &a.timer, 5); /* another duration, another queue */
	advance(5);
	assert_string_equal(trace, "baa");
	advance(100);
	assert_string_equal(trace, "baa");
}

static void stopped_timer_delays_no_other(void **state)
{
	struct player a = player_make('a'), b = player_make('b');

	player_init(&a);
	player_init(&b);
	timer_start(loop, &a.timer, 50);
	advance(10);
	timer_start(loop, &b.timer, 50);
	timer_stop(&a.timer);
	timer_stop(&a.timer);
	advance(49);
	assert_string_equal(trace, "");
	advance(1);
	assert_string_equal(trace, "b");
}

static void timer_may_stop_and_start_others_that_are_due(void **state)
{
	struct player a = player_make('a'), b = player_make('b'), c = player_make('c');

	player_init(&a);
	player_init(&b);
	player_init(&c);
	a.stops = &b;
	a.starts = &c;
	timer_start(loop, &a.timer, 20);
	timer_start(loop, &b.timer, 20);
	timer_start(loop, &c.timer, 20);
	advance(20);
	assert_string_equal(trace, "a");
	assert_false(timer_is_running(&b.timer));
	advance(9);
	assert_string_equal(trace, "a");
	advance(1);
	assert_string_equal(trace, "ac");
}

/* Queues are reordered while in use; no timer may be lost. */
static void timers_of_many_durations_are_all_due(void **state)
{
	struct player players[10];

	for (int i = 0; i < 10; i++) {
		players[i] = player_make((char)('0' + i));
		players[i].starts = &players[9 - i];
		player_init(&players[i]);
	}
	for (unsigned int i = 0; i < 10; i++)
		timer_start(loop, &players[i].timer, 100 + i % 5);
	for (int i = 0; i < 200; i++)
		advance(1);
	/* Each of a pair starts the other, so some fire more often; but all fire. */
	for (char who = '0'; who <= '9'; who++)
		assert_non_null(strchr(trace, who));
	for (int i = 0; i < 10; i++)
		timer_stop(&players[i].timer);
}

static void timer_that_starts_itself_runs_once_a_turn(void **state)
{
	struct player a = player_make('a');

	player_init(&a);
	a.again_ms = 10;
	timer_start(loop, &a.timer, 10);
	advance(10);
	assert_string_equal(trace, "a");
	advance(9);
	assert_string_equal(trace, "a");
	advance(1);
	assert_string_equal(trace, "aa");
	advance(100); /* missed intervals are not made up for */
	assert_string_equal(trace, "aaa");
	timer_stop(&a.timer);
}

/* ---- tasks ---- */

static void tasks_run_in_order_and_once(void **state)
{
	struct player a = player_make('a'), b = player_make('b');

	player_init(&a);
	player_init(&b);
	task_schedule(loop, &a.task);
	task_schedule(loop, &b.task);
	task_schedule(loop, &a.task);
	loop_turn(loop, true);
	assert_string_equal(trace, "ab");
	loop_turn(loop, false);
	assert_string_equal(trace, "ab");
}

static void task_may_cancel_one_of_its_round(void **state)
{
	struct player a = player_make('a'), b = player_make('b'), c = player_make('c');

	player_init(&a);
	player_init(&b);
	player_init(&c);
	a.stops = &b;
	task_schedule(loop, &a.task);
	task_schedule(loop, &b.task);
	task_schedule(loop, &c.task);
	loop_turn(loop, false);
	assert_string_equal(trace, "ac");
	task_cancel(&b.task); /* harmless when it is not scheduled */
}

static void timers_come_before_tasks(void **state)
{
	struct player a = player_make('a'), b = player_make('b');

	player_init(&a);
	player_init(&b);
	task_schedule(loop, &a.task);
	timer_start(loop, &b.timer, 3);
	advance(3);
	assert_string_equal(trace, "ba");
}

static int endless_runs;

static void run_endlessly(struct task *task)
{
	endless_runs++;
	task_schedule(loop, task);
}

static void watch_notes(struct watch *watch)
{
	note('w');
	watch_set(watch, false);
}

/* A task that always reschedules itself starves neither descriptors nor timers. */
static void endless_task_starves_nobody(void **state)
{
	struct player a = player_make('a');
	struct watch quiet;
	struct task endless;
	int fds[2];

	make_pair(fds);
	player_init(&a);
	watch_init(&a.watch, loop, fds[0], WATCH_WRITE, watch_notes);
	watch_set(&a.watch, true);
	watch_init(&quiet, loop, fds[1], WATCH_READ, watch_ignores);
	watch_set(&quiet, true);
	timer_start(loop, &a.timer, 1);
	task_init(&endless, run_endlessly);
	task_schedule(loop, &endless);
	advance(1);
	assert_string_equal(trace, "wa");
	assert_in_range(endless_runs, 1, 100);
	for (int i = 0; i < 3; i++)
		loop_turn(loop, true); /* if the loop blocks here, it blocks forever */
	assert_in_range(endless_runs, 4, 400);
	task_cancel(&endless);
	watch_set(&quiet, false);
	close(fds[0]);
	close(fds[1]);
}

/* As if the kernel had no memory: the watch is retried until it succeeds or is switched off. */
static void what_cannot_be_watched_is_tried_again(void **state)
{
	struct player a = player_make('a'), b = player_make('b');
	int fds[2];
	int file[2] = { memfd_create("a", MFD_CLOEXEC), memfd_create("b", MFD_CLOEXEC) };

	make_pair(fds);
	player_init(&a);
	watch_init(&a.watch, loop, file[0], WATCH_WRITE, watch_notes);
	watch_init(&b.watch, loop, file[1], WATCH_WRITE, watch_notes);
	watch_set(&a.watch, true);
	watch_set(&b.watch, true);
	advance(150);
	loop_turn(loop, false);
	assert_string_equal(trace, "");
	watch_set(&b.watch, false);
	assert_int_equal(dup2(fds[0], file[0]), file[0]);
	assert_int_equal(dup2(fds[0], file[1]), file[1]);
	advance(150);
	loop_turn(loop, false);
	assert_string_equal(trace, "w");
	advance(150);
	loop_turn(loop, false);
	assert_string_equal(trace, "w");
	watch_set(&b.watch, true); /* from now on it can be watched */
	loop_turn(loop, false);
	assert_string_equal(trace, "ww");
	for (int i = 0; i < 2; i++) {
		close(file[i]);
		close(fds[i]);
	}
}

/* New refusals that come faster than the retry interval do not postpone the retry of the first. */
static void new_refusals_put_nothing_off(void **state)
{
	struct player first = player_make('a');
	struct watch more[4];
	int fds[2];
	int file = memfd_create("first", MFD_CLOEXEC), other = memfd_create("more", MFD_CLOEXEC);

	make_pair(fds);
	player_init(&first);
	watch_init(&first.watch, loop, file, WATCH_WRITE, watch_notes);
	watch_set(&first.watch, true);
	assert_int_equal(dup2(fds[0], file), file); /* from now on it can be watched */
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		watch_init(&more[i], loop, other, WATCH_READ, watch_ignores);
		watch_set(&more[i], true);
		advance(60);
		loop_turn(loop, false);
	}
	assert_string_equal(trace, "w");
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		watch_set(&more[i], false);
	close(file);
	close(other);
	close(fds[0]);
	close(fds[1]);
}

static char *deferred;

static void task_frees(struct task *task)
{
	deferred = mem_zalloc(16);
	loop_defer_free(loop, deferred);
	deferred[3] = 'x'; /* AddressSanitizer would report a use after free */
	for (int i = 0; i < 300; i++)
		loop_defer_free(loop, mem_alloc(1)); /* and leaks */
}

static void deferred_object_lives_to_the_end_of_the_turn(void **state)
{
	struct task task;

	task_init(&task, task_frees);
	task_schedule(loop, &task);
	loop_turn(loop, false);
	loop_defer_free(loop, NULL);
	loop_defer_free(loop, mem_alloc(1)); /* loop_free frees what no turn freed */
}

static void nodes_outlive_the_loop(void **state)
{
	struct player a = player_make('a');

	player_init(&a);
	timer_start(loop, &a.timer, 10);
	task_schedule(loop, &a.task);
	loop_free(&loop);
	assert_null(loop);
	loop_free(&loop);
	timer_stop(&a.timer);
	task_cancel(&a.task);
	assert_false(timer_is_running(&a.timer));
}

/* ---- descriptors and wires ---- */

static struct wire wires[2];
static int ends[2];

static void wire_closes_both(struct wire *wire)
{
	note('r');
	wire_close(&wires[0]);
	wire_close(&wires[1]);
}

static void wire_is_writable(struct wire *wire)
{
	note('w');
	wire_watch_writing(wire, false);
}

static const struct wire_ops closing_ops = { wire_closes_both, wire_is_writable };

static void closed_wire_is_called_no_more(void **state)
{
	for (int i = 0; i < 2; i++) {
		int fds[2];

		make_pair(fds);
		ends[i] = fds[1];
		wire_init(&wires[i], loop, fds[0], &closing_ops);
		wire_watch_reading(&wires[i], true);
		assert_int_equal(write(ends[i], "x", 1), 1);
	}
	loop_turn(loop, false);
	loop_turn(loop, false);
	assert_string_equal(trace, "r"); /* both were ready; one was called */
	assert_false(wire_is_open(&wires[0]));
	wire_watch_reading(&wires[0], true); /* all of these are harmless */
	wire_watch_writing(&wires[0], true);
	wire_shutdown(&wires[0]);
	wire_close(&wires[0]);
	close(ends[0]);
	close(ends[1]);
}

/* A descriptor number that is reused within the turn is watched as the new descriptor. */
static void descriptor_number_is_reused(void **state)
{
	int fds[2], first;

	make_pair(fds);
	first = fds[0];
	wire_init(&wires[0], loop, fds[0], &closing_ops);
	wire_watch_reading(&wires[0], true);
	loop_turn(loop, false);
	wire_close(&wires[0]);
	close(fds[1]);
	make_pair(fds);
	assert_int_equal(fds[0], first);
	wire_init(&wires[0], loop, fds[0], &closing_ops);
	wire_watch_reading(&wires[0], true);
	wire_watch_writing(&wires[0], true);
	loop_turn(loop, false);
	assert_string_equal(trace, "w");
	assert_int_equal(write(fds[1], "x", 1), 1);
	wires[1].fd = -1;
	loop_turn(loop, false);
	assert_string_equal(trace, "wr");
	close(fds[1]);
}

static void wire_tells_bytes_end_and_break_apart(void **state)
{
	struct iovec part = { "hello", 5 };
	struct wire wire;
	char bytes[8];
	int fds[2];

	make_pair(fds);
	wire_init(&wire, loop, fds[0], &closing_ops);
	assert_int_equal(wire_read(&wire, bytes, sizeof(bytes)), WIRE_AGAIN);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	assert_int_equal(wire_read(&wire, bytes, sizeof(bytes)), 3);
	assert_int_equal(wire_write(&wire, &part, 1), 5);
	wire_shutdown(&wire);
	assert_int_equal(read(fds[1], bytes, sizeof(bytes)), 5);
	assert_int_equal(read(fds[1], bytes, sizeof(bytes)), 0);
	assert_int_equal(write(fds[1], "abc", 3), 3); /* the other direction is still open */
	assert_int_equal(wire_read(&wire, bytes, sizeof(bytes)), 3);
	shutdown(fds[1], SHUT_WR);
	assert_int_equal(wire_read(&wire, bytes, sizeof(bytes)), 0);
	wire_close(&wire);
	close(fds[1]);

	make_pair(fds);
	wire_init(&wire, loop, fds[0], &closing_ops);
	assert_int_equal(wire_write(&wire, &part, 1), 5);
	close(fds[1]); /* with bytes unread: a reset */
	assert_int_equal(wire_read(&wire, bytes, sizeof(bytes)), WIRE_BROKEN);
	assert_int_equal(wire_write(&wire, &part, 1), WIRE_BROKEN); /* no SIGPIPE */
	wire_close(&wire);
}

/* ---- queues ---- */

static uint32_t random_state = 1;

static uint32_t random_next(uint32_t limit)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % limit;
}

static void fill_random(char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)random_next(256);
}

/* Queues `piece`: as a copy, or taken over after a few bytes that are skipped. */
static void outq_put(struct outq *queue, struct slice piece)
{
	struct buf buf = { 0 };

	if (random_next(2) == 0) {
		outq_append(queue, piece);
		return;
	}
	buf_append_str(&buf, "skipped");
	buf_append_slice(&buf, piece);
	outq_take(queue, &buf, 7);
	assert_null(buf.data);
	assert_int_equal(buf.len, 0);
}

static void outq_keeps_every_byte_in_order(void **state)
{
	static char sent[1 << 20], got[1 << 20];
	struct wire wire;
	struct outq queue;
	size_t in = 0, out = 0;
	int fds[2];

	make_pair(fds);
	wire_init(&wire, loop, fds[0], &closing_ops);
	fill_random(sent, sizeof(sent));
	outq_init(&queue);
	while (out < sizeof(sent)) {
		size_t size = random_next(random_next(4) == 0 ? 60000 : 300);
		ssize_t n;

		size = size < sizeof(sent) - in ? size : sizeof(sent) - in;
		outq_put(&queue, slice_of(sent + in, size));
		in += size;
		n = outq_flush(&queue, &wire);
		assert_true(n >= 0);
		size = random_next(50000);
		n = read(fds[1], got + out, size < sizeof(got) - out ? size : sizeof(got) - out);
		out += n > 0 ? (size_t)n : 0;
		assert_true(queue.bytes <= in - out);
	}
	assert_memory_equal(sent, got, sizeof(sent));
	assert_int_equal(queue.bytes, 0);
	assert_true(list_is_empty(&queue.segments));
	wire_close(&wire);
	close(fds[1]);
}

/* SEC-26: a single peer gets no more than its share of a turn. */
static void outq_flush_is_bounded(void **state)
{
	int wide = 4 << 20, fds[2];
	struct wire wire;
	struct outq queue;
	struct buf large = { 0 };
	struct buf none = { 0 };

	make_pair(fds);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &wide, sizeof(wide));
	wire_init(&wire, loop, fds[0], &closing_ops);
	outq_init(&queue);
	buf_reserve(&large, 2 << 20);
	memset(large.data, 'x', 2 << 20);
	large.len = 2 << 20;
	outq_take(&queue, &large, 0);
	outq_take(&queue, &none, 0);
	assert_int_equal(queue.bytes, 2 << 20);
	assert_in_range(outq_flush(&queue, &wire), 1, OUTQ_TURN_BYTES);
	assert_true(queue.bytes >= (2 << 20) - OUTQ_TURN_BYTES);
	close(fds[1]);
	assert_int_equal(outq_flush(&queue, &wire), WIRE_BROKEN);
	outq_fini(&queue);
	assert_int_equal(queue.bytes, 0);
	assert_int_equal(outq_flush(&queue, &wire), 0);
	wire_close(&wire);
}

/* ---- listeners ---- */

#define CLIENTS 100

static int listen_fd;
static struct sockaddr_in listen_at;
static int clients[CLIENTS];
static int accepted[CLIENTS];
static int accepted_count;
static bool accept_once;

static void on_accept(struct listener *listener, int fd, const struct peer *peer)
{
	assert_int_equal(peer->family, AF_INET);
	assert_int_equal(peer->address[0], 127);
	assert_true(accepted_count < CLIENTS);
	accepted[accepted_count++] = fd;
	if (accept_once)
		listener_fini(listener);
}

static int setup_listener(void **state)
{
	socklen_t size = sizeof(listen_at);

	listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	listen_at = (struct sockaddr_in){ .sin_family = AF_INET };
	listen_at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listen_fd, (struct sockaddr *)&listen_at, sizeof(listen_at)) != 0 ||
	    listen(listen_fd, CLIENTS) != 0 ||
	    getsockname(listen_fd, (struct sockaddr *)&listen_at, &size) != 0)
		return -1;
	accepted_count = 0;
	accept_once = false;
	return setup_frozen(state);
}

static int teardown_listener(void **state)
{
	while (accepted_count > 0)
		close(accepted[--accepted_count]);
	for (int i = 0; i < CLIENTS; i++) {
		if (clients[i] > 0)
			close(clients[i]);
		clients[i] = 0;
	}
	close(listen_fd);
	return teardown(state);
}

static void connect_clients(int count)
{
	for (int i = 0; i < count; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(clients[i], (struct sockaddr *)&listen_at,
					 sizeof(listen_at)),
				 0);
	}
}

static void listener_accepts_in_bursts(void **state)
{
	struct listener listener;
	socklen_t size = sizeof(int);
	int no_delay = 0;

	connect_clients(CLIENTS);
	listener_init(&listener, loop, listen_fd, on_accept);
	loop_turn(loop, false);
	assert_in_range(accepted_count, 1, CLIENTS - 1); /* others run in between */
	for (int i = 0; i < 10; i++)
		loop_turn(loop, false);
	assert_int_equal(accepted_count, CLIENTS);
	assert_true(fcntl(accepted[0], F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(accepted[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(getsockopt(accepted[0], IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
	assert_true(no_delay);
	listener_fini(&listener);
	assert_true(fcntl(listen_fd, F_GETFD) >= 0);
}

/* REL-41: before the listener ends, it accepts the whole backlog at once. */
static void listener_accepts_the_last(void **state)
{
	struct listener listener;

	connect_clients(CLIENTS);
	listener_init(&listener, loop, listen_fd, on_accept);
	listener_accept_waiting(&listener);
	assert_int_equal(accepted_count, CLIENTS);
	listener_accept_waiting(&listener);
	listener_fini(&listener);
}

/* Our end of a TCP connection, set up like an event stream. */
static void open_stream(struct listener *listener, struct wire *wire, uint64_t patience_ms)
{
	connect_clients(1);
	listener_init(listener, loop, listen_fd, on_accept);
	loop_turn(loop, false);
	wire_init(wire, loop, dup(accepted[0]), &closing_ops);
	wire_limit_unsent(wire, patience_ms);
}

/* SEC-26: otherwise the kernel would buffer megabytes that nobody reads. */
static void what_is_not_read_does_not_pile_up_in_the_kernel(void **state)
{
	static char block[65536];
	const struct iovec part = { block, sizeof(block) };
	struct listener listener;
	struct wire wire;
	size_t taken = 0;
	ssize_t n;

	open_stream(&listener, &wire, 60000);
	while ((n = wire_write(&wire, &part, 1)) > 0) {
		taken += (size_t)n;
		usleep(1000); /* if there were window space, it would be used */
	}
	assert_int_equal(n, 0);
	assert_in_range(taken, sizeof(block), 1 << 20);
	wire_close(&wire);
	listener_fini(&listener);
}

/* REL-06: a peer that accepts nothing is dropped before the kernel gives up. */
static void who_takes_nothing_is_gone(void **state)
{
	static char block[65536];
	const struct iovec part = { block, sizeof(block) };
	struct listener listener;
	struct wire wire;
	ssize_t n;

	open_stream(&listener, &wire, 500);
	do {
		n = wire_write(&wire, &part, 1);
	} while (n > 0);
	for (int i = 0; i < 300 && n != WIRE_BROKEN; i++) {
		usleep(100000);
		n = wire_read(&wire, block, sizeof(block));
	}
	assert_int_equal(n, WIRE_BROKEN);
	wire_close(&wire);
	listener_fini(&listener);
}

static void listener_may_end_while_it_accepts(void **state)
{
	struct listener listener;

	accept_once = true;
	connect_clients(3);
	listener_init(&listener, loop, listen_fd, on_accept);
	loop_turn(loop, false);
	loop_turn(loop, false);
	assert_int_equal(accepted_count, 1);
}

/* Opens descriptors until none are left; returns how many. */
static int exhaust_descriptors(int *fds, int size)
{
	int count = 0;

	while (count < size && (fds[count] = dup(STDIN_FILENO)) >= 0)
		count++;
	assert_int_equal(errno, EMFILE);
	return count;
}

static size_t read_log(int fd, char *text, size_t size)
{
	ssize_t n = read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* REL-44 */
static void listener_without_descriptors_pauses_and_goes_on(void **state)
{
	struct rlimit before, low = { 64, 64 };
	struct listener listener;
	char text[4096];
	int fds[64], count, log_pipe[2];

	assert_int_equal(pipe2(log_pipe, O_NONBLOCK | O_CLOEXEC), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	low.rlim_max = before.rlim_max;
	log_set(log_pipe[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	connect_clients(5);
	listener_init(&listener, loop, listen_fd, on_accept);
	setrlimit(RLIMIT_NOFILE, &low);
	count = exhaust_descriptors(fds, 64);
	for (int i = 0; i < 20; i++)
		loop_turn(loop, false);
	assert_int_equal(accepted_count, 0);
	assert_true(read_log(log_pipe[0], text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "accept_paused")); /* once in all these turns */
	assert_null(strstr(strchr(text, '\n') + 1, "accept_paused"));
	/* this one is turned away; the others wait */
	assert_int_equal(read(clients[0], text, 1), 0);
	assert_int_equal(recv(clients[1], text, 1, MSG_DONTWAIT), -1);

	advance(250);
	loop_turn(loop, false);
	/* still no descriptors: the next one is turned away */
	assert_int_equal(read(clients[1], text, 1), 0);
	assert_true(read_log(log_pipe[0], text, sizeof(text)) > 0);

	while (count > 0)
		close(fds[--count]);
	advance(250);
	loop_turn(loop, false);
	assert_int_equal(accepted_count, 3);
	setrlimit(RLIMIT_NOFILE, &before);
	listener_fini(&listener);
	log_set(STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	close(log_pipe[0]);
	close(log_pipe[1]);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
#define FROZEN_TEST(function) cmocka_unit_test_setup_teardown(function, setup_frozen, teardown)
#define LISTENER_TEST(function) \
	cmocka_unit_test_setup_teardown(function, setup_listener, teardown_listener)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(timer_wakes_a_waiting_loop),
		TEST(every_timer_wakes_a_waiting_loop),
		TEST(deadline_begins_when_its_event_came),
		TEST(loop_runs_until_it_is_stopped),
		FROZEN_TEST(timer_is_due_exactly_once_and_not_early),
		FROZEN_TEST(timer_that_runs_starts_anew),
		FROZEN_TEST(stopped_timer_delays_no_other),
		FROZEN_TEST(timer_may_stop_and_start_others_that_are_due),
		FROZEN_TEST(timers_of_many_durations_are_all_due),
		FROZEN_TEST(timer_that_starts_itself_runs_once_a_turn),
		FROZEN_TEST(tasks_run_in_order_and_once),
		FROZEN_TEST(task_may_cancel_one_of_its_round),
		FROZEN_TEST(timers_come_before_tasks),
		FROZEN_TEST(endless_task_starves_nobody),
		FROZEN_TEST(what_cannot_be_watched_is_tried_again),
		FROZEN_TEST(new_refusals_put_nothing_off),
		FROZEN_TEST(deferred_object_lives_to_the_end_of_the_turn),
		FROZEN_TEST(nodes_outlive_the_loop),
		FROZEN_TEST(closed_wire_is_called_no_more),
		FROZEN_TEST(descriptor_number_is_reused),
		FROZEN_TEST(wire_tells_bytes_end_and_break_apart),
		FROZEN_TEST(outq_keeps_every_byte_in_order),
		FROZEN_TEST(outq_flush_is_bounded),
		LISTENER_TEST(listener_accepts_in_bursts),
		LISTENER_TEST(what_is_not_read_does_not_pile_up_in_the_kernel),
		LISTENER_TEST(who_takes_nothing_is_gone),
		LISTENER_TEST(listener_accepts_the_last),
		LISTENER_TEST(listener_may_end_while_it_accepts),
		LISTENER_TEST(listener_without_descriptors_pauses_and_goes_on),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
