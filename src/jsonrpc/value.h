/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and ids by their value, however they are written: some readers know floating-point numbers
 * only, and some peers hand back a number as a string. BACK-FRAME-05
 */
#ifndef MCPGATED_JSONRPC_VALUE_H
#define MCPGATED_JSONRPC_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/* As scan_int, for every way to write an integer: 1.0, 1e0, 10E-1. */
int value_read_integer(struct json value, long long *number_r) must_check;
/*
 * One of our own ids, which are positive numbers, as a peer hands it back: as any spelling of the
 * number, or as a string of its digits. 0: it is none.
 */
uint64_t value_own_id(struct json value);
/* Whether two values, scanned as valid, are the same id. Strings and numbers never are. */
bool value_is_same_id(struct slice left, struct slice right);

#endif
