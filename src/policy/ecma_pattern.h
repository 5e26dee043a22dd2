/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates regular expressions of schemas from ECMA-262 with the flag u to PCRE2. Remaining
 * differences: \s matches U+0085 and U+180E but not U+FEFF; a dot matches U+2028 and U+2029; a
 * group keeps its capture from the previous iteration; property names (\p) are those of PCRE2.
 */
#ifndef MCPGATED_POLICY_ECMA_PATTERN_H
#define MCPGATED_POLICY_ECMA_PATTERN_H

#include "base/buf.h"

/*
 * Appends the expression in PCRE2 syntax. Returns NULL, or as a fixed text what it contains that
 * ECMA-262 does not have or defines differently.
 */
const char *ecma_pattern_translate(struct slice expression, struct buf *out);

#endif
