/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shells ask while somebody types: `mcpgatectl complete WORD...` prints what the last word can become, a line each. The
 * scripts for the shells are in conf/completions, and know nothing themselves.
 */
#ifndef MCPGATED_CTL_COMPLETE_H
#define MCPGATED_CTL_COMPLETE_H

#include <getopt.h>
#include <stddef.h>

/* The name of the command number `i`, and the form of its arguments as the help has it; NULL: there are no more. */
typedef const char *complete_command_fn(size_t i, const char **arguments_r);

/* One of the values that the option of this name takes, by number; NULL: there are no more, or anything may be its value. */
typedef const char *complete_value_fn(const char *option, size_t i);

struct complete_forms {
	complete_command_fn *command;
	complete_value_fn *value;
	const struct option *options;
};

/* words: what follows `mcpgatectl complete`; the last one is being typed. Names of servers are asked of the daemon. */
void complete_print(const struct complete_forms *forms, char *const *words, int count);

#endif
