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

static void metric_gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
	metric_begin(out, name, "gauge", help);
	buf_printf(out, "mcpgated_%s %llu\n", name, (unsigned long long)value);
}

static void append_counters(struct buf *out)
{
	for (enum counter c = 0; c < COUNTER_COUNT; c++) {
		char *name = mem_printf("%s_total", counter_name(c));

		metric_begin(out, name, "counter", counter_help(c));
		buf_printf(out, "mcpgated_%s %llu\n", name, (unsigned long long)counter_get(c));
		free(name);
	}
}

/* ---- of each server ---- */

static uint64_t server_processes(const struct server *server)
{
	return server->count;
}

static uint64_t server_is_failing(const struct server *server)
{
	return server->backoff.failures > 0;
}

static uint64_t server_failed(const struct server *server)
{
	return server->stats.failed;
}

static uint64_t server_starts(const struct server *server)
{
	return server->stats.starts;
}

static uint64_t server_failures(const struct server *server)
{
	return server->stats.failures;
}

static const struct {
	const char *name;
	const char *type;
	const char *help;
	uint64_t (*get)(const struct server *server);
} server_metrics[] = {
	{ "server_processes", "gauge", "processes that run", server_processes },
	{ "server_failing", "gauge", "1 while the server fails to start", server_is_failing },
	{ "server_calls_failed_total", "counter", "calls that got an error of the gateway's",
	  server_failed },
	{ "server_process_starts_total", "counter", "processes started", server_starts },
	{ "server_process_failures_total", "counter", "processes that failed", server_failures },
};

static void append_server_metrics(const struct admin *admin, struct buf *out)
{
	for (size_t m = 0; m < ARRAY_LEN(server_metrics); m++) {
		metric_begin(out, server_metrics[m].name, server_metrics[m].type,
			     server_metrics[m].help);
		for (size_t i = 0; i < admin->conf.server_count; i++) {
			const struct server *server = &admin->conf.servers[i];

			buf_printf(out, "mcpgated_%s{server=\"%s\"} %llu\n", server_metrics[m].name,
				   server->conf.name,
				   (unsigned long long)server_metrics[m].get(server));
		}
	}
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

static void append_in_flight(const struct admin *admin, struct buf *out)
{
	struct server_load *loads = reports_count_load(admin);

	metric_begin(out, "server_calls_in_flight", "gauge", "calls without an answer so far");
	for (size_t i = 0; i < admin->conf.server_count; i++)
		buf_printf(out, "mcpgated_server_calls_in_flight{server=\"%s\"} %zu\n",
			   admin->conf.servers[i].conf.name, loads[i].calls);
	free(loads);
}

void reports_metrics(const struct admin *admin, struct buf *out)
{
	const struct router *router = admin->conf.router;

	append_counters(out);
	metric_gauge(out, "up_seconds", "since the gateway's process has begun",
		     (clock_now_ms() - admin->started_at_ms) / 1000);
	metric_gauge(out, "connections_open", "open connections of clients",
		     http_server_connection_count(admin->conf.front));
	metric_gauge(out, "sessions_open", "open sessions", router->sessions.count);
	metric_gauge(out, "calls_in_flight", "calls without an answer so far", router->calls);
	metric_gauge(out, "lists_kept_bytes", "lists of pools that are kept for those who ask",
		     router->lists.bytes);
	metric_gauge(out, "draining", "1 from the moment the daemon stops", router->is_draining);
	append_server_metrics(admin, out);
	append_in_flight(admin, out);
	metric_begin(out, "call_duration_seconds", "histogram",
		     "from sending a call to a server to its answer");
	for (size_t i = 0; i < admin->conf.server_count; i++)
		append_histogram(&admin->conf.servers[i], out);
}
