/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages to a server: those of clients, with some spans replaced and every other byte
 * unchanged, and our own. They are built in a buffer that all upstreams share. BACK-FRAME-01,
 * BACK-MSG-06.
 */
#ifndef MCPGATED_UPSTREAM_SEND_H
#define MCPGATED_UPSTREAM_SEND_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/splice.h"

struct modern_request;
struct upstream;

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
 * Removes from _meta what only the modern era may say. Unless `token` is empty, it replaces the
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

#endif
