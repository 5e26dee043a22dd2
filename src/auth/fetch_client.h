/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's way to what issuers publish and answer, and to the collector of traces: it asks the program that fetches,
 * by number. That may end and be started again: what it was asked then ends without an answer; what is asked meanwhile
 * waits for the next one. SEC-10, SEC-61
 */
#ifndef MCPGATED_AUTH_FETCH_CLIENT_H
#define MCPGATED_AUTH_FETCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "auth/fetch.h"
#include "auth/fetch_wire.h"
#include "base/slice.h"
#include "io/loop.h"

/* The longest that an inquiry takes, whatever the other side does: longer than all that it may have to fetch. */
#define INQUIRY_MS 45000

struct fetch_client;
struct inquiry;

/* The answer is borrowed, and bounded as that of fetch_start. */
typedef void inquiry_done_fn(struct inquiry *inquiry, const struct fetch_answer *answer);

/* Embedded by its owner, which sets on_done; zeroed otherwise. */
struct inquiry {
	inquiry_done_fn *on_done;
	struct asked *asked; /* private; NULL when nothing is under way */
};

struct fetch_client *fetch_client_new(struct loop *loop);
/* What is still under way ends without a callback. Accepts NULL. */
void fetch_client_free(struct fetch_client **client);
/* Takes the descriptor, an end of a pair whose other end a new fetcher has; what was connected before is closed. */
void fetch_client_connect(struct fetch_client *client, int fd);

/*
 * Asks; on_done comes later, exactly once, from the loop, unless inquiry_cancel comes first. It may start the next
 * inquiry and may free `inquiry`.
 *
 * issuer   its number in the configuration
 * etag     FETCH_KEYS: of the set that is known, or NULL; at most FETCH_FIELD_BYTES_MAX
 * token    FETCH_INTROSPECTION: what is asked about, at most VERIFIER_TOKEN_BYTES_MAX
 */
void inquiry_start(struct fetch_client *client, struct inquiry *inquiry, enum fetch_kind kind,
		   size_t issuer, const char *etag, struct slice token);
/* Likewise: sends the collector this body, of 1 to COLLECTOR_BODY_BYTES_MAX bytes, which is copied. */
void inquiry_start_spans(struct fetch_client *client, struct inquiry *inquiry, struct slice body);
/* Also if nothing is under way. */
void inquiry_cancel(struct inquiry *inquiry);
bool inquiry_is_running(const struct inquiry *inquiry);
/* Whether no inquiry of the client's is under way. */
bool fetch_client_is_idle(const struct fetch_client *client);

#endif
