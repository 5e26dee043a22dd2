/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This gateway as a node of a cluster: what it keeps of its sessions is in a store as well, from which
 * other nodes take them over, and it from others. It asks mcpgated-store (cluster/store_service). Nothing
 * waits for the store but a request that names a session which is not live here. CLU-*
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/fetch_client.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/tally.h"
#include "base/slice.h"
#include "io/loop.h"
#include "router/digest.h"
#include "session/session.h"

struct principal;
struct router;
struct server;

#define CLUSTER_ASK_MS 1500
/* Requests that wait for the store; of one caller. */
#define CLUSTER_ASKING_MAX 512
#define CLUSTER_ASKING_EACH 64
#define CLUSTER_LOST_MAX 256 /* sessions that are remembered */

typedef void cluster_denials_fn(void);

/* What the nodes count together. */
enum cluster_count { CLUSTER_FAILURES, CLUSTER_RATES, CLUSTER_COUNT_KINDS };

struct cluster {
	struct router *router;
	struct fetch_client *client; /* NULL: there is no cluster */
	char name[SESSION_NODE_MAX + 1];
	struct slice node; /* that */
	struct inquiry saved;
	struct inquiry logged;
	struct timer logging; /* changes of logs within this time are told together */
	struct inquiry watch;
	struct inquiry deny;
	struct inquiry count;
	struct timer counting; /* what is counted within this time is told together */
	struct tally *tallies[CLUSTER_COUNT_KINDS];
	cluster_denials_fn *on_denials;
	struct list asking; /* struct cluster_ask */
	size_t asking_count;
	bool is_unsaved;                /* since `saved` was asked */
	bool is_unlogged;               /* likewise */
	size_t asked_ended, told_ended; /* kept_sessions_ended: that `saved` tells, that was told */
	struct digest lost[CLUSTER_LOST_MAX]; /* a ring: sessions that other nodes have taken */
	uint16_t lost_count;                  /* since the start; begins anew behind its last */
	bool is_up;
	bool is_judged; /* mcpgated-store has said so, or that it is not */
	bool is_full;   /* the list of denials, and that was logged */
	char why[160];  /* it is not */
};

/*
 * node: its name; NULL: there is no cluster, and nothing else may be called but cluster_fini,
 * cluster_is_busy and cluster_tell_denials. on_denials: other nodes have changed the router's list of denials.
 */
void cluster_init(struct cluster *cluster, struct router *router, const char *node,
		  cluster_denials_fn *on_denials);
void cluster_fini(struct cluster *cluster);
/* Whether the store, which can be reached, still has to get something of what is kept. */
bool cluster_is_busy(const struct cluster *cluster);
/* The other nodes are told what is counted here, until cluster_fini, and this one what they count. Rates are shared from the beginning. */
void cluster_share(struct cluster *cluster, enum cluster_count kind, struct tally *tally);
/* A new mcpgated-store runs: takes ownership of the descriptor. */
void cluster_connect(struct cluster *cluster, int fd);
/* The operator has changed the list of denials: tells the other nodes, as soon as the store can be reached. */
void cluster_tell_denials(struct cluster *cluster);

/*
 * Whether another node has taken the session since lost_count was `since`: a request whose head came then is
 * to try again. Also true if so many were taken that this one may be among them.
 */
bool cluster_has_lost(const struct cluster *cluster, struct slice id, uint16_t since);

struct cluster_ask;
/*
 * What the store has of the session is here, or there is none. is_known false: the store cannot be
 * asked, and the session, which does not sleep here either, may be another node's. It may free `ask`.
 */
typedef void cluster_asked_fn(struct cluster_ask *ask, bool is_known);

/* Embedded by its owner, which sets on_done; otherwise zeroed. */
struct cluster_ask {
	cluster_asked_fn *on_done;
	struct cluster *cluster; /* NULL: nothing is asked */
	struct list link;
	struct inquiry inquiry;
	struct timer deadline;
	const struct principal *principal; /* only compared */
	struct buf question;
	struct digest id;
};

/* Whether the store is to be asked before it is said that there is no such session. */
bool cluster_must_ask(const struct cluster *cluster, struct slice id);
/*
 * Asks for the session of this id, of this principal at this server, which are borrowed for the call.
 * on_done is called once, later, unless cluster_ask_cancel comes first.
 */
void cluster_ask_start(struct cluster *cluster, struct cluster_ask *ask, struct slice id,
		       const struct principal *principal, const struct server *server);
/* Also valid if nothing is asked. */
void cluster_ask_cancel(struct cluster_ask *ask);
