/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator may know of sessions and processes, and what he may do to a server's. */
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
	struct slice program;    /* what its client calls itself; empty: not known */
	const struct peer *peer; /* where it began */
	size_t calls;            /* in flight, those that wait included */
	size_t waiting;          /* of them, for a process */
	size_t server_requests;  /* requests of the server that the client has not answered */
	bool is_asleep;          /* it has a process for itself, but just now none */
	int pid;                 /* of the process that it has for itself; 0: none just now */
};
void report_session(struct session *session, struct session_report *report_r);

/* A request without a session. */
struct request_report {
	const struct server *server;
	size_t calls;   /* it, and a list that it needs to be checked */
	size_t waiting; /* of them, for a process */
};
void report_request(const struct client_request *request, struct request_report *report_r);

/* A process. */
struct child_report {
	const char *state;
	unsigned int state_number;         /* of report_child_state */
	bool is_up;                        /* it has answered initialize, or would be asked next */
	size_t calls;                      /* in flight, and lists that it was asked for */
	const struct session *session;     /* that it serves alone now; NULL: none, or many */
	bool is_leased;                    /* to that one, for one call */
	const struct principal *principal; /* whom it serves; NULL: everybody, or nobody */
};
void report_child(struct child *child, struct child_report *report_r);
/* All states that a report of a process has, by their number, which is below this one. */
#define REPORT_CHILD_STATES (UPSTREAM_CLOSED + 2)
const char *report_child_state(unsigned int number);

/* All processes of a server are replaced; calls in flight fail, sessions go on. Returns how many. */
size_t report_restart(struct server *server);

#endif
