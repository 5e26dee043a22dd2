/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom requests come from: all that a request needs to know of its caller. A session holds one for its life
 * (client_session.h); a request without a session makes one for itself. bridging.md §0.
 */
#ifndef MCPGATED_ROUTER_CLIENT_H
#define MCPGATED_ROUTER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/peer.h"
#include "policy/rights.h"
#include "router/text_set.h"

struct call;
struct envelope;
struct holder;
struct msg;
struct own_tools;
struct pool;
struct principal;
struct revision;
struct router;
struct server;
struct session;
struct splice_edit;
struct stream;
struct upstream;

/* Requests of the server that the client has to answer (server_request.h). */
struct server_requests {
	struct list all;
	struct map by_id;  /* our id at the client */
	size_t held_bytes; /* of those that wait for the client to be ready */
	uint64_t last_id;
};

struct client {
	struct router *router;
	struct server *server;       /* that it speaks to */
	struct principal *principal; /* borrowed: the session, or the request, has a reference */
	struct session *session;     /* NULL: it has none */
	const struct holder *holder; /* which caller it is; borrowed likewise */
	struct peer peer;            /* where it began */
	struct rights rights;        /* of who has sent its last request */
	const struct revision *revision; /* what it and we agreed on */
	char *capabilities;              /* that it declared: JSON text; NULL: those of its pool */
	struct pool *pool;               /* that serves it; NULL: none yet, or no more */
	struct list calls;               /* in flight, oldest first */
	size_t call_count;
	struct server_requests server_requests;
	struct text_set
		subscriptions; /* the URIs that it subscribed to, as subscriptions_spell_uri writes them */
	struct text_set elicitations; /* the ids of URL elicitations that it was given */
	struct list
		running_tasks; /* struct running_task: the tasks that it made (running_tasks.c) */
	size_t running_task_count;
	struct list list_waits; /* its calls that have a list asked for (list_wait.c) */
	size_t list_wait_bytes; /* that those which wait for one keep */
	struct own_tools
		*own_tools; /* of a session with a server for itself, once they were needed */
	int level;          /* the log level that it asked for, or -1 */
	bool can_open_urls; /* a request during which it may be asked to says so */
	bool knows_tasks;   /* the extension of the modern era */
	bool tells_roots;   /* it declared roots.listChanged */
	bool is_ready_to_be_asked; /* a session's has said that it is initialized, or has sent a request */
};

void client_init(struct client *client, struct router *router, struct server *server,
		 const struct peer *peer, const struct revision *revision);
/* Its calls have ended, its server requests are closed. */
void client_fini(struct client *client);
/* A call begins, and ends: its session does not idle out meanwhile. */
void client_add_call(struct client *client, struct call *call);
void client_remove_call(struct client *client, struct call *call);
/*
 * A server's message as a client gets it: some spans replaced, in their order, and no raw line breaks. The caller has the
 * reference.
 */
struct msg *client_copy_message(const struct envelope *env, const struct splice_edit *edits,
				size_t count);
/* The stream for what belongs to no call; NULL: it has none. */
struct stream *client_stream(const struct client *client);
/* What it can be asked, in the words of the modern era: JSON text. */
struct slice client_capabilities(const struct client *client);
/* Who takes turns where calls wait: principals, addresses of anonymous ones, or clients where those do not tell them apart. */
const void *client_fairness_key(const struct client *client);
/*
 * What the server may use and the client does not know: its revision lacks it, or the pool does not offer it.
 * 0 for NULL, and before the handshake. bridging.md §1.3, §3
 */
unsigned int client_lacks(const struct client *client, const struct upstream *upstream);

#endif
