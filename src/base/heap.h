/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the C library's heap keeps memory that was freed. Large messages come and go: asking the kernel for their memory each
 * time anew, page by page, costs more than all copying of them. So what is freed stays, and what nobody has used for a
 * while goes back, be it at the heap's end or between what is still used.
 */
#ifndef MCPGATED_BASE_HEAP_H
#define MCPGATED_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#define HEAP_LOOK_MS 10000 /* how often heap_give_back is to be called */

struct heap {
	size_t used; /* as of the last look; all zeros before the first */
	size_t spare;
};

/* From now on what is freed stays. Once, before there is much. */
void heap_keep_freed(void);

/*
 * Gives back what is free, unless that is little, or nothing has changed since the last time. Returns whether it was tried.
 * Takes a millisecond for some ten MiB.
 */
bool heap_give_back(struct heap *heap);

#endif
