/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One meaning, one reading: JSON has many spellings for a text, and some libraries write an empty
 * object as an array. What the gateway reads of a message is brought to one spelling where the
 * message comes in, from clients as from servers, so that all other code may compare bytes.
 */
#ifndef MCPGATED_JSONRPC_PLAIN_H
#define MCPGATED_JSONRPC_PLAIN_H

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

enum plain_flags {
	PLAIN_HANDSHAKE = 1, /* it may be the response to a handshake, with capabilities */
};

/*
 * As scan_envelope, but reads the message in its plain spelling:
 *
 *   - names in ASCII, the method and the strings that the envelope hands out are written without
 *     escapes that need not be (as `\/` in PHP's default); others, ids among them, stay as they are
 *   - `[]` is written as `{}` where MCP has an object: params, arguments, _meta, result,
 *     capabilities and what is declared in them
 *
 * scan_flags  for scan_envelope
 * room        if the message had another spelling, its plain one is here, and the slices of env_r
 *             point into it; else it is not touched. The caller frees it after env_r
 *
 * RFC 8259 §7; RPC-08.
 */
int plain_scan(struct slice text, const struct scan_limits *limits, unsigned int scan_flags,
	       unsigned int plain_flags, struct buf *room, struct envelope *env_r,
	       struct error *err) must_check;

#endif
