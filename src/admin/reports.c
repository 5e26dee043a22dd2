/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over servers, processes and sessions, and writes what it sees. What a server has in flight is
 * counted from its sessions, once for a report.
 */
#include "admin/reports.h"

#include <stdlib.h>

#include "admin/emit.h"
#include "process/child.h"
#include "base/clock.h"
#include "base/mem.h"
#include "router/report.h"

/* Sums over the sessions of one server. */
struct load {
	size_t sessions;
	size_t calls;
	size_t waiting;
};

static struct session *session_at(struct list *node)
{
	return container_of(node, struct session, link);
}

/* One for each server, in their order; the caller frees it. */
static struct load *count_load(const struct admin *admin)
{
	struct load *loads = mem_zalloc((admin->conf.server_count + 1) * sizeof(*loads));

	LIST_FOREACH(node, &admin->conf.router->sessions.sessions) {
		struct session_report report;
		struct load *load;

		report_session(session_at(node), &report);
		load = &loads[report.server - admin->conf.servers];
		load->sessions += session_at(node)->state == SESSION_LIVE;
		load->calls += report.calls;
		load->waiting += report.waiting;
	}
	return loads;
}

static const char *state_of(const struct server *server)
{
	if (server->backoff.failures > 0)
		return "failing";
	return server->count > 0 ? "ready" : "idle";
}

static void emit_quantile(struct buf *out, const char *name,
			  const struct latency_histogram *latency_histogram, unsigned int permille)
{
	uint64_t ms = latency_histogram_quantile_ms(latency_histogram, permille);

	if (latency_histogram->count == 0 || ms == UINT64_MAX)
		emit_null(out, name);
	else
		emit_number(out, name, ms);
}

static void emit_failure(struct buf *out, const struct server *server)
{
	uint64_t now_ms = clock_now_ms();

	emit_number(out, "failures_in_a_row", server->backoff.failures);
	if (server->backoff.retry_at_ms > now_ms)
		emit_number(out, "next_try_ms", server->backoff.retry_at_ms - now_ms);
	else
		emit_null(out, "next_try_ms");
	if (server->stats.failed_at_ms == 0) {
		emit_null(out, "last_failure");
		return;
	}
	emit_open(out, "last_failure", '{');
	emit_number(out, "at_ms", server->stats.failed_at_ms);
	emit_string(out, "error", server->stats.failure);
	emit_close(out, '}');
}

static void emit_server(const struct admin *admin, size_t index, const struct load *load,
			struct buf *out)
{
	const struct server *server = &admin->conf.servers[index];
	const struct server_stats *stats = &server->stats;

	emit_open(out, NULL, '{');
	emit_string(out, "name", server->conf.name);
	emit_string(out, "state", state_of(server));
	emit_text(out, "path", admin->conf.paths[index]);
	emit_string(out, "isolation", isolation_name(server->conf.isolation));
	emit_number(out, "processes", server->count);
	emit_number(out, "processes_max", server->conf.pool_max);
	emit_number(out, "sessions", load->sessions);
	emit_number(out, "calls", load->calls);
	emit_number(out, "waiting", load->waiting);
	emit_number(out, "answered", stats->answered.count);
	emit_number(out, "failed", stats->failed);
	emit_number(out, "answered_last_minute",
		    latency_histogram_last_minute(&stats->answered, clock_now_ms()));
	emit_quantile(out, "p50_ms", &stats->answered, 500);
	emit_quantile(out, "p95_ms", &stats->answered, 950);
	emit_quantile(out, "p99_ms", &stats->answered, 990);
	emit_number(out, "starts", stats->starts);
	emit_number(out, "failures", stats->failures);
	emit_failure(out, server);
	emit_close(out, '}');
}

static void emit_servers(const struct admin *admin, struct buf *out)
{
	struct load *loads = count_load(admin);

	emit_open(out, "servers", '[');
	for (size_t i = 0; i < admin->conf.server_count; i++)
		emit_server(admin, i, &loads[i], out);
	emit_close(out, ']');
	free(loads);
}

void reports_servers(const struct admin *admin, struct buf *out)
{
	emit_open(out, NULL, '{');
	emit_servers(admin, out);
	emit_close(out, '}');
}

void reports_status(const struct admin *admin, struct buf *out)
{
	const struct router *router = admin->conf.router;
	size_t processes = 0;

	for (size_t i = 0; i < admin->conf.server_count; i++)
		processes += admin->conf.servers[i].count;
	emit_open(out, NULL, '{');
	emit_string(out, "version", admin->conf.version);
	emit_string(out, "state", router->is_draining ? "draining" : "serving");
	emit_number(out, "uptime_ms", clock_now_ms() - admin->started_at_ms);
	emit_number(out, "connections", http_server_connection_count(admin->conf.front));
	emit_number(out, "sessions", router->sessions.count);
	emit_number(out, "sessions_max", router->sessions.conf.max_sessions);
	emit_number(out, "processes", processes);
	emit_number(out, "calls", router->calls);
	emit_servers(admin, out);
	emit_close(out, '}');
}

