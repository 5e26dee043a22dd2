/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The legs of an endpoint over several servers, for one of its clients: to each server the gateway is
 * a client like any other, with a session that is a part of the client's (session_init_part). Every
 * message goes through admission once more, with what the configuration says of that server and with
 * what the client has signed in for, the endpoint. bridging.md §5
 *
 *	closed -> opening -> open -> lost -> opening …
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "endpoint/caller.h"
#include "io/loop.h"
#include "io/peer.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "obs/reason.h"
#include "router/call.h"
#include "router/era.h"
#include "router/text_set.h"
#include "session/session.h"

struct leg;
struct leg_call;
struct legs;
struct pool;
struct server;

struct legs_ops {
	/*
	 * A request or notification of a leg's server, with ids that leg_find_by_id understands;
	 * call: during which it came, or NULL.
	 */
	void (*on_message)(struct legs *legs, const struct leg_call *call, struct slice text);
	/* It is open now, or lost. was_missed: the client was shown something without it. */
	void (*on_change)(struct legs *legs, const struct leg *leg, bool was_missed);
};

enum leg_state { LEG_CLOSED, LEG_OPENING, LEG_OPEN, LEG_LOST };

struct leg {
	struct legs *legs;
	size_t index;
	char *name; /* of its server */
	struct slice prefix;
	enum leg_state state;
	struct client *client;       /* its session's, while it is open */
	size_t place;                /* where that server's endpoint was last found */
	struct session_owner owner;  /* of that session */
	struct stream_reader reader; /* of what belongs to no call */
	struct server_capabilities capabilities;
	struct buf instructions;
	struct text_set subscriptions; /* URIs as JSON texts: they last longer than its session */
	struct access access;          /* with which it was last used; principal NULL: not yet */
	uint64_t lost_at_ms;
	enum reason lost_as; /* REASON_NONE: its caller may not use it */
	bool is_missed;      /* the client was shown something without it */
	bool is_slow;        /* its last list took longer than others are waited for */
	bool is_forbidden;   /* a reload has taken it from its caller: legs_sweep */
};

struct catalogue;

struct legs {
	const struct legs_ops *ops;
	struct server *server; /* the endpoint's */
	struct loop *loop;
	struct leg *items;
	size_t count;
	bool overlap; /* a prefix begins with another one: names alone do not tell the leg */
	struct caller caller; /* who has sent the last request; access.principal NULL: nobody yet */
	struct peer peer;
	const struct client *client; /* of the session that they are of; NULL: of none */
	struct msg *params;          /* of the client's initialize; NULL: it has not come yet */
	char *level;                 /* params of its logging/setLevel; NULL: not set */
	bool is_initialized;         /* it has said so */
	bool is_ended;
	struct list calls;
	struct timer retry;
	uint64_t retry_ms;
};

/*
 * The response to a request, as the leg's client gets it, with the id that the request had; empty:
 * there is none, for this reason. The call ends when this returns.
 */
typedef void leg_answer_fn(struct leg_call *call, struct slice response, enum reason reason);

/* A request to a leg's server. */
struct leg_call {
	struct call call;
	struct list link; /* of legs->calls */
	struct leg *leg;
	leg_answer_fn *on_answer; /* NULL: the answer is not needed */
	void *arg;                /* for it */
	struct access access;     /* the sender's */
};

/* All of them closed. */
void legs_init(struct legs *legs, const struct legs_ops *ops, struct server *server,
	       struct loop *loop);
/* The rules have changed: finds those that their caller may not use any more, for legs_sweep. */
void legs_judge(struct legs *legs);
/* Ends those that their caller may not use any more. Not while one of them reports something. */
void legs_sweep(struct legs *legs);
/* From now on nothing is reported any more. */
void legs_silence(struct legs *legs);
/* Ends their sessions and calls. */
void legs_fini(struct legs *legs);
/*
 * The sender of the call is who the legs' own messages are sent for from now on; of a call of ours, who has sent
 * one of its client's own, if anybody has.
 */
void legs_take_caller(struct legs *legs, struct call *call);
/* The same with anybody who waits in the pool: all have the same rights. */
void legs_take_any_caller(struct legs *legs, const struct pool *pool);
/* Who causes what is logged of them. */
static inline uint64_t legs_owner(const struct legs *legs)
{
	return holder_number(legs->caller.access.principal, &legs->peer);
}
static inline bool legs_have_caller(const struct legs *legs)
{
	return legs->caller.access.principal != NULL;
}

/*
 * Appends the InitializeResult of all of them together, for a client that sent these params. Who is not
 * open now is missed.
 */
void legs_append_result(struct legs *legs, struct slice params, struct buf *out);

/* The last one whose prefix the name begins with that clients see; *count_r: how many there are. NULL: none. */
struct leg *legs_find_by_prefix(struct legs *legs, struct slice shown, size_t *count_r);
/*
 * Opens it on behalf of whoever has this access, unless that is under way, done, or just failed. One
 * whose server a reload has replaced is opened anew if they are of no session, once no call needs it.
 */
void leg_need(struct leg *leg, const struct access *access);
/* Its caller may not use it, and it is no server to him. */
static inline bool leg_is_hidden(const struct leg *leg)
{
	return leg->state == LEG_LOST && leg->lost_as == REASON_NONE;
}
/* A list was made without it: later there is another try, and the client is told. */
void leg_miss(struct leg *leg, const char *why);
/* Appends the error response to a request for something that no server of the endpoint has. */
void legs_append_unknown(struct slice request, struct buf *out);
/*
 * Sends a request to a leg that is not being opened. The answer may come before this returns. False: it
 * is refused, and an error response, with the request's id, was appended to error_r. That is so if the
 * leg is not open; one that is hidden answers like what no server has.
 */
bool leg_ask(struct leg *leg, struct slice request, const struct access *access,
	     leg_answer_fn *on_answer, void *arg, struct buf *error_r) must_check;
/* The same for a request of our own, whose answer is not needed, on behalf of the last caller. */
void leg_send(struct leg *leg, const char *method, struct slice params);
/* Sends a notification to the leg, on behalf of the last caller. False: it was not let through. */
bool leg_notify(struct leg *leg, struct slice notification);
/*
 * The leg and the id there of a request that its server has sent, by the id that its client got; NULL:
 * there is none, or the leg is not open.
 */
struct leg *leg_find_by_id(struct legs *legs, struct json id, struct slice *own_r);
/* Why none of the servers is there; REASON_NONE: some is, or may be. */
enum reason legs_loss(const struct legs *legs);
/* The request, which was sent to it, may begin or end a subscription. */
void leg_note_subscription(struct leg *leg, const struct envelope *env);
/* Logs that names in this list collide, if some do. */
void legs_tell_doubles(const struct legs *legs, const struct catalogue *catalogue,
		       struct slice list);
