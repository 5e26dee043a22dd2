/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what is wrong with a configuration: one line of text each, no line twice. */
#ifndef MCPGATED_CONFIG_PROBLEM_H
#define MCPGATED_CONFIG_PROBLEM_H

#include "base/check.h"
#include "config/config.h"
#include "config/tree.h"

/* After this many the rest is only said to exist. */
#define PROBLEMS_MAX 100

/* Control characters become '?', so that a problem stays one line. */
void problem_add(struct config_problems *problems, const char *format, ...) printf_like(2, 3);
/* With `FILE:LINE:COLUMN: WAY.TO.THE.VALUE: ` in front, as far as they are known. */
void problem_add_at(struct config_problems *problems, const struct tree *value, const char *format,
		    ...) printf_like(3, 4);
/* With `FILE:LINE:COLUMN: ` of the value in front, where it has lines: for a text that names the value itself. */
void problem_add_in(struct config_problems *problems, const struct tree *value, const char *format,
		    ...) printf_like(3, 4);
/* With `FILE:LINE:COLUMN: ` of the value's key in front. */
void problem_add_at_key(struct config_problems *problems, const struct tree *value,
			const char *format, ...) printf_like(3, 4);
/*
 * In the order of lines, and of what was found first at one place: those of the file `first` (NULL: none), of other files by their
 * names, and without a line.
 */
void problems_sort(struct config_problems *problems, const char *first);

#endif
