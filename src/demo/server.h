/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the server, shared by dispatch, tools, resources and jobs. Initialized and freed by
 * demo.c.
 */
#ifndef MCPGATED_DEMO_SERVER_H
#define MCPGATED_DEMO_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/list.h"

/* The features of an MCP revision; rows of a table in dispatch.c. */
struct revision {
	const char *name;
	bool batches;              /* arrays of messages are accepted */
	bool completions;          /* has the completions capability */
	bool progress_has_message; /* in addition to numbers */
	bool structured;           /* tools have outputSchema and structuredContent */
};

struct server {
	const struct revision *revision; /* NULL before initialize */
	json_t *client;                  /* the client's capabilities */
	int log_level;                   /* the lowest level that is sent (mcp/level.h) */
	json_int_t counter;              /* the resource that changes */
	bool is_counter_watched;
	struct list jobs; /* demo/job.h */
	size_t job_count;
	json_int_t last_request_id;
};

#endif
