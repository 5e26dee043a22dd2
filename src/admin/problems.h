/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody should look at, found at the moment of the question, in one list for all who ask:
 * mcpgatectl check and status, the status page and the metrics. problems.def has the kinds.
 */
#pragma once

#include <stddef.h>

#include "admin/admin.h"

enum problem_severity { PROBLEM_OK, PROBLEM_WARN, PROBLEM_FAILING };

enum problem_kind {
#define PROBLEM(id, name, severity) PROBLEM_KIND_##id,
#include "admin/problems.def"
	PROBLEM_KIND_COUNT
};

struct problem_row {
	const char *name;
	enum problem_severity severity;
};
const struct problem_row *problem_row_get(enum problem_kind kind);
/* In one word: ok, warn or failing. */
const char *problem_severity_name(enum problem_severity severity);

struct problem {
	enum problem_kind kind;
	const struct server *server; /* the one concerned; NULL: none, or several */
	char *about; /* its name, the issuer's or the certificate's; NULL: the daemon */
	char *text;  /* for people: what it is, and what to do */
	size_t count;
};

struct problems {
	struct problem *items; /* those that fail come first */
	size_t count;
};

/* The caller ends it with problems_fini. Borrows the servers until the next turn of the loop. */
void problems_find(const struct admin *admin, struct problems *problems_r);
void problems_fini(struct problems *problems);
/* The worst that there is. */
enum problem_severity problems_severity(const struct problems *problems);
/* How many servers, issuers or the like have this kind. */
size_t problems_count(const struct problems *problems, enum problem_kind kind);

/* ---- a server as the operator is shown it, for the reports, the metrics and the problems ---- */

/* Totals over the sessions of one server, and over its requests without a session. */
struct server_load {
	size_t sessions;
	size_t asleep; /* of these, those that have given up their process */
	size_t calls;
	size_t waiting;
	/* calls of modern clients whose server waits for the client, or whose result does */
	size_t parked;
};

/* One per server, in the same order; the caller frees the array. */
struct server_load *server_loads_count(const struct admin *admin);

/* What facts.def says of a server is read from there. */
struct server_view {
	const struct server *server;
	struct slice path;
	const struct server_load *load;
	const struct server_stats *stats;
	const struct call_counts *own; /* NULL: those of all that had its name count */
	const struct latency_histogram *answered;
	const char *state;
	uint64_t now_ms;
};

/* Borrows all three. */
struct server_view server_view_of(const struct server *server, struct slice path,
				  const struct server_load *load);
