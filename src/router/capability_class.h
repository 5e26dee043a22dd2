/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capability class of a client: what of its capabilities a server may count on, in one form whoever wrote it.
 * A server decides by them what it offers and whether it asks; children are only shared among clients of one
 * class. bridging.md §1.2.
 */
#ifndef MCPGATED_ROUTER_CAPABILITY_CLASS_H
#define MCPGATED_ROUTER_CAPABILITY_CLASS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/* Appends the class as the capabilities that a child is told: JSON text, "{}" if there are none. */
/* has_extras: with what its client may call as it likes, extensions and experimental ones. */
void capability_class_append(struct buf *out, struct slice capabilities, bool has_extras);

#endif
