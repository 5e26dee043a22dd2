/* SPDX-License-Identifier: Apache-2.0 */
/* URIs of resources, as subscriptions compare them. UTIL-SUBS-01. */
#ifndef MCPGATED_ROUTER_URI_H
#define MCPGATED_ROUTER_URI_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/*
 * The inside of a JSON string with as few escapes as there can be: the same text for all ways to write a URI. Empty if
 * `uri` is no string. It is borrowed from `uri` or stands in `room`, which is empty before and ended by the caller.
 */
struct slice uri_spell(struct json uri, struct buf *room);
/* Whether `uri` is `parent`, or lies below it. Both are spelled. */
bool uri_is_within(struct slice uri, struct slice parent);

#endif
