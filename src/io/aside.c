/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two contexts of one thread: the loop's, and that of what is done aside, in which one piece of work follows another. Its
 * stack is made once, and kept.
 */
#include "io/aside.h"

#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include "base/check.h"
#include "base/clock.h"
#include "base/pause.h"
#include "io/loop.h"

#define STACK_BYTES ((size_t)1024 * 1024)
#define GUARD_BYTES ((size_t)64 * 1024) /* below it: nothing may be written there */
#define POINTS 256                      /* so many are passed before the clock is read */
#define SHARE_MS 2                      /* of a turn, also of one that is long already */

static struct {
	struct loop *loop;
	struct list waiting; /* by their rounds */
	struct aside *now;   /* what has begun, and is not done */
	struct task task;    /* goes on with it */
	/* Of what has begun last. */
	uint64_t owner, round;
	char *stack;
	ucontext_t of_loop, of_aside;
	bool is_here;      /* the context is that of what is done aside */
	bool is_in_full;   /* nothing gives way */
	bool has_paused;   /* since aside_open */
	uint64_t away_ns;  /* of what has begun */
	uint64_t since_ms; /* when it went on */
	unsigned int points;
} state;

/* ---- the two contexts ---- */

#ifdef __SANITIZE_ADDRESS__
static const void *loop_bottom; /* of its stack */
static size_t loop_size;

static void switch_to(ucontext_t *from, ucontext_t *to)
{
	void *fake;

	state.is_here = to == &state.of_aside;
	if (state.is_here)
		__sanitizer_start_switch_fiber(&fake, state.stack, STACK_BYTES);
	else
		__sanitizer_start_switch_fiber(&fake, loop_bottom, loop_size);
	CHECK(swapcontext(from, to) == 0);
	if (from == &state.of_aside)
		__sanitizer_finish_switch_fiber(fake, &loop_bottom, &loop_size);
	else
		__sanitizer_finish_switch_fiber(fake, NULL, NULL);
}
#else
static void switch_to(ucontext_t *from, ucontext_t *to)
{
	state.is_here = to == &state.of_aside;
	CHECK(swapcontext(from, to) == 0);
}
#endif

static void aside_main(void)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(NULL, &loop_bottom, &loop_size);
#endif
	for (;;) {
		state.away_ns = 0;
		loop_keep_garbage(state.loop, true);
		state.now->run(state.now);
		CHECK(!pause_is_allowed);
		loop_keep_garbage(state.loop, false);
		state.now = NULL;
		switch_to(&state.of_aside, &state.of_loop);
	}
}

static void make_stack(void)
{
	char *memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(memory != MAP_FAILED && mprotect(memory, GUARD_BYTES, PROT_NONE) == 0);
	state.stack = memory + GUARD_BYTES;
	CHECK(getcontext(&state.of_aside) == 0);
	state.of_aside.uc_stack.ss_sp = state.stack;
	state.of_aside.uc_stack.ss_size = STACK_BYTES;
	makecontext(&state.of_aside, aside_main, 0);
}

static void consider(void)
{
	uint64_t left_ns;

	CHECK(state.is_here && pause_is_allowed);
	if (++state.points % POINTS != 0 || state.is_in_full || !loop_turn_is_long(state.loop) ||
	    clock_now_ms() < state.since_ms + SHARE_MS)
		return;
	pause_is_allowed = false;
	left_ns = clock_monotonic_ns();
	switch_to(&state.of_aside, &state.of_loop);
	state.away_ns += clock_monotonic_ns() - left_ns;
	pause_is_allowed = state.has_paused = true;
}

/* ---- one after the other ---- */

/* Behind those of its round: of the first in which its owner has nothing. */
static void line_up(struct aside *aside, uint64_t owner)
{
	struct list *at = &state.waiting;

	aside->owner = owner;
	aside->round = state.round + (owner == state.owner);
	LIST_EACH(const struct aside, other, &state.waiting, link)
		if (other->owner == owner)
			aside->round = other->round + 1;
	LIST_FOREACH(node, &state.waiting)
		if (container_of(node, struct aside, link)->round <= aside->round)
			at = node;
	list_append(at->next, &aside->link);
}

static void begin_next(void)
{
	state.now = container_of(state.waiting.next, struct aside, link);
	list_remove(&state.now->link);
	state.owner = state.now->owner;
	state.round = state.now->round;
}

/* Up to where something gives way; then in the next turn. */
static void go_on(void)
{
	bool is_long = false;

	CHECK(!state.is_here);
	while (!is_long && aside_is_busy(state.loop)) {
		if (state.now == NULL)
			begin_next();
		state.since_ms = clock_now_ms();
		switch_to(&state.of_loop, &state.of_aside);
		is_long = state.now != NULL || loop_turn_is_long(state.loop);
	}
	if (aside_is_busy(state.loop))
		task_schedule(state.loop, &state.task);
}

static void on_task(not_used struct task *task)
{
	go_on();
}

void aside_init(struct aside *aside, aside_fn *run)
{
	CHECK(run != NULL);
	list_init(&aside->link);
	aside->run = run;
}

void aside_start(struct loop *loop, struct aside *aside, uint64_t owner)
{
	bool is_idle = state.now == NULL && (state.loop == NULL || list_is_empty(&state.waiting));

	CHECK(!aside_is_pending(aside));
	if (state.stack == NULL) {
		make_stack();
		list_init(&state.waiting);
		task_init(&state.task, on_task);
		pause_consider = consider;
	}
	CHECK(is_idle || loop == state.loop);
	state.loop = loop;
	line_up(aside, owner);
	if (is_idle)
		go_on();
}

bool aside_is_pending(const struct aside *aside)
{
	return !list_is_empty(&aside->link) || state.now == aside;
}

void aside_cancel(struct aside *aside)
{
	list_remove(&aside->link);
}

void aside_finish(struct loop *loop)
{
	CHECK(!state.is_here && !state.is_in_full);
	if (state.now == NULL || state.loop != loop)
		return;
	state.is_in_full = true;
	switch_to(&state.of_loop, &state.of_aside);
	state.is_in_full = false;
	CHECK(state.now == NULL);
}

bool aside_is_busy(const struct loop *loop)
{
	return state.loop == loop && (state.now != NULL || !list_is_empty(&state.waiting));
}

bool aside_is_here(void)
{
	return state.is_here;
}

uint64_t aside_away_ns(void)
{
	return state.is_here ? state.away_ns : 0;
}

void aside_open(void)
{
	CHECK(!pause_is_allowed);
	pause_is_allowed = state.is_here;
	state.has_paused = false;
}

bool aside_close(void)
{
	pause_is_allowed = false;
	return state.has_paused;
}