/* ---- processes ---- */

static void emit_session_id(struct buf *out, const struct session *session)
{
	if (session != NULL && session->state == SESSION_LIVE)
		emit_text(out, "session", slice_of(session->id, REPORTS_ID_SHOWN));
	else
		emit_null(out, "session");
}

static void emit_part(struct buf *out, const char *name, struct slice part)
{
	if (part.n > 0)
		emit_text(out, name, part);
	else
		emit_null(out, name);
}

/* In the words of an entry that denies him; nothing about those who were not asked who they are. */
static void emit_principal(struct buf *out, const struct principal *principal)
{
	struct identity identity = { .issuer = { NULL, 0 } };

	if (principal != NULL)
		identity = principal->identity;
	emit_part(out, "issuer", identity.issuer);
	emit_part(out, "subject", identity.subject);
	emit_part(out, "client", identity.client);
}

static void emit_process(const struct child *child, struct buf *out)
{
	struct child_report report;

	report_child(child, &report);
	emit_open(out, NULL, '{');
	emit_string(out, "server", child->server->conf.name);
	emit_number(out, "pid", (uint64_t)child->pid);
	emit_string(out, "state", report.state);
	emit_number(out, "age_ms", clock_now_ms() - child->started_at_ms);
	emit_number(out, "calls", report.calls);
	emit_number(out, "answered", child->answered);
	emit_number(out, "stdin_bytes", child->queue.bytes);
	emit_session_id(out, report.session);
	emit_bool(out, "leased", report.is_leased);
	emit_principal(out, report.principal);
	emit_close(out, '}');
}

void reports_processes(const struct admin *admin, struct buf *out)
{
	emit_open(out, NULL, '{');
	emit_open(out, "processes", '[');
	for (size_t i = 0; i < admin->conf.server_count; i++) {
		LIST_FOREACH(node, &admin->conf.servers[i].children)
			emit_process(container_of(node, struct child, link), out);
	}
	emit_close(out, ']');
	emit_close(out, '}');
}

/* ---- sessions and streams ---- */

static void emit_session(struct session *session, struct buf *out)
{
	struct session_report report;

	report_session(session, &report);
	emit_open(out, NULL, '{');
	emit_session_id(out, session);
	emit_string(out, "server", report.server->conf.name);
	emit_text(out, "revision", report.revision);
	emit_number(out, "age_ms", session_age_ms(session));
	emit_number(out, "idle_ms", session_idle_ms(session));
	emit_number(out, "calls", report.calls);
	emit_number(out, "waiting", report.waiting);
	emit_number(out, "asked", report.server_requests);
	emit_bool(out, "listens", stream_has_reader(&session->standalone));
	if (report.pid > 0)
		emit_number(out, "pid", (uint64_t)report.pid);
	else
		emit_null(out, "pid");
	emit_principal(out, session->principal);
	emit_close(out, '}');
}

void reports_sessions(const struct admin *admin, struct buf *out)
{
	emit_open(out, NULL, '{');
	emit_open(out, "sessions", '[');
	LIST_FOREACH(node, &admin->conf.router->sessions.sessions) {
		if (session_at(node)->state == SESSION_LIVE)
			emit_session(session_at(node), out);
	}
	emit_close(out, ']');
	emit_close(out, '}');
}

static void emit_stream(const struct session *session, const char *server, uint64_t number,
			const struct stream *stream, struct buf *out)
{
	emit_open(out, NULL, '{');
	emit_session_id(out, session);
	emit_string(out, "server", server);
	emit_number(out, "stream", number);
	emit_string(out, "kind", number == 0 ? "session" : "answer");
	emit_bool(out, "is_read", stream_has_reader(stream));
	emit_bool(out, "has_ended", stream->is_ended);
	emit_number(out, "waiting", stream->count);
	emit_number(out, "waiting_bytes", stream->bytes);
	emit_number(out, "kept", stream->kept_count);
	emit_number(out, "kept_bytes", stream->kept_bytes);
	emit_close(out, '}');
}

/* A session's own stream is shown only where something is in it or somebody at it. */
static void emit_streams(struct session *session, struct buf *out)
{
	const struct stream *own = &session->standalone;
	struct session_report report;
	const char *server;

	report_session(session, &report);
	server = report.server->conf.name;
	if (stream_has_reader(own) || own->count > 0 || own->kept_count > 0)
		emit_stream(session, server, 0, own, out);
	LIST_FOREACH(node, &session->replay_store.streams) {
		const struct stored_stream *stored = container_of(node, struct stored_stream, link);

		emit_stream(session, server, stored->number, &stored->stream, out);
	}
}

void reports_streams(const struct admin *admin, struct buf *out)
{
	emit_open(out, NULL, '{');
	emit_open(out, "streams", '[');
	LIST_FOREACH(node, &admin->conf.router->sessions.sessions) {
		if (session_at(node)->state == SESSION_LIVE)
			emit_streams(session_at(node), out);
	}
	emit_close(out, ']');
	emit_close(out, '}');
}
