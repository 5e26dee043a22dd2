/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the doctor's findings, one line for each check. Foreign texts are escaped. */
#ifndef MCPGATED_CTL_FINDING_H
#define MCPGATED_CTL_FINDING_H

#include "base/check.h"

/* `verdict` is ok or warn; `what` names what was checked. */
void finding_print(const char *verdict, const char *what, const char *format, ...)
	printf_like(3, 4);
/* The verdict is FAIL. *ill is the first failure: it becomes `what` if it is NULL. */
void finding_fail(const char **ill, const char *what, const char *format, ...) printf_like(3, 4);

#endif
