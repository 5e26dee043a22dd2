/* SPDX-License-Identifier: Apache-2.0 */
/* The values of obs/metrics.def, each read where it is kept. What is long is written once, in the order of the table. */
#include <stdlib.h>
#include <sys/resource.h>

#include "admin/problems.h"
#include "admin/reports.h"
#include "auth/grant.h"
#include "base/clock.h"
#include "base/mem.h"
#include "obs/audit.h"
#include "obs/counters.h"
#include "obs/metric.h"
#include "process/child.h"
#include "router/router.h"

/* The next server from *i on, which goes behind it. One that is retired has the name of another: a series must not stand there twice. */
static const struct server *next_shown(const struct admin *admin, size_t *i)
{
	while (*i < admin->conf.server_count) {
		const struct server *server = &admin->conf.servers[(*i)++];

		if (server->conf.name != NULL && !server->is_retired)
			return server;
	}
	return NULL;
}

static void put_one(struct metric_writer *writer, enum metric metric, uint64_t value)
{
	metric_begin(writer, metric);
	metric_put(writer, NULL, value);
}

/* ---- of the whole daemon ---- */

_Static_assert((int)METRIC_BUILD_INFO == (int)COUNTER_COUNT,
	       "the counters are the first rows of the table");

static void put_counters(struct metric_writer *writer)
{
	for (enum counter c = 0; c < COUNTER_COUNT; c++)
		put_one(writer, (enum metric)c, counter_get(c));
}

static void put_gateway(struct metric_writer *writer, const struct admin *admin)
{
	const struct router *router = admin->conf.router;
	const struct slice version = slice_str(admin->conf.version);
	struct http_usage http = http_server_usage(admin->conf.front);

	metric_begin(writer, METRIC_BUILD_INFO);
	metric_put(writer, &version, 1);
	put_one(writer, METRIC_UP_SECONDS, (clock_now_ms() - admin->started_at_ms) / 1000);
	put_one(writer, METRIC_DRAINING, router->is_draining);
	metric_begin(writer, METRIC_TURN_MAX);
	metric_put_ms(writer, NULL, loop_longest_turn_ms(router->loop));
	put_one(writer, METRIC_CONNECTIONS_OPEN, http_server_connection_count(admin->conf.front));
	put_one(writer, METRIC_CONNECTIONS_MAX, http.connections_max);
	put_one(writer, METRIC_BYTES_READ, http.read_bytes);
	put_one(writer, METRIC_BYTES_WRITTEN, http.written_bytes);
	put_one(writer, METRIC_SESSIONS_OPEN, router->sessions.count);
	put_one(writer, METRIC_SESSIONS_MAX, router->sessions.conf.max_sessions);
	put_one(writer, METRIC_CALLS_IN_FLIGHT, router->calls);
	put_one(writer, METRIC_LISTS_KEPT, router->lists.bytes);
	put_one(writer, METRIC_PROCESSES_MAX, admin->conf.fleet->max);
	put_one(writer, METRIC_AUDIT_WRITTEN, router->audit != NULL ? router->audit->written : 0);
	put_one(writer, METRIC_AUDIT_FAILING, router->audit != NULL && router->audit->is_failing);
}

static void put_tokens(struct metric_writer *writer)
{
	metric_begin(writer, METRIC_TOKENS);
	for (enum verdict_kind kind = 0; kind < VERDICT_COUNT; kind++) {
		struct slice verdict =
			slice_str(kind == VERDICT_OK ? "accepted" : verdict_get(kind)->name);

		metric_put(writer, &verdict, verdict_counted(kind));
	}
}

/* Each kind, whether there is one of it or not. */
static void put_problems(struct metric_writer *writer, const struct admin *admin)
{
	at_end(problems_fini) struct problems problems = { .count = 0 };

	problems_find(admin, &problems);
	metric_begin(writer, METRIC_PROBLEM);
	for (enum problem_kind kind = 0; kind < PROBLEM_KIND_COUNT; kind++) {
		struct slice name = slice_str(problem_row_get(kind)->name);

		metric_put(writer, &name, problems_count(&problems, kind));
	}
}

static void put_certificates(struct metric_writer *writer, const struct admin *admin)
{
	struct certificate_report certificate;

	metric_begin(writer, METRIC_CERTIFICATE_NOT_AFTER);
	for (size_t i = 0;
	     admin->conf.on_certificate != NULL && admin->conf.on_certificate(i, &certificate);
	     i++) {
		const struct slice values[] = { slice_str(certificate.listener),
						slice_str(certificate.file) };

		metric_put_ms(writer, values, certificate.not_after_ms);
	}
}

/* ---- streams ---- */

enum stream_of { OF_SESSION, OF_ANSWER, OF_COUNT };

struct stream_sums {
	uint64_t open[OF_COUNT], read[OF_COUNT], bytes[OF_COUNT];
};

static void add_stream(struct stream_sums *sums, enum stream_of of, const struct stream *stream)
{
	bool is_read = stream_has_reader(stream);

	sums->open[of] += is_read || stream->count > 0 || stream->kept_count > 0;
	sums->read[of] += is_read;
	sums->bytes[of] += stream->bytes + stream->kept_bytes;
}

