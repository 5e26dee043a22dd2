/* SPDX-License-Identifier: Apache-2.0 */
/* The reports: each appends one JSON object. The member names are a contract with scripts. */
#pragma once

#include "admin/admin.h"
#include "base/buf.h"

void reports_status(const struct admin *admin, struct buf *out);
/* What somebody should look at: admin/problems. */
void reports_check(const struct admin *admin, struct buf *out);
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
