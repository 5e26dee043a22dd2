/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completion: `mcpgatectl complete WORD...` prints the completions of the last word, one per
 * line. The shell scripts in conf/completions contain no knowledge of their own.
 */
#pragma once

#include <getopt.h>
#include <stddef.h>

/*
 * The name of command number i, and the form of its arguments as in the help; NULL: there are no
 * more.
 */
typedef const char *complete_command_fn(size_t i, const char **arguments_r);

/* Value number i of this option; NULL: there are no more, or any value is allowed. */
typedef const char *complete_value_fn(const char *option, size_t i);

struct complete_forms {
	complete_command_fn *command;
	complete_value_fn *value;
	const struct option *options;
};

/*
 * words: what follows `mcpgatectl complete`; the last one is being typed. The names of servers come
 * from the daemon.
 */
void complete_print(const struct complete_forms *forms, char *const *words, int count);
