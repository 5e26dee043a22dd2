/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header fields that a message needs over HTTP, made from the message itself. Pure functions.
 * MCP 2026-07-28, Streamable HTTP; requirements.md MOD-HDR-01, -02, -04.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/* `value` may be secret: it is only borrowed. */
typedef void message_header_fn(const char *name, const char *value, void *arg);

/*
 * Calls add for each field that a modern request needs: MCP-Protocol-Version, Mcp-Method, and
 * Mcp-Name where the method has one. For all other messages there are none.
 */
void message_headers_add(const struct envelope *env, message_header_fn *add, void *arg);
/*
 * Likewise Mcp-Param-*, for the arguments of a call of a tool with this schema; an argument that is
 * null or not there has none. MOD-HDR-04, -05
 */
void message_headers_add_params(const struct envelope *env, struct slice input_schema,
				message_header_fn *add, void *arg);

/* The revision that a modern request names; empty for all other messages. */
struct slice message_headers_revision(const struct envelope *env);

/*
 * Appends text as the value of a field: as it is if it consists of visible ASCII and inner spaces,
 * and else as =?base64?…?=. MOD-HDR-02
 */
void message_headers_append_value(struct buf *out, struct slice text);
