/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: descriptors, timers, and work deferred to the end of the turn. Only this file and
 * its neighbors in io/ know libevent. One loop, one thread.
 *
 * A turn is one iteration of the loop: it dispatches the kernel's events, then runs due timers,
 * then the tasks scheduled meanwhile, then frees what was passed to loop_defer_free. So no object
 * is freed while it is on the call stack, and a task sees everything that happened in the turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "base/error.h"
#include "base/list.h"

struct loop;

struct loop *loop_new(struct error *err) must_check;
void loop_free(struct loop **loop);
/* Runs turns until loop_stop. */
void loop_run(struct loop *loop);
/* Runs one turn. If may_wait, it blocks until the next event. For tests and loop_run. */
void loop_turn(struct loop *loop, bool may_wait);
void loop_stop(struct loop *loop);
/*
 * Whether this turn has lasted so long that others must have theirs: who has more to read does it in
 * the next one. Reads the clock.
 */
bool loop_turn_is_long(const struct loop *loop);
/* How long the longest turn took so far, without waiting for events, in ms. */
uint64_t loop_longest_turn_ms(const struct loop *loop);

/* A shared buffer of LOOP_BUFFER_BYTES to read into; the next callback may overwrite it. */
#define LOOP_BUFFER_BYTES (64 * 1024)
char *loop_buffer(struct loop *loop);

/* Calls free(p) at the end of the turn; of one in which garbage is no longer kept. */
void loop_defer_free(struct loop *loop, void *p);
/* From now on, or no longer, until something is done that gives way to other turns (io/aside). */
void loop_keep_garbage(struct loop *loop, bool is_kept);
/* Calls free(p) at the end of this turn in any case: for what is large, and in no hands but those of this turn. */
void loop_free_with_turn(struct loop *loop, void *p);

/* ---- descriptors ---- */

struct watch;
typedef void watch_fn(struct watch *watch);
enum watch_kind { WATCH_READ, WATCH_WRITE };

struct watch {
	struct event event;
	struct loop *loop;
	watch_fn *on_ready;
	bool is_on;
	bool is_refused;
};

/*
 * Level-triggered; initially off. If the kernel has no resources to watch the descriptor, this is
 * logged and retried ten times a second as long as the watch is on.
 */
void watch_init(struct watch *watch, struct loop *loop, int fd, enum watch_kind kind,
		watch_fn *on_ready);
void watch_set(struct watch *watch, bool on);

/*
 * ---- timers: those of equal duration share a queue, so starting and stopping is nearly free ----
 */

struct timer;
typedef void timer_fn(struct timer *timer);

struct timer {
	struct list link;
	uint64_t due_ms;
	timer_fn *on_due;
};

void timer_init(struct timer *timer, timer_fn *on_due);
/* Fires once, `after_ms` from now; a running timer is restarted. Expects few distinct durations. */
void timer_start(struct loop *loop, struct timer *timer, uint64_t after_ms);
/*
 * Fires when `whole_ms` have passed since what began `passed_ms` ago, or up to a 32nd of that later,
 * so that the durations are few: for timers that go on under another configuration, or in another
 * process.
 */
void timer_continue(struct loop *loop, struct timer *timer, uint64_t whole_ms, uint64_t passed_ms);
void timer_stop(struct timer *timer);
bool timer_is_running(const struct timer *timer);

/* ---- work at the end of the turn ---- */

struct task;
typedef void task_fn(struct task *task);

struct task {
	struct list link;
	task_fn *run;
};

void task_init(struct task *task, task_fn *run);
/* Runs once, at the end of the turn; scheduling a scheduled task is a no-op. */
void task_schedule(struct loop *loop, struct task *task);
void task_cancel(struct task *task);
