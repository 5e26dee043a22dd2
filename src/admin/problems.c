/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything is read where it is kept, at the moment of the question; nothing is remembered here, so
 * what is over is gone from the list. What a text names comes from the configuration and from
 * servers: whoever shows it makes it safe.
 */
#include "admin/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "auth/verifier.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "base/text.h"
#include "io/ipc.h"
#include "obs/audit.h"
#include "policy/rule.h"
#include "process/child.h"
#include "router/client_request.h"
#include "router/listing.h"
#include "router/parked_call.h"
#include "router/router.h"
#include "trace/exporter.h"

#define DAY_MS (24 * 60 * 60 * UINT64_C(1000))
#define EXPIRES_SOON_MS (14 * DAY_MS) /* renewals by ACME come 30 days before the end */
#define NAMED_MAX 20

/* ---- what a server has in flight: counted from its sessions and requests, once for a report ---- */

static struct server_load *load_of(const struct admin *admin, struct server_load *loads,
				   const struct server *server)
{
	CHECK(server >= admin->conf.servers &&
	      server < admin->conf.servers + admin->conf.server_count);
	return &loads[server - admin->conf.servers];
}

/* Requests without a session, and calls whose clients are to try again. */
static void count_modern(const struct admin *admin, struct server_load *loads)
{
	const struct router *router = admin->conf.router;

	LIST_EACH(struct client_request, request, &router->requests, link) {
		struct request_report report;
		struct server_load *load;

		report_request(request, &report);
		load = load_of(admin, loads, report.server);
		load->calls += report.calls;
		load->waiting += report.waiting;
	}
	LIST_EACH(struct parked_call, other, &router->parked_calls.kept, kept)
		load_of(admin, loads, other->server)->parked++;
}

struct server_load *server_loads_count(const struct admin *admin)
{
	struct server_load *loads = mem_zalloc((admin->conf.server_count + 1) * sizeof(*loads));

	count_modern(admin, loads);
	LIST_EACH(struct session, session, &admin->conf.router->sessions.sessions, link) {
		struct session_report report;
		struct server_load *load;

		report_session(session, &report);
		load = load_of(admin, loads, report.server);
		load->sessions += session->state == SESSION_LIVE;
		load->asleep += report.is_asleep;
		load->calls += report.calls;
		load->waiting += report.waiting;
	}
	return loads;
}

/* Whether a process of it is past its handshake, or waits for one ready-made. */
static bool has_answered(const struct server *server)
{
	LIST_EACH(struct child, child, &server->children, link) {
		struct child_report report;

		report_child(child, &report);
		if (report.is_up)
			return true;
	}
	return false;
}

struct server_view server_view_of(const struct server *server, struct slice path,
				  const struct server_load *load)
{
	/* What its name has done goes on in the row of the one in its place. */
	const struct call_counts *own = server->is_retired ? &server->own : NULL;

	CHECK(server->conf.name != NULL && load != NULL);
	return (struct server_view){
		.server = server,
		.path = path,
		.load = load,
		.stats = server->stats,
		.own = own,
		.answered = own != NULL ? &own->answered : &server->stats->answered,
		.state = server->is_retired        ? "retiring" :
			 server_is_failing(server) ? "failing" :
			 server->count == 0        ? "idle" :
			 has_answered(server)      ? "ready" :
						     "starting",
		.now_ms = clock_now_ms(),
	};
}

/* ---- kinds ---- */

static const struct problem_row rows[] = {
#define PROBLEM(id, name, severity) [PROBLEM_KIND_##id] = { name, PROBLEM_##severity },
#include "admin/problems.def"
};

const struct problem_row *problem_row_get(enum problem_kind kind)
{
	CHECK((size_t)kind < PROBLEM_KIND_COUNT);
	return &rows[kind];
}

const char *problem_severity_name(enum problem_severity severity)
{
	static const char *const names[] = {
		[PROBLEM_OK] = "ok",
		[PROBLEM_WARN] = "warn",
		[PROBLEM_FAILING] = "failing",
	};

	CHECK((size_t)severity < ARRAY_LEN(names));
	return names[severity];
}

/* ---- the list ---- */

