/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP+SSE client as its POSTs see it (sse_post). http_sse manages its lifetime and stream. */
#ifndef MCPGATED_ENDPOINT_SSE_CLIENT_H
#define MCPGATED_ENDPOINT_SSE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"

struct admission;
struct caller;
struct envelope;
struct sse_client;

/*
 * The client with this id (SESSION_ID_LENGTH characters); NULL: unknown, or of another principal or
 * server. Binds the caller to the client's server, or else to the one that accepts new sessions:
 * caller_settle. FRONT-SESS-05
 */
struct sse_client *sse_client_find(struct caller *caller, const char *id);
/* Fills in what admission needs to know of the session. */
void sse_client_show(const struct sse_client *client, struct admission *admission);
/*
 * A message, or the lack of one for some time, shows that the client has initialized before:
 * resumes it, in its session or a new one. Only for a client that may (see session_named).
 * FRONT-OLD-09
 */
void sse_client_go_on(struct sse_client *client);
/* Forwards an admitted message. The client may have ended afterwards. */
void sse_client_forward(struct sse_client *client, const struct admission *admission,
			const struct envelope *env);
/* Sends the client a message, joined from the parts. The client may have ended afterwards. */
void sse_client_tell(struct sse_client *client, const struct slice *parts, size_t count);

#endif
