/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records of one call have in common is written once, when the call begins, and kept as
 * text.
 */
#include "router/audit_call.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/peer.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "mcp/trace_context.h"
#include "obs/audit.h"
#include "policy/permissions.h"
#include "policy/rule.h"
#include "process/server.h"
#include "router/client.h"
#include "router/digest.h"
#include "router/router.h"
#include "session/principal.h"
#include "session/session.h"

#define COMMON_BYTES_MAX 3344 /* of TEXT_LINE_BYTES; the rest is for the other fields of a record */
#define AFTER_ARGUMENTS 56    /* beyond that: to say that they were cut, or left out */
#define TEXTS_MAX 7           /* issuer, subject, client, method, two names, arguments */
/* Before the common fields, a line has the rule, its place and more: the first two end by here. */
#define RULE_END_MAX 432
#define PLACE_END_MAX 560

struct audit_call {
	struct audit *audit;
	enum audit_share share;
	uint64_t caller;
	uint64_t began_at_ms;
	bool is_recorded; /* or need not be */
	size_t length;
	char text[]; /* fields */
};

/* ---- what requests are about ---- */

struct slice audit_call_trace(const struct envelope *env)
{
	const struct slice none = { NULL, 0 };
	struct trace_parent read;
	struct json parent;

	if (!env->has_more_meta)
		return none;
	parent = scan_member(env->meta.text, SLICE_LIT("traceparent"));
	return trace_parent_read(scan_plain_string(parent), &read) ? read.trace_id : none;
}

static void put_digest(struct text_line *line, const struct envelope *env)
{
	char text[DIGEST_BYTES * 2 + 1];
	at_end(buf_fini) struct buf form = { 0 };
	struct digest digest;

	if (env->arguments.type == JSON_ABSENT)
		return;
	digest_bytes(canonical_get(env, &form).text, &digest);
	text_to_hex(digest.bytes, DIGEST_BYTES, text);
	audit_put_own(line, AUDIT_DIGEST, slice_of(text, DIGEST_BYTES * 2));
}

/* ---- texts from outside ---- */

/* Those of a request, in the order of audit.def. Each has room for itself: the escapes of one take none from another. */
struct texts {
	size_t count;
	struct {
		enum audit_field field;
		struct slice text;
		struct buf decoded;
	} items[TEXTS_MAX];
};

static void audit_call_add_text(struct texts *texts, enum audit_field field, struct slice text)
{
	CHECK(texts->count < TEXTS_MAX);
	texts->items[texts->count].field = field;
	texts->items[texts->count++].text = text;
}

static bool has_field(const struct texts *texts, enum audit_field field)
{
	for (size_t i = 0; i < texts->count; i++)
		if (texts->items[i].field == field)
			return true;
	return false;
}

/* Of several names that a server could take, the first. One that cannot be decoded is shown as it was written. */
static bool add_name(enum permission_kind kind, struct json name, void *arg)
{
	static const enum audit_field named_by[] = {
		[PERMISSION_TOOL] = AUDIT_TOOL,
		[PERMISSION_PROMPT] = AUDIT_PROMPT,
		[PERMISSION_RESOURCE] = AUDIT_RESOURCE,
		[PERMISSION_TEMPLATE] = AUDIT_RESOURCE,
	};
	struct texts *texts = arg;
	struct buf *decoded = &texts->items[texts->count].decoded;
	struct slice text;

	if (name.type == JSON_ABSENT || has_field(texts, named_by[kind]))
		return true;
	if (scan_read_string(name, decoded, &text) < 0)
		text = name.text;
	audit_call_add_text(texts, named_by[kind], text);
	return true;
}

static void put_texts(struct text_line *line, struct texts *texts)
{
	const size_t max = line->max;
	size_t reserved = 0;
	bool is_whole = true;

	CHECK(texts->count <= TEXTS_MAX);
	for (size_t i = 0; i < texts->count; i++)
		reserved += audit_room(texts->items[i].field, texts->items[i].text.n);
	for (size_t i = 0; i < texts->count; i++) {
		reserved -= audit_room(texts->items[i].field, texts->items[i].text.n);
		line->max = max - (reserved < max ? reserved : max);
		is_whole = audit_put_text(line, texts->items[i].field, texts->items[i].text);
		buf_fini(&texts->items[i].decoded);
	}
	line->max = max;
	if (has_field(texts, AUDIT_ARGUMENTS)) { /* the last one */
		line->max += AFTER_ARGUMENTS;
		if (!is_whole)
			audit_put_true(line, AUDIT_TRUNCATED);
	}
}

static void put_texts_of(struct text_line *line, const struct audit *audit,
			 const struct audit_request *request)
{
	const struct principal *principal = request->principal;
	const struct envelope *env = request->env;
	struct texts texts = { 0 };

	if (principal != NULL) {
		audit_call_add_text(&texts, AUDIT_ISSUER, principal->identity.issuer);
		audit_call_add_text(&texts, AUDIT_SUBJECT, principal->identity.subject);
		audit_call_add_text(&texts, AUDIT_CLIENT, principal->identity.client);
	}
	if (env != NULL) {
		audit_call_add_text(&texts, AUDIT_METHOD, env->method);
		(void)!uses_visit(env, add_name, &texts);
		if (audit->conf.shows_arguments && operation_of(env) != OPERATION_OTHER)
			audit_call_add_text(&texts, AUDIT_ARGUMENTS, env->arguments.text);
	}
	put_texts(line, &texts);
}

