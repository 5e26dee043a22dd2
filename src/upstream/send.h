/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages to a server: those of clients, with some spans replaced and every other byte
 * unchanged, and our own. They are built in a buffer that all upstreams share. What is said to
 * servers at their start, and what the modern era requires, is here as well. BACK-FRAME-01,
 * BACK-MSG-06.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

struct modern_request;
struct principal;
struct revision;
struct server_conf;
struct upstream;
struct upstream_era;

/* What a server is told when it starts; borrowed while its upstream has this owner. */
struct upstream_setup {
	struct msg *initialize; /* the request; NULL: modern era, and for no client in particular */
	const struct revision *revision; /* the one requested */
	struct buf claims;               /* that the process gets: claims_append */
	struct principal *
		principal; /* for whose token it gets one (conf.for_caller), a reference; else NULL */
	const struct upstream_era *era; /* NULL: legacy */
	struct buf capabilities; /* of its clients, in the form of the modern era: JSON text */
};

/*
 * Appends the claims that the server declares (`${claim:NAME}` in its env), with the values of the
 * principal's last token, in the format of IPC_START; nothing if it declares none. Returns -1 if a
 * claim is missing, which is logged. AUTH-DWN-02
 */
int claims_append(struct buf *out, const struct server_conf *conf,
		  const struct principal *principal) must_check;

#define SEND_EDITS_MAX 4

/* The replacements in a message. All zeros initially. */
struct send_edits {
	struct splice_edit items[SEND_EDITS_MAX];
	size_t count;
	struct buf meta; /* the rewritten _meta */
};

/*
 * Both slices are borrowed until the message is sent; `span` lies within it. Spans must not
 * overlap.
 */
void send_edits_add(struct send_edits *edits, struct slice span, struct slice with);
/*
 * Removes from _meta what only the modern era may say, or only we. Unless `token` is empty, it replaces the
 * progress token.
 */
void send_edits_add_meta(struct send_edits *edits, const struct envelope *env, struct slice token);
void send_edits_fini(struct send_edits *edits);

/* Sends the message of `env` with these edits. */
void send_message(struct upstream *upstream, const struct envelope *env,
		  const struct send_edits *edits);
/*
 * Sends a request of our own with this id (upstream_next_id) and what the server's era requires in
 * one. params is JSON text of an object, or empty for none.
 */
void send_request(struct upstream *upstream, uint64_t id, struct slice method, struct slice params);
/*
 * Sends a client's request, with these params (JSON text, or empty), to a server of the modern era.
 */
void send_modern_request(struct upstream *upstream, uint64_t id, struct slice method,
			 struct slice params, const struct modern_request *request);
/*
 * Sends a request of a modern client to a server of the modern era, with this id; unchanged except
 * for what `request` sets. BACK-MSG-04
 */
void send_passed_request(struct upstream *upstream, uint64_t id, const struct envelope *env,
			 const struct modern_request *request);
/*
 * Sends `method`, which is resources/subscribe or resources/unsubscribe; `uri` is the inside of a
 * JSON string.
 */
void send_subscription(struct upstream *upstream, uint64_t id, struct slice method,
		       struct slice uri);
/*
 * Sends the initialize request of its setup, with this id. Returns -1 if that is not a valid
 * request. BACK-INIT-01, -02
 */
int send_initialize(struct upstream *upstream, uint64_t id) must_check;
/* Sends notifications/initialized: the session may begin. BACK-INIT-01 */
void send_initialized(struct upstream *upstream);
/* Cancels our request `id`; `reason` is a JSON string, or empty. CXL-05 */
void send_cancelled(struct upstream *upstream, uint64_t id, struct slice reason);
/* The same, with the reason as plain text. */
void send_given_up(struct upstream *upstream, uint64_t id, const char *why);

/* Answer the server's own request `id`, which is JSON text as the server wrote it. */
void send_result(struct upstream *upstream, struct slice id, struct slice result);
void send_error(struct upstream *upstream, struct slice id, int code, struct slice message);

/* ---- modern servers ---- */

/*
 * What is sent to servers of the modern era, and what they say about themselves. The params of a
 * request state, in _meta, its revision, the client and the client's capabilities; a DiscoverResult
 * is converted to an InitializeResult. The requirements for requests of modern clients are in
 * endpoint/modern. bridging.md §2.2; BACK-MSG-01.
 */

#define MODERN_META "io.modelcontextprotocol/"

/* Changes to the params of a request. An empty slice means no change. */
struct modern_request {
	bool is_modern; /* from a modern client: _meta stays, except revision, level and token */
	struct slice capabilities;    /* of its client: JSON text; empty: those of the setup */
	struct slice token;           /* the new progress token; empty: none */
	int level;                    /* the level of log messages that its client wants, or -1 */
	struct slice cursor;          /* the new cursor: JSON text */
	struct slice task_id;         /* the new taskId: JSON text */
	struct slice input_responses; /* to the server's questions: JSON text */
	struct slice request_state;   /* that came with the server's questions: JSON text */
};

/*
 * Appends the params of a request. Members of `params` (JSON text of an object, or empty) stay as
 * they are, except those that `request` sets. BACK-MSG-04
 */
void modern_append_params(struct buf *out, const struct upstream_setup *setup, struct slice params,
			  const struct modern_request *request);
/*
 * Appends an InitializeResult equivalent to this DiscoverResult of the server called `name`. The
 * capability `tasks` is left out, as it does not belong to this era. Returns -1 if it is not a
 * DiscoverResult or names no revision we support.
 */
int modern_read_discovery(struct slice result, const char *name, struct buf *out) must_check;
/*
 * Whether an error (JSON text) says that the server does not support the requested revision, but
 * does support the modern one that we speak. BACK-ERA-02, -05
 */
bool modern_is_named(struct slice error);
