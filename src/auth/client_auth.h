/* SPDX-License-Identifier: Apache-2.0 */
/* Who we are, for an issuer that we ask about tokens. AUTH-OPQ-01 */
#ifndef MCPGATED_AUTH_CLIENT_AUTH_H
#define MCPGATED_AUTH_CLIENT_AUTH_H

#include "base/buf.h"
#include "base/slice.h"

/* Appends the text as application/x-www-form-urlencoded, every doubtful byte as %XX. */
void client_auth_append(struct buf *out, struct slice text);
/* `Basic …` as RFC 6749 s2.3.1 wants it: both parts form-encoded first. The caller's. */
char *client_auth_basic(const char *client_id, const char *client_secret);
/* `client_id=…&client_secret=…&`, form-encoded. The caller's. */
char *client_auth_form(const char *client_id, const char *client_secret);

#endif
