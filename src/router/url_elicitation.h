/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs that a legacy server wants to be opened before it does what it was asked: it answers -32042, and its error names
 * them. Reads such an error, writes what a modern client is asked for it, and reads what that client answers.
 *
 * What is wanted is JSON text of our own: an array of objects with `id`, `message` and `url`; one that the client has
 * accepted has its `id` alone. The client knows the first one as "e1". bridging.md §2.3.7
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
	(512 * 1024) /* of all that is wanted; it goes into a requestState */

/*
 * Appends what a server's error wants. False, and nothing is appended: it is another error, or not of the form that
 * 2025-11-25 has: an elicitation is malformed or not by URL, there is none, or there is more than the bounds above.
 */
bool url_elicitation_read(struct slice error, struct buf *wanted);
/* Appends the members of inputRequests that ask for what was not accepted yet. MOD-MRTR-02 */
void url_elicitation_append_requests(struct buf *out, struct slice wanted);

enum url_answers {
	URL_ANSWERS_ACCEPTED, /* all that was wanted */
	URL_ANSWERS_PARTIAL,  /* some are missing; none is declined */
	URL_ANSWERS_DECLINED, /* at least one is declined, or cancelled */
	URL_ANSWERS_MALFORMED,
};
/*
 * What `responses`, the member inputResponses, has for what was asked; other keys do not count. Of PARTIAL, what is wanted
 * from then on is appended to `left`. MOD-MRTR-05
 */
enum url_answers url_elicitation_read_answers(struct slice wanted, struct json responses,
					      struct buf *left);

#endif
