/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact comparison and division of JSON numbers in canonical form (jsonrpc/canonical.h) whose
 * exponents have at most 18 digits.
 */
#ifndef MCPGATED_POLICY_DECIMAL_H
#define MCPGATED_POLICY_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Whether the number is an integer, as 1.0 and 1e300 are. */
bool decimal_is_integer(struct slice number);
/* Negative, zero or positive, as a is less than, equal to or greater than b. */
int decimal_compare(struct slice a, struct slice b);
/*
 * Whether it can be used as a divisor: greater than 0, with at most 9 digits that are not zeros at
 * an end, such as 0.01, 2.5 and 1e12.
 */
bool decimal_is_divisor(struct slice number);
/* Whether number is an integer multiple of the divisor. */
bool decimal_is_multiple(struct slice number, struct slice divisor);
/*
 * Reads a nonnegative integer; UINT32_MAX stands for all larger values. Returns false if it is
 * negative or not an integer.
 */
bool decimal_count(struct slice number, uint32_t *count_r);

#endif
