/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The single entrance for what clients send: every check that may refuse it runs here, in a fixed
 * order, whatever the transport. Only admitted messages can be handed to the router
 * (router/client.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "io/peer.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"
#include "router/audit_call.h"
#include "router/client.h"

struct call_refusal;
struct modern_head;

enum front {
	FRONT_STREAMABLE,
	FRONT_HTTP_SSE,
	FRONT_STATELESS,
	FRONT_AGGREGATE, /* an endpoint over several servers, on behalf of its clients */
};

enum admission_intent {
	ADMISSION_SEND,   /* a body of messages */
	ADMISSION_LISTEN, /* opens a stream */
	ADMISSION_END,    /* ends the session */
};

/*
 * The session that a request names, and its state. Streamable HTTP has the session id in a header
 * field. HTTP+SSE has a client id in the query, and that client may not have a session yet.
 */
struct session_named {
	bool is_named;
	struct slice id;   /* Streamable HTTP: what the field says; any bytes; or empty */
	bool is_known;     /* it exists, belongs to this caller and to this endpoint */
	bool is_taken;     /* by another node, after the head came */
	bool is_opening;   /* its initialize request is in flight */
	bool is_replaying; /* HTTP+SSE: that one is ours, for a client that returned */
	bool is_lost;      /* HTTP+SSE: its stream has no connection */
	/* HTTP+SSE: it may have initialized before, as another client. FRONT-OLD-09 */
	bool may_go_on;
	bool says_so;          /* and claims so, in the header of its GET */
	struct client *client; /* NULL: it has not begun yet, or is not known */
};

/* A client's message on its way in. */
struct admission {
	/* Set by the front; borrowed until admission_fini: */
	enum front front;
	enum admission_intent intent;
	/* Who, and to which server; gets the rights of the configuration in use on admission. */
	struct caller *caller;
	const struct peer *peer; /* the client's address */
	struct session_named session;
	bool is_resuming;   /* ADMISSION_LISTEN: an existing stream, with Last-Event-ID */
	bool names_version; /* in the header */
	struct slice version;
	const struct modern_head *head; /* Streamable HTTP: what the header says of the body */
	struct slice body;
	bool takes_results; /* a refusal may be sent as a call's result. AUTH-SCP-11 */
	bool may_pause;     /* see has_paused */
	/* Set by admission_admit: */
	/*
	 * It has given way (io/aside): neither admitted nor refused. If its client is still there, the front is to
	 * say anew which session it is, and call once more; what has been found out stays.
	 */
	bool has_paused;
	/* Neither admitted nor refused: its client has to resume first, and then it is admitted. */
	bool goes_on;
	struct client *client;     /* of the session; NULL: it does not exist yet */
	struct envelope *messages; /* in order, each in its plain spelling */
	size_t count;
	size_t requests;
	bool is_batch;
	bool is_initialize;
	bool has_no_effect;        /* a modern notification: accepted and ignored. FRONT-POST-10 */
	struct admitted *admitted; /* for the router; with ADMISSION_SEND */
	struct refusal refusal;    /* if it was not admitted */
	/* What has been found out: */
	bool is_read, is_readable, has_real_names;
	const struct endpoint *judged_for; /* by whose rules; NULL: not yet */
	const char *arguments_why;         /* NULL: nothing is wrong with the arguments */
	struct rule arguments_rule;
	/* Storage for the above: */
	struct audit_origin origin;
	struct buf traced; /* a single request, with the trace from its header */
	struct buf *plain; /* for each message: its plain spelling, if it had another one */
	struct buf plain_single;
	struct buf
		*forms; /* for each message: the canonical form of its arguments, if it is long */
	/* Not zeroed; written before they are read: */
	struct envelope single; /* what `messages` points to, unless the body is a batch */
	struct error err;
};

/* Zeroes everything except the members that are written before they are read. */
static inline void admission_init(struct admission *admission)
{
	memset(admission, 0, offsetof(struct admission, single));
}

/* The name for audit records; the operator's own frontend has one name for all fronts. */
const char *front_name(enum front front, const struct frontend *frontend);
/*
 * Whether the message is admitted. Every request in a refused one is recorded. admission_fini must
 * follow in either case. SEC-63
 */
bool admission_admit(struct admission *admission) must_check;
/*
 * For call_ops.judge: whether the caller's call, which was admitted before a reload, would be
 * admitted now.
 */
bool admission_judge(struct caller *caller, struct call *call, const struct envelope *env,
		     struct call_refusal *refusal_r);
void admission_fini(struct admission *admission);
