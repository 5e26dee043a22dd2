/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON-RPC message: immutable bytes, shared by reference count. */
#ifndef MCPGATED_JSONRPC_MSG_H
#define MCPGATED_JSONRPC_MSG_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct msg {
	unsigned int refs;
	struct slice text;
	char *owned; /* the allocation that text lies in, if it is not behind this struct */
};

/* A copy of `text`. Shared (ref): the caller has one reference. */
struct msg *msg_new(struct slice text);
/* Takes the bytes of buf, which is empty afterwards. */
struct msg *msg_new_take(struct buf *buf);
struct msg *msg_ref(struct msg *msg);
/* Accepts a pointer to NULL; sets the pointer to NULL. */
void msg_unref(struct msg **msg);

#endif
