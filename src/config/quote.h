/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a text so that YAML reads exactly that text back. */
#ifndef MCPGATED_CONFIG_QUOTE_H
#define MCPGATED_CONFIG_QUOTE_H

#include "base/buf.h"

/*
 * Appends `text`, in double quotes unless it is obviously safe without them. Invalid UTF-8 becomes
 * U+FFFD, since YAML cannot express it.
 */
void quote_append(struct buf *out, const char *text);

#endif
