/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of ours does with descriptors that are not its own. */
#ifndef MCPGATED_KEEPER_DESCRIPTORS_H
#define MCPGATED_KEEPER_DESCRIPTORS_H

#include <stddef.h>

/* Opens the null device where 0, 1 or 2 is closed, so that no descriptor of ours gets their numbers. */
void descriptors_fill_standard(void);
/* Marks everything from 3 on close-on-exec: what the daemon was started with is not for the children. */
void descriptors_set_cloexec(void);
/* Closes all but 0, 1, 2 and those in `keep`, which is sorted in place. */
void descriptors_close_except(int *keep, size_t count);
/* Closes everything from `first` on; async-signal-safe. */
void descriptors_close_from(unsigned int first);

#endif
