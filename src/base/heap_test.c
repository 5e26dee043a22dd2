/* SPDX-License-Identifier: Apache-2.0 */
/* Built without sanitizers, which bring their own heap. Resident memory is read from the kernel. */
#include "base/heap.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unit_test.h"

#define MIB ((size_t)1024 * 1024)

/* Resident bytes of this process. */
static size_t resident(void)
{
	char text[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	unsigned long total, pages;

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_int_equal(sscanf(text, "%lu %lu", &total, &pages), 2);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static char *filled(size_t size)
{
	char *data = malloc(size);

	assert_non_null(data);
	memset(data, 1, size);
	return data;
}

static void what_is_freed_stays_and_then_goes_back(void **state)
{
	size_t before = resident();
	struct heap heap = { 0, 0 };
	char *large = filled(64 * MIB);
	/* so that the free memory is not at the end of the heap */
	char *above = filled(100 * 1000);
	size_t again;

	free(large);
	assert_true(resident() > before + 60 * MIB);
	/* The freed memory is reused. */
	large = filled(64 * MIB);
	again = resident();
	assert_true(again < before + 70 * MIB);
	free(large);
	assert_true(heap_give_back(&heap));
	assert_true(resident() < before + 4 * MIB);
	free(above);
}

static void nothing_is_tried_without_need(void **state)
{
	struct heap heap = { 0, 0 };
	char *some = filled(32 * MIB);
	char *above = filled(100 * 1000);

	free(some);
	assert_true(heap_give_back(&heap));
	/* The C library still counts it as free, but nothing has changed. */
	assert_false(heap_give_back(&heap));
	free(above);
	assert_true(heap_give_back(&heap));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_freed_stays_and_then_goes_back),
		cmocka_unit_test(nothing_is_tried_without_need),
	};

	heap_keep_freed();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
