/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An upstream that is a child process: one message per line on its stdin and stdout. BACK-FRAME-01
 * ... -05.
 */
#ifndef MCPGATED_UPSTREAM_STDIO_H
#define MCPGATED_UPSTREAM_STDIO_H

struct child;
struct server;
struct upstream;
struct upstream_shared;

/*
 * Returns an upstream for upstream_begin; the server must have agreed (server_admit). It frees
 * itself once its process is gone.
 */
struct upstream *stdio_new(struct upstream_shared *shared, struct server *server);
/* The upstream that a child belongs to; every child of a server belongs to one. */
struct upstream *stdio_of_child(struct child *child);

#endif
