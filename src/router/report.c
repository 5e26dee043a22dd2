/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what upstreams and routes know. Every child of a server is that of an upstream. */
#include "router/report.h"

#include "router/upstream.h"
#include "router/route.h"

void report_session(struct session *session, struct session_report *report_r)
{
	const struct route *route = route_of(session);
	const struct upstream *upstream =
		route->pool != NULL ? partition_own_upstream(route->pool) : NULL;

	*report_r = (struct session_report){ .server = route->server,
					     .revision = route->revision->name,
					     .calls = route->call_count,
					     .pid = upstream != NULL ? upstream->child.pid : 0 };
	LIST_FOREACH(node, &route->calls)
		report_r->waiting += container_of(node, struct call, link)->state == CALL_WAITING;
	LIST_FOREACH(node, &route->server_requests)
		report_r->server_requests++;
}

void report_child(const struct child *child, struct child_report *report_r)
{
	const struct upstream *upstream = container_of(child, struct upstream, child);

	*report_r = (struct child_report){ .state = upstream_state_name(upstream),
					   .calls = upstream_load(upstream),
					   .session = upstream->route != NULL ?
							      &upstream->route->session :
							      NULL,
					   .is_leased = upstream->lease != NULL };
	if (upstream->pool != NULL)
		report_r->principal = pool_fairness_key(upstream->pool, upstream->route);
	if (child->state == CHILD_STOPPING)
		report_r->state = "stopping";
}

size_t report_restart(struct server *server)
{
	size_t count = 0;

	server_forget_failures(server);
	LIST_FOREACH_SAFE(node, &server->children) {
		struct child *child = container_of(node, struct child, link);

		if (child->state == CHILD_RUNNING)
			count += upstream_restart(container_of(child, struct upstream, child));
	}
	return count;
}
