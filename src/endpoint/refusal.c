/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place where a refusal is logged and counted. Clients parse WWW-Authenticate with regular
 * expressions: there is one field, with its parameters always in the same order and all values
 * quoted, and nothing in them that would need an escape. AUTH-CH-05.
 */
#include "endpoint/refusal.h"

#include "auth/dpop.h"
#include "auth/verifier.h"
#include "base/clock.h"
#include "endpoint/answer.h"
#include "endpoint/frontend.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/server.h"
#include "router/process_slots.h"
#include "session/holder.h"

/* ---- challenges ---- */

/* Appends nothing if no scopes are to be requested. */
static void append_scopes(struct buf *out, const char *lead, const struct authorization *auth,
			  const struct refusal *refusal)
{
	if (scope_set_is_empty(&refusal->scopes))
		return;
	buf_printf(out, "%s\"", lead);
	scope_table_append(auth->conf.scopes, &refusal->scopes, out);
	buf_append_char(out, '"');
}

static void append_challenge(struct buf *out, const struct authorization *auth,
			     const struct protected_resource *place, const struct refusal *refusal)
{
	if (auth->conf.mode == AUTHORIZATION_OAUTH)
		buf_printf(out, "Bearer resource_metadata=\"%.*s\"", SLICE_ARG(place->metadata));
	else
		buf_append_str(out, "Bearer realm=\"mcpgated\"");
	append_scopes(out, ", scope=", auth, refusal);
	if (refusal->error != NULL)
		buf_printf(out, ", error=\"%s\", error_description=\"%s\"", refusal->error,
			   refusal->description);
	if (auth->conf.dpop == AUTHORIZATION_DPOP_OFF)
		return;
	buf_append_str(out, ", DPoP algs=\""); /* RFC 9449 §7.1 */
	for (size_t i = 0; dpop_algorithms[i] != NULL; i++)
		buf_printf(out, "%s%s", i > 0 ? " " : "", dpop_algorithms[i]);
	buf_append_char(out, '"');
}

/* The answer contains nothing of the request but an allowed origin. AUTH-CH-01 … -07, -10 */
static void send_challenge(const struct authorization *auth, const struct protected_resource *place,
			   const struct answer *answer, const struct refusal *refusal)
{
	const char *error = refusal->error != NULL ? refusal->error : "unauthorized";
	struct buf fields = { 0 };
	struct buf body = { 0 };

	CHECK((refusal->status == 429) == (refusal->retry_after_s > 0));
	buf_append_str(&fields, "Cache-Control: no-store\r\n");
	if (refusal->status == 503) { /* the token may well be good: no reason to discard it */
		buf_printf(&fields, "Retry-After: %d\r\n", VERIFIER_RETRY_AFTER_S);
	} else if (refusal->status == 429) {
		buf_printf(&fields, "Retry-After: %u\r\n", refusal->retry_after_s);
	} else if (!refusal->is_final) {
		buf_append_str(&fields, "WWW-Authenticate: ");
		append_challenge(&fields, auth, place, refusal);
		buf_append_str(&fields, "\r\n");
	}
	buf_printf(&body, "{\"error\":\"%s\",\"error_description\":\"%s\"", error,
		   refusal->description);
	append_scopes(&body, ",\"scope\":", auth, refusal); /* many clients show only the body */
	buf_append_char(&body, '}');
	answer_document(answer, refusal->status, buf_slice(&fields), buf_slice(&body));
	buf_fini(&fields);
	buf_fini(&body);
}

/*
 * Puts the challenge into the result of the refused call, for clients that look for it only there.
 * AUTH-SCP-11
 */
