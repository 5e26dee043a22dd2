/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what upstreams and clients know. Every process of a server belongs to an upstream. */
#include "router/report.h"

#include "process/child.h"
#include "router/call.h"
#include "router/client_request.h"
#include "router/client_session.h"
#include "router/pool.h"
#include "router/pool_demand.h"
#include "upstream/stdio.h"

static size_t count_waiting(const struct client *client)
{
	size_t count = 0;

	LIST_FOREACH(node, &client->calls)
		count += container_of(node, struct call, link)->state == CALL_WAITING;
	return count;
}

void report_session(struct session *session, struct session_report *report_r)
{
	const struct client *client = client_session_client(session);
	const struct upstream *own = client->pool != NULL ? pool_own_upstream(client->pool) : NULL;

	CHECK(client->session == session);
	*report_r =
		(struct session_report){ .server = client->server,
					 .revision = client->revision->name,
					 .program = slice_str(client_session_program(session)),
					 .peer = &client->peer,
					 .calls = client->call_count,
					 .is_asleep = session->state == SESSION_LIVE &&
						      !pool_is_shared(client->pool) && own == NULL,
					 .pid = own != NULL ? upstream_pid(own) : 0 };
	report_r->waiting = count_waiting(client);
	report_r->server_requests = client->server_requests.by_id.count;
}

void report_request(const struct client_request *request, struct request_report *report_r)
{
	const struct client *client = &request->client;

	*report_r = (struct request_report){ .server = client->server,
					     .calls = client->call_count,
					     .waiting = count_waiting(client) };
}

void report_child(struct child *child, struct child_report *report_r)
{
	const struct upstream *upstream = stdio_of_child(child);
	const struct client *client = upstream->client;

	*report_r = (struct child_report){ .state_number = upstream->state,
					   .is_up = upstream_is_serving(upstream) ||
						    upstream->state == UPSTREAM_WARM,
					   .calls = upstream_load(upstream),
					   .session = client != NULL ? client->session : NULL,
					   .is_leased = upstream->lease != NULL,
					   .principal = pool_principal_of(upstream) };
	if (child->state == CHILD_STOPPING)
		report_r->state_number = REPORT_CHILD_STATES - 1;
	report_r->state = report_child_state(report_r->state_number);
}

const char *report_child_state(unsigned int number)
{
	CHECK(number < REPORT_CHILD_STATES);
	return number == REPORT_CHILD_STATES - 1 ? "stopping" :
						   upstream_state_name((enum upstream_state)number);
}

size_t report_restart(struct server *server)
{
	size_t count = 0;

	server->restarts++;
	backoff_forget_failures(&server->backoff);
	LIST_FOREACH_SAFE(node, &server->children) {
		struct child *child = container_of(node, struct child, link);

		if (child->state == CHILD_RUNNING)
			count += upstream_restart(stdio_of_child(child));
	}
	return count;
}
