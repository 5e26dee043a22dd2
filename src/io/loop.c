/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent handles descriptors and waiting; timers, tasks and deferred frees are our own. A timer
 * queue holds timers of one duration, in the order of their start and therefore of their expiry:
 * only its first timer needs a libevent timer. That one only wakes the loop. It may fire early (if
 * the first timer was stopped) but never late; our clock, read once per turn, decides what is due.
 */
#include "io/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/mem.h"
#include "obs/log.h"

/* Rounds of tasks per turn: tasks that keep scheduling tasks must not starve the descriptors. */
#define TASK_ROUNDS_MAX 8
/* A descriptor that has more to read after so long leaves it for the next turn. */
#define TURN_LONG_MS 3
#define REFUSED_PAUSE_MS 100
#define CONTINUE_STEPS 32

struct timer_queue {
	struct timer_queue *next;
	struct loop *loop;
	uint64_t duration_ms;
	struct list timers;
	struct event event;
	bool is_armed;
};

struct garbage {
	void **items;
	size_t count, size;
};

/* Folded with a function that returns a smaller member at the same offset, gcc warns of an overflow. */
#if __has_attribute(no_icf)
__attribute__((no_icf))
#endif
char *
loop_buffer(struct loop *loop);

struct loop {
	struct event_base *base;
	struct timer_queue *queues;
	struct list tasks;
	struct garbage garbage; /* of this turn */
	struct garbage kept;
	bool is_garbage_kept;
	struct watch **refused; /* the kernel had no resources for them; retried indefinitely */
	size_t refused_count;
	size_t refused_size;
	struct timer refused_timer;
	bool is_stopped;
	uint64_t turn_began_ms; /* 0: nothing has been done in it yet */
	uint64_t longest_turn_ms;
	char buffer[LOOP_BUFFER_BYTES];
};

static void loop_on_refused_timer(struct timer *timer);

/*
 * libevent prints to stderr when the kernel refuses to watch a descriptor; it also reports that as
 * an error.
 */
static void on_library_log(int severity, const char *text)
{
	if (severity >= EVENT_LOG_ERR)
		LOG(LOOP_FAILED, LOG_STR("error", text));
}

struct loop *loop_new(struct error *err)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;
	struct loop *loop;

	event_set_log_callback(on_library_log);
	if (config != NULL) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (base == NULL) {
		error_set(err, ERROR_SYSTEM, "cannot create an event loop");
		return NULL;
	}
	loop = mem_zalloc(sizeof(*loop));
	loop->base = base;
	list_init(&loop->tasks);
	timer_init(&loop->refused_timer, loop_on_refused_timer);
	return loop;
}

static void garbage_add(struct garbage *garbage, void *p)
{
	if (garbage->count == garbage->size) {
		garbage->size = garbage->size > 0 ? garbage->size * 2 : 64;
		garbage->items = mem_resize(garbage->items, garbage->size * sizeof(void *));
	}
	garbage->items[garbage->count++] = p;
}

static void garbage_collect(struct garbage *garbage)
{
	for (size_t i = 0; i < garbage->count; i++)
		free(garbage->items[i]);
	garbage->count = 0;
}

void loop_free(struct loop **loop)
{
	struct loop *l = *loop;

	if (l == NULL)
		return;
	LIST_FOREACH_SAFE(node, &l->tasks)
		list_remove(node);
	while (l->queues != NULL) {
		struct timer_queue *queue = l->queues;

		LIST_FOREACH_SAFE(node, &queue->timers)
			list_remove(node);
		l->queues = queue->next;
		event_del(&queue->event);
		free(queue);
	}
	garbage_collect(&l->garbage);
	garbage_collect(&l->kept);
	free(l->garbage.items);
	free(l->kept.items);
	free(l->refused);
	event_base_free(l->base);
	free(l);
	*loop = NULL;
}

char *loop_buffer(struct loop *loop)
{
	return loop->buffer;
}

void loop_defer_free(struct loop *loop, void *p)
{
	garbage_add(loop->is_garbage_kept ? &loop->kept : &loop->garbage, p);
}

void loop_keep_garbage(struct loop *loop, bool is_kept)
{
	loop->is_garbage_kept = is_kept;
	while (!is_kept && loop->kept.count > 0)
		garbage_add(&loop->garbage, loop->kept.items[--loop->kept.count]);
}

void loop_free_with_turn(struct loop *loop, void *p)
{
	garbage_add(&loop->garbage, p);
}

