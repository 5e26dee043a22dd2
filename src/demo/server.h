/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the server, which dispatch, tools, resources and jobs share. demo.c begins and ends it. */
#ifndef MCPGATED_DEMO_SERVER_H
#define MCPGATED_DEMO_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/list.h"

/* What a revision of MCP knows; rows of a table in dispatch.c. */
struct revision {
	const char *name;
	bool batches;              /* arrays of messages are taken apart */
	bool completions;          /* has that capability */
	bool progress_has_message; /* and not only numbers */
	bool structured;           /* tools have outputSchema and structuredContent */
};

struct server {
	const struct revision *revision; /* NULL before initialize */
	json_t *client;                  /* the client's capabilities */
	int log_level;                   /* the least that is sent (mcp/level.h) */
	json_int_t counter;              /* the resource that changes */
	bool is_counter_watched;
	struct list jobs; /* demo/job.h */
	size_t job_count;
	json_int_t last_request_id;
};

#endif
