/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what lanes and routes know. Every child of a backend is that of a lane. */
#include "router/report.h"

#include "router/lane.h"
#include "router/route.h"

void report_session(struct session *session, struct session_report *report_r)
{
	const struct route *route = route_of(session);
	const struct lane *lane =
		route->partition != NULL ? partition_own_lane(route->partition) : NULL;

	*report_r = (struct session_report){ .backend = route->backend,
					     .revision = route->revision->name,
					     .calls = route->call_count,
					     .pid = lane != NULL ? lane->child.pid : 0 };
	LIST_FOREACH(node, &route->calls)
		report_r->waiting += container_of(node, struct call, link)->state == CALL_WAITING;
	LIST_FOREACH(node, &route->asks)
		report_r->asks++;
}

void report_child(const struct child *child, struct child_report *report_r)
{
	const struct lane *lane = container_of(child, struct lane, child);

	*report_r = (struct child_report){ .state = lane_state_name(lane),
					   .calls = lane_load(lane),
					   .session = lane->route != NULL ? &lane->route->session :
									    NULL,
					   .is_leased = lane->lease != NULL };
	if (lane->partition != NULL)
		report_r->principal = partition_party(lane->partition, lane->route);
	if (child->state == CHILD_STOPPING)
		report_r->state = "stopping";
}

size_t report_restart(struct backend *backend)
{
	size_t count = 0;

	backend_forget_failures(backend);
	LIST_FOREACH_SAFE(node, &backend->children) {
		struct child *child = container_of(node, struct child, link);

		if (child->state == CHILD_RUNNING)
			count += lane_restart(container_of(child, struct lane, child));
	}
	return count;
}
