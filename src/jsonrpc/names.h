/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of one object's members, to tell whether one stands there twice. Cheap for the usual
 * dozen, and never quadratic: a peer may send fifty thousand (SEC-44). For the inside of jsonrpc/.
 */
#ifndef MCPGATED_JSONRPC_NAMES_H
#define MCPGATED_JSONRPC_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define NAMES_FEW 64

struct names {
	struct slice *heap; /* all names, once there are more than NAMES_FEW */
	size_t count;
	size_t cap;    /* of heap */
	uint64_t seen; /* one bit for each kind of name met so far */
	struct slice few[NAMES_FEW];
};

void names_init(struct names *names);
/* Remembers a name (borrowed); true if it is a repetition that could be noticed at once. */
bool names_add(struct names *names, struct slice name);
/* After the last one: finds the repetitions that names_add could not. Changes the order. */
bool names_find_repeated(struct names *names, struct slice *name_r);
void names_fini(struct names *names);

#endif
