/* SPDX-License-Identifier: Apache-2.0 */
/* A client of HTTP+SSE, as its POSTs see it (sse_post). Its life and its stream are http_sse's. */
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

/* The client of this id, SESSION_ID_LENGTH characters; another principal's or another server's is not there: NULL. FRONT-SESS-05 */
struct sse_client *sse_client_find(const struct caller *caller, const char *id);
/* What the admission of a message has to know of its session. */
void sse_client_show(const struct sse_client *client, struct admission *admission);
/*
 * A message has come, or none for some time, that tells that the client has initialized before: it goes on, in its session or
 * in a new one. Only of one that may (see session_named). FRONT-OLD-09
 */
void sse_client_go_on(struct sse_client *client);
/* One that was admitted. The client may have ended afterwards. */
void sse_client_forward(struct sse_client *client, const struct admission *admission,
			const struct envelope *env);
/* Sends the client a message, the parts joined. The client may have ended afterwards. */
void sse_client_tell(struct sse_client *client, const struct slice *parts, size_t count);

#endif
