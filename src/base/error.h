/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why an operation failed, for the caller to act on: a kind to branch on, and a text. The text is
 * written once, where the cause is known, and logged or sent once, where the consequence is.
 */
#pragma once

#include "base/check.h"

enum error_kind {
	ERROR_NONE = 0,
	ERROR_SYNTAX,  /* not well-formed (JSON, HTTP, YAML) */
	ERROR_INVALID, /* well-formed, but not allowed here */
	ERROR_LIMIT,   /* exceeds a size, depth or count */
	ERROR_SYSTEM,  /* a system call failed; the text names it and the errno */
	ERROR_BUSY,    /* no capacity at the moment; may be retried */
};

struct error {
	enum error_kind kind;
	char text[400];
};

/*
 * Fills *err and returns -1, so that callers can write `return error_set(err, …)`. A text that is
 * too long is truncated. err may be NULL: its caller does not ask why. So may that of each function
 * that only passes it on; those that act on it say so.
 */
int error_set(struct error *err, enum error_kind kind, const char *format, ...) printf_like(3, 4);
/* Like error_set with ERROR_SYSTEM; appends ": " and the text of errno. */
int error_set_errno(struct error *err, const char *format, ...) printf_like(2, 3);
