/* SPDX-License-Identifier: Apache-2.0 */
/* A server as the operator is shown it, for the reports, the metrics and the problems. */
#ifndef MCPGATED_ADMIN_SERVER_VIEW_H
#define MCPGATED_ADMIN_SERVER_VIEW_H

#include "admin/admin.h"

/* Totals over the sessions of one server, and over its requests without a session. */
struct server_load {
	size_t sessions;
	size_t asleep; /* of these, those that have given up their process */
	size_t calls;
	size_t waiting;
	/* calls of modern clients whose server waits for the client, or whose result does */
	size_t parked;
};

/* One per server, in the same order; the caller frees the array. */
struct server_load *server_loads_count(const struct admin *admin);

/* What facts.def says of a server is read from there. */
struct server_view {
	const struct server *server;
	struct slice path;
	const struct server_load *load;
	const struct server_stats *stats;
	const struct call_counts *own; /* NULL: those of all that had its name count */
	const struct latency_histogram *answered;
	const char *state;
	uint64_t now_ms;
};

/* Borrows all three. */
struct server_view server_view_of(const struct server *server, struct slice path,
				  const struct server_load *load);

#endif
