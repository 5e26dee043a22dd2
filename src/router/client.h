/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender of requests: everything a request needs to know about its caller. A session has one
 * for life (client_session.h); a request without a session creates its own. bridging.md §0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/peer.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "policy/rights.h"
#include "router/text_set.h"

struct call;
struct holder;
struct kept_session;
struct pool;
struct principal;
struct revision;
struct router;
struct server;
struct session;
struct stream;
struct upstream;

/* Requests from the server that the client has to answer (server_request.h). */
struct server_requests {
	struct list all;
	struct map by_id;  /* by the id we gave the request towards the client */
	size_t held_bytes; /* of those held until the client is ready */
	uint64_t last_id;
};

struct client {
	struct router *router;
	struct server *server;           /* the one it talks to */
	struct principal *principal;     /* borrowed: the session or the request has a reference */
	struct session *session;         /* NULL: it has none */
	struct kept_session *kept;       /* of it, for later gateways; NULL: it is not kept */
	const struct holder *holder;     /* which caller it is; borrowed likewise */
	struct peer peer;                /* its address when it began */
	struct rights rights;            /* of the sender of its last request */
	const struct revision *revision; /* the one negotiated with it */
	char *capabilities;              /* declared by it: JSON text; NULL: those of its pool */
	struct pool *pool;               /* serving it; NULL: none yet, or no longer */
	struct list calls;               /* in flight, oldest first */
	size_t call_count;
	struct server_requests server_requests;
	/* subscribed URIs, as spelled by text_set_spell */
	struct text_set subscriptions;
	struct text_set elicitations; /* ids of URL elicitations given to it */
	/* struct running_task: the tasks that it created (running_tasks.c) */
	struct list running_tasks;
	size_t running_task_count;
	size_t list_wait_bytes; /* kept by its calls that need a list to go on (lists.c) */
	int level;              /* the log level it set, or -1 */
	bool can_open_urls;     /* declared by a request during which the server may ask */
	bool knows_tasks;       /* the tasks extension of the modern era */
	bool tells_roots;       /* it declared roots.listChanged */
	/* A session: it has sent `initialized` or a request. */
	bool is_ready_to_be_asked;
};

void client_init(struct client *client, struct router *router, struct server *server,
		 const struct peer *peer, const struct revision *revision);
/* Must be called after its calls have ended and its server requests are closed. */
void client_fini(struct client *client);
/* A call begins or ends; the session does not idle out in between. */
void client_add_call(struct client *client, struct call *call);
void client_remove_call(struct client *client, struct call *call);
/*
 * The level that the params of logging/setLevel or notifications/message name, as level_find: -1 if
 * none.
 */
int client_named_level(const struct envelope *env);
/*
 * A copy of a server's message for a client, with some spans replaced (in order) and raw line
 * breaks removed. The caller owns a reference.
 */
struct msg *client_copy_message(const struct envelope *env, const struct splice_edit *edits,
				size_t count);
/* The stream for messages that belong to no call; NULL: none. */
struct stream *client_stream(const struct client *client);
/* What it can be asked, in modern-era terms: JSON text. */
struct slice client_capabilities(const struct client *client);
/*
 * The key under which waiting calls take turns: the principal, the address of an anonymous caller,
 * or the client where neither tells callers apart.
 */
const void *client_fairness_key(const struct client *client);
/*
 * Features that the server may use and the client does not understand, because its revision lacks
 * them or the pool does not offer them. 0 for NULL and before the handshake. bridging.md §1.3, §3
 */
unsigned int client_lacks(const struct client *client, const struct upstream *upstream);

/* ---- admitted ---- */

/*
 * The messages of one request body that admission has let through. The router's entry points
 * (forward_request, forward_notification, forward_answer, client_session_open) accept nothing else,
 * so no way in can skip the checks.
 */

struct admitted;
struct audit_origin;

/*
 * For endpoint/admission.c alone, after every check that may refuse the messages
 * (tests/check-doors). `client` and `rights` are what they were admitted for; client NULL: the body
 * is one initialize request, or one message without a session. The messages and the origin are
 * borrowed until admitted_free.
 */
struct admitted *admitted_new(const struct client *client, const struct rights *rights,
			      const struct audit_origin *origin, const struct envelope *messages,
			      size_t count);
/* Accepts NULL; sets the caller's pointer to NULL. */
void admitted_free(struct admitted **admitted);

/* The number of messages. */
size_t admitted_count(const struct admitted *admitted);
/* How they arrived. */
const struct audit_origin *admitted_origin(const struct admitted *admitted);
/*
 * Advances to the next message; the first call yields the first. NULL: no more. Valid as long as
 * `admitted`.
 */
const struct envelope *admitted_next(struct admitted *admitted);
/*
 * For the router's entry points: takes the current message of admitted_next, to handle it for this
 * client. Each message can be taken at most once.
 */
const struct envelope *admitted_take(struct admitted *admitted, const struct client *client);
/* The rights of the sender. */
const struct rights *admitted_rights(const struct admitted *admitted);

/* ---- in flight ---- */

/*
 * Counts a call as in flight for its caller: at its server and at the entry of tools.limits for its
 * tool, where such limits exist. A call that has become a task keeps counting, owned by whoever
 * tracks the task. It counts until the server has answered or its process is gone, although nobody
 * may wait for it any more: the server works on. mcpgated.yaml(5), concurrency
 */

struct in_flight;

/*
 * Starts counting the call. NULL: no limit applies to it, or it is of a kind that never counts:
 * change streams and requests about tasks.
 */
struct in_flight *in_flight_new(const struct client *client, const struct envelope *env);
/* Stops counting after this many milliseconds, unless extended by another call. No-op for NULL. */
void in_flight_keep(struct in_flight *in_flight, uint64_t ms);
/*
 * It is at this server, as the request with this id, or as a task (0): no longer than its process
 * it counts. No-op for NULL.
 */
void in_flight_bind(struct in_flight *in_flight, struct upstream *upstream, uint64_t id);
/*
 * Nobody waits for it any more: counts until the request is answered, the process is gone or `ms`
 * have passed. Must be bound, and may have ended. Accepts a pointer to NULL; sets it to NULL.
 */
void in_flight_leave(struct in_flight **in_flight, uint64_t ms);
/* The call has ended: stops counting. Accepts a pointer to NULL; sets it to NULL. */
void in_flight_free(struct in_flight **in_flight);

/* ---- capability class ---- */

/*
 * The capability class of a client: those of its capabilities that a server may rely on, in a
 * canonical form. A server decides by them what it offers and whether it asks, so only clients of
 * the same class share children. bridging.md §1.2.
 */

/*
 * Appends the class as the capabilities that a child is told: JSON text, "{}" if there are none.
 * has_extras: with extensions and experimental capabilities, whose names the client is free to
 * choose.
 */
void capability_class_append(struct buf *out, struct slice capabilities, bool has_extras);
/*
 * The initialize request for the servers of a shared pool: it reveals nothing about a client except
 * the class. The caller owns a reference. bridging.md §1.2, §1.5
 */
struct msg *capability_class_initialize(const struct revision *revision, struct slice class);