static void send_result(const struct authorization *auth, const struct protected_resource *place,
			const struct answer *answer, const struct refusal *refusal)
{
	struct buf challenge = { 0 };
	struct buf result = { 0 };
	struct buf text = { 0 };

	CHECK(refusal->id.n > 0 && !refusal->is_final);
	append_challenge(&challenge, auth, place, refusal);
	buf_append_str(&result, refusal->is_for_modern ? "{\"resultType\":\"complete\"," : "{");
	buf_append_str(&result, "\"content\":[{\"type\":\"text\",\"text\":");
	write_string(&result, slice_str(refusal->description));
	buf_append_str(&result, "}],\"isError\":true,\"_meta\":{\"mcp/www_authenticate\":[");
	write_string(&result, buf_slice(&challenge));
	buf_append_str(&result, "]}}");
	write_result(&text, refusal->id, buf_slice(&result));
	egress_send(answer, 200, (struct slice[]){ buf_slice(&text) }, 1);
	buf_fini(&challenge);
	buf_fini(&result);
	buf_fini(&text);
}

/* ---- refusals ---- */

/* Tells the operator who is refused, and why. */
static void tell_operator(const struct http_conn *conn, int status, const char *server,
			  const struct principal *who, const char *why)
{
	char client[PEER_TEXT_BYTES];

	if (status != 401 && status != 403 && status != 429)
		return;
	peer_format(http_conn_client(conn), client);
	LOG_BY(CALLER_REFUSED, holder_number(who, http_conn_client(conn)),
	       LOG_INT("status", status), LOG_STR("server", server), LOG_STR("client", client),
	       LOG_SLICE("principal", who != NULL ? who->identity.subject : slice_of(NULL, 0)),
	       LOG_STR("reason", why));
}

static void note(const struct refusal *refusal, const struct endpoint *endpoint)
{
	if (refusal->form == REFUSAL_CHALLENGE)
		counter_add(COUNTER_REQUESTS_UNAUTHORIZED);
	LOG(REQUEST_REFUSED, LOG_INT("status", refusal->status),
	    LOG_STR("server", endpoint->server->conf.name),
	    LOG_STR("reason", refusal->description));
}

static void send_error(const struct refusal *refusal, const struct answer *answer)
{
	struct buf quoted = { 0 };
	struct buf data = { 0 };

	if (refusal->data != NULL)
		buf_append_str(&data, refusal->data);
	if (refusal->version.n > 0) { /* FRONT-VER-02, FRONT-ERA-05, -08 */
		write_string(&quoted, refusal->version);
		revision_append_supported(&data, buf_slice(&quoted), refusal->is_legacy_claim);
		buf_fini(&quoted);
	}
	answer_error(answer, refusal->status, refusal->id, refusal->code,
		     slice_str(refusal->description), buf_slice(&data));
	buf_fini(&data);
}

const char *refusal_word(const struct refusal *refusal, const char *otherwise)
{
	switch (refusal->form) {
	case REFUSAL_CHALLENGE:
		return refusal->error != NULL ? refusal->error : "no_token";
	case REFUSAL_REASON:
		return reason_get(refusal->reason)->text;
	case REFUSAL_ERROR:
		break;
	}
	return otherwise;
}

void refusal_send(const struct refusal *refusal, const struct frontend *frontend,
		  const struct endpoint *endpoint, const struct answer *answer)
{
	const struct authorization *auth = &frontend->authorization;
	struct answer timed = *answer;

	CHECK(refusal->status >= 200 && refusal->description != NULL);
	note(refusal, endpoint);
	tell_operator(answer->conn, refusal->status, endpoint->server->conf.name, refusal->who,
		      refusal->description);
	switch (refusal->form) {
	case REFUSAL_CHALLENGE:
		if (refusal->is_for_result)
			send_result(auth, &endpoint->place, answer, refusal);
		else
			send_challenge(auth, &endpoint->place, answer, refusal);
		break;
	case REFUSAL_ERROR:
		send_error(refusal, answer);
		break;
	case REFUSAL_REASON:
		timed.retry_after_s = refusal->retry_after_s > 0 ?
					      refusal->retry_after_s :
					      retry_after_s(frontend->router, endpoint->server,
							    NULL, refusal->reason);
		answer_reason(&timed, refusal->id, refusal->reason, endpoint->server->conf.name);
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
	tell_operator(answer->conn, status, "", NULL, why);
	answer_error(answer, status, slice_of(NULL, 0), MCP_INVALID_REQUEST, slice_str(why),
		     slice_of(NULL, 0));
	return NULL;
}
