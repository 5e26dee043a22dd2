/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where it is logged and counted. */
#include "endpoint/refusal.h"

#include "endpoint/answer.h"
#include "endpoint/challenge.h"
#include "endpoint/frontend.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/server.h"

static void note(const struct refusal *refusal, const struct endpoint *endpoint)
{
	if (refusal->form == REFUSAL_CHALLENGE)
		counter_add(COUNTER_REQUESTS_UNAUTHORIZED);
	LOG(REQUEST_REFUSED, LOG_INT("status", refusal->status),
	    LOG_STR("server", endpoint->server->conf.name),
	    LOG_STR("reason", refusal->description));
}

/* FRONT-VER-02 */
static void append_data(const struct refusal *refusal, struct buf *out)
{
	struct buf quoted = { 0 };

	if (refusal->code != MCP_UNSUPPORTED_VERSION)
		return;
	write_string(&quoted, refusal->version);
	revision_append_supported(out, buf_slice(&quoted));
	buf_fini(&quoted);
}

static void send_challenge(const struct refusal *refusal, const struct frontend *frontend,
			   const struct endpoint *endpoint, const struct answer *answer)
{
	if (refusal->is_for_result)
		challenge_send_result(&frontend->authorization, &endpoint->place, answer, refusal);
	else
		challenge_send(&frontend->authorization, &endpoint->place, answer, refusal);
}

static void send_error(const struct refusal *refusal, const struct answer *answer)
{
	struct buf data = { 0 };

	append_data(refusal, &data);
	answer_error(answer, refusal->status, refusal->id, refusal->code,
		     slice_str(refusal->description), buf_slice(&data));
	buf_fini(&data);
}

void refusal_send(const struct refusal *refusal, const struct frontend *frontend,
		  const struct endpoint *endpoint, const struct answer *answer)
{
	CHECK(refusal->status >= 200 && refusal->description != NULL);
	note(refusal, endpoint);
	switch (refusal->form) {
	case REFUSAL_CHALLENGE:
		send_challenge(refusal, frontend, endpoint, answer);
		break;
	case REFUSAL_ERROR:
		send_error(refusal, answer);
		break;
	case REFUSAL_REASON:
		answer_reason(answer, refusal->id, refusal->reason, endpoint->server->conf.name);
		break;
	}
}

void refusal_append(const struct refusal *refusal, const struct endpoint *endpoint, struct slice id,
		    struct buf *out)
{
	CHECK(refusal->is_in_band && refusal->form != REFUSAL_CHALLENGE);
	note(refusal, endpoint);
	if (refusal->form == REFUSAL_REASON)
		answer_append_reason(out, id, refusal->reason, endpoint->server->conf.name);
	else
		write_error(out, id, refusal->code, slice_str(refusal->description),
			    slice_of(NULL, 0));
}

struct http_exchange *refusal_send_head(const struct answer *answer, int status, const char *why)
{
	LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", why));
	answer_error(answer, status, slice_of(NULL, 0), MCP_INVALID_REQUEST, slice_str(why),
		     slice_of(NULL, 0));
	return NULL;
}
