/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of requests, and progress tokens, by their value: some peers hand back a number as a string,
 * and some have no numbers but floating-point ones. BACK-FRAME-05
 */
#ifndef MCPGATED_JSONRPC_ID_H
#define MCPGATED_JSONRPC_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/* As scan_int, for every way to write an integer: 1.0, 1e0, 10E-1. */
int id_read_integer(struct json value, long long *number_r) must_check;
/*
 * Reads one of our own, which are positive numbers, as a peer hands it back: as any spelling of the
 * number, or as a string of its digits.
 */
int id_read_own(struct json value, uint64_t *id_r) must_check;
/* Whether two values, scanned as valid, are the same. Strings and numbers never are. */
bool id_is_same(struct slice left, struct slice right);

#endif