/* Tasks scheduled during a round run in the next round; in the next turn, if this one is long. */
static void loop_run_tasks(struct loop *loop)
{
	for (int round = 0; round < TASK_ROUNDS_MAX && !list_is_empty(&loop->tasks); round++) {
		if (round > 0 && loop_turn_is_long(loop))
			return;
		struct list now;

		list_init(&now);
		list_splice(&now, &loop->tasks);
		LIST_DRAIN(struct task, task, &now, link) {
			list_remove(&task->link);
			task->run(task);
		}
	}
}

static void timer_queue_arm(struct timer_queue *queue)
{
	const struct timer *first = container_of(queue->timers.next, struct timer, link);
	uint64_t now_ms = clock_now_ms();
	uint64_t wait_ms = first->due_ms > now_ms ? first->due_ms - now_ms : 0;
	struct timeval wait = { (time_t)(wait_ms / 1000), (suseconds_t)(wait_ms % 1000 * 1000) };

	CHECK(!queue->is_armed && !list_is_empty(&queue->timers));
	queue->is_armed = true;
	event_add(&queue->event, &wait);
}

/* On the list `due`, timers can still be stopped or restarted by those that run before them. */
static void loop_run_timers(struct loop *loop)
{
	const uint64_t now_ms = clock_now_ms();
	struct list due;

	list_init(&due);
	for (struct timer_queue *queue = loop->queues; queue != NULL; queue = queue->next) {
		LIST_EACH_SAFE(struct timer, timer, &queue->timers, link) {
			if (timer->due_ms > now_ms)
				break;
			list_move(&due, &timer->link);
		}
		if (!list_is_empty(&queue->timers) && !queue->is_armed)
			timer_queue_arm(queue);
	}
	LIST_DRAIN(struct timer, timer, &due, link) {
		CHECK(timer->due_ms <= clock_now_ms());
		list_remove(&timer->link);
		timer->on_due(timer);
	}
}

void loop_turn(struct loop *loop, bool may_wait)
{
	bool waits = may_wait && list_is_empty(&loop->tasks);

	event_base_loop(loop->base, EVLOOP_ONCE | (waits ? 0 : EVLOOP_NONBLOCK));
	clock_update();
	if (loop->turn_began_ms == 0)
		loop->turn_began_ms = clock_now_ms();
	loop_run_timers(loop);
	loop_run_tasks(loop);
	garbage_collect(&loop->garbage);
	clock_update();
	if (clock_now_ms() - loop->turn_began_ms > loop->longest_turn_ms)
		loop->longest_turn_ms = clock_now_ms() - loop->turn_began_ms;
	loop->turn_began_ms = 0;
}

bool loop_turn_is_long(const struct loop *loop)
{
	clock_update();
	return loop->turn_began_ms != 0 && clock_now_ms() - loop->turn_began_ms >= TURN_LONG_MS;
}

uint64_t loop_longest_turn_ms(const struct loop *loop)
{
	return loop->longest_turn_ms;
}

void loop_run(struct loop *loop)
{
	loop->is_stopped = false;
	clock_update();
	while (!loop->is_stopped)
		loop_turn(loop, true);
}

void loop_stop(struct loop *loop)
{
	loop->is_stopped = true;
}

/* ---- descriptors ---- */

static void watch_on_event(not_used evutil_socket_t fd, not_used short what, void *arg)
{
	struct watch *watch = arg;

	clock_update(); /* the loop may have waited long; deadlines started now count from now */
	if (watch->loop->turn_began_ms == 0)
		watch->loop->turn_began_ms = clock_now_ms();
	watch->on_ready(watch);
}

void watch_init(struct watch *watch, struct loop *loop, int fd, enum watch_kind kind,
		watch_fn *on_ready)
{
	int what = EV_PERSIST | (kind == WATCH_READ ? EV_READ : EV_WRITE);

	CHECK(fd >= 0 && on_ready != NULL);
	watch->loop = loop;
	watch->on_ready = on_ready;
	watch->is_on = false;
	watch->is_refused = false;
	CHECK(event_assign(&watch->event, loop->base, fd, (short)what, watch_on_event, watch) == 0);
}

