/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over servers, processes and sessions, and writes what it sees. Lists that may be long are
 * written entry by entry.
 */
#include "admin/reports.h"

#include <string.h>

#include "admin/json.h"
#include "admin/problems.h"
#include "base/clock.h"
#include "cluster/cluster.h"
#include "io/ipc.h"
#include "io/peer.h"
#include "obs/audit.h"
#include "obs/counters.h"
#include "process/child.h"
#include "router/router.h"

/* ---- servers ---- */

static uint64_t quantile_of(const struct latency_histogram *answered, unsigned int permille)
{
	return answered->count > 0 ? latency_histogram_quantile_ms(answered, permille) : VALUE_NONE;
}

/* Of the process that is being started for longest. */
static uint64_t starting_ms(const struct server_view *view)
{
	uint64_t longest_ms = 0;

	if (strcmp(view->state, "starting") != 0)
		return VALUE_NONE;
	LIST_EACH(const struct child, child, &view->server->children, link) {
		uint64_t age_ms = view->now_ms - child->started_at_ms;

		longest_ms = age_ms > longest_ms ? age_ms : longest_ms;
	}
	return longest_ms;
}

static uint64_t next_try_ms(const struct server_view *view)
{
	uint64_t retry_at_ms = view->server->backoff.retry_at_ms;

	return retry_at_ms > view->now_ms ? retry_at_ms - view->now_ms : VALUE_NONE;
}

static void add_errors(const struct call_series *series, void *arg)
{
	uint64_t *count = arg;

	*count += series->ended[CALL_ERROR] + series->ended[CALL_TOOL_ERROR];
}

/* Answers that are errors, or say that a tool has failed. */
static uint64_t count_errors(const struct call_stats *calls)
{
	uint64_t count = 0;

	call_stats_visit(calls, add_errors, &count);
	return count;
}

/* Requests that were no calls, by the word that the audit has for it. */
static struct json_t *describe_refusals(const struct call_stats *calls)
{
	struct json_t *list = value_array();

	for (size_t i = 0; i < calls->refused_count; i++) {
		value_append(list, value_pack("{s:s, s:I}", "reason", calls->refused[i].word,
					      "count", (int64_t)calls->refused[i].count));
	}
	return list;
}

/* How many took less than 1, 2, 4 ms and so on; the last is the rest. */
static struct json_t *describe_buckets(const struct latency_histogram *histogram)
{
	struct json_t *list = value_array();

	for (size_t i = 0; i < LATENCY_HISTOGRAM_BUCKETS; i++)
		value_append(list, value_number(histogram->buckets[i]));
	return list;
}

/* NULL: none has failed. */
static struct json_t *describe_failure(const struct server_stats *stats)
{
	return stats->failed_at_ms != 0 ?
		       value_pack("{s:I, s:o?}", "at_ms", (int64_t)stats->failed_at_ms, "error",
				  value_text(slice_str(stats->failure))) :
		       NULL;
}

static struct json_t *describe_server(const struct server_view *view)
{
	struct json_t *value = value_object();

#define FACTS_OF_SERVER
#include "admin/facts.def"
	return value;
}

/* is_of_servers: only those that concern one. */
static struct json_t *describe_problems(const struct problems *problems, bool is_of_servers)
{
	struct json_t *list = value_array();

	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->items[i];
		struct json_t *value;

		if (is_of_servers && problem->server == NULL)
			continue;
		value = value_object();
#define FACTS_OF_PROBLEM
#include "admin/facts.def"
		value_append(list, value);
	}
	return list;
}

/* Sets the member of a report that has them. */
static void set_problems(struct json_t *report, const struct admin *admin, bool is_of_servers)
{
	at_end(problems_fini) struct problems problems = { .count = 0 };

	problems_find(admin, &problems);
	value_set(report, "problems", describe_problems(&problems, is_of_servers));
}

void reports_check(const struct admin *admin, struct buf *out)
{
	at_end(problems_fini) struct problems problems = { .count = 0 };

	problems_find(admin, &problems);
	value_write(value_pack("{s:s, s:o}", "verdict",
			       problem_severity_name(problems_severity(&problems)), "problems",
			       describe_problems(&problems, false)),
		    out);
}

