/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: cmocka, with what its header wants included before it. No test needs the state that cmocka hands it. */
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
