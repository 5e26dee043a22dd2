/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modern era's extension io.modelcontextprotocol/tasks (SEP-2663) in the capabilities of
 * clients and servers. It is never announced across eras, nor is the capability `tasks` of
 * 2025-11-25, which is a different protocol. bridging.md §2.5, MOD-TASK-01
 */
#ifndef MCPGATED_ROUTER_TASK_EXTENSION_H
#define MCPGATED_ROUTER_TASK_EXTENSION_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/* Whether these capabilities (JSON text) include it. */
bool task_extension_is_declared(struct slice capabilities);
/* Appends the object `extensions` (JSON text) without it. */
void task_extension_append_others(struct buf *out, struct slice extensions);
/* Appends capabilities, an object that may have `extensions`, without it and without `tasks`. */
void task_extension_append_without(struct buf *out, struct slice capabilities);

#endif
