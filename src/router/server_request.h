/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of the server that a client has to answer: sampling, elicitation, roots. It belongs to the call during
 * which it came, or, if there is none, to the client's own stream. Who may be asked what is judged in
 * server_messages.c. bridging.md §1.6, §2.1; CXL-08, CXL-09.
 */
#ifndef MCPGATED_ROUTER_SERVER_REQUEST_H
#define MCPGATED_ROUTER_SERVER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "router/call.h"

struct asker;
struct client;
struct upstream;

/* Who asks a client in the name of a server that does not send requests itself (input_loop). The request is closed before. */
struct asker_ops {
	void (*on_answer)(struct asker *asker, const struct envelope *env);
	/* Nobody will answer. */
	void (*on_refused)(struct asker *asker, const char *why);
};

/* Embedded by who asks. */
struct asker {
	const struct asker_ops *ops;
	struct server_request *request; /* NULL: it is not open */
};

struct server_request {
	struct list link;    /* of the client's */
	struct asker *asker; /* NULL: the server itself */
	struct client *client;
	struct upstream *upstream; /* whose server asks */
	uint64_t downstream_id;    /* our id at the client */
	const struct method *method;
	struct call *own_call; /* for which its asker asks, or its task; or NULL */
	struct call *call;     /* during which it came, or NULL */
	struct call_watcher watcher;
	struct timer hold;  /* its client cannot be asked, or does not answer */
	struct msg *held;   /* the request, while the client is not ready to be asked */
	bool is_of_task;    /* its own call, if any, waits for the result of the task */
	bool is_standalone; /* it went to the client's own stream */
	bool is_offered;    /* and a reader was there to take it */
	bool is_missed;     /* and at the last look there was none */
	uint64_t until_ms;  /* since it was offered: so long it is waited for an answer */
	struct slice id;    /* the server's id and progress token, behind this struct */
	struct slice token;
	char text[];
};

/*
 * The client is asked, as soon as it is ready for that. If it cannot be, the server is told so. `env`: the request
 * in words of the client's revision. False: there are too many already.
 */
bool server_request_open(struct client *client, struct upstream *upstream,
			 const struct envelope *env, const struct method *method);
/*
 * The same for a task that the client has made, or whose result the linked `call` of its waits for; NULL: none does, it goes
 * to the client's own stream. The client is ready to be asked, since it has sent a request. UTIL-TASK-03
 */
bool server_request_open_of_task(struct client *client, struct call *call,
				 struct upstream *upstream, const struct envelope *env,
				 const struct method *method);
/*
 * The client of a call is asked by `asker`, by way of that call; `env` as above, but for its id. False: there are too many
 * already.
 */
bool server_request_open_for(struct call *call, struct asker *asker, const struct envelope *env,
			     const struct method *method);
/* The answer to one that somebody else asked than the server. */
void server_request_give(struct server_request *request, const struct envelope *env);
/* Its answer is of no use any more: the client is told so, its asker is not. It is closed. */
void server_request_withdraw(struct server_request *request);
/* The client is ready to be asked: what was held goes out. FRONT-INIT-07. */
void server_request_release_held(struct client *client);
/* It is answered, or refused: nothing keeps a pointer to it. */
void server_request_close(struct server_request *request);
/*
 * Nobody will answer those of one upstream that are for this client, those of its tasks or all others: the server is told
 * `why`, the client that its answer is no longer wanted; they are closed.
 */
void server_request_withdraw_all(struct client *client, const struct upstream *upstream,
				 bool are_of_tasks, const char *why);
/* The server itself takes it back: `env` is its notification, whose span `id` names the request. It is closed. */
void server_request_cancel(struct server_request *request, const struct envelope *env,
			   struct slice id);
/* The client heard of its end another way, or will not: closes all. `why` NULL: the upstreams are gone. */
void server_request_end_all(struct client *client, const char *why);

/* By our id at the client, and by the server's id; NULL: there is none. */
struct server_request *server_request_find(const struct client *client, struct json downstream_id);
struct server_request *server_request_find_of_server(const struct client *client,
						     const struct upstream *upstream,
						     struct slice id);

#endif
