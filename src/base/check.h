/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that stay on in production, and the few macros that every file wants.
 *
 * CHECK is for bugs of ours alone: it aborts. Nothing that a peer, a child, a file or the kernel
 * can cause may reach it; those get a struct error (base/error.h).
 */
#ifndef MCPGATED_BASE_CHECK_H
#define MCPGATED_BASE_CHECK_H

#include <stddef.h>

#define CHECK(cond) ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__, __func__))
#define must_check __attribute__((warn_unused_result))
#define printf_like(at, first) __attribute__((format(printf, at, first)))
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* The struct of type `type` whose member `member` pointer points to. */
#define container_of(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Prints place and condition to stderr and aborts. */
void check_failed(const char *cond, const char *file, int line, const char *func)
	__attribute__((noreturn, cold));

#endif
