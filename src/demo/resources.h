/* SPDX-License-Identifier: Apache-2.0 */
/* The resources demo://clock, demo://counter and demo://echo/{text}. MCP resources. */
#ifndef MCPGATED_DEMO_RESOURCES_H
#define MCPGATED_DEMO_RESOURCES_H

#include "demo/call.h"
#include "demo/server.h"

json_t *resources_list(struct server *server, struct call *call);
json_t *resources_list_templates(struct server *server, struct call *call);
json_t *resources_read(struct server *server, struct call *call);
json_t *resources_subscribe(struct server *server, struct call *call);
json_t *resources_unsubscribe(struct server *server, struct call *call);

/* Increments demo://counter and notifies the subscriber, if any. */
void resources_bump(struct server *server);
/* The wall clock in RFC 3339 form, UTC; a new string. */
json_t *resources_time(void);

#endif
