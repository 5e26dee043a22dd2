/* SPDX-License-Identifier: Apache-2.0 */
/* A server's message as a client gets it: some spans replaced, and no raw line breaks. */
#ifndef MCPGATED_ROUTER_MESSAGE_COPY_H
#define MCPGATED_ROUTER_MESSAGE_COPY_H

#include <stddef.h>

#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/splice.h"

/* The caller has the reference. Edits are in the order of their spans. */
struct msg *message_copy(const struct envelope *env, const struct splice_edit *edits, size_t count);

#endif