static struct json_t *describe_servers(const struct admin *admin)
{
	at_end(mem_free) struct server_load *loads = server_loads_count(admin);
	struct json_t *list = value_array();

	for (size_t i = 0; i < admin->conf.server_count; i++) {
		const struct server *server = &admin->conf.servers[i];
		struct server_view view;

		if (server->conf.name == NULL)
			continue;
		view = server_view_of(server, admin->conf.paths[i], &loads[i]);
		value_append(list, describe_server(&view));
	}
	return list;
}

void reports_servers(const struct admin *admin, struct buf *out)
{
	const char *origin = admin->conf.origin != NULL ? admin->conf.origin : "";
	struct json_t *value = value_object();
	struct certificate_report certificate;

	value_set_text(value, "origin", slice_str(origin));
	value_set_text(value, "auth", slice_str(admin->conf.auth_mode));
	if (admin->conf.on_certificate != NULL && admin->conf.on_certificate(0, &certificate))
		value_set_text(value, "certificate", slice_str(certificate.file));
	value_set(value, "servers", describe_servers(admin));
	set_problems(value, admin, true);
	value_write(value, out);
}

/* NULL: there is none. */
static struct json_t *describe_audit(const struct audit *audit)
{
	return audit == NULL ?
		       NULL :
		       value_pack("{s:o?, s:b, s:b, s:I, s:I, s:s?}", "to",
				  value_text(slice_str(audit->conf.to)), "works",
				  !audit->is_failing, "required", audit->conf.is_required,
				  "written", (int64_t)audit->written, "lost",
				  (int64_t)counter_get(COUNTER_AUDIT_LOST), "last_error",
				  audit->last_error != 0 ? strerror(audit->last_error) : NULL);
}

/* NULL: there was none in the life of the daemon. */
static const char *upgrade_name(unsigned int outcome)
{
	static const char *const names[] = {
		[IPC_UPGRADE_NONE] = NULL,
		[IPC_UPGRADE_DONE] = "done",
		[IPC_UPGRADE_FAILED] = "failed",
	};

	return outcome < ARRAY_LEN(names) ? names[outcome] : NULL;
}

static struct json_t *describe_status(const struct admin *admin)
{
	const struct router *router = admin->conf.router;
	const struct cluster *cluster = admin->conf.client_frontend->cluster;
	struct json_t *value;
	size_t processes = 0;

	for (size_t i = 0; i < admin->conf.server_count; i++)
		processes += admin->conf.servers[i].count;
	value = value_pack("{s:s, s:s?, s:s?, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o?, s:o}",
			   "version", admin->conf.version, "node",
			   cluster != NULL ? cluster->name : NULL, "upgrade",
			   upgrade_name(admin->upgrade), "state",
			   router->is_draining ? "draining" : "serving", "uptime_ms",
			   (int64_t)(clock_now_ms() - admin->started_at_ms), "connections",
			   (int64_t)http_server_connection_count(admin->conf.front), "sessions",
			   (int64_t)router->sessions.count, "sessions_max",
			   (int64_t)router->sessions.conf.max_sessions, "processes",
			   (int64_t)processes, "calls", (int64_t)router->calls, "audit",
			   describe_audit(router->audit), "servers", describe_servers(admin));
	set_problems(value, admin, false);
	return value;
}

void reports_status(const struct admin *admin, struct buf *out)
{
	value_write(describe_status(admin), out);
}

/* ---- processes ---- */

/* Empty: there is no live one. */
static struct slice shown_id(const struct session *session)
{
	return session != NULL ? session_shown_id(session) : slice_of(NULL, 0);
}

static const struct identity *identity_of(const struct principal *principal)
{
	static const struct identity nobody;

	return principal != NULL ? &principal->identity : &nobody;
}

static struct json_t *describe_process(struct child *child)
{
	struct json_t *value = value_object();
	struct child_report report;

	report_child(child, &report);
#define FACTS_OF_PROCESS
#include "admin/facts.def"
	return value;
}

void reports_processes(const struct admin *admin, struct buf *out)
{
	value_list_begin(out, "processes");
	for (size_t i = 0; i < admin->conf.server_count; i++) {
		if (admin->conf.servers[i].conf.name == NULL)
			continue;
		LIST_EACH(struct child, child, &admin->conf.servers[i].children, link)
			value_list_add(out, describe_process(child));
	}
	value_list_end(out);
}

