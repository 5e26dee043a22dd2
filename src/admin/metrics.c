/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text format of Prometheus: the rows of obs/counters.def, what is open now, and the numbers of each
 * server. Names of servers need no escaping (config/rules.c).
 */
#include <stdlib.h>

#include "admin/reports.h"
#include "base/clock.h"
#include "base/mem.h"
#include "obs/counters.h"

static void metric_begin(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP mcpgated_%s %s\n# TYPE mcpgated_%s %s\n", name, help, name, type);
}

static void metric_append(struct buf *out, const char *name, const char *type, const char *help,
			  uint64_t value)
{
	metric_begin(out, name, type, help);
	buf_printf(out, "mcpgated_%s %llu\n", name, (unsigned long long)value);
}

/* ---- of each server ---- */

enum server_metric {
	PROCESSES,
	FAILING,
	FAILED,
	STARTS,
	FAILURES,
	ASLEEP,
	PARKED,
	IN_FLIGHT,
	CONTROLS,
	INVISIBLE,
	REDACTED,
	TOO_HARD
};

static const struct {
	enum server_metric metric;
	const char *name;
	const char *type;
	const char *help;
} server_metrics[] = {
	{ PROCESSES, "server_processes", "gauge", "processes that run" },
	{ FAILING, "server_failing", "gauge", "1 while the server fails to start" },
	{ FAILED, "server_calls_failed_total", "counter",
	  "calls that got an error of the gateway's" },
	{ STARTS, "server_process_starts_total", "counter", "processes started" },
	{ FAILURES, "server_process_failures_total", "counter", "processes that failed" },
	{ ASLEEP, "server_sessions_asleep", "gauge",
	  "sessions whose process was stopped because they did nothing" },
	{ PARKED, "server_calls_parked", "gauge",
	  "calls that wait for what a client without a session was asked" },
	{ IN_FLIGHT, "server_calls_in_flight", "gauge", "calls without an answer so far" },
	{ CONTROLS, "server_controls_sanitized_total", "counter",
	  "control characters and escape sequences taken out of what the server wrote, or marked" },
	{ INVISIBLE, "server_invisible_sanitized_total", "counter",
	  "invisible characters taken out of what the server wrote, or marked" },
	{ REDACTED, "server_redacted_total", "counter",
	  "places in what the server wrote that fit a pattern of redact" },
	{ TOO_HARD, "server_redacted_whole_total", "counter",
	  "strings replaced as a whole because a pattern of redact took too long" },
};

static uint64_t value_of(enum server_metric metric, const struct server *server,
			 const struct server_load *load)
{
	switch (metric) {
	case PROCESSES:
		return server->count;
	case FAILING:
		return server->backoff.failures > 0;
	case FAILED:
		return server->stats.failed;
	case STARTS:
		return server->stats.starts;
	case FAILURES:
		return server->stats.failures;
	case ASLEEP:
		return load->asleep;
	case PARKED:
		return load->parked;
	case CONTROLS:
		return server->stats.sanitized.controls;
	case INVISIBLE:
		return server->stats.sanitized.invisible;
	case REDACTED:
		return server->stats.redacted.found;
	case TOO_HARD:
		return server->stats.redacted.too_hard;
	case IN_FLIGHT:
		break;
	}
	return load->calls;
}

/* One that is retired has the name of another: a series must not stand there twice. */
static bool is_shown(const struct server *server)
{
	return server->conf.name != NULL && !server->is_retired;
}

static void append_server_metrics(const struct admin *admin, struct buf *out)
{
	struct server_load *loads = reports_count_load(admin);

	for (size_t m = 0; m < ARRAY_LEN(server_metrics); m++) {
		const char *name = server_metrics[m].name;

		metric_begin(out, name, server_metrics[m].type, server_metrics[m].help);
		for (size_t i = 0; i < admin->conf.server_count; i++) {
			const struct server *server = &admin->conf.servers[i];

			if (!is_shown(server))
				continue;
			buf_printf(out, "mcpgated_%s{server=\"%s\"} %llu\n", name,
				   server->conf.name,
				   (unsigned long long)value_of(server_metrics[m].metric, server,
								&loads[i]));
		}
	}
	free(loads);
}

static void append_seconds(struct buf *out, uint64_t ms)
{
	buf_printf(out, "%llu.%03u", (unsigned long long)(ms / 1000), (unsigned int)(ms % 1000));
}

static void append_histogram(const struct server *server, struct buf *out)
{
	const struct latency_histogram *h = &server->stats.answered;
	uint64_t sum = 0;

	for (size_t i = 0; i < LATENCY_HISTOGRAM_BUCKETS; i++) {
		sum += h->buckets[i];
		buf_printf(out, "mcpgated_call_duration_seconds_bucket{server=\"%s\",le=\"",
			   server->conf.name);
		if (latency_histogram_bound_ms(i) == UINT64_MAX)
			buf_append_str(out, "+Inf");
		else
			append_seconds(out, latency_histogram_bound_ms(i));
		buf_printf(out, "\"} %llu\n", (unsigned long long)sum);
	}
	CHECK(sum == h->count);
	buf_printf(out, "mcpgated_call_duration_seconds_sum{server=\"%s\"} ", server->conf.name);
	append_seconds(out, h->sum_ms);
	buf_printf(out, "\nmcpgated_call_duration_seconds_count{server=\"%s\"} %llu\n",
		   server->conf.name, (unsigned long long)h->count);
}

void reports_metrics(const struct admin *admin, struct buf *out)
{
	const struct router *router = admin->conf.router;
	const struct {
		const char *name;
		const char *help;
		uint64_t value;
	} gauges[] = {
		{ "up_seconds", "since the gateway's process has begun",
		  (clock_now_ms() - admin->started_at_ms) / 1000 },
		{ "connections_open", "open connections of clients",
		  http_server_connection_count(admin->conf.front) },
		{ "sessions_open", "open sessions", router->sessions.count },
		{ "calls_in_flight", "calls without an answer so far", router->calls },
		{ "lists_kept_bytes", "lists of pools that are kept for those who ask",
		  router->lists.bytes },
		{ "draining", "1 from the moment the daemon stops", router->is_draining },
	};

	for (enum counter c = 0; c < COUNTER_COUNT; c++) {
		char *name = mem_printf("%s_total", counter_name(c));

		metric_append(out, name, "counter", counter_help(c), counter_get(c));
		free(name);
	}
	for (size_t i = 0; i < ARRAY_LEN(gauges); i++)
		metric_append(out, gauges[i].name, "gauge", gauges[i].help, gauges[i].value);
	append_server_metrics(admin, out);
	metric_begin(out, "call_duration_seconds", "histogram",
		     "from sending a call to a server to its answer");
	for (size_t i = 0; i < admin->conf.server_count; i++)
		if (is_shown(&admin->conf.servers[i]))
			append_histogram(&admin->conf.servers[i], out);
}
