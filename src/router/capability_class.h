/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capability class of a client: those of its capabilities that a server may rely on, in a
 * canonical form. A server decides by them what it offers and whether it asks, so only clients of
 * the same class share children. bridging.md §1.2.
 */
#ifndef MCPGATED_ROUTER_CAPABILITY_CLASS_H
#define MCPGATED_ROUTER_CAPABILITY_CLASS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/msg.h"

struct revision;

/* Appends the class as the capabilities that a child is told: JSON text, "{}" if there are none. */
/*
 * has_extras: includes extensions and experimental capabilities, whose names the client is free to
 * choose.
 */
void capability_class_append(struct buf *out, struct slice capabilities, bool has_extras);
/*
 * The initialize request for the servers of a shared pool: it reveals nothing about a client except
 * the class. The caller owns a reference. bridging.md §1.2, §1.5
 */
struct msg *capability_class_initialize(const struct revision *revision, struct slice class);

#endif
