/* SPDX-License-Identifier: Apache-2.0 */
/* An upstream that is a process of ours: a message a line on its stdin and stdout. BACK-FRAME-01 ... -05. */
#ifndef MCPGATED_UPSTREAM_STDIO_H
#define MCPGATED_UPSTREAM_STDIO_H

struct child;
struct server;
struct upstream;
struct upstream_shared;

/* For upstream_begin, which needs the agreement of the server (server_admit). Frees itself when its process has gone. */
struct upstream *stdio_new(struct upstream_shared *shared, struct server *server);
/* That of a process; all processes of a server have one. */
struct upstream *stdio_of_child(struct child *child);

#endif
