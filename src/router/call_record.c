/* SPDX-License-Identifier: Apache-2.0 */
#include "router/call_record.h"

#include "base/clock.h"
#include "mcp/method.h"
#include "obs/audit.h"
#include "obs/reason.h"
#include "policy/operation.h"
#include "router/audit_call.h"
#include "router/call.h"
#include "router/call_span.h"
#include "router/client.h"
#include "router/router.h"

/* Returns NULL if there are no records of what is allowed. */
static struct audit_call *begin_record(const struct client *client,
				       const struct principal *principal,
				       const struct envelope *env,
				       const struct audit_origin *origin)
{
	struct audit *audit = client->router->audit;

	if (audit == NULL || audit->conf.is_refused_only)
		return NULL;
	return audit_call_new(audit, &(struct audit_request){
					     .origin = *origin,
					     .server = client->server->conf.name,
					     .principal = principal,
					     .session = client->session,
					     .revision = client->revision,
					     .env = env,
					     .bytes = env->text.n,
					     .canonical = &client->router->canonical,
				     });
}

/* A tool is counted by its decoded name, however that is spelled. */
static struct call_series *get_series(struct server *server, const struct method *method,
				      const struct envelope *env)
{
	struct buf room = { 0 };
	struct call_series *series;
	struct slice name;

	(void)!scan_read_string(env->name, &room, &name);
	series = call_stats_get(&server->stats->calls, method, name);
	buf_fini(&room);
	return series;
}

bool call_record(struct call *call, const struct client *client, const struct principal *principal,
		 const struct envelope *env, const struct audit_origin *origin)
{
	struct slice trace_id = audit_call_trace(env);

	CHECK(trace_id.n <= TRACE_ID_DIGITS);
	if (trace_id.n > 0)
		memcpy(call->trace_id, trace_id.p, trace_id.n);
	call->began_at_ms = clock_now_ms();
	call->series = get_series(client->server, call->method, env);
	if (call->method->id != METHOD_PING) {
		if (client->router->exporter != NULL)
			call_span_begin(call, client, env, origin);
		call->audit_call = begin_record(client, principal, env, origin);
	}
	return call->audit_call == NULL || audit_call_may_begin(call->audit_call);
}

bool call_record_notification(const struct client *client, const struct envelope *env,
			      const struct audit_origin *origin)
{
	struct audit_call *record = operation_of(env) != OPERATION_OTHER ?
					    begin_record(client, client->principal, env, origin) :
					    NULL;
	bool may_begin = record == NULL || audit_call_may_begin(record);

	if (record != NULL)
		audit_call_end(&record,
			       &(struct audit_end){
				       .verdict = "allowed",
				       .reason = may_begin ? "notification" :
							     reason_get(REASON_UNRECORDED)->text,
				       .session = client->session,
				       .revision = client->revision,
			       });
	return may_begin;
}

/* The audit's words: a failure that a tool reports itself is no failure of the call. */
static const char *const verdicts[] = {
	[CALL_OK] = "allowed",    [CALL_TOOL_ERROR] = "allowed",  [CALL_ERROR] = "failed",
	[CALL_FAILED] = "failed", [CALL_CANCELLED] = "cancelled",
};

void call_record_end(struct call *call, enum call_status status, enum reason reason,
		     const struct slice *parts, size_t count)
{
	const struct rule rule = { .key = call->refused_by };
	struct audit_end end = { .verdict = verdicts[status] };
	uint64_t now_ms = clock_now_ms();

	if (call->client != NULL && (status == CALL_ERROR || status == CALL_TOOL_ERROR))
		call->client->server->own.errors++;
	if (call->series != NULL)
		call_series_end(call->series, status, reason, now_ms - call->began_at_ms, now_ms);
	call->series = NULL;
	if (call->span != NULL)
		call_span_end(call, status, reason, parts, count);
	if (call->audit_call == NULL)
		return;
	if (status == CALL_ERROR)
		end.reason = "error_answer";
	else if (reason != REASON_NONE)
		end.reason = reason_get(reason)->text;
	if (call->refused_as != NULL)
		end = (struct audit_end){
			.verdict = "refused",
			.reason = call->refused_as,
			.rule = rule.key != RULE_NONE ? &rule : NULL,
			.server = call->client->server->conf.name,
			.places = call->client->router->rule_places,
		};
	for (size_t i = 0; i < count; i++)
		end.bytes += parts[i].n;
	if (call->client != NULL) {
		end.session = call->client->session;
		end.revision = call->client->revision;
	}
	audit_call_end(&call->audit_call, &end);
}
