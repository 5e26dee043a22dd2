/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts messages between two sides that agreed on different revisions: kinds of content that the
 * reader's revision does not know become something it does. Unknown members are harmless and stay;
 * what cannot be parsed passes unchanged. bridging.md §3; FRONT-INIT-10.
 */
#pragma once

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"

/* A rewritten message. Zeroed or initialized with convert_init; released with convert_fini. */
struct convert {
	struct buf text;
	struct envelope env; /* slices into text; large, and unset while text is empty */
};

/* For hot paths, where it is rarely used: leaves `env` unset. */
static inline void convert_init(struct convert *convert)
{
	convert->text = (struct buf){ NULL, 0, 0 };
}

/*
 * Each of these returns `env` itself if nothing changes (at no cost if `lost` is 0), or else the
 * envelope of the changed message, which lives as long as *convert. `lost`: features that the
 * sender may use and the reader lacks (revision_lacks).
 */

/*
 * For those that write the message anew themselves: convert->text, which ends with what takes the place of `span` of the message, gets
 * what is behind that.
 */
const struct envelope *convert_finish(struct convert *convert, const struct envelope *env,
				      struct slice span);
/* A server's response to a request of `method`. */
const struct envelope *convert_response(struct convert *convert, unsigned int lost,
					const struct method *method, const struct envelope *env);
/*
 * A server's request. NULL: the client's revision cannot express it, and the server must be
 * refused.
 */
const struct envelope *convert_server_request(struct convert *convert, unsigned int lost,
					      const struct method *method,
					      const struct envelope *env);
/* A client's request. `differing`: features that only one of the two sides knows. */
const struct envelope *convert_request(struct convert *convert, unsigned int differing,
				       const struct method *method, const struct envelope *env);
/* A client's answer to a server's request of `method`. */
const struct envelope *convert_answer(struct convert *convert, unsigned int lost,
				      const struct method *method, const struct envelope *env);
/* A client's initialize: removes capabilities that its own revision does not have. */
const struct envelope *convert_initialize(struct convert *convert, unsigned int lost,
					  const struct envelope *env);

void convert_fini(struct convert *convert);

/* ---- from modern servers ---- */

/*
 * What a modern server says, as legacy clients get it: without the members by which its results
 * describe themselves and without error codes that those clients do not know; and what tools return
 * is an object. bridging.md §2.2, §3 (8); BACK-MSG-05.
 */

/*
 * Converts a response to a request of `method`. Returns `env` itself if nothing changes, else the
 * envelope of the changed response, which lives as long as *convert.
 */
const struct envelope *modern_server_response(struct convert *convert, const struct method *method,
					      const struct envelope *env);
/* A change notification without the id of the subscription that it came by. BACK-MSG-03 */
const struct envelope *modern_server_notification(struct convert *convert,
						  const struct envelope *env);
enum modern_result { MODERN_COMPLETE, MODERN_INPUT_REQUIRED, MODERN_TASK, MODERN_UNKNOWN };
/* What the resultType of a result says. BACK-MSG-05 */
enum modern_result modern_server_kind(struct json kind);