/* ---- sessions and streams ---- */

static struct json_t *describe_session(struct session *session)
{
	struct json_t *value = value_object();
	struct session_report report;
	char address[PEER_TEXT_BYTES];

	CHECK(session->state == SESSION_LIVE);
	report_session(session, &report);
	peer_format(report.peer, address);
#define FACTS_OF_SESSION
#include "admin/facts.def"
	return value;
}

void reports_sessions(const struct admin *admin, struct buf *out)
{
	value_list_begin(out, "sessions");
	LIST_EACH(struct session, session, &admin->conf.router->sessions.sessions, link)
		if (session->state == SESSION_LIVE)
			value_list_add(out, describe_session(session));
	value_list_end(out);
}

static struct json_t *describe_stream(struct session *session, uint64_t number,
				      const struct stream *stream)
{
	struct json_t *value = value_object();
	struct session_report report;

	report_session(session, &report);
#define FACTS_OF_STREAM
#include "admin/facts.def"
	return value;
}

void reports_streams(const struct admin *admin, struct buf *out)
{
	value_list_begin(out, "streams");
	LIST_EACH(struct session, session, &admin->conf.router->sessions.sessions, link) {
		const struct stream *own = &session->standalone;

		if (session->state != SESSION_LIVE)
			continue;
		/* Its own is shown only where something is in it or somebody reads it. */
		if (stream_has_reader(own) || own->count > 0 || own->kept_count > 0)
			value_list_add(out, describe_stream(session, 0, own));
		LIST_EACH(const struct stored_stream, stored, &session->replay_store.streams, link)
			value_list_add(out,
				       describe_stream(session, stored->number, &stored->stream));
	}
	value_list_end(out);
}

/* ---- everything at once ---- */

static struct json_t *describe_counters(void)
{
	struct json_t *value = value_object();

	for (enum counter counter = 0; counter < COUNTER_COUNT; counter++)
		value_set_number(value, counter_name(counter), counter_get(counter));
	return value;
}

/* What the gateway itself uses. NULL: it is not known. */
static struct json_t *describe_usage(const struct admin *admin)
{
	const struct process_views *views = admin->conf.views;
	struct http_usage http = http_server_usage(admin->conf.front);
	struct process_usage usage;

	if (views == NULL || !process_view_read(&views->gateway, &usage))
		return NULL;
	return value_pack("{s:I, s:I, s:I, s:I, s:I}", "cpu_ms", (int64_t)usage.cpu_ms,
			  "resident_bytes", (int64_t)usage.resident_bytes, "read_bytes",
			  (int64_t)http.read_bytes, "written_bytes", (int64_t)http.written_bytes,
			  "connections_max", (int64_t)http.connections_max);
}

static struct json_t *describe_sessions(const struct admin *admin)
{
	struct json_t *list = value_array();
	size_t count = 0;

	for (int pass = 0; pass < 2; pass++)
		LIST_EACH(struct session, session, &admin->conf.router->sessions.sessions, link) {
			struct session_report report;

			report_session(session, &report);
			if (session->state != SESSION_LIVE ||
			    (report.calls > 0 || report.waiting > 0) != (pass == 0))
				continue;
			if (count++ == REPORTS_SNAPSHOT_ROWS)
				return list;
			value_append(list, describe_session(session));
		}
	return list;
}

static struct json_t *describe_processes(const struct admin *admin)
{
	struct json_t *list = value_array();
	size_t count = 0;

	for (size_t i = 0; i < admin->conf.server_count; i++) {
		if (admin->conf.servers[i].conf.name == NULL)
			continue;
		LIST_EACH(struct child, child, &admin->conf.servers[i].children, link) {
			if (count++ == REPORTS_SNAPSHOT_ROWS)
				return list;
			value_append(list, describe_process(child));
		}
	}
	return list;
}

void reports_snapshot(const struct admin *admin, struct buf *out)
{
	value_write(value_pack("{s:I, s:o, s:o?, s:o, s:o, s:o}", "at_ms", (int64_t)clock_wall_ms(),
			       "status", describe_status(admin), "usage", describe_usage(admin),
			       "counters", describe_counters(), "sessions",
			       describe_sessions(admin), "processes", describe_processes(admin)),
		    out);
}
