/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of mcpgatectl, by the files that they are in; client_config and complete have
 * headers of their own. Those that take the line return the exit status.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "ctl/line.h"

/* ---- show.c ---- */

/* Each prints one report: the daemon's answer at /status, /servers and so on. */
void show_status(const json_t *report);
/* One line for each problem. Exit status 0: none; 1: something to look at; 2: failing, or no answer. */
int show_check(const struct line *line);
void show_servers(const json_t *report);
/* Of processes, sessions, streams, or what tokens are denied by. */
void show_list(const json_t *report);
/* A line of a server's stderr. */
void show_log_line(const json_t *line);
/* Print names and descriptions. */
void show_tools(const json_t *tools);
void show_prompts(const json_t *prompts);
void show_resources(const json_t *resources, const json_t *templates);
/*
 * A live view of the daemon: one line per server, updated every few seconds. Shows as many views as
 * requested; by default one, or, on a terminal, until the user ends it. Counts are since the previous
 * view; in the first view, since the daemon started.
 */
int top_run(const struct line *line);

/* ---- orders.c: orders with a form of their own, and a question ---- */

/* Whether a caller may use something, and by which rule; 0: yes, 1: no, 2: it cannot be told. */
int orders_can(const struct line *line);
/* Adds, lists and removes what tokens are denied by. */
int orders_deny(const struct line *line);
/* Shows the definitions of tools, prompts, resources and templates, and decides on those that wait. */
int orders_pins(const struct line *line);
/* 1 if the configuration has an error. */
int orders_reload(const struct line *line);
int orders_upgrade(const struct line *line);

/* ---- offers.c: a server's tools, prompts and resources, over the same path as any client ---- */

/* The first argument is the server. */
int offers_run_tools(const struct line *line);
int offers_run_prompts(const struct line *line);
int offers_run_resources(const struct line *line);
int offers_run_call(const struct line *line);
/*
 * `format`: "mcp", "openai" or "anthropic". Returns JSON (owned by the caller), or NULL: unknown
 * format. Names that the API would reject are reported on stderr.
 */
json_t *tools_convert(const json_t *tools, const char *format);
/* Format number i; NULL: there are no more. */
const char *tools_format(size_t i);
/* Prints JSON in ASCII, which cannot affect a terminal. */
void tools_print_json(const json_t *value);
/* The params of initialize that all of mcpgatectl sends; owned by the caller. */
json_t *mcp_client_hello(void);

/* ---- adopt.c ---- */

/* Serves what the clients of this user start themselves, and puts the entries of their files back. */
int adopt_run(const struct line *line);

/* ---- connect.c ---- */

/* A server of ours for a client that starts its servers itself; returns only if that is not possible. */
int connect_run(const struct line *line);

/*
 * ---- doctor.c ----
 *
 * Starts servers, each once and in the way the daemon would, and reports what works and what does
 * not. Needs no daemon.
 */

/* Adds one. -1: it is not a valid claim; err says why. */
int doctor_add_claim(struct doctor_claims *claims, const char *text, struct error *err) must_check;

/*
 * Examines the server of this name, those of the endpoint of this name, or all that are enabled; those
 * that need claims get these.
 * Returns the number of servers with a failure, or -1: there is no such server.
 */
int doctor_examine(struct config *config, const char *name, const struct doctor_claims *claims);

/* ---- oauth.c ---- */

/* doctor --oauth: goes through a client's steps of authorization. */
int oauth_run(const struct line *line);
