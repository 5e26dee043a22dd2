/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a long message needs may take longer than a turn of the loop should. It is done aside: on a stack of its own (as a
 * coroutine), one message after the other, and where its code allows that (aside_open) it gives way to the loop now and
 * then; it goes on in the next turn. It waits for nothing else, so it comes to an end. Those that wait have their turns in
 * rounds, in each of which every owner has one: who has many waits longest.
 *
 * What is passed to loop_defer_free from when it has begun stays in memory until it is done. So whoever has given way finds
 * everything that was in their hands, but some of it may have ended, and what is freed at once may be gone: code opens
 * itself only where it holds nothing of that kind, and looks behind it at what may have ended. The configuration is not
 * changed in between: before that, aside_finish.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct loop;

struct aside;
typedef void aside_fn(struct aside *aside);

/* Something to be done aside; embedded in what must be there until it has been done, or is cancelled. */
struct aside {
	struct list link; /* of those that wait */
	uint64_t owner, round;
	aside_fn *run;
};

/* Messages of fewer bytes are not worth it. */
#define ASIDE_BYTES ((size_t)64 * 1024)

void aside_init(struct aside *aside, aside_fn *run);
/*
 * Does it now, up to where it gives way, if nothing else is being done aside; else later, in the next round in which this
 * owner (a number for who has caused it) has nothing yet. It may end itself, and may free what it is embedded in by
 * loop_defer_free.
 */
void aside_start(struct loop *loop, struct aside *aside, uint64_t owner);
/* Whether it waits, or has begun and is not done. */
bool aside_is_pending(const struct aside *aside);
/* If it waits, it is not done. What has begun goes on. */
void aside_cancel(struct aside *aside);
/* Does the rest of what has begun, without giving way: the turn may be long. Not from aside itself. */
void aside_finish(struct loop *loop);
/* Whether anything has begun, or waits. */
bool aside_is_busy(const struct loop *loop);
/* Whether this is being done aside: only what is may open itself. */
bool aside_is_here(void);
/* How long it has given way so far; 0: this is not aside. */
uint64_t aside_away_ns(void);

/* From here on, up to aside_close, every pause_point (base/pause) may give way. Without effect if this is not aside. */
void aside_open(void);
/* Returns whether something gave way since aside_open: then anything may have ended. */
bool aside_close(void);
