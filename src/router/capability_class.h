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
#include "jsonrpc/msg.h"

struct revision;

/* Appends the class as the capabilities that a child is told: JSON text, "{}" if there are none. */
/* has_extras: with what its client may call as it likes, extensions and experimental ones. */
void capability_class_append(struct buf *out, struct slice capabilities, bool has_extras);
/*
 * The initialize request that the servers of a shared pool are sent: it tells nothing of any one client but the class.
 * The caller has the reference. bridging.md §1.2, §1.5
 */
struct msg *capability_class_initialize(const struct revision *revision, struct slice class);

#endif
