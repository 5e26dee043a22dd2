/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one door for what clients send: everything that may refuse it is asked here, in one order, whatever the way on
 * which it has come. Only what was admitted can be handed to the router (router/admitted.h).
 */
#ifndef MCPGATED_ENDPOINT_ADMISSION_H
#define MCPGATED_ENDPOINT_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "endpoint/caller.h"
#include "endpoint/refusal.h"
#include "io/peer.h"
#include "jsonrpc/scan.h"
#include "router/admitted.h"
#include "router/audit_call.h"

struct client;
struct modern_head;

enum front { FRONT_STREAMABLE, FRONT_HTTP_SSE, FRONT_STATELESS };

enum admission_intent {
	ADMISSION_SEND,   /* a body of messages */
	ADMISSION_LISTEN, /* opens a stream */
	ADMISSION_END,    /* ends the session */
};

/*
 * What a request names, and what there is of it. Streamable HTTP has the id of a session in a field of the head. In
 * HTTP+SSE the query has the id of a client, who may have no session yet.
 */
struct session_named {
	bool is_named;
	bool is_known;     /* it is there, and this caller's, at this endpoint */
	bool is_opening;   /* its initialize request is in flight */
	bool is_replaying; /* HTTP+SSE: and it is ours, for a client that has come back */
	bool is_lost;      /* HTTP+SSE: its stream has no connection */
	bool may_go_on; /* HTTP+SSE: it may have initialized before, as another client. FRONT-OLD-09 */
	bool says_so;          /* and says that it has, in the head of its GET */
	struct client *client; /* NULL: it has not begun yet, or is not known */
};

/* What a client has sent, on its way in. */
struct admission {
	/* Said by the front; all of it borrowed until admission_fini: */
	enum front front;
	enum admission_intent intent;
	struct caller *
		caller; /* who, and to which server; has the rights of the configuration in use when it is admitted */
	const struct peer *peer; /* where from */
	struct session_named session;
	bool is_resuming;   /* ADMISSION_LISTEN: a stream that has begun, with Last-Event-ID */
	bool names_version; /* in the head */
	struct slice version;
	const struct modern_head *head; /* Streamable HTTP: what it says of the body */
	struct slice body;
	bool takes_results; /* a refusal may stand in the result of a call. AUTH-SCP-11 */
	/* Found out: */
	bool goes_on; /* not admitted, nor refused: its client goes on first, then it is admitted */
	struct client *client;     /* of the session; NULL: it is not there yet */
	struct envelope *messages; /* in their order, each scanned once; slices into the body */
	size_t count;
	size_t requests;
	bool is_batch;
	bool is_initialize;
	bool has_no_effect; /* a modern notification: it is taken, and that is all. FRONT-POST-10 */
	struct admitted *admitted; /* what the router takes; with ADMISSION_SEND */
	struct refusal refusal;    /* if it was not */
	/* What these lie in: */
	struct audit_origin origin;
	struct buf traced; /* a single request, with the trace of its head */
	/* Filled before they are read: */
	struct envelope single; /* what `messages` is, unless the body is a batch */
	struct error err;
};

/* All zeros, but for what is filled before it is read. */
static inline void admission_init(struct admission *admission)
{
	memset(admission, 0, offsetof(struct admission, single));
}

/* How records name it; the operator's own frontend has one name for all. */
const char *front_name(enum front front, const struct frontend *frontend);
/* Whether it is admitted. Each request of what is not is recorded. End it with admission_fini in any case. SEC-63 */
bool admission_admit(struct admission *admission) must_check;
void admission_fini(struct admission *admission);

#endif
