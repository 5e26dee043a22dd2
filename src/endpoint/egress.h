/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one door out: here a response, or another message of a server, becomes bytes for its client, whatever the front
 * and the form. What is to look at it, to change it or to withhold it on its last step belongs here.
 */
#ifndef MCPGATED_ENDPOINT_EGRESS_H
#define MCPGATED_ENDPOINT_EGRESS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "endpoint/answer.h"
#include "jsonrpc/msg.h"

/* One response as a whole JSON answer with this HTTP status; it is the concatenation of the parts. */
void egress_send(const struct answer *answer, int status, const struct slice *parts, size_t count);
/* One more response of a batch, in the array that answers it. */
void egress_append_element(struct buf *array, struct slice message);
/* The array, which is not empty, as a whole JSON answer. */
void egress_send_array(const struct answer *answer, struct buf *array);
/* A message as an event of a stream; `id` may be empty. */
void egress_append_event(struct buf *out, struct slice id, struct slice message);

/* One message of the parts, to wait in a stream or for the rest of its batch. The caller has the reference. */
struct msg *egress_join(const struct slice *parts, size_t count);

#endif
