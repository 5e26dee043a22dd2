/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 messages to the client, one per line on standard output. Writing waits for the
 * reader; a reader that is gone ends the process.
 */
#ifndef MCPGATED_DEMO_RPC_H
#define MCPGATED_DEMO_RPC_H

#include <jansson.h>

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_UNKNOWN_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_UNKNOWN_RESOURCE = -32002, /* up to revision 2025-11-25 */
};

/* Each takes its last argument; id is borrowed, NULL for one that could not be read. */
void rpc_send_result(const json_t *id, json_t *result);
void rpc_send_error(const json_t *id, int code, const char *text, json_t *data);
void rpc_send_notification(const char *method, json_t *params);
void rpc_send_request(json_int_t id, const char *method, json_t *params);

#endif
