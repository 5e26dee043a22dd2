/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that a person gets whose browser was pointed here: what this is, and how clients connect. It is the same at every
 * path, so it tells nobody which servers there are; but to this machine's own user, where nobody needs a token, it does.
 * It loads nothing, runs nothing and is shown in no frame.
 */
#ifndef MCPGATED_ENDPOINT_LANDING_H
#define MCPGATED_ENDPOINT_LANDING_H

#include <stdbool.h>

#include "endpoint/frontend.h"

/* A GET of a browser that navigates: it asks for text/html by name, and for no event stream. Clients of MCP do not. */
bool landing_is_wanted(const struct frontend *frontend, const struct http_request *request);
/* Answers with it, 200. */
void landing_send(const struct frontend *frontend, const struct answer *answer,
		  const struct http_request *request);

#endif
