/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for modern clients: results, errors and questions of servers of either era, with what
 * the modern era requires; and their requests, without what a legacy server must not see. What
 * legacy clients get from modern servers is in modern_server.h. bridging.md §2.3, §2.4, §2.5.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"

struct convert;
struct pool;

/*
 * The request without the members of params that answer a modern server's questions, which a legacy
 * server has not asked. Returns `env` itself if there are none, else the envelope of the changed
 * request, which lives as long as *convert. _meta is left to upstream/send. bridging.md §2.3.3 (e)
 */
const struct envelope *era_request(struct convert *convert, const struct envelope *env);

/*
 * Appends a legacy server's result as a modern client gets it: marked complete, naming the server
 * and, where required, marked as not cacheable. `info`: the server's serverInfo as JSON text, or
 * empty. MOD-RES-01, -03, MOD-META-03, bridging.md §2.3.5
 */
void era_append_result(struct buf *out, const struct method *method, struct slice result,
		       struct slice info);
/*
 * The same for a plain result (envelope.is_plain_result) on one line, as parts borrowed from the
 * result and `info`. Returns the number of parts.
 */
#define ERA_PARTS_MAX 6
size_t era_split_plain_result(const struct method *method, struct slice result, struct slice info,
			      struct slice parts[ERA_PARTS_MAX]) must_check;
/*
 * Appends a modern server's result as a modern client gets it: adds the members that every result
 * must have, if they are missing.
 *
 * state       if not empty, replaces the server's requestState (JSON text)
 * is_private  the result is for this client alone, whatever the server says
 *
 * bridging.md §2.4, BACK-MSG-05, MOD-RES-04
 */
void era_append_passed_result(struct buf *out, const struct method *method, struct slice result,
			      struct slice info, struct slice state, bool is_private);
/*
 * The same for a result that only needs additions, as parts: slices of the message and of `info`, both
 * borrowed. Returns the number of parts; 0: the result has to be rewritten.
 *
 * env  the modern server's response: a result without raw line breaks
 */
size_t era_split_passed_result(const struct method *method, const struct envelope *env,
			       struct slice info, bool is_private,
			       struct slice parts[ERA_PARTS_MAX]) must_check;
/*
 * Appends a modern server's statement about a task (a result, or the params of a notification) as a
 * modern client gets it.
 *
 * kind  the resultType; NULL: these are params, which have neither it nor _meta
 * id    JSON text that replaces the server's id; empty: there is no id
 *
 * MOD-TASK-02
 */
void era_append_task(struct buf *out, const char *kind, struct slice result, struct slice info,
		     struct slice id);
/*
 * Appends a legacy server's error as a modern client gets it, with the code *code_r. RPC-05,
 * MOD-RES-06
 */
void era_append_error(struct buf *out, const struct method *method, struct slice error,
		      int *code_r);
/* The same for a modern server's error. */
void era_append_passed_error(struct buf *out, struct slice error, int *code_r);
/*
 * Appends a server's request as a member of inputRequests, as a modern client gets it. `message` is
 * a legacy-era message. MOD-MRTR-02, bridging.md §2.3.3 (g)
 */
void era_append_input_request(struct buf *out, struct slice key, struct slice message);
/* Appends the DiscoverResult of a pool whose server is known. MOD-DISC-01, -02 */
void era_append_discovery(struct buf *out, const struct pool *pool);
/* The serverInfo in a response to initialize, as JSON text; or empty. */
struct slice era_server_info(struct slice response);

/* ---- task extension ---- */

/*
 * The modern era's extension io.modelcontextprotocol/tasks (SEP-2663) in the capabilities of
 * clients and servers. It is never announced across eras, nor is the capability `tasks` of
 * 2025-11-25, which is a different protocol. bridging.md §2.5, MOD-TASK-01
 */

/* Whether these capabilities (JSON text) include it. */
bool task_extension_is_declared(struct slice capabilities);
/* Appends the object `extensions` (JSON text) without it. */
void task_extension_append_others(struct buf *out, struct slice extensions);
/* Appends capabilities, an object that may have `extensions`, without it and without `tasks`. */
void task_extension_append_without(struct buf *out, struct slice capabilities);

/* ---- what a server offers ---- */

/*
 * A server's answer to initialize: its capabilities, and those that can be shared. bridging.md
 * §1.3, UTIL-LIST-01.
 */

struct server_capabilities {
	unsigned int offers; /* enum offer */
	unsigned int tells;  /* enum offer: the lists whose changes it reports */
};

/* `result` of its answer to initialize, JSON text; of a modern server, the equivalent. */
void server_capabilities_read(struct server_capabilities *capabilities, struct slice result,
			      bool is_modern);
/*
 * The response with this result for clients that share processes: without `tasks` of 2025-11-25 and,
 * unless they are of one principal, without `logging`.
 */
struct msg *server_capabilities_share(struct slice result, bool has_logging);
