/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The single exit: here a response or another server message becomes bytes for its client, whatever
 * the front and format. Checks, changes or suppression at the last step belong here.
 */
#ifndef MCPGATED_ENDPOINT_EGRESS_H
#define MCPGATED_ENDPOINT_EGRESS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "endpoint/answer.h"
#include "jsonrpc/msg.h"

/*
 * Sends a response, the concatenation of the parts, as a complete JSON answer with this HTTP
 * status.
 */
void egress_send(const struct answer *answer, int status, const struct slice *parts, size_t count);
/* Appends a response to the array that answers a batch. */
void egress_append_element(struct buf *array, struct slice message);
/* Sends the array, which must not be empty, as a complete JSON answer. */
void egress_send_array(const struct answer *answer, struct buf *array);
/* Appends a message as a stream event; `id` may be empty. */
void egress_append_event(struct buf *out, struct slice id, struct slice message);

/*
 * Joins the parts into one message, for a stream or the rest of its batch. The caller owns a
 * reference.
 */
struct msg *egress_join(const struct slice *parts, size_t count);

#endif
