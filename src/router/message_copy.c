/* SPDX-License-Identifier: Apache-2.0 */
#include "router/message_copy.h"

struct msg *message_copy(const struct envelope *env, const struct splice_edit *edits, size_t count)
{
	struct buf text = { 0 };
	struct msg *msg;

	splice_append(&text, env->text, edits, count, env->has_line_break ? SPLICE_ONE_LINE : 0);
	msg = msg_new(buf_slice(&text));
	buf_fini(&text);
	return msg;
}
