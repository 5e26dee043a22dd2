/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator can see of sessions and processes, and the restart of a server's processes. */
#ifndef MCPGATED_ROUTER_REPORT_H
#define MCPGATED_ROUTER_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "process/server.h"
#include "process/child.h"
#include "base/slice.h"
#include "session/session.h"
#include "upstream/upstream.h"

struct client_request;

/* A session; names and slices are borrowed. */
struct session_report {
	const struct server *server;
	struct slice revision;
	struct slice program;    /* the name its client gave itself; empty: not known */
	const struct peer *peer; /* its address when it began */
	size_t calls;            /* in flight, including waiting ones */
	size_t waiting;          /* of them, for a process */
	size_t server_requests;  /* server requests that the client has not answered */
	bool is_asleep;          /* it has a process of its own, but none at the moment */
	int pid;                 /* of its own process; 0: none at the moment */
};
void report_session(struct session *session, struct session_report *report_r);

/* A request without a session. */
struct request_report {
	const struct server *server;
	size_t calls;   /* the request, and a list needed to check it */
	size_t waiting; /* of them, for a process */
};
void report_request(const struct client_request *request, struct request_report *report_r);

/* A process. */
struct child_report {
	const char *state;
	unsigned int state_number; /* of report_child_state */
	bool is_up;                /* it has answered initialize, or is the next one to be asked */
	size_t calls;              /* in flight, and list requests sent to it */
	const struct session *session;     /* the only one it serves now; NULL: none, or many */
	bool is_leased;                    /* reserved for that session, for one call */
	const struct principal *principal; /* the one it serves; NULL: everybody, or nobody */
};
void report_child(struct child *child, struct child_report *report_r);
/* The names of the process states, by number; numbers are below REPORT_CHILD_STATES. */
#define REPORT_CHILD_STATES (UPSTREAM_CLOSED + 2)
const char *report_child_state(unsigned int number);

/* Replaces all processes of a server: calls in flight fail, sessions continue. Returns how many. */
size_t report_restart(struct server *server);

#endif
