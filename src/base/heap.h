/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Controls how long the C library's heap keeps freed memory. Large messages come and go; getting
 * their memory from the kernel again each time, page by page, costs more than all the copying. So
 * freed memory is kept at first, and memory that has been unused for a while is returned to the
 * kernel, both at the end of the heap and between blocks in use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HEAP_LOOK_MS 10000 /* how often to call heap_give_back */

struct heap {
	size_t used; /* as of the last call; all zeros before the first */
	size_t spare;
};

/* Makes the heap keep freed memory. Call once, at startup. */
void heap_keep_freed(void);

/*
 * Returns free memory to the kernel, unless there is little of it or nothing has changed since the
 * last call. Returns whether it tried. Takes about a millisecond per ten MiB.
 */
bool heap_give_back(struct heap *heap);
