/* SPDX-License-Identifier: Apache-2.0 */
/* Exact arithmetic with JSON numbers in canonical form (jsonrpc/canonical.h), whose exponents have at most 18 digits. */
#ifndef MCPGATED_POLICY_DECIMAL_H
#define MCPGATED_POLICY_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Whether it has no fraction: 1.0 has none, nor has 1e300. */
bool decimal_is_integer(struct slice number);
/* Below, at or above zero: as a is less than, equal to or greater than b. */
int decimal_compare(struct slice a, struct slice b);
/* Whether it is greater than 0 and has at most 18 digits: it can be divided by. */
bool decimal_is_divisor(struct slice number);
/* Whether number is an integer times the divisor. */
bool decimal_is_multiple(struct slice number, struct slice divisor);
/* A number of things; UINT32_MAX stands for more, too. False: it is negative, or no integer. */
bool decimal_count(struct slice number, uint32_t *count_r);

#endif