/* Those that fail stay before the others, each in the order in which they were found. server: the one concerned, or NULL. */
static struct problem *printf_like(5, 6)
	list_add(struct problems *list, enum problem_kind kind, const struct server *server,
		 const char *about, const char *format, ...)
{
	size_t at = list->count;
	va_list args;
	char *text;

	va_start(args, format);
	CHECK((size_t)kind < PROBLEM_KIND_COUNT && vasprintf(&text, format, args) >= 0);
	va_end(args);
	if (rows[kind].severity == PROBLEM_FAILING)
		for (at = 0; at < list->count; at++)
			if (rows[list->items[at].kind].severity != PROBLEM_FAILING)
				break;
	list->items = mem_resize(list->items, (list->count + 1) * sizeof(*list->items));
	memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof(*list->items));
	list->count++;
	list->items[at] = (struct problem){ .kind = kind,
					    .server = server,
					    .about = about != NULL ? mem_strdup(about) : NULL,
					    .text = text,
					    .count = 1 };
	return &list->items[at];
}

void problems_fini(struct problems *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].about);
		free(list->items[i].text);
	}
	free(list->items);
}

enum problem_severity problems_severity(const struct problems *list)
{
	return list->count > 0 ? rows[list->items[0].kind].severity : PROBLEM_OK;
}

size_t problems_count(const struct problems *list, enum problem_kind kind)
{
	size_t count = 0;

	CHECK((size_t)kind < PROBLEM_KIND_COUNT);
	for (size_t i = 0; i < list->count; i++)
		count += list->items[i].kind == kind ? list->items[i].count : 0;
	return count;
}

#define TIME_BYTES 32

static const char *format_time(uint64_t wall_ms, char text_r[TIME_BYTES])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	strftime(text_r, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc);
	return text_r;
}

/* ---- servers ---- */

static void find_failing(const struct server_view *view, struct problems *list)
{
	const struct server *server = view->server;
	uint64_t wall_ms = clock_wall_ms(), failed_at_ms = view->stats->failed_at_ms;
	uint64_t retry_at_ms = server->backoff.retry_at_ms;
	bool waits = retry_at_ms > view->now_ms;
	char ago[TEXT_AGE_BYTES], next[TEXT_AGE_BYTES] = "";

	if (!server_is_failing(server))
		return;
	text_format_age(wall_ms > failed_at_ms ? wall_ms - failed_at_ms : 0, ago);
	if (waits)
		text_format_age(retry_at_ms - view->now_ms + 999, next);
	list_add(list, PROBLEM_KIND_SERVER_FAILING, server, server->conf.name,
		 "%s is failing: %s (%s ago); next try %s%s%s", server->conf.name,
		 view->stats->failure, ago, waits ? "in " : "with the next call", next,
		 waits ? " at the earliest" : "");
}

static void find_waiting(const struct server_view *view, struct problems *list)
{
	const struct server *server = view->server;

	if (view->load->waiting > 0 && server->conf.pool_max > 0 &&
	    server->count >= server->conf.pool_max)
		list_add(list, PROBLEM_KIND_CALLS_WAIT, server, server->conf.name,
			 "%s: calls wait (%zu), and all %zu processes of pool.max run",
			 server->conf.name, view->load->waiting, (size_t)server->conf.pool_max);
	if (server->pins.waiting > 0)
		list_add(list, PROBLEM_KIND_PINS_WAIT, server, server->conf.name,
			 "%s has %zu definition%s that wait%s for approval: mcpgatectl "
			 "pins %s",
			 server->conf.name, server->pins.waiting,
			 server->pins.waiting == 1 ? "" : "s", server->pins.waiting == 1 ? "s" : "",
			 server->conf.name);
}

/* It is a way to a sandbox, and easily forgotten there. */
static void find_reporting(const struct server *server, struct problems *list)
{
	if (server->conf.confinement.only_reports)
		list_add(list, PROBLEM_KIND_SANDBOX_REPORTS, server, server->conf.name,
			 "the sandbox of %s refuses nothing: its mode is report. List "
			 "what sandbox_would_refuse in the log names, then set the mode "
			 "to landlock",
			 server->conf.name);
}

/* What stands in `defaults` is for all servers, and need not fit each. */
static void find_unmatched(const struct server *server, const struct rule_places *places,
			   struct problems *list)
{
	struct slice name = slice_str(server->conf.name);
	struct rule rule;

	for (size_t i = 0; deny_watch_next(server, &i, &rule);) {
		at_end(buf_fini) struct buf key = { 0 }, place = { 0 };

		rule_append(&rule, name, &key);
		if (places != NULL && rule_places_append_key(places, buf_slice(&key), &place))
			list_add(list, PROBLEM_KIND_DENY_UNMATCHED, server, buf_terminate(&key),
				 "%s (%s) fits no tool that %s lists: is it misspelt? "
				 "mcpgatectl tools %s has the names%s",
				 buf_terminate(&key), buf_terminate(&place), server->conf.name,
				 server->conf.name,
				 shown_differs(&server->conf.shown, PERMISSION_TOOL) ?
					 " (of tools.rename, write the server's own)" :
					 "");
	}
}

