/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts a process that found a bug in itself. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *cond, const char *file, int line, const char *func)
{
	fprintf(stderr, "mcpgated: bug: check failed: %s (%s:%d, %s)\n", cond, file, line, func);
	abort();
}
