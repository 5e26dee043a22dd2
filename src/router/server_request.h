/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's request that a client has to answer: sampling, elicitation, roots. It belongs to the
 * call during which it came or, without one, to the client's own stream. server_messages.c decides
 * who may be asked what. bridging.md §1.6, §2.1; CXL-08, CXL-09.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"
#include "router/call.h"

struct asker;
struct upstream;

/*
 * Callbacks for code that asks a client on behalf of a server that sends no requests itself
 * (input_loop). The request is closed before they are called.
 */
struct asker_ops {
	void (*on_answer)(struct asker *asker, const struct envelope *env);
	/* Nobody will answer. */
	void (*on_refused)(struct asker *asker, const char *why);
};

/* Embedded by whoever asks. */
struct asker {
	const struct asker_ops *ops;
	struct server_request *request; /* NULL: not open */
};

struct server_request {
	struct list link;    /* of client->server_requests */
	struct asker *asker; /* NULL: the server itself */
	struct client *client;
	struct upstream *upstream; /* of the server that asks */
	uint64_t downstream_id;    /* our id towards the client */
	const struct method *method;
	struct call *own_call; /* the call of the asker; or NULL */
	struct call *call;     /* during which it came; or NULL */
	struct call_watcher watcher;
	struct timer hold;  /* the client cannot be asked, or does not answer */
	struct msg *held;   /* the request, until the client is ready to be asked */
	bool is_standalone; /* sent on the client's own stream */
	bool is_offered;    /* and a reader was there to receive it */
	bool is_missed;     /* and at the last check there was none */
	uint64_t until_ms;  /* deadline for the answer, set when it is offered */
	struct slice id;    /* the server's id and progress token; stored in `text` */
	struct slice token;
	char text[];
};

/*
 * Asks the client as soon as it is ready for that; if it cannot be asked, the server is told so.
 * `env`: the request, converted to the client's revision. False: too many are open.
 */
bool server_request_open(struct client *client, struct upstream *upstream,
			 const struct envelope *env, const struct method *method);
/*
 * Lets `asker` ask the client of a call, by way of that call; `env` as above, except for its id.
 * False: too many are open.
 */
bool server_request_open_for(struct call *call, struct asker *asker, const struct envelope *env,
			     const struct method *method);
/* Delivers the answer to a request that was opened by an asker, not by the server. */
void server_request_give(struct server_request *request, const struct envelope *env);
/* The answer is no longer needed: tells the client, but not its asker, and closes the request. */
void server_request_withdraw(struct server_request *request);
/* How many of the client's are open that came during a call. */
size_t server_requests_of_calls(const struct client *client);
/* The client is ready to be asked: sends what was held. FRONT-INIT-07 */
void server_request_release_held(struct client *client);
/* It has been answered or refused. Frees it: nothing may keep a pointer to it. */
void server_request_close(struct server_request *request);
/*
 * Closes one upstream's requests to this client that nobody will answer. The server is told `why`,
 * the client that its answer is no longer wanted.
 */
void server_request_withdraw_all(struct client *client, const struct upstream *upstream,
				 const char *why);
/*
 * The server withdraws it: `env` is its notification, whose span `id` names the request. Closes it.
 */
void server_request_cancel(struct server_request *request, const struct envelope *env,
			   struct slice id);
/*
 * Closes all, without telling the client. `why` NULL: the upstreams are gone and are not told
 * either.
 */
void server_request_end_all(struct client *client, const char *why);

/* By our id towards the client, and by the server's id; NULL: none. */
struct server_request *server_request_find(const struct client *client, struct json downstream_id);
struct server_request *server_request_find_of_server(const struct client *client,
						     const struct upstream *upstream,
						     struct slice id);

/* ---- asking ---- */

/*
 * What a server may ask of a client, according to the capabilities that the client declared.
 * UTIL-ROOT-01, -02.
 */

/* What a server's request requires of the client. */
enum asking_need {
	ASKING_ROOTS = 1,
	ASKING_SAMPLING = 2,
	ASKING_SAMPLING_TOOLS = 4,
	ASKING_FORMS = 8,
	ASKING_URLS = 16,
};

/*
 * Whether a client with these capabilities (JSON text) can answer requests of this method at all.
 */
bool asking_is_declared(struct slice capabilities, const struct method *method);
/* Whether it can answer in the mode that these params ask for: by form or URL, with tools. */
bool asking_is_possible(struct slice capabilities, const struct method *method,
			struct slice params);
/*
 * What a request with this method and params needs: bits of enum asking_need; 0: nothing listed
 * here.
 */
unsigned int asking_needs(const struct method *method, struct slice params);
/* Appends these needs as an object of client capabilities: {"sampling":{"tools":{}}}. MOD-CAP-01 */
void asking_append_needs(struct buf *out, unsigned int needs);

/* Whether the client can be asked to open a URL. */
bool asking_can_open_urls(struct slice capabilities);

/* The method of one of the questions in `inputRequests`, which may be written with escapes. */
const struct method *asking_method(struct slice question);