/*
 * An endpoint has no processes of its own. One that fails is listed as such; one whose first process is
 * being started will be known in a moment.
 */
static bool is_untried(const struct server *server)
{
	return server->conf.name != NULL && !server->is_retired &&
	       !server_is_endpoint(&server->conf) && !server->stats->has_worked &&
	       server->count == 0 && !server_is_failing(server);
}

/* What a caller needs for it, as mcpgatectl takes it. */
static void append_claims(const struct slices *claims, struct buf *out)
{
	CHECK(claims->count > 0);
	for (size_t i = 0; i < claims->count; i++)
		buf_printf(out, "%s\"%.*s\": \"...\"", i > 0 ? ", " : "",
			   SLICE_ARG(claims->items[i]));
}

/*
 * In one row, and one for those that only a caller's claims start: a configuration may have very many
 * of them, of which few are used on a day.
 */
static void find_untried(const struct admin *admin, bool needs_claims, struct problems *list)
{
	const struct server *first = NULL;
	at_end(buf_fini) struct buf text = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < admin->conf.server_count; i++) {
		const struct server *server = &admin->conf.servers[i];

		if (!is_untried(server) || (server->conf.claims.count > 0) != needs_claims)
			continue;
		first = count == 0 ? server : first;
		if (count < NAMED_MAX)
			buf_printf(&text, "%s%s", count > 0 ? ", " : "", server->conf.name);
		count++;
	}
	if (count > NAMED_MAX)
		buf_printf(&text, " and %zu more", count - NAMED_MAX);
	if (count > 0 && needs_claims) {
		buf_printf(&text, ", for claims of a caller; mcpgatectl tools %s --claims '{",
			   first->conf.name);
		append_claims(&first->conf.claims, &text);
		buf_append_str(&text, "}' tries it now");
	} else if (count > 0) {
		buf_append_str(&text, "; mcpgatectl tools NAME tries it now, and without `start: "
				      "{try: false}` the daemon does");
	}
	if (count > 0)
		list_add(list, PROBLEM_KIND_SERVER_NOT_TRIED, NULL, NULL, "not tried yet: %s",
			 buf_terminate(&text))
			->count = count;
}

static void find_of_servers(const struct admin *admin, struct problems *list)
{
	at_end(mem_free) struct server_load *loads = server_loads_count(admin);

	for (size_t i = 0; i < admin->conf.server_count; i++) {
		const struct server *server = &admin->conf.servers[i];
		struct server_view view;

		if (server->conf.name == NULL || server->is_retired)
			continue;
		view = server_view_of(server, admin->conf.paths[i], &loads[i]);
		find_failing(&view, list);
		find_waiting(&view, list);
		find_unmatched(server, admin->conf.router->rule_places, list);
		find_reporting(server, list);
	}
	find_untried(admin, false, list);
	find_untried(admin, true, list);
}

/* ---- issuers ---- */

static void find_keyless(const struct issuer_report *issuer, struct problems *list)
{
	uint64_t age_ms = clock_now_ms() - issuer->keyless_since_ms;
	char since[TIME_BYTES];

	CHECK(!issuer->has_keys);
	format_time(clock_wall_ms() - age_ms, since);
	list_add(list, PROBLEM_KIND_ISSUER_WITHOUT_KEYS, NULL, issuer->name,
		 "issuer %s: no keys since %s (%s); its tokens are refused. "
		 "issuer_metadata_failed or issuer_keys_failed in the log says more",
		 issuer->name, since,
		 issuer->cause[0] != '\0' ? issuer->cause : "nothing has answered");
}

static void find_of_issuers(const struct admin *admin, struct problems *list)
{
	const struct frontend_conf *frontend = admin->conf.client_frontend;
	const struct verifier *verifier =
		frontend != NULL ? frontend->authorization.verifier : NULL;
	struct issuer_report issuer;

	for (size_t i = 0; verifier != NULL && verifier_report_issuer(verifier, i, &issuer); i++) {
		if (!issuer.has_keys && issuer.is_failing)
			find_keyless(&issuer, list);
		else if (issuer.is_failing)
			list_add(list, PROBLEM_KIND_ISSUER_AWAY, NULL, issuer.name,
				 "issuer %s cannot be asked (%s); its tokens are judged "
				 "by the keys from before, for a day at most",
				 issuer.name, issuer.cause);
		if (issuer.introspection_failing)
			list_add(list, PROBLEM_KIND_INTROSPECTION_FAILING, NULL, issuer.name,
				 "issuer %s does not say whether tokens are active: "
				 "introspection_failed or introspection_refused in the "
				 "log says why",
				 issuer.name);
	}
}

