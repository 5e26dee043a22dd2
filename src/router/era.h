/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of the modern era gets: results, errors and questions of servers of either era, each with what that era
 * wants of it; and its requests, without what a legacy server is not to see. What clients of the legacy era get of modern
 * servers is modern_server.h. bridging.md §2.3, §2.4, §2.5.
 */
#ifndef MCPGATED_ROUTER_ERA_H
#define MCPGATED_ROUTER_ERA_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"

struct convert;
struct pool;

/*
 * The request without the members of params that answer what a modern server asked: such a server has not asked. Returns
 * `env` itself if it has none, else the envelope of the changed one, which lives as long as *convert. _meta is
 * upstream/send's. bridging.md §2.3.3 (e)
 */
const struct envelope *era_request(struct convert *convert, const struct envelope *env);

/*
 * Appends a legacy server's result as a modern client gets it: it says that it is complete, who the server is, and, where
 * that is asked for, that it is not to be kept. `info`: the server's serverInfo as JSON text, or empty. MOD-RES-01, -03,
 * MOD-META-03, bridging.md §2.3.5
 */
void era_append_result(struct buf *out, const struct method *method, struct slice result,
		       struct slice info);
/*
 * The same of a plain result (envelope.is_plain_result), written on one line, as parts. They are borrowed from the result and
 * `info`. Returns how many there are.
 */
#define ERA_PARTS_MAX 6
size_t era_split_plain_result(const struct method *method, struct slice result, struct slice info,
			      struct slice parts[ERA_PARTS_MAX]) must_check;
/*
 * Appends a modern server's result as a modern client gets it: what every result has to say is added, if it is missing.
 *
 * state       unless it is empty, the requestState in place of the server's (JSON text)
 * is_private  it is for this client alone, whatever the server says
 *
 * bridging.md §2.4, BACK-MSG-05, MOD-RES-04
 */
void era_append_passed_result(struct buf *out, const struct method *method, struct slice result,
			      struct slice info, struct slice state, bool is_private);
/*
 * Appends what a modern server says of a task, a result or the params of a notification, as a modern client gets it.
 *
 * kind  the resultType; NULL: params, which have neither that nor _meta
 * id    JSON text, in place of the server's; empty: none is said
 *
 * MOD-TASK-02
 */
void era_append_task(struct buf *out, const char *kind, struct slice result, struct slice info,
		     struct slice id);
/* Appends a legacy server's error as a modern client gets it; *code_r is the code that it has then. RPC-05, MOD-RES-06 */
void era_append_error(struct buf *out, const struct method *method, struct slice error,
		      int *code_r);
/* The same for a modern server's error. */
void era_append_passed_error(struct buf *out, struct slice error, int *code_r);
/*
 * Appends, as one more member of inputRequests, a server's request as a modern client gets it. `message` is that of the
 * legacy era. MOD-MRTR-02, bridging.md §2.3.3 (g)
 */
void era_append_input_request(struct buf *out, struct slice key, struct slice message);
/* Appends the DiscoverResult of a pool whose server is known. MOD-DISC-01, -02 */
void era_append_discovery(struct buf *out, const struct pool *pool);
/* The serverInfo in a response to initialize: JSON text; or empty. */
struct slice era_server_info(struct slice response);

#endif
