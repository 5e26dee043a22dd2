/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include <malloc.h>

#define KEPT_BYTES (1024 * 1024 * 1024) /* close to the largest value that mallopt accepts */
#define SPARE_BYTES ((size_t)1024 * 1024)

void heap_keep_freed(void)
{
	/* mallopt fails under AddressSanitizer, whose allocator has no such options. */
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

bool heap_give_back(struct heap *heap)
{
	struct mallinfo2 info = mallinfo2();
	bool is_tried = info.fordblks > SPARE_BYTES &&
			(info.uordblks != heap->used || info.fordblks != heap->spare);

	if (is_tried) {
		malloc_trim(SPARE_BYTES);
		info = mallinfo2();
	}
	*heap = (struct heap){ .used = info.uordblks, .spare = info.fordblks };
	return is_tried;
}
