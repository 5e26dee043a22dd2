/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: cmocka and the headers that must precede it. Most tests ignore cmocka's `state`
 * parameter, so the warning about unused parameters is off. A program whose tests leave descriptors
 * open fails, as one that leaks memory does.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static inline int unit_test_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static inline int unit_tests_run(const char *name, const struct CMUnitTest *tests, size_t count,
				 CMFixtureFunction setup, CMFixtureFunction teardown)
{
	int open = unit_test_descriptors();
	int failed = _cmocka_run_group_tests(name, tests, count, setup, teardown);

	open = unit_test_descriptors() - open;
	if (open != 0)
		printf("# descriptors left open: %d\n", open);
	return failed + (open != 0);
}

#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown) \
	unit_tests_run(#tests, tests, sizeof(tests) / sizeof(tests[0]), setup, teardown)
