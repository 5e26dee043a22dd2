/* SPDX-License-Identifier: Apache-2.0 */
/* Which endpoint a path is for: that of a server that takes new sessions, or of one that a reload has retired. */
#ifndef MCPGATED_ENDPOINT_ENDPOINT_TABLE_H
#define MCPGATED_ENDPOINT_ENDPOINT_TABLE_H

#include "endpoint/frontend.h"

/*
 * The endpoint of this path, without a slash at its end, and what the path is for; NULL: there is none. One that is
 * retired is found where no other has its path.
 */
const struct endpoint *endpoint_find(struct frontend *frontend, struct slice path,
				     enum endpoint_role *role_r);
/*
 * The endpoint that has the path of this one and this server; NULL: one that is not retired. If there is none, that one
 * itself.
 */
const struct endpoint *endpoint_find_other(const struct frontend_conf *conf,
					   const struct endpoint *endpoint,
					   const struct server *server);

#endif
