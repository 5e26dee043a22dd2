/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs that a legacy server wants opened before it does what was asked: it answers -32042, and the
 * error names them. Reads such an error, writes the questions for a modern client, and reads that
 * client's answers.
 *
 * What is wanted is kept as JSON text of our own: an array of objects with `id`, `message` and
 * `url`; an accepted one has only its `id`. The client knows the first one as "e1". bridging.md
 * §2.3.7
 */
#ifndef MCPGATED_ROUTER_URL_ELICITATION_H
#define MCPGATED_ROUTER_URL_ELICITATION_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

#define URL_ELICITATIONS_MAX 32     /* in one error */
#define URL_ELICITATION_ID_MAX 1024 /* bytes of an elicitationId */
#define URL_ELICITATIONS_BYTES_MAX \
	(512 * 1024) /* of all that is wanted, which goes into a requestState */

/*
 * Appends what a server's error wants. False, and nothing is appended: it is another error, or not
 * in the form of 2025-11-25 (an elicitation is malformed or not by URL, or there is none), or it
 * exceeds the bounds above.
 */
bool url_elicitation_read(struct slice error, struct buf *wanted);
/* Appends the members of inputRequests for what was not accepted yet. MOD-MRTR-02 */
void url_elicitation_append_requests(struct buf *out, struct slice wanted);

enum url_answers {
	URL_ANSWERS_ACCEPTED, /* everything that was wanted */
	URL_ANSWERS_PARTIAL,  /* some are missing; none is declined */
	URL_ANSWERS_DECLINED, /* at least one is declined or cancelled */
	URL_ANSWERS_MALFORMED,
};
/*
 * Reads the answers in `responses`, the member inputResponses; other keys are ignored. For PARTIAL,
 * appends what is still wanted to `left`. MOD-MRTR-05
 */
enum url_answers url_elicitation_read_answers(struct slice wanted, struct json responses,
					      struct buf *left);

#endif
