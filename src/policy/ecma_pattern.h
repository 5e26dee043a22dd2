/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions of schemas: ECMA-262 with the flag u, for PCRE2. What remains different: \s takes U+0085 and U+180E for
 * white space, and not U+FEFF; a dot fits U+2028 and U+2029; a group keeps what it held in the round before; properties
 * (\p) have the names that PCRE2 knows.
 */
#ifndef MCPGATED_POLICY_ECMA_PATTERN_H
#define MCPGATED_POLICY_ECMA_PATTERN_H

#include "base/buf.h"

/*
 * Appends an expression as PCRE2 is to read it. NULL, or what it has that ECMA-262 does not have, or means otherwise: a
 * fixed text.
 */
const char *ecma_pattern_translate(struct slice expression, struct buf *out);

#endif
