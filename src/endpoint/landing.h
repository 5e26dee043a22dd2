/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page for a person whose browser was pointed here: what this is, and how clients connect. It
 * is the same at every path, so it reveals no servers, except to this machine's own user where no
 * token is required. It loads nothing, runs nothing, and cannot be framed.
 */
#ifndef MCPGATED_ENDPOINT_LANDING_H
#define MCPGATED_ENDPOINT_LANDING_H

#include <stdbool.h>

#include "endpoint/frontend.h"

/*
 * Whether it is a browser's navigation: a GET that accepts text/html by name and no event stream.
 * MCP clients differ.
 */
bool landing_is_wanted(const struct frontend *frontend, const struct http_request *request);
/* Answers with the page, 200. */
void landing_send(const struct frontend *frontend, const struct answer *answer,
		  const struct http_request *request);

#endif
