/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of ours does with descriptors that are not its own. */
#ifndef MCPGATED_KEEPER_DESCRIPTORS_H
#define MCPGATED_KEEPER_DESCRIPTORS_H

#include <stddef.h>

#include "base/check.h"

/* Opens the null device where 0, 1 or 2 is closed, so that no descriptor of ours gets their numbers. */
void descriptors_fill_standard(void);
/* Marks everything from 3 on close-on-exec: what the daemon was started with is not for the children. */
void descriptors_set_cloexec(void);
/*
 * Makes fds[i] descriptor i, open across exec, for each i; where it is -1, i is closed, and so is all from `count` on.
 * Overwrites fds. Returns 0, or -1 if there are not enough descriptors.
 */
int descriptors_arrange(int *fds, size_t count) must_check;
/* Closes everything from `first` on; async-signal-safe. */
void descriptors_close_from(unsigned int first);

#endif
