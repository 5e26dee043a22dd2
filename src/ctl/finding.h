/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says: one line for each thing that was looked at. Strangers' texts come out clean. */
#ifndef MCPGATED_CTL_FINDING_H
#define MCPGATED_CTL_FINDING_H

#include "base/check.h"

/* `verdict` is ok or warn, `what` a word for the thing. */
void finding_print(const char *verdict, const char *what, const char *format, ...)
	printf_like(3, 4);
/* The verdict is FAIL; *ill, the first thing that is wrong, becomes `what` if it is NULL. */
void finding_fail(const char **ill, const char *what, const char *format, ...) printf_like(3, 4);

#endif
