/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong, for whoever decides on it: a kind to decide by and a text, written once where the
 * reason is known and logged or sent once where the consequence is.
 */
#ifndef MCPGATED_BASE_ERROR_H
#define MCPGATED_BASE_ERROR_H

#include "base/check.h"

enum error_kind {
	ERROR_NONE = 0,
	ERROR_SYNTAX,  /* the bytes are not of the language (JSON, HTTP, YAML) */
	ERROR_INVALID, /* of the language, but not allowed here */
	ERROR_LIMIT,   /* over a size, depth or count */
	ERROR_SYSTEM,  /* the kernel refused; the text names call and errno */
	ERROR_BUSY,    /* no capacity now; may be tried again */
};

struct error {
	enum error_kind kind;
	char text[400];
};

/* Fills *err and returns -1, so that callers can write `return error_set(err, …)`. */
int error_set(struct error *err, enum error_kind kind, const char *format, ...) printf_like(3, 4);
/* As error_set with ERROR_SYSTEM; ": " and the text of errno are appended. */
int error_set_errno(struct error *err, const char *format, ...) printf_like(2, 3);

#endif