/* ---- the daemon ---- */

static void find_of_certificates(const struct admin *admin, struct problems *list)
{
	uint64_t now_ms = clock_wall_ms();
	struct certificate_report certificate;

	for (size_t i = 0;
	     admin->conf.on_certificate != NULL && admin->conf.on_certificate(i, &certificate);
	     i++) {
		bool is_over = certificate.not_after_ms <= now_ms;
		char at[TIME_BYTES];

		if (certificate.not_after_ms > now_ms + EXPIRES_SOON_MS)
			continue;
		format_time(certificate.not_after_ms, at);
		list_add(list,
			 is_over ? PROBLEM_KIND_CERTIFICATE_EXPIRED :
				   PROBLEM_KIND_CERTIFICATE_EXPIRES,
			 NULL, certificate.file,
			 "the certificate %s of %s %s %s: renew it, then mcpgatectl "
			 "reload",
			 certificate.file, certificate.listener,
			 is_over ? "has expired on" : "expires on", at);
	}
}

static void find_of_audit(const struct audit *audit, struct problems *list)
{
	if (audit == NULL || !audit->is_failing)
		return;
	list_add(list, PROBLEM_KIND_AUDIT_FAILING, NULL, audit->conf.to,
		 "audit records cannot be written to %s: %s%s", audit->conf.to,
		 strerror(audit->last_error),
		 audit->conf.is_required ? "; calls are refused (audit.required)" : "");
}

static void find_of_reload(const struct admin *admin, struct problems *list)
{
	char at[TIME_BYTES];

	if (admin->reload_error == NULL)
		return;
	list_add(list, PROBLEM_KIND_RELOAD_FAILED, NULL, NULL,
		 "the reload at %s has failed: %s; correct it, then mcpgatectl reload",
		 format_time(admin->reload_failed_ms, at), admin->reload_error);
}

static void find_of_cluster(const struct cluster *cluster, struct problems *list)
{
	if (cluster != NULL && !cluster->is_up)
		list_add(list, PROBLEM_KIND_STORE_AWAY, NULL, NULL,
			 "the store of the cluster cannot be reached (%s): sessions of other nodes "
			 "are answered with 503, and those of this one could not go on elsewhere",
			 cluster->why);
}

/* What the keeper cannot write. */
static void find_unsaved(unsigned int unsaved, struct problems *list)
{
	if ((unsaved & 1u << IPC_TEXT_SESSIONS) != 0)
		list_add(
			list, PROBLEM_KIND_STATE_UNSAVED, NULL, "sessions",
			"sessions cannot be saved, and end with this daemon: sessions_unsaved in the "
			"log says why; `sessions.persist: false` if that is meant");
	if ((unsaved & 1u << IPC_TEXT_PINS) != 0)
		list_add(
			list, PROBLEM_KIND_STATE_UNSAVED, NULL, "pins",
			"what is known of definitions (pin) cannot be saved, and is forgotten with "
			"this daemon: pins_unsaved in the log says why");
}

void problems_find(const struct admin *admin, struct problems *list_r)
{
	const struct router *router = admin->conf.router;

	CHECK(router != NULL);
	*list_r = (struct problems){ .items = NULL };
	find_of_issuers(admin, list_r);
	find_of_certificates(admin, list_r);
	find_of_audit(router->audit, list_r);
	find_of_servers(admin, list_r);
	find_of_reload(admin, list_r);
	find_unsaved(admin->unsaved, list_r);
	find_of_cluster(admin->conf.client_frontend->cluster, list_r);
	if (admin->upgrade == IPC_UPGRADE_FAILED)
		list_add(list_r, PROBLEM_KIND_UPGRADE_FAILED, NULL, NULL,
			 "the last upgrade has failed, and the program from before runs: "
			 "upgrade_failed in the log says why; then mcpgatectl upgrade");
	if (router->exporter != NULL && exporter_is_failing(router->exporter))
		list_add(list_r, PROBLEM_KIND_COLLECTOR_AWAY, NULL, NULL,
			 "the trace collector takes no spans: spans_not_taken in the "
			 "log says why; traces.otlp has its address");
	if (router->is_draining)
		list_add(list_r, PROBLEM_KIND_DRAINING, NULL, NULL,
			 "the daemon is about to stop, and takes no new work");
}
