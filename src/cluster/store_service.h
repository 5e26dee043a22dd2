/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of mcpgated-store: it writes what the gateway keeps of its sessions (router/kept_sessions)
 * to the store of the cluster, takes over those of other nodes when the gateway asks, and says which
 * of its own others have taken. One service belongs to one gateway, and ends with it. CLU-*
 *
 * In the store each session, or leg of one, is a hash PREFIX:s:ID, where ID is the digest in its line:
 *
 *	n   the node that has it
 *	o   its owner and its server, as its line has them: "owner":"…","server":"…"
 *	l   its line
 *
 * It expires sessions.idle_timeout after its node has last said that it is there. Whoever takes one
 * over announces that on the channel PREFIX:news: "taken NODE ID", the node that has lost it.
 *
 * The logs of a session's streams (session/stream_log.h) are texts PREFIX:e:ID:NUMBER, with the number of the
 * stream; the set PREFIX:e:ID has these numbers. They are written like its line, a few milliseconds
 * after they have grown, if the store answers: it gets more when it has answered what it got.
 *
 * PREFIX:since is the second in which a node first found the store empty. In the next STORE_YOUNG_S
 * seconds a session that is not there may be one that its node has not written again yet: 503.
 *
 * What operators have said about denied tokens (session/deny_list.h) is in the hash PREFIX:denials. A
 * field is what they are denied by, "BY<tab>ISSUER<tab>NAME"; its value "CHANGED EFFECT UNTIL", in digits of
 * fixed width, so that the greater text is what counts: when that was said, 1 denied or 0 not any more, and
 * until when. Whoever changes one announces it: "denial VALUE<tab>FIELD".
 *
 * The gateway asks (io/ipc.def) of `kind`:
 *
 *	FETCH_STORE_SAVED   what is in its memory file has changed; token: "ID ID…" of those that have ended.
 *	                    Answered at once: 200; 503: the store cannot be reached
 *	FETCH_STORE_LOGGED  the logs in its other memory file have changed. 200: the store has them, or has refused
 *	                    them; 503: it cannot be reached
 *	FETCH_STORE_TAKE    token: what `o` must be, a line end, "ID ID…" of a session and its legs; one more line
 *	                    end: its logs are not wanted, if this node had it. 200: it
 *	                    is this node's, the body is their lines, and behind the first one its logs, each "log BYTES", a line
 *	                    end and its text (as many as it may have); etag the node that had it; 404: the
 *	                    store has none of this owner and server; 503: the store cannot be reached, or is young
 *	FETCH_STORE_DENY    its operator has said something about denied tokens; token: lines "VALUE<tab>FIELD".
 *	                    200; 503: the store cannot be reached
 *	FETCH_STORE_COUNT   what its gateway has counted, sealed (router/seal.h): lines "rate KEY MICROSECONDS" and "failures
 *	                    KEY COUNT". The other nodes are told on the channel: "counts NODE TEXT". 200; 503: the store cannot be
 *	                    reached, and nobody will be told
 *	FETCH_STORE_WATCH   answered as soon as there is something to say, in lines: "up", after which the
 *	                    gateway tells all that its operator has said about denials; "down WHY";
 *	                    "lost ID"; "denial VALUE<tab>FIELD"; "counts TEXT" of other nodes
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "io/loop.h"

#define STORE_YOUNG_S "10"
#define STORE_LINES_BYTES_MAX \
	(8 * 1024) /* of news, or of one FETCH_STORE_DENY, before the last line */
#define STORE_TAKING_MAX \
	8 /* FETCH_STORE_TAKE that the store is asked at a time: each may bring much */
#define STORE_LOGS_MAX 256 /* that come with a session */
#define STORE_TAKE_MAX 66  /* IDs: a session, and a leg for each server of its endpoint */

/* Set together: `store` says whether there is a cluster. */
struct cluster_conf {
	char *node;  /* its name */
	char *store; /* as cluster/store_url.h takes it; not known to the gateway */
	char *username;
	char *password;
	char *seal_key; /* known to the keeper alone, and what it makes of it to gateways */
	char *ca_file;
	struct slice ca; /* PEM; empty: the system's */
	char *prefix;
	bool plaintext;
};

struct store_service;
/* The gateway is gone, or violates the protocol. */
typedef void store_service_end_fn(void *arg);

struct tls_client;

struct store_service_conf {
	const struct cluster_conf *cluster;
	const struct tls_client *trust; /* for a store with TLS; borrowed */
	uint64_t idle_ms;               /* of sessions */
	/* The gateway's memory files, to read; borrowed for the call. */
	int sessions;
	int streams;
};

/*
 * Takes ownership of fd, an end of a SOCK_SEQPACKET pair; conf->cluster is borrowed. Returns NULL and
 * err if the memory file cannot be read; fd then stays the caller's.
 */
struct store_service *store_service_new(struct loop *loop, const struct store_service_conf *conf,
					int fd, store_service_end_fn *on_end, void *arg,
					struct error *err) must_check;
/* Accepts a pointer to NULL. Must not be called from on_end. */
void store_service_free(struct store_service **service);
