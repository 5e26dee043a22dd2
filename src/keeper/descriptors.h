/* SPDX-License-Identifier: Apache-2.0 */
/* Handling of descriptors that the process did not open itself. */
#ifndef MCPGATED_KEEPER_DESCRIPTORS_H
#define MCPGATED_KEEPER_DESCRIPTORS_H

#include <stddef.h>

#include "base/check.h"

/*
 * Opens the null device where 0, 1 or 2 is closed, so that none of our descriptors gets these
 * numbers.
 */
void descriptors_fill_standard(void);
/*
 * Marks everything from 3 on close-on-exec: what the daemon was started with is not for children.
 */
void descriptors_set_cloexec(void);
/*
 * Makes fds[i] descriptor i, kept open across exec, for each i; closes i where fds[i] is -1, and
 * everything from `count` on. Overwrites fds. Returns 0, or -1 if there are not enough descriptors.
 */
int descriptors_arrange(int *fds, size_t count) must_check;
/* Closes everything from `first` on; async-signal-safe. */
void descriptors_close_from(unsigned int first);

#endif
