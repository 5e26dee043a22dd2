/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's state and its messages from the client: lifecycle, the table of methods, answers to
 * its own requests.
 */
#ifndef MCPGATED_DEMO_SERVER_H
#define MCPGATED_DEMO_SERVER_H

#include <stdbool.h>

#include <jansson.h>

#include "base/check.h"
#include "base/list.h"
#include "base/slice.h"

/* What a revision of MCP knows; rows of a table in server.c. */
struct revision {
	const char *name;
	bool batches;              /* arrays of messages are taken apart */
	bool completions;          /* has that capability */
	bool progress_has_message; /* and not only numbers */
	bool structured;           /* tools have outputSchema and structuredContent */
};

struct server {
	const struct revision *revision; /* NULL before initialize */
	json_t *client;                  /* the client's capabilities */
	size_t log_level;                /* the least that is sent; see server_find_level */
	json_int_t counter;              /* the resource that changes */
	bool is_counter_watched;
	struct list jobs; /* demo/job.h */
	size_t job_count;
	json_int_t last_request_id;
};

/* One request that is being answered. */
struct call {
	const json_t *id;
	const json_t *params; /* an object, maybe empty */
	bool is_later;        /* a job answers it */
	int code;             /* of the error; 0 without one */
	char text[256];
	json_t *data;
};

void server_init(struct server *server);
void server_fini(struct server *server);
/* One line from the client, without its line feed. */
void server_take_line(struct server *server, struct slice line);
/* Position of a log level, 0 (debug) to 7 (emergency); -1 if it is none. RFC 5424 §6.2.1. */
int server_find_level(const char *name);

/* For handlers: makes the answer an error; returns NULL, so that they can return it. */
json_t *call_fail(struct call *call, int code, const char *format, ...) printf_like(3, 4);
/* As json_unpack; a failure becomes RPC_INVALID_PARAMS and -1. */
int call_unpack(struct call *call, const json_t *value, const char *format, ...) must_check;

#endif
