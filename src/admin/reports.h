/* SPDX-License-Identifier: Apache-2.0 */
/* The reports: each appends one JSON object. The names of members are a contract with scripts. */
#ifndef MCPGATED_ADMIN_REPORTS_H
#define MCPGATED_ADMIN_REPORTS_H

#include "admin/admin.h"
#include "base/buf.h"

/* Sums over the sessions of one server, and over its requests without one. */
struct server_load {
	size_t sessions;
	size_t asleep; /* of them, without the process that they had */
	size_t calls;
	size_t waiting;
	size_t parked; /* calls of modern clients that their server waits for, or whose result waits for them */
};

/* One for each server, in their order; the caller frees it. */
struct server_load *reports_count_load(const struct admin *admin);

void reports_status(const struct admin *admin, struct buf *out);
void reports_servers(const struct admin *admin, struct buf *out);
void reports_processes(const struct admin *admin, struct buf *out);
void reports_sessions(const struct admin *admin, struct buf *out);
/* All that the status page shows, of processes and sessions the first REPORTS_SNAPSHOT_ROWS, of sessions those that work before the others. */
#define REPORTS_SNAPSHOT_ROWS 200
void reports_snapshot(const struct admin *admin, struct buf *out);
void reports_streams(const struct admin *admin, struct buf *out);
/* Not JSON: obs/metric.h says which text. */
void reports_metrics(const struct admin *admin, bool is_open, struct buf *out);

#endif
