/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of tools of a server that one session has for itself, for the gateway's own use: its client asks the server as it
 * likes. It is fetched when it is needed, as a call of the session, and kept until the server tells of a change or is another
 * process; that of one that tells of none for 5 s. Shared servers have list_cache.h.
 */
#ifndef MCPGATED_ROUTER_OWN_TOOLS_H
#define MCPGATED_ROUTER_OWN_TOOLS_H

#include "jsonrpc/scan.h"
#include "router/list_cache.h"

struct call;
struct client;
struct own_tools;

/* As list_cache_find_tool, of one who is strict. */
enum listed_tool own_tools_find(const struct client *client, struct json name,
				struct listed_entry *entry_r);
/*
 * A linked call, which nobody hears of, waits for the list: it ends with any response when the list is there, or fails. It is
 * fetched once for all that wait.
 */
void own_tools_await(struct call *call, const struct envelope *env);
/* The session has ended, and its calls have before. Accepts a pointer to NULL; sets it to NULL. */
void own_tools_free(struct own_tools **tools);

#endif
