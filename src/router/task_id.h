/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of tasks as clients know them where processes are shared, of either era: the server's own, sealed for this
 * server and this caller, with the process that works on the task. One of another caller or of another server, or a made-up
 * one, names no task. A task that its server always calls the same has always the same.
 * MOD-TASK-02, UTIL-TASK-02, bridging.md §1.1 (9), §2.5
 */
#ifndef MCPGATED_ROUTER_TASK_ID_H
#define MCPGATED_ROUTER_TASK_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/* Of a server's own, as it is written; a longer one is no id. Sealed it still fits into a field of a head. */
#define TASK_ID_BYTES_MAX 1024

struct client;
struct pool;
struct principal;

struct task_id {
	uint64_t child;    /* whose process works on it; never used again */
	struct slice own;  /* the server's: a JSON string, in what follows, as the next */
	struct slice name; /* the client's */
	char text[];
};

/* Whether a server may have given a task this id. */
bool task_id_is_fit(struct json own);
/* Appends, as a JSON string, this caller's form of the id, which is fit, of a task in this process of the pool. */
void task_id_append(struct buf *out, const struct pool *pool, const struct principal *caller,
		    uint64_t child, struct json own);
/*
 * What a client means by its form; to be freed. NULL: no id that this gateway has sealed for this caller and server; err is
 * for the log alone.
 */
struct task_id *task_id_open(const struct client *client, struct json name, struct error *err);
/* Logs that `count` of its ids were refused, the last one for this. */
void task_id_log_refused(const struct client *client, size_t count, const struct error *err);
/* Whether what the server wrote is the same id, however it is spelled. */
bool task_id_is_own(const struct task_id *id, struct json own);

#endif
