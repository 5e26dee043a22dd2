/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool list of a server process that serves one session, for the gateway's own use; the client
 * requests lists from the server as it likes. Fetched on demand, by a call of the session, and kept
 * until the server reports a change or the process is replaced; for 5 s if the server reports no
 * changes. Shared servers have list_cache.h.
 */
#ifndef MCPGATED_ROUTER_OWN_TOOLS_H
#define MCPGATED_ROUTER_OWN_TOOLS_H

#include "jsonrpc/scan.h"
#include "router/list_cache.h"

struct call;
struct client;
struct own_tools;

/* As list_cache_find_tool with is_strict. */
enum listed_tool own_tools_find(const struct client *client, struct json name,
				struct listed_entry *entry_r);
/*
 * A linked call, not yet visible to anyone else, waits for the list: it ends with some response
 * when the list has arrived, or fails. The list is fetched once for all waiting calls.
 */
void own_tools_await(struct call *call, const struct envelope *env);
/* The session has ended, and its calls before it. Accepts a pointer to NULL; sets it to NULL. */
void own_tools_free(struct own_tools **tools);

#endif
