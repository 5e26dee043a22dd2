/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes and durations of one server's calls, by method and by tool, for /metrics. A call is
 * assigned its series when it begins, and is counted through that pointer afterwards. Input from
 * clients and servers cannot create an unbounded number of series: methods unknown to MCP, and
 * tools without a place, count as `other`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slice.h"
#include "mcp/method.h"
#include "obs/latency_histogram.h"
#include "obs/reason.h"

#define CALL_STATS_TOOLS 64       /* with a series of their own */
#define CALL_STATS_NAME_BYTES 128 /* of a tool; those with longer names get none */
#define CALL_STATS_REFUSALS 128   /* words; more than exist */

/* The outcome of a call; with CALL_FAILED, a reason says why. */
enum call_status {
	CALL_OK,
	CALL_TOOL_ERROR,
	CALL_ERROR,
	CALL_CANCELLED,
	CALL_FAILED,
	CALL_STATUSES
};
const char *call_status_name(enum call_status status);

/* The calls of one method, or of one tool. */
struct call_series {
	struct map_link link; /* of a tool that has a place */
	struct slice method;  /* of mcp/method, or `other` */
	struct slice tool;    /* empty: of no tool */
	uint64_t ended[CALL_STATUSES];
	uint64_t failed[REASON_COUNT]; /* those of CALL_FAILED */
	struct latency_histogram duration;
};

/* All zeros: empty. */
struct call_stats {
	struct call_series
		*methods[METHOD_NUMBERS]; /* NULL: no such call so far; not of tools/call */
	struct call_series *tools[CALL_STATS_TOOLS];
	size_t tool_count;
	struct map by_name;
	struct call_series *other_tools;        /* NULL likewise */
	struct latency_histogram waited;        /* from admission to sending */
	struct latency_histogram first_message; /* from sending to the first message about it */
	struct {
		const char *word; /* a literal */
		uint64_t count;
	} refused[CALL_STATS_REFUSALS];
	size_t refused_count;
};

/* The calls of one server. */
struct call_counts {
	struct latency_histogram answered;
	uint64_t errors; /* answers that are errors, or report that a tool failed */
	uint64_t failed; /* that got our own error instead */
};

/* The series for a call; tool: for tools/call, else empty. Valid until call_stats_fini. */
struct call_series *call_stats_get(struct call_stats *stats, const struct method *method,
				   struct slice tool);
/* Whether there is a free place for a tool. */
bool call_stats_has_room(const struct call_stats *stats);
/* The server has listed this tool: gives it a place, if one is free. */
void call_stats_note_tool(struct call_stats *stats, struct slice tool);
/* Counts a call that has ended. reason: for CALL_FAILED. */
void call_series_end(struct call_series *series, enum call_status status, enum reason reason,
		     uint64_t took_ms, uint64_t now_ms);
/* A request was refused before it became a call. word: a literal; empty counts as `other`. */
void call_stats_note_refusal(struct call_stats *stats, const char *word);
void call_stats_fini(struct call_stats *stats);

/* Calls on_series for each existing series. */
typedef void call_series_fn(const struct call_series *series, void *arg);
void call_stats_visit(const struct call_stats *stats, call_series_fn *on_series, void *arg);