static void put_by_kind(struct metric_writer *writer, enum metric metric,
			const uint64_t values[OF_COUNT])
{
	static const struct slice kinds[] = { SLICE("session"), SLICE("answer") };

	metric_begin(writer, metric);
	for (size_t i = 0; i < OF_COUNT; i++)
		metric_put(writer, &kinds[i], values[i]);
}

static void put_streams(struct metric_writer *writer, const struct admin *admin)
{
	struct stream_sums sums = { .open = { 0 } };

	LIST_EACH(const struct session, session, &admin->conf.router->sessions.sessions, link) {
		if (session->state != SESSION_LIVE)
			continue;
		add_stream(&sums, OF_SESSION, &session->standalone);
		LIST_EACH(struct stored_stream, stored, &session->replay_store.streams, link)
			add_stream(&sums, OF_ANSWER, &stored->stream);
	}
	put_by_kind(writer, METRIC_STREAMS_OPEN, sums.open);
	put_by_kind(writer, METRIC_STREAMS_READ, sums.read);
	put_by_kind(writer, METRIC_STREAM_BYTES, sums.bytes);
}

/* ---- calls ---- */

#define CALL_LABELS 5 /* server, method, tool, status, reason */

struct series_writer {
	struct metric_writer *writer;
	struct slice server;
};

static void put_ended(const struct call_series *series, void *arg)
{
	const struct series_writer *to = arg;
	struct slice values[CALL_LABELS] = { to->server, series->method, series->tool };

	for (enum call_status status = 0; status < CALL_FAILED; status++) {
		values[3] = slice_str(call_status_name(status));
		if (series->ended[status] > 0 || status == CALL_OK)
			metric_put(to->writer, values, series->ended[status]);
	}
	values[3] = slice_str(call_status_name(CALL_FAILED));
	for (enum reason reason = 0; reason < REASON_COUNT; reason++) {
		values[4] = slice_str(reason_get(reason)->text);
		if (series->failed[reason] > 0)
			metric_put(to->writer, values, series->failed[reason]);
	}
}

static void put_duration(const struct call_series *series, void *arg)
{
	const struct series_writer *to = arg;
	const struct slice values[] = { to->server, series->method, series->tool };

	/* A tool that was listed need not have been called. */
	if (series->duration.count > 0)
		metric_put_histogram(to->writer, values, &series->duration);
}

static void put_series(struct metric_writer *writer, const struct admin *admin, enum metric metric,
		       call_series_fn *on_series)
{
	const struct server *server;

	metric_begin(writer, metric);
	for (size_t i = 0; (server = next_shown(admin, &i)) != NULL;) {
		struct series_writer to = { writer, slice_str(server->conf.name) };

		call_stats_visit(&server->stats->calls, on_series, &to);
	}
}

static void put_refusals(struct metric_writer *writer, const struct admin *admin)
{
	const struct server *server;

	metric_begin(writer, METRIC_REFUSALS);
	for (size_t i = 0; (server = next_shown(admin, &i)) != NULL;) {
		const struct call_stats *calls = &server->stats->calls;

		for (size_t r = 0; r < calls->refused_count; r++)
			metric_put(writer,
				   (const struct slice[]){ slice_str(server->conf.name),
							   slice_str(calls->refused[r].word) },
				   calls->refused[r].count);
	}
}

static void put_calls(struct metric_writer *writer, const struct admin *admin)
{
	const struct server *server;
	static const enum metric histograms[] = { METRIC_CALL_WAIT, METRIC_FIRST_MESSAGE,
						  METRIC_ANSWER };

	put_refusals(writer, admin);
	put_series(writer, admin, METRIC_CALLS_ENDED, put_ended);
	put_series(writer, admin, METRIC_CALL_DURATION, put_duration);
	for (size_t m = 0; m < ARRAY_LEN(histograms); m++) {
		metric_begin(writer, histograms[m]);
		for (size_t i = 0; (server = next_shown(admin, &i)) != NULL;) {
			struct slice name = slice_str(server->conf.name);

			metric_put_histogram(writer, &name,
					     histograms[m] == METRIC_CALL_WAIT ?
						     &server->stats->calls.waited :
					     histograms[m] == METRIC_FIRST_MESSAGE ?
						     &server->stats->calls.first_message :
						     &server->stats->answered);
		}
	}
}

/* ---- of each server ---- */

static uint64_t count_leased(const struct server *server)
{
	uint64_t count = 0;

	LIST_EACH(struct child, child, &server->children, link) {
		struct child_report report;

		report_child(child, &report);
		count += report.is_leased;
	}
	return count;
}

/* A row of facts.def as a metric, whose label is the server alone. */
#define TEXT(...)
#define NUMBER(...)
#define JSON(...)
#define METRIC_NUMBER(metric, member, fact, ...) METRIC_ONLY(metric, fact)

static const bool is_of_server[METRIC_COUNT] = {
#define METRIC_ONLY(metric, fact) [METRIC_SERVER_##metric] = true,
#define FACTS_OF_SERVER
#include "admin/facts.def"
#undef METRIC_ONLY
};

