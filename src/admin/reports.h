/* SPDX-License-Identifier: Apache-2.0 */
/* The reports: each appends one JSON object. The member names are a contract with scripts. */
#ifndef MCPGATED_ADMIN_REPORTS_H
#define MCPGATED_ADMIN_REPORTS_H

#include "admin/admin.h"
#include "base/buf.h"

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
struct server_load *reports_count_load(const struct admin *admin);

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
struct server_view reports_view(const struct server *server, struct slice path,
				const struct server_load *load);

void reports_status(const struct admin *admin, struct buf *out);
void reports_servers(const struct admin *admin, struct buf *out);
void reports_processes(const struct admin *admin, struct buf *out);
void reports_sessions(const struct admin *admin, struct buf *out);
/*
 * The data of the status page, with at most REPORTS_SNAPSHOT_ROWS processes and sessions, busy
 * sessions first.
 */
#define REPORTS_SNAPSHOT_ROWS 200
void reports_snapshot(const struct admin *admin, struct buf *out);
void reports_streams(const struct admin *admin, struct buf *out);
/* Not JSON: obs/metric.h defines the format. */
void reports_metrics(const struct admin *admin, bool is_open, struct buf *out);

#endif
