/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages. Knows nothing of what is in them. A copied text lies behind the struct, in the same
 * allocation; a taken one keeps its own.
 */
#include "jsonrpc/msg.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

struct msg *msg_new(struct slice text)
{
	struct msg *msg = mem_alloc(sizeof(*msg) + text.n);
	char *bytes = (char *)(msg + 1);

	if (text.n > 0)
		memcpy(bytes, text.p, text.n);
	*msg = (struct msg){ .refs = 1, .text = slice_of(bytes, text.n) };
	return msg;
}

struct msg *msg_new_take(struct buf *buf)
{
	struct msg *msg = mem_alloc(sizeof(*msg));

	CHECK(buf->len == 0 || buf->data != NULL);
	*msg = (struct msg){ .refs = 1, .text = buf_slice(buf), .owned = buf->data };
	*buf = (struct buf){ NULL, 0, 0 };
	return msg;
}

struct msg *msg_ref(struct msg *msg)
{
	CHECK(msg->refs > 0);
	msg->refs++;
	return msg;
}

void msg_unref(struct msg **msg)
{
	struct msg *old = *msg;

	*msg = NULL;
	if (old == NULL)
		return;
	CHECK(old->refs > 0);
	if (--old->refs > 0)
		return;
	free(old->owned);
	free(old);
}
