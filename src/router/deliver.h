/* SPDX-License-Identifier: Apache-2.0 */
/* From the child to the client: who gets a message, and in which form. bridging.md §1.6, §1.7. */
#ifndef MCPGATED_ROUTER_DELIVER_H
#define MCPGATED_ROUTER_DELIVER_H

#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "router/upstream.h"

/* Handles one line of the child's stdout, whatever it is. BACK-FRAME-03 … -05. */
void deliver_line(struct upstream *upstream, struct slice line);

struct server_request;
struct call;
struct msg;
struct revision;

/* Gives the server's response to the client of `call`, which ends with it. */
void deliver_response(struct call *call, const struct envelope *env);
/*
 * Gives a response that was kept to the client of `call`. It is from a server of this revision; nothing about tasks
 * is in it any more.
 */
void deliver_stored(struct call *call, const struct revision *revision, const struct envelope *env);
/* Tells the client that its answer to this request of the server is no longer wanted. */
void deliver_server_request_cancelled(struct server_request *server_request);
/*
 * A number for joining news that say the same. Never 0, and no downstream id: those are small. It starts at random, so that
 * a server cannot choose URIs whose numbers collide.
 */
uint64_t deliver_news_key(struct slice method, struct slice uri);
/* Counts and logs a message that is for nobody. */
void deliver_note_dropped(struct upstream *upstream, const struct envelope *env);
/* The message as it is, for a client: no raw line breaks. The caller has one reference. */
struct msg *deliver_make_msg(const struct envelope *env);
/* Gives a server's request to whoever can carry it; if nobody can, the server is told and the ask closed. */
void deliver_server_request(struct server_request *server_request, struct msg *msg);

#endif
