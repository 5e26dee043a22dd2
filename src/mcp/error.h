/* SPDX-License-Identifier: Apache-2.0 */
/* The error codes that the gateway itself sends. JSON-RPC 2.0 §5.1; requirements.md §19. */
#pragma once

enum mcp_error {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_METHOD_NOT_FOUND = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_SESSION_NOT_FOUND = -32001,
	MCP_HEADER_MISMATCH = -32020,
	MCP_MISSING_CAPABILITY = -32021,
	MCP_UNSUPPORTED_VERSION = -32022,
};
