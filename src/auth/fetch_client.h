/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's access to what issuers publish and answer, and to the trace collector: it asks the
 * fetcher process, by issuer number. The fetcher may exit and be restarted: pending inquiries then
 * end without an answer; new ones wait for the next fetcher. SEC-10, SEC-61
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "auth/fetch.h"
#include "base/slice.h"
#include "io/loop.h"

/*
 * The maximum duration of an inquiry, whatever the other side does: longer than all the fetches it
 * may need.
 */
#define INQUIRY_MS 45000

struct fetch_client;
struct inquiry;

/* The answer is borrowed, and bounded like that of fetch_start. */
typedef void inquiry_done_fn(struct inquiry *inquiry, const struct fetch_answer *answer);

/* Embedded by its owner, which sets on_done; otherwise zeroed. */
struct inquiry {
	inquiry_done_fn *on_done;
	struct asked *asked; /* private; NULL when nothing is pending */
};

struct fetch_client *fetch_client_new(struct loop *loop);
/* Pending inquiries end without a callback. Accepts NULL. */
void fetch_client_free(struct fetch_client **client);
/*
 * Takes ownership of the descriptor, one end of a pair whose other end a new fetcher has; closes
 * the previous connection.
 */
void fetch_client_connect(struct fetch_client *client, int fd);

/*
 * Begins an inquiry; on_done is called later, exactly once, from the loop, unless inquiry_cancel
 * comes first. It may start the next inquiry and may free `inquiry`.
 *
 *	issuer   its number in the configuration; FETCH_TOKEN: that of the server among those with `auth`
 *	etag     FETCH_KEYS: of the known set, or NULL; at most FETCH_FIELD_BYTES_MAX
 *	token    FETCH_INTROSPECTION, FETCH_TOKEN: the token in question, at most VERIFIER_TOKEN_BYTES_MAX
 */
void inquiry_start(struct fetch_client *client, struct inquiry *inquiry, enum fetch_kind kind,
		   size_t issuer, const char *etag, struct slice token);
/*
 * Likewise: sends the collector this body, of 1 to COLLECTOR_BODY_BYTES_MAX bytes, which is copied.
 */
void inquiry_start_spans(struct fetch_client *client, struct inquiry *inquiry, struct slice body);
/* Also valid if nothing is pending. */
void inquiry_cancel(struct inquiry *inquiry);
bool inquiry_is_running(const struct inquiry *inquiry);
/* Whether the client has no pending inquiry. */
bool fetch_client_is_idle(const struct fetch_client *client);
