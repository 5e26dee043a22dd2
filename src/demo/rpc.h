/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 messages to the client, one per line on standard output. Writing blocks until the
 * client reads; if it is gone, the process ends.
 */
#ifndef MCPGATED_DEMO_RPC_H
#define MCPGATED_DEMO_RPC_H

#include <jansson.h>

#include "mcp/error.h"

/* Each takes its last argument. id is borrowed; NULL if it could not be read. */
void rpc_send_result(const json_t *id, json_t *result);
void rpc_send_error(const json_t *id, int code, const char *text, json_t *data);
void rpc_send_notification(const char *method, json_t *params);
void rpc_send_request(json_int_t id, const char *method, json_t *params);

#endif