/* ---- what all records of a request have ---- */

/* The fields that are the same in all records of a request. */
static void put_request(struct text_line *line, const struct audit *audit,
			const struct audit_request *request)
{
	const struct envelope *env = request->env;
	char address[PEER_TEXT_BYTES];

	peer_format(request->origin.peer, address);
	audit_put_own(line, AUDIT_FRONT, slice_str(request->origin.front));
	audit_put_text(line, AUDIT_SERVER, slice_str(request->server));
	audit_put_own(line, AUDIT_ADDRESS, slice_str(address));
	audit_put_number(line, AUDIT_BYTES_IN, request->bytes);
	if (request->batch > 0)
		audit_put_number(line, AUDIT_BATCH, request->batch);
	if (env != NULL) {
		audit_put_own(line, AUDIT_TRACE, audit_call_trace(env));
		if (operation_of(env) != OPERATION_OTHER)
			put_digest(line, env);
	}
	put_texts_of(line, audit, request);
}

/* ---- records ---- */

static void put_verdict(struct text_line *line, const char *verdict, const char *reason)
{
	audit_put_own(line, AUDIT_VERDICT, slice_str(verdict));
	if (reason != NULL)
		audit_put_own(line, AUDIT_REASON, slice_str(reason));
}

/*
 * Puts a field that ends within the first `max` bytes of the line, so that there is room for the
 * rest, however long the name of a role is.
 */
static void put_within(struct text_line *line, size_t max, enum audit_field field,
		       const struct buf *text)
{
	line->max = max;
	audit_put_text(line, field, buf_slice(text));
	line->max = sizeof(line->bytes);
}

static void put_rule(struct text_line *line, const struct rule *rule, struct slice server,
		     const struct rule_places *places)
{
	at_end(buf_fini) struct buf key = { 0 }, place = { 0 };

	rule_append(rule, server, &key);
	put_within(line, RULE_END_MAX, AUDIT_RULE, &key);
	if (places != NULL && rule_places_append(places, rule, server, &place))
		put_within(line, PLACE_END_MAX, AUDIT_RULE_AT, &place);
}

static void put_speaker(struct text_line *line, const struct session *session,
			const struct revision *revision)
{
	if (session != NULL)
		audit_put_own(line, AUDIT_SESSION, session_shown_id(session));
	if (revision != NULL)
		audit_put_own(line, AUDIT_REVISION, revision->name);
}

static void append_common(struct text_line *line, struct slice fields)
{
	CHECK(line_has_room(line, fields.n + TEXT_LINE_END_BYTES));
	line_put(line, fields);
}

static bool record_begin(const struct audit_call *call, const struct audit_request *request)
{
	struct text_line line;

	if (call->audit->is_failing)
		return false;
	audit_line_begin(&line, "begin");
	put_verdict(&line, "allowed", NULL);
	put_speaker(&line, request->session, request->revision);
	append_common(&line, slice_of(call->text, call->length));
	return audit_write_now(call->audit, call->share, &line);
}

struct audit_call *audit_call_new(struct audit *audit, const struct audit_request *request)
{
	struct audit_call *call;
	struct text_line common;

	line_init(&common, COMMON_BYTES_MAX);
	put_request(&common, audit, request);
	call = mem_alloc(sizeof(*call) + common.length);
	call->audit = audit;
	call->share = operation_of(request->env) != OPERATION_OTHER ? AUDIT_CALLS : AUDIT_OTHERS;
	call->caller = holder_number(request->principal, request->origin.peer);
	call->began_at_ms = clock_now_ms();
	call->length = common.length;
	memcpy(call->text, common.bytes, common.length);
	call->is_recorded = !audit->conf.is_required || record_begin(call, request);
	return call;
}

bool audit_call_may_begin(const struct audit_call *call)
{
	return call->is_recorded;
}

void audit_call_end(struct audit_call **call, const struct client *client, const char *verdict,
		    const char *reason, const struct rule *rule, size_t bytes)
{
	struct text_line line;

	audit_line_begin(&line, "end");
	put_verdict(&line, (*call)->is_recorded ? verdict : "refused", reason);
	if (rule != NULL)
		put_rule(&line, rule, slice_str(client->server->conf.name),
			 client->router->rule_places);
	if (client != NULL)
		put_speaker(&line, client->session, client->revision);
	if (bytes > 0)
		audit_put_number(&line, AUDIT_BYTES_OUT, bytes);
	audit_put_number(&line, AUDIT_DURATION, clock_now_ms() - (*call)->began_at_ms);
	append_common(&line, slice_of((*call)->text, (*call)->length));
	audit_write((*call)->audit, (*call)->share, (*call)->caller, &line);
	free(*call);
	*call = NULL;
}

void audit_refusal(struct audit *audit, const struct audit_request *request, const char *reason,
		   const struct rule *rule)
{
	struct text_line line, common;

	audit_line_begin(&line, "refusal");
	put_verdict(&line, "refused", reason);
	put_rule(&line, rule, slice_str(request->server), request->places);
	put_speaker(&line, request->session, request->revision);
	line_init(&common, COMMON_BYTES_MAX);
	put_request(&common, audit, request);
	append_common(&line, slice_of(common.bytes, common.length));
	audit_write(audit, AUDIT_REFUSALS, holder_number(request->principal, request->origin.peer),
		    &line);
}
