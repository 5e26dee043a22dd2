/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to a server: a client's with some spans replaced and everything else byte for byte as it was, and our own.
 * They are put together in a buffer that all upstreams share. BACK-FRAME-01, BACK-MSG-06.
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

/* What is replaced in a message. All zeros to begin with. */
struct send_edits {
	struct splice_edit items[SEND_EDITS_MAX];
	size_t count;
	struct buf meta; /* _meta, written anew */
};

/* Both slices are borrowed until the message is sent; `span` lies in it. Spans do not overlap. */
void send_edits_add(struct send_edits *edits, struct slice span, struct slice with);
/* Takes out of _meta what only the modern era may say; the progress token, unless `token` is empty, becomes that. */
void send_edits_add_meta(struct send_edits *edits, const struct envelope *env, struct slice token);
void send_edits_fini(struct send_edits *edits);

/* The message of `env`, edited. */
void send_message(struct upstream *upstream, const struct envelope *env,
		  const struct send_edits *edits);
/*
 * A request of our own under this id (upstream_next_id), with what the server's era wants of one; params is JSON text of an
 * object, or empty for none.
 */
void send_request(struct upstream *upstream, uint64_t id, struct slice method, struct slice params);
/* A request of a client, with these params (JSON text, or empty), to a server of the modern era. */
void send_modern_request(struct upstream *upstream, uint64_t id, struct slice method,
			 struct slice params, const struct modern_request *request);
/* One of `method`, resources/subscribe or /unsubscribe; `uri` is the inside of a JSON string. */
void send_subscription(struct upstream *upstream, uint64_t id, struct slice method,
		       struct slice uri);
/* The initialize request of its setup, with this id. -1: that is no valid request. BACK-INIT-01, -02 */
int send_initialize(struct upstream *upstream, uint64_t id) must_check;
/* Tells the server that the session may begin. BACK-INIT-01 */
void send_initialized(struct upstream *upstream);
/* Nobody wants the answer to our request `id` any more; `reason` is a JSON string, or empty. CXL-05 */
void send_cancelled(struct upstream *upstream, uint64_t id, struct slice reason);
/* The same with a reason as plain text. */
void send_given_up(struct upstream *upstream, uint64_t id, const char *why);

/* Answers to the server's own request `id`, as it wrote that. */
void send_result(struct upstream *upstream, struct slice id, struct slice result);
void send_error(struct upstream *upstream, struct slice id, int code, struct slice message);

#endif