static void read_server(const struct server_view *view, uint64_t values_r[METRIC_COUNT])
{
#define METRIC_ONLY(metric, fact) values_r[METRIC_SERVER_##metric] = fact;
#define FACTS_OF_SERVER
#include "admin/facts.def"
}

static void put_server_values(struct metric_writer *writer, const struct admin *admin)
{
	const struct server *server;
	size_t count = admin->conf.server_count;
	at_end(mem_free) struct server_load *loads = server_loads_count(admin);
	uint64_t(*values)[METRIC_COUNT] = mem_zalloc((count + 1) * sizeof(*values));

	for (size_t i = 0; (server = next_shown(admin, &i)) != NULL;) {
		const struct server_view view =
			server_view_of(server, slice_of(NULL, 0), &loads[i - 1]);

		read_server(&view, values[i - 1]);
	}
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
		if (!is_of_server[metric])
			continue;
		metric_begin(writer, metric);
		for (size_t i = 0; (server = next_shown(admin, &i)) != NULL;) {
			struct slice name = slice_str(server->conf.name);

			metric_put(writer, &name, values[i - 1][metric]);
		}
	}
	free(values);
}

static void put_states(struct metric_writer *writer, const struct admin *admin)
{
	const struct server *server;

	metric_begin(writer, METRIC_SERVER_STATES);
	for (size_t i = 0; (server = next_shown(admin, &i)) != NULL;) {
		uint64_t counts[REPORT_CHILD_STATES] = { 0 };

		LIST_EACH(struct child, child, &server->children, link) {
			struct child_report report;

			report_child(child, &report);
			counts[report.state_number]++;
		}
		for (unsigned int s = 0; s < REPORT_CHILD_STATES; s++)
			metric_put(writer,
				   (const struct slice[]){ slice_str(server->conf.name),
							   slice_str(report_child_state(s)) },
				   counts[s]);
	}
}

static void put_ends(struct metric_writer *writer, const struct admin *admin)
{
	const struct server *server;

	metric_begin(writer, METRIC_SERVER_ENDS);
	for (size_t i = 0; (server = next_shown(admin, &i)) != NULL;) {
		for (enum reason reason = 0; reason < REASON_COUNT; reason++)
			if (server->stats->ends[reason] > 0)
				metric_put(writer,
					   (const struct slice[]){
						   slice_str(server->conf.name),
						   slice_str(reason_get(reason)->text) },
					   server->stats->ends[reason]);
	}
}

/* ---- what the daemon's processes use ---- */

struct used {
	bool is_known;
	struct process_usage usage;
};

static void put_usage(struct metric_writer *writer, const struct slice names[], size_t count,
		      const struct used *used)
{
	static const enum metric metrics[] = { METRIC_PROCESS_CPU, METRIC_PROCESS_RESIDENT,
					       METRIC_PROCESS_VIRTUAL, METRIC_PROCESS_START };

	for (size_t m = 0; m < ARRAY_LEN(metrics); m++) {
		metric_begin(writer, metrics[m]);
		for (size_t i = 0; i < count; i++) {
			const struct process_usage *usage = &used[i].usage;

			if (!used[i].is_known)
				continue;
			if (metrics[m] == METRIC_PROCESS_CPU)
				metric_put_ms(writer, &names[i], usage->cpu_ms);
			else if (metrics[m] == METRIC_PROCESS_START)
				metric_put_ms(writer, &names[i], usage->began_at_ms);
			else
				metric_put(writer, &names[i],
					   metrics[m] == METRIC_PROCESS_RESIDENT ?
						   usage->resident_bytes :
						   usage->virtual_bytes);
		}
	}
}

static void put_processes(struct metric_writer *writer, const struct admin *admin)
{
	static const struct slice names[] = { SLICE("gateway"), SLICE("keeper") };
	const struct process_views *views = admin->conf.views;
	struct used used[ARRAY_LEN(names)] = { { .is_known = false } };
	struct rlimit files = { 0, 0 };
	uint64_t open;

	if (views == NULL)
		return;
	used[0].is_known = process_view_read(&views->gateway, &used[0].usage);
	used[1].is_known = process_view_read(&views->keeper, &used[1].usage);
	put_usage(writer, names, ARRAY_LEN(names), used);
	open = process_view_count_descriptors(&views->gateway);
	metric_begin(writer, METRIC_PROCESS_FDS);
	if (open > 0)
		metric_put(writer, &names[0], open);
	metric_begin(writer, METRIC_PROCESS_MAX_FDS);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		metric_put(writer, &names[0], files.rlim_cur);
}

void reports_metrics(const struct admin *admin, bool is_open, struct buf *out)
{
	struct metric_writer writer = { .out = out, .is_open = is_open };

	put_counters(&writer);
	put_gateway(&writer, admin);
	put_problems(&writer, admin);
	put_certificates(&writer, admin);
	put_tokens(&writer);
	put_streams(&writer, admin);
	put_calls(&writer, admin);
	put_server_values(&writer, admin);
	put_states(&writer, admin);
	put_ends(&writer, admin);
	put_processes(&writer, admin);
	metric_end(&writer);
}