static void watch_note_refused(struct watch *watch)
{
	struct loop *loop = watch->loop;

	LOG(WATCH_REFUSED, LOG_STR("error", strerror(errno)));
	if (loop->refused_count == loop->refused_size) {
		loop->refused_size = loop->refused_size > 0 ? loop->refused_size * 2 : 16;
		loop->refused =
			mem_resize(loop->refused, loop->refused_size * sizeof(struct watch *));
	}
	loop->refused[loop->refused_count++] = watch;
	watch->is_refused = true;
	/*
	 * A running timer is not restarted: further refusals must not postpone the retry of earlier
	 * ones.
	 */
	if (!timer_is_running(&loop->refused_timer))
		timer_start(loop, &loop->refused_timer, REFUSED_PAUSE_MS);
}

static void watch_forget_refused(struct watch *watch)
{
	struct loop *loop = watch->loop;
	size_t i = 0;

	while (loop->refused[i] != watch)
		CHECK(++i < loop->refused_count);
	loop->refused[i] = loop->refused[--loop->refused_count];
	watch->is_refused = false;
}

/* Readiness that arose meanwhile is reported at once: watches are level-triggered. */
static void loop_on_refused_timer(struct timer *timer)
{
	struct loop *loop = container_of(timer, struct loop, refused_timer);

	for (size_t i = loop->refused_count; i-- > 0;)
		if (event_add(&loop->refused[i]->event, NULL) == 0)
			watch_forget_refused(loop->refused[i]);
	if (loop->refused_count > 0)
		timer_start(loop, timer, REFUSED_PAUSE_MS);
}

void watch_set(struct watch *watch, bool on)
{
	if (watch->is_on == on)
		return;
	watch->is_on = on;
	if (!on && watch->is_refused)
		watch_forget_refused(watch);
	else if (!on)
		event_del(&watch->event);
	else if (event_add(&watch->event, NULL) < 0)
		watch_note_refused(watch);
}

/* ---- timers ---- */

/* Only ends the wait; loop_run_timers does the rest. */
static void timer_queue_on_event(not_used evutil_socket_t fd, not_used short what, void *arg)
{
	struct timer_queue *queue = arg;

	CHECK(queue->is_armed);
	queue->is_armed = false;
}

/* Queues are few, and recently used ones are used again: the one found moves to the front. */
static struct timer_queue *timer_queue_get(struct loop *loop, uint64_t duration_ms)
{
	struct timer_queue *queue;

	for (struct timer_queue **at = &loop->queues; *at != NULL; at = &(*at)->next) {
		if ((*at)->duration_ms != duration_ms)
			continue;
		queue = *at;
		*at = queue->next;
		queue->next = loop->queues;
		loop->queues = queue;
		return queue;
	}
	queue = mem_zalloc(sizeof(*queue));
	queue->next = loop->queues;
	queue->loop = loop;
	queue->duration_ms = duration_ms;
	list_init(&queue->timers);
	CHECK(event_assign(&queue->event, loop->base, -1, 0, timer_queue_on_event, queue) == 0);
	loop->queues = queue;
	return queue;
}

void timer_init(struct timer *timer, timer_fn *on_due)
{
	CHECK(on_due != NULL);
	list_init(&timer->link);
	timer->due_ms = 0;
	timer->on_due = on_due;
}

void timer_start(struct loop *loop, struct timer *timer, uint64_t after_ms)
{
	struct timer_queue *queue = timer_queue_get(loop, after_ms);

	CHECK(timer->on_due != NULL && after_ms <= UINT64_MAX - clock_now_ms());
	list_remove(&timer->link);
	timer->due_ms = clock_now_ms() + after_ms;
	list_append(&queue->timers, &timer->link);
	if (!queue->is_armed)
		timer_queue_arm(queue);
}

void timer_continue(struct loop *loop, struct timer *timer, uint64_t whole_ms, uint64_t passed_ms)
{
	uint64_t step_ms = whole_ms / CONTINUE_STEPS + 1;
	uint64_t left_ms = passed_ms < whole_ms ? whole_ms - passed_ms : 0;

	if (passed_ms > 0)
		left_ms = (left_ms + step_ms - 1) / step_ms * step_ms;
	timer_start(loop, timer, left_ms);
}

void timer_stop(struct timer *timer)
{
	list_remove(&timer->link);
}

bool timer_is_running(const struct timer *timer)
{
	return !list_is_empty(&timer->link);
}

/* ---- tasks ---- */

void task_init(struct task *task, task_fn *run)
{
	CHECK(run != NULL);
	list_init(&task->link);
	task->run = run;
}

void task_schedule(struct loop *loop, struct task *task)
{
	if (list_is_empty(&task->link))
		list_append(&loop->tasks, &task->link);
}

void task_cancel(struct task *task)
{
	list_remove(&task->link);
}
