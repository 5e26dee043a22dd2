/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON-RPC message: immutable bytes, reference-counted. */
#ifndef MCPGATED_JSONRPC_MSG_H
#define MCPGATED_JSONRPC_MSG_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct msg {
	unsigned int refs;
	struct slice text;
	char *owned; /* the allocation that contains text, unless it follows this struct */
};

/* Copies `text`. The caller owns one reference. */
struct msg *msg_new(struct slice text);
/* Takes over the bytes of buf, which is empty afterwards. The caller owns one reference. */
struct msg *msg_new_take(struct buf *buf);
struct msg *msg_ref(struct msg *msg);
/*
 * Accepts a pointer to NULL; sets the pointer to NULL. Frees the message with the last reference.
 */
void msg_unref(struct msg **msg);

#endif
