/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. All timers use the monotonic clock, which is read once per iteration of the event loop. The
 * wall clock is for log timestamps and for dates in other parties' data.
 */
#pragma once

#include <stdint.h>

/* Monotonic milliseconds from an arbitrary origin, as of the last clock_update. */
uint64_t clock_now_ms(void);
/* Reads the kernel's monotonic clock. The event loop calls this once per iteration. */
void clock_update(void);
/* Milliseconds since the Unix epoch, read now. */
uint64_t clock_wall_ms(void);
/* Milliseconds since the Unix epoch as of the last clock_update: cheaper, for frequent callers. */
uint64_t clock_wall_now_ms(void);
/*
 * Nanoseconds, read now: since the Unix epoch, and of the monotonic clock. Only for reported
 * timestamps and durations; timers use clock_now_ms.
 */
uint64_t clock_wall_ns(void);
uint64_t clock_monotonic_ns(void);
/* Tests only: fixes the monotonic clock at `now_ms`; clock_update has no effect from then on. */
void clock_freeze(uint64_t now_ms);
/* Tests only: moves the monotonic clock ahead by `ms`; it continues from there. */
void clock_advance(uint64_t ms);
/* Tests only: somebody sets the wall clock ahead by `ms`, or the machine has slept for so long. */
void clock_step_wall(uint64_t ms);
