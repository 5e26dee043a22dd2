/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has in flight is counted from its sessions and requests, once for a report. */
#include "admin/server_view.h"

#include "base/clock.h"
#include "base/mem.h"
#include "process/child.h"
#include "router/client_request.h"
#include "router/parked_call.h"
#include "router/router.h"

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

	LIST_FOREACH(node, &router->requests) {
		struct request_report report;
		struct server_load *load;

		report_request(container_of(node, struct client_request, link), &report);
		load = load_of(admin, loads, report.server);
		load->calls += report.calls;
		load->waiting += report.waiting;
	}
	LIST_FOREACH(node, &router->parked_calls.kept)
		load_of(admin, loads, container_of(node, struct parked_call, kept)->server)
			->parked++;
}

struct server_load *server_loads_count(const struct admin *admin)
{
	struct server_load *loads = mem_zalloc((admin->conf.server_count + 1) * sizeof(*loads));

	count_modern(admin, loads);
	LIST_FOREACH(node, &admin->conf.router->sessions.sessions) {
		struct session *session = container_of(node, struct session, link);
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
	LIST_FOREACH(node, &server->children) {
		struct child_report report;

		report_child(container_of(node, struct child, link), &report);
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
