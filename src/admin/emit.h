/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text, piece by piece. A comma comes by itself where something stands before. */
#ifndef MCPGATED_ADMIN_EMIT_H
#define MCPGATED_ADMIN_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* Each writes a member of this name; NULL: an element of an array, or the outermost value. */
void emit_open(struct buf *out, const char *name, char bracket);
void emit_close(struct buf *out, char bracket);
void emit_text(struct buf *out, const char *name, struct slice text);
void emit_string(struct buf *out, const char *name, const char *text);
void emit_number(struct buf *out, const char *name, uint64_t value);
void emit_bool(struct buf *out, const char *name, bool value);
void emit_null(struct buf *out, const char *name);

#endif
