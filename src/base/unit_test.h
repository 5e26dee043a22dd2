/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: cmocka and the headers that must precede it. Most tests ignore cmocka's `state`
 * parameter, so the warning about unused parameters is off.
 */
#ifndef MCPGATED_BASE_UNIT_TEST_H
#define MCPGATED_BASE_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
