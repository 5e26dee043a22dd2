/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of paths. A report is answered as soon as the head of its request has come. A command has been
 * carried out, or has begun, before it is answered.
 */
#include "admin/admin.h"

#include <stdlib.h>

#include "admin/json.h"
#include "admin/reports.h"
#include "base/clock.h"
#include "base/mem.h"
#include "obs/log.h"

#define REFUSAL_LOG_MS 10000

static const char metrics_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char open_metrics_type[] =
	"application/openmetrics-text; version=1.0.0; charset=utf-8";

/* ---- the table ---- */

static const struct {
	struct slice path;
	enum http_method method;
	/* One of the two; the other is NULL. */
	void (*report)(const struct admin *admin, struct buf *out);
	struct http_exchange *(*command)(const struct admin_request *asked);
	enum page_use page; /* what it is at admin.page */
} rows[] = {
	{ SLICE("/status"), HTTP_GET, reports_status, NULL, PAGE_NOTHING },
	{ SLICE("/check"), HTTP_GET, reports_check, NULL, PAGE_NOTHING },
	{ SLICE("/servers"), HTTP_GET, reports_servers, NULL, PAGE_NOTHING },
	{ SLICE("/processes"), HTTP_GET, reports_processes, NULL, PAGE_NOTHING },
	{ SLICE("/sessions"), HTTP_GET, reports_sessions, NULL, PAGE_NOTHING },
	{ SLICE("/streams"), HTTP_GET, reports_streams, NULL, PAGE_NOTHING },
	{ SLICE("/access"), HTTP_GET, NULL, page_tell_access, PAGE_SHOWS },
	{ SLICE("/can"), HTTP_POST, NULL, command_can, PAGE_NOTHING },
	{ SLICE("/deny"), HTTP_GET, command_deny_report, NULL, PAGE_NOTHING },
	{ SLICE("/deny-add"), HTTP_POST, NULL, command_deny_add, PAGE_NOTHING },
	{ SLICE("/deny-remove"), HTTP_POST, NULL, command_deny_remove, PAGE_NOTHING },
	{ SLICE("/events"), HTTP_GET, NULL, viewers_join, PAGE_SHOWS },
	{ SLICE("/logs"), HTTP_GET, NULL, command_logs, PAGE_SHOWS },
	{ SLICE("/pins"), HTTP_GET, NULL, command_pins, PAGE_SHOWS },
	{ SLICE("/pins-approve"), HTTP_POST, NULL, command_pins_approve, PAGE_ORDERS },
	{ SLICE("/pins-reject"), HTTP_POST, NULL, command_pins_reject, PAGE_ORDERS },
	{ SLICE("/restart"), HTTP_POST, NULL, command_restart, PAGE_ORDERS },
	{ SLICE("/end-session"), HTTP_POST, NULL, command_end_session, PAGE_ORDERS },
	{ SLICE("/drain"), HTTP_POST, NULL, command_drain, PAGE_ORDERS },
	{ SLICE("/reload"), HTTP_POST, NULL, command_reload, PAGE_NOTHING },
	{ SLICE("/upgrade"), HTTP_POST, NULL, command_upgrade, PAGE_NOTHING },
};

/* Only who names it gets it: ranges of types are for those who take anything. */
static bool wants_open_metrics(const struct http_request *request)
{
	static const struct slice name = SLICE("application/openmetrics-text");
	struct slice accept = request->fields[HTTP_ACCEPT];

	return http_has(request, HTTP_ACCEPT) && memmem(accept.p, accept.n, name.p, name.n) != NULL;
}

static void answer_metrics(const struct admin_request *asked)
{
	bool is_open = wants_open_metrics(asked->http);
	at_end(buf_fini) struct buf body = { 0 };

	if (asked->http->method != HTTP_GET) {
		admin_reply_error(asked->conn, 405, "/metrics takes GET");
		return;
	}
	reports_metrics(asked->admin, is_open, &body);
	admin_reply(asked->conn, 200, is_open ? open_metrics_type : metrics_type, &body);
}

static size_t find_row(struct slice path)
{
	size_t i = 0;

	while (i < ARRAY_LEN(rows) && !slice_is_equal(rows[i].path, path))
		i++;
	return i;
}

static struct http_exchange *serve_row(const struct admin_request *asked, size_t i)
{
	at_end(buf_fini) struct buf body = { 0 };

	CHECK((rows[i].report == NULL) != (rows[i].command == NULL));
	if (rows[i].method != asked->http->method) {
		admin_reply_error(asked->conn, 405,
				  rows[i].method == HTTP_GET ? "a report takes GET" :
							       "a command takes POST");
		return NULL;
	}
	if (rows[i].command != NULL)
		return rows[i].command(asked);
	rows[i].report(asked->admin, &body);
	admin_reply_json(asked->conn, 200, &body);
	return NULL;
}

/* Its socket may be forwarded to where a browser is: pages of strangers are turned away here as well. SEC-01 */
static struct http_exchange *admin_on_request(struct http_handler *handler, struct http_conn *conn,
					      const struct http_request *request)
{
	struct admin *admin = container_of(handler, struct admin, handler);
	struct http_handler *mcp = admin->conf.mcp;
	const struct admin_request asked = { admin, conn, request, true };
	const char *stranger = page_find_stranger(request);
	size_t i = find_row(request->path);

	if (slice_has_prefix(request->path, SLICE_LIT(ADMIN_MCP_PATH)))
		return mcp->on_request(mcp, conn, request);
	if (stranger != NULL)
		admin_reply_error(conn, 403, stranger);
	else if (slice_is_equal(request->path, SLICE_LIT("/metrics")))
		answer_metrics(&asked);
	else if (i < ARRAY_LEN(rows))
		return serve_row(&asked, i);
	else if (!page_reply_file(&asked))
		admin_reply_error(conn, 404, "there is nothing at this path; see mcpgatectl(1)");
	return NULL;
}

