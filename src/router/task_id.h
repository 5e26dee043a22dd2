/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task ids as clients see them where processes are shared, in either era: the server's id, sealed
 * for this server and caller together with the process that works on the task. An id of another
 * caller or server, or an invented one, names no task. The same server id always gives the same
 * client id. MOD-TASK-02, UTIL-TASK-02, bridging.md §1.1 (9), §2.5
 */
#ifndef MCPGATED_ROUTER_TASK_ID_H
#define MCPGATED_ROUTER_TASK_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/*
 * Of a server's id, as written; a longer one is invalid. Sealed, the id still fits into a header
 * field.
 */
#define TASK_ID_BYTES_MAX 1024

struct client;
struct pool;
struct principal;

struct task_id {
	uint64_t child;    /* the process that works on it; numbers are never reused */
	struct slice own;  /* the server's id, a JSON string, stored in `text` */
	struct slice name; /* the client's id, likewise */
	char text[];
};

/* Whether a server may have given a task this id. */
bool task_id_is_fit(struct json own);
/*
 * Appends, as a JSON string, this caller's form of a valid id of a task in this process of the
 * pool.
 */
void task_id_append(struct buf *out, const struct pool *pool, const struct principal *caller,
		    uint64_t child, struct json own);
/*
 * Decodes a client's form of an id; the caller frees the result. NULL: this gateway has not sealed
 * it for this caller and server; err is only for the log.
 */
struct task_id *task_id_open(const struct client *client, struct json name, struct error *err);
/* Logs that `count` of the client's ids were refused, the last one for the reason in err. */
void task_id_log_refused(const struct client *client, size_t count, const struct error *err);
/* Whether the server's id is the same, however it is spelled. */
bool task_id_is_own(const struct task_id *id, struct json own);

#endif
