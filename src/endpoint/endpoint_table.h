/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps paths to endpoints: of servers that accept new sessions, or of servers that a reload has
 * retired.
 */
#ifndef MCPGATED_ENDPOINT_ENDPOINT_TABLE_H
#define MCPGATED_ENDPOINT_ENDPOINT_TABLE_H

#include "endpoint/frontend.h"

/*
 * The endpoint for this path (without a trailing slash), and the path's role there; NULL: none. A
 * retired one is found only if no other has its path.
 */
const struct endpoint *endpoint_find(struct frontend *frontend, struct slice path,
				     enum endpoint_role *role_r);
/*
 * The endpoint with the same path as this one, for this server; server NULL: one that is not
 * retired. Falls back to `endpoint` itself.
 */
const struct endpoint *endpoint_find_other(const struct frontend_conf *conf,
					   const struct endpoint *endpoint,
					   const struct server *server);

#endif
