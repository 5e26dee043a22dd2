/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that stay enabled in production, and a few macros used everywhere.
 *
 * CHECK is only for bugs in mcpgated itself: it aborts the process. Nothing that a peer, a child, a
 * file or the kernel can cause may trip it; such failures are reported in a struct error
 * (base/error.h).
 */
#pragma once

#include <stddef.h>

#define CHECK(cond) ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__, __func__))
#define must_check __attribute__((warn_unused_result))
#define not_used __attribute__((unused)) /* before a parameter that only others like it need */
#define printf_like(at, first) __attribute__((format(printf, at, first)))
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* The struct of type `type` that contains `*pointer` as its member `member`. */
#define container_of(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* A state of something that lives: its name in the log, and a bit for each state that may follow. */
struct state_row {
	const char *name;
	unsigned int next;
};

/* Prints the location and the condition to stderr and aborts. */
void check_failed(const char *cond, const char *file, int line, const char *func)
	__attribute__((noreturn, cold));
