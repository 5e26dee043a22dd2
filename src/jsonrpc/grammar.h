/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pull parser: walks over JSON text token by token and validates it. All of RFC 8259, strict
 * UTF-8, bounded depth. Internal to jsonrpc/; others use scan.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct grammar {
	const char *p; /* the next byte to read; on failure, the offending byte */
	const char *end;
	size_t depth; /* number of containers open at p */
	size_t depth_max;
	enum error_kind fault; /* ERROR_NONE, ERROR_SYNTAX or ERROR_LIMIT */
	const char *fault_text;
	bool has_line_break; /* see struct envelope */
	bool has_separator;
	bool has_escaped_name;
	char closers[SCAN_DEPTH_MAX]; /* for each open container, its closing byte */
};

/* What follows in a container. */
enum grammar_step {
	GRAMMAR_FAILED = -1,
	GRAMMAR_CLOSED = 0, /* the closing bracket has been read */
	GRAMMAR_MEMBER = 1, /* p is at a name (object) or a value (array) */
};

/* Starts at the first byte of `text`, which is borrowed. depth_max is at most SCAN_DEPTH_MAX. */
void grammar_init(struct grammar *grammar, struct slice text, size_t depth_max);
/* At '{' or '[': enters the container. */
enum grammar_step grammar_open(struct grammar *grammar) must_check;
/* After a value in an open container: goes to the next one. */
enum grammar_step grammar_next(struct grammar *grammar) must_check;
/* At a name: reads it and the colon, and stops at the value. Returns 0 or -1. */
int grammar_name(struct grammar *grammar, struct json *name_r) must_check;
/* At a value: reads it with everything in it. Returns 0 or -1. */
int grammar_value(struct grammar *grammar, struct json *value_r) must_check;

/* The type of value that begins with this byte; JSON_ABSENT if none does. */
enum json_type grammar_type(char first);
bool grammar_is_space(char c);
/* Without white space around it. */
struct slice grammar_trim(struct slice text);