/* Now and then: any program of the machine may try, as often as it likes. */
static void note_wrong_token(struct admin *admin)
{
	uint64_t now_ms = clock_now_ms();

	if (admin->refusal_said_ms > 0 && now_ms - admin->refusal_said_ms < REFUSAL_LOG_MS)
		return;
	admin->refusal_said_ms = now_ms;
	LOG_BY(ADMIN_REFUSED, 0,
	       LOG_STR("reason", "at the page's address, without the right token"));
}

/* SEC-78 */
static struct http_exchange *page_on_request(struct http_handler *handler, struct http_conn *conn,
					     const struct http_request *request)
{
	struct admin *admin = container_of(handler, struct admin, page_handler);
	const struct admin_request asked = { admin, conn, request,
					     page_has_token(admin->page_token, request) };
	const char *stranger = page_find_stranger(request);
	size_t i = find_row(request->path);
	enum page_use use = i < ARRAY_LEN(rows) ? rows[i].page : PAGE_NOTHING;

	if (stranger != NULL) {
		admin_reply_error(conn, 403, stranger);
	} else if (!asked.may_order &&
		   (use == PAGE_ORDERS || http_has(request, HTTP_AUTHORIZATION))) {
		note_wrong_token(admin);
		admin_reply_error(conn, 403,
				  admin->page_token != NULL ?
					  "the token is not that of admin.page_token" :
					  "there is no admin.page_token: this address only shows");
	} else if (use != PAGE_NOTHING) {
		return serve_row(&asked, i);
	} else if (!page_reply_file(&asked)) {
		admin_reply_error(conn, 404,
				  "there is nothing at this path: this is the address of "
				  "the status page");
	}
	return NULL;
}

/* Programs send no Origin at all. SEC-01 */
static bool is_from_page(const struct http_request *request)
{
	return http_has(request, HTTP_ORIGIN) || page_find_stranger(request) != NULL;
}

static struct http_exchange *metrics_on_request(struct http_handler *handler,
						struct http_conn *conn,
						const struct http_request *request)
{
	const struct admin_request asked = { container_of(handler, struct admin, metrics_handler),
					     conn, request, false };

	if (is_from_page(request))
		admin_reply_error(conn, 403, "this address is for programs of this machine");
	else if (slice_is_equal(request->path, SLICE_LIT("/metrics")))
		answer_metrics(&asked);
	else
		admin_reply_error(conn, 404, "this address has /metrics and nothing else");
	return NULL;
}

static void admin_write_error(not_used struct http_handler *handler, not_used int status,
			      const char *reason, struct buf *body)
{
	value_write(value_pack("{s:o?}", "error", value_text(slice_str(reason))), body);
}

/* To answers of the servers' MCP endpoints as well. */
static void admin_before_write(struct http_handler *handler)
{
	struct http_handler *mcp = container_of(handler, struct admin, handler)->conf.mcp;

	if (mcp != NULL && mcp->before_write != NULL)
		mcp->before_write(mcp);
}

void admin_init(struct admin *admin, const struct admin_conf *conf)
{
	admin->handler =
		(struct http_handler){ admin_on_request, admin_write_error, admin_before_write };
	admin->metrics_handler =
		(struct http_handler){ metrics_on_request, admin_write_error, NULL };
	admin->page_handler = (struct http_handler){ page_on_request, admin_write_error, NULL };
	CHECK(conf->router != NULL && conf->servers != NULL && conf->fleet != NULL &&
	      conf->paths != NULL);
	admin->conf = *conf;
	admin->page_token = conf->page_token != NULL ? mem_strdup(conf->page_token) : NULL;
	admin->conf.page_token = NULL; /* of a configuration that a reload may free */
	list_init(&admin->reloads);
	viewers_init(&admin->viewers);
	admin->started_at_ms = clock_now_ms();
}

void admin_fini(struct admin *admin)
{
	viewers_fini(&admin->viewers);
	free(admin->reload_error);
	free(admin->page_token);
}

void admin_renew(struct admin *admin, size_t server_count, const char *origin,
		 const char *auth_mode)
{
	admin->conf.server_count = server_count;
	admin->conf.origin = origin;
	admin->conf.auth_mode = auth_mode;
}

void admin_leave(struct admin *admin)
{
	admin->is_leaving = true;
	command_reload_refuse_all(admin);
}

/* What was wrong with a reload before is over with the next one. */
static void note_reload_error(struct admin *admin, struct slice report)
{
	free(admin->reload_error);
	admin->reload_error = NULL;
	while (report.n > 0 && admin->reload_error == NULL) {
		struct slice line = slice_cut(&report, '\n');

		if (slice_is_equal(slice_cut(&line, ' '), SLICE_LIT("error")))
			admin->reload_error = mem_dup_slice(line);
	}
	admin->reload_failed_ms = clock_wall_ms();
}

void admin_reloaded(struct admin *admin, uint64_t order, bool is_used, struct slice report)
{
	note_reload_error(admin, report);
	command_reload_tell(admin, order, is_used, report);
}
