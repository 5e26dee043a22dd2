/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the problems of a configuration: one line of text each, no line twice. */
#ifndef MCPGATED_CONFIG_PROBLEM_H
#define MCPGATED_CONFIG_PROBLEM_H

#include "base/check.h"
#include "config/config.h"
#include "config/tree.h"

/* Beyond this number, problems are not listed, only mentioned. */
#define PROBLEMS_MAX 100

/* Control characters become '?', so that a problem stays on one line. */
void problem_add(struct config_problems *problems, const char *format, ...) printf_like(2, 3);
/* Prefixes `FILE:LINE:COLUMN: PATH.TO.THE.VALUE: `, as far as they are known. */
void problem_add_at(struct config_problems *problems, const struct tree *value, const char *format,
		    ...) printf_like(3, 4);
/*
 * Prefixes the value's `FILE:LINE:COLUMN: ` if it has lines; for texts that name the value
 * themselves.
 */
void problem_add_in(struct config_problems *problems, const struct tree *value, const char *format,
		    ...) printf_like(3, 4);
/* Prefixes `FILE:LINE:COLUMN: ` of the value's key. */
void problem_add_at_key(struct config_problems *problems, const struct tree *value,
			const char *format, ...) printf_like(3, 4);
/*
 * Sorts by line, keeping the order of problems at the same place: first those of the file `first`
 * (NULL: none), then those of other files by name, then those without a line.
 */
void problems_sort(struct config_problems *problems, const char *first);

/*
 * Where an option of a server stands, `way` being like "sandbox.read": in its entry `at`, or under
 * `defaults`; else the entry.
 */
const struct tree *problem_place(const struct tree *at, const char *way);

#endif
