/* SPDX-License-Identifier: Apache-2.0 */
/* Three forms of one message: a body, an element of an array, an event. */
#include "endpoint/egress.h"

#include "http/sse.h"
#include "obs/log.h"

void egress_send(const struct answer *answer, int status, const struct slice *parts, size_t count)
{
	CHECK(count > 0);
	log_payload("to_client", NULL, parts, count);
	answer_json(answer, status, parts, count);
}

void egress_append_element(struct buf *array, struct slice message)
{
	CHECK(message.n > 0);
	log_payload("to_client", NULL, &message, 1);
	buf_append_char(array, array->len > 0 ? ',' : '[');
	buf_append_slice(array, message);
}

void egress_send_array(const struct answer *answer, struct buf *array)
{
	CHECK(array->len > 0);
	buf_append_char(array, ']');
	answer_json(answer, 200, (struct slice[]){ buf_slice(array) }, 1);
}

void egress_append_event(struct buf *out, struct slice id, struct slice message)
{
	CHECK(message.n > 0);
	log_payload("to_client", NULL, &message, 1);
	sse_append_message(out, id, message);
}

struct msg *egress_join(const struct slice *parts, size_t count)
{
	struct buf text = { 0 };

	CHECK(count > 0);
	for (size_t i = 0; i < count; i++)
		buf_append_slice(&text, parts[i]);
	return msg_new_take(&text);
}
