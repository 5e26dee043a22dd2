/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. Everything that waits uses the monotonic clock, read once per turn of the loop; the wall
 * clock is for log stamps and dates that others wrote.
 */
#ifndef MCPGATED_BASE_CLOCK_H
#define MCPGATED_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds since some start, as of the last clock_update. */
uint64_t clock_now_ms(void);
/* Reads the kernel's clock; the loop calls it at each turn. */
void clock_update(void);
/* Milliseconds since 1970, read now. */
uint64_t clock_wall_ms(void);
/* The same as of clock_now_ms: for what happens often. */
uint64_t clock_wall_now_ms(void);
/* Nanoseconds, read now: since 1970, and of the monotonic clock. For what is told as such alone: everything that waits has the turn's. */
uint64_t clock_wall_ns(void);
uint64_t clock_monotonic_ns(void);
/* Tests: from now on the monotonic clock stands at `now_ms`, and clock_update changes nothing. */
void clock_freeze(uint64_t now_ms);
/* Tests: the monotonic clock jumps ahead by `ms`, and goes on from there. */
void clock_advance(uint64_t ms);

#endif
