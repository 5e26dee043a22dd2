/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks in their order (the table `checks`), the audit record of a refusal, and call limits:
 * what the calls of a body take from rate and concurrency, and how long a refused caller should wait.
 *
 * The caller was identified before, by the head alone (authorization_admit): no front gets a
 * request without an access. What was found then may have changed while the body arrived.
 */
#include "endpoint/admission.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "endpoint/modern.h"
#include "io/aside.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "mcp/revision.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/arguments.h"
#include "policy/call_limits.h"
#include "policy/pattern.h"
#include "policy/permissions.h"
#include "policy/rule.h"
#include "policy/shown.h"
#include "router/client_session.h"
#include "router/forward.h"
#include "router/listing.h"
#include "router/modern_tasks.h"
#include "router/router.h"
#include "session/principal.h"
#include "trace/span.h"

/* ---- call limits ---- */

/*
 * Whether a caller may make these calls now, by the limits of the server and its tools
 * (policy/call_limits). router/call counts what is in flight.
 */

#define CALL_LIMITS_MESSAGES_MAX 64

struct limited_calls {
	struct router *router;
	const struct call_limits *limits;
	const struct principal *principal;
	const struct peer *peer;         /* identifies an anonymous caller */
	const struct envelope *messages; /* those that are not calls are ignored */
	size_t count;                    /* at most CALL_LIMITS_MESSAGES_MAX */
	bool is_modern;                  /* the gateway answers server/discover itself */
};

/* A guess: nobody knows when a call in flight will end. */
#define CONCURRENCY_WAIT_MS 1000

/* What the calls take from one limit. */
struct charge {
	const struct call_limit *limit;
	size_t calls;
	size_t in_flight; /* of these */
	uint64_t key;     /* of this caller's bucket */
};

struct charges {
	struct charge items[1 + CALL_LIMITS_MESSAGES_MAX];
	size_t count;
};

/*
 * Whether the limits apply to the message: to all that reaches the server, except its handshake and
 * what we answer ourselves. A call sent as a notification counts: the server may execute it.
 */
static bool is_call(const struct envelope *env, bool is_modern)
{
	if (env->kind != ENVELOPE_REQUEST)
		return operation_of(env) != OPERATION_OTHER;
	/* To a client that gets 429 here, the server would seem to be of another era. */
	if (is_modern && slice_is_equal(env->method, SLICE_LIT("server/discover")))
		return false;
	return !slice_is_equal(env->method, SLICE_LIT("initialize")) &&
	       !slice_is_equal(env->method, SLICE_LIT("ping"));
}

/*
 * Not in flight: subscription streams, which stay open for as long as they like; requests about
 * tasks, which are how tasks end; and notifications, whose end is not known.
 */
static bool is_in_flight(const struct envelope *env)
{
	enum method_id method = method_find(env->method)->id;

	return env->kind == ENVELOPE_REQUEST && method != METHOD_LISTEN && method != METHOD_TASKS;
}

static uint64_t admission_key_of(const struct limited_calls *calls, const struct call_limit *limit)
{
	return holder_key(&calls->router->sessions.holders, limit->rate_scope, calls->principal,
			  calls->peer);
}

static void admission_add(struct charges *charges, const struct limited_calls *calls,
			  const struct call_limit *limit, const struct envelope *env)
{
	struct charge *charge = charges->items;

	while (charge < charges->items + charges->count && charge->limit != limit)
		charge++;
	if (charge == charges->items + charges->count) {
		CHECK(charges->count < ARRAY_LEN(charges->items));
		charges->items[charges->count++] =
			(struct charge){ .limit = limit, .key = admission_key_of(calls, limit) };
	}
	charge->calls++;
	charge->in_flight += is_in_flight(env);
}

static bool is_over_concurrency(const struct limited_calls *calls, const struct charge *charge)
{
	uint64_t most = charge->limit->concurrency;
	const struct holder *holder;

	if (most == 0 || charge->in_flight == 0)
		return false;
	holder = holder_find(&calls->router->sessions.holders, charge->limit->in_flight_scope,
			     calls->principal, calls->peer);
	return (holder != NULL ? holder->count : 0) + charge->in_flight > most;
}

/* The rule with this limit. Its key is `of_all` if the limit is for all calls of the server. */
static struct rule rule_of(const struct limited_calls *calls, const struct charge *charge,
			   enum rule_key of_all)
{
	const struct tool_limit *first = calls->limits->tools.items;
	const struct call_limit *limit = charge->limit;

	if (limit == &calls->limits->all)
		return (struct rule){ .key = of_all };
	return (struct rule){
		.key = RULE_TOOL_LIMITS,
		.has_entry = true,
		.entry = (size_t)(container_of(limit, const struct tool_limit, limit) - first),
	};
}

static enum reason admission_judge_charges(const struct limited_calls *calls,
					   const struct charges *charges, uint64_t now_ms,
					   uint64_t *wait_ms_r, struct rule *rule_r)
{
	*wait_ms_r = CONCURRENCY_WAIT_MS;
	for (size_t i = 0; i < charges->count; i++) {
		*rule_r = rule_of(calls, &charges->items[i], RULE_CONCURRENCY);
		if (is_over_concurrency(calls, &charges->items[i]))
			return REASON_OVER_CONCURRENCY;
	}
	*wait_ms_r = 0;
	for (size_t i = 0; i < charges->count; i++) {
		const struct charge *charge = &charges->items[i];
		uint64_t wait_ms = rate_wait(&calls->router->rates, charge->key,
					     &charge->limit->rate, charge->calls, now_ms);

		if (wait_ms > *wait_ms_r)
			*rule_r = rule_of(calls, charge, RULE_RATE);
		*wait_ms_r = wait_ms > *wait_ms_r ? wait_ms : *wait_ms_r;
	}
	return *wait_ms_r > 0 ? REASON_OVER_RATE : REASON_NONE;
}

/* Cannot fail: admission_judge_charges has just checked it. */
static void admission_take(const struct limited_calls *calls, const struct charge *charge,
			   uint64_t now_ms)
{
	uint64_t wait_ms = rate_take(&calls->router->rates, charge->key, &charge->limit->rate,
				     charge->calls, now_ms);

	CHECK(wait_ms == 0);
}

static void call_limits_add_message(struct charges *charges, const struct limited_calls *calls,
				    const struct envelope *env)
{
	const struct call_limit *of_tool = call_limits_of_tool(calls->limits, env);

	if (!is_call(env, calls->is_modern))
		return;
	admission_add(charges, calls, &calls->limits->all, env);
	if (of_tool != NULL)
		admission_add(charges, calls, of_tool, env);
}

/*
 * Charges the calls to the caller's limits, all of them or none. Returns REASON_NONE, or why not,
 * and then *wait_ms_r is when a retry is worthwhile and *rule_r the rule that refuses. Everything
 * forwarded to a server counts as a call except the handshakes of both eras and pings, even a
 * notification that names a tool. Such notifications, change streams and requests about tasks count
 * for the rate, but not as calls in flight.
 */
static enum reason call_limits_take(const struct limited_calls *calls, uint64_t *wait_ms_r,
				    struct rule *rule_r)
{
	uint64_t now_ms = clock_now_ms();
	struct charges charges;
	enum reason reason;

	*wait_ms_r = 0;
	*rule_r = (struct rule){ .key = RULE_NONE };
	if (!call_limits_are_set(calls->limits))
		return REASON_NONE;
	charges.count = 0;
	for (size_t i = 0; i < calls->count; i++)
		call_limits_add_message(&charges, calls, &calls->messages[i]);
	reason = admission_judge_charges(calls, &charges, now_ms, wait_ms_r, rule_r);
	for (size_t i = 0; i < charges.count && reason == REASON_NONE; i++)
		admission_take(calls, &charges.items[i], now_ms);
	return reason;
}

/* ---- the checks ---- */

/*
 * Limit for an initialize request, which is kept as long as the session lives, for processes that
 * start later.
 */
#define INITIALIZE_BYTES_MAX (64 * 1024)
#define BATCH_MAX CALL_LIMITS_MESSAGES_MAX

static const struct {
	const char *name;
	size_t calls_max; /* in flight, of one session */
	const char *unnamed;
} fronts[] = {
	/* When a client disconnects, its calls keep running. */
	[FRONT_STREAMABLE] = { "streamable", 4096,
			       "Bad request: the Mcp-Session-Id header is missing" },
	/* Each call was answered with 202, so no connections bound their number. */
	[FRONT_HTTP_SSE] = { "http_sse", 1024, "Bad request: the parameter sessionId is missing" },
	[FRONT_STATELESS] = { "stateless", 1, NULL },
	[FRONT_AGGREGATE] = { "endpoint", 4096, NULL },
};

/* ---- refusals ---- */

/* The id of the request, if the body is a single request; otherwise empty. */
static struct slice own_id(const struct admission *admission)
{
	return !admission->is_batch && admission->requests == 1 ? admission->single.id.text :
								  slice_of(NULL, 0);
}

static bool admission_refuse(struct admission *admission, int status, int code, const char *why)
{
	admission->refusal = (struct refusal){
		.form = REFUSAL_ERROR,
		.status = status,
		.description = why,
		.id = own_id(admission),
		.code = code,
	};
	return false;
}

/*
 * Refuses the requests in the body, not the body itself; status is for a front that answers them in
 * the HTTP response.
 */
static bool refuse_requests(struct admission *admission, int status, int code, const char *why)
{
	admission_refuse(admission, status, code, why);
	admission->refusal.is_in_band = true;
	return false;
}

static bool refuse_by_reason(struct admission *admission, enum reason reason)
{
	admission->refusal = (struct refusal){
		.form = REFUSAL_REASON,
		.status = reason_get(reason)->http_status,
		.description = reason_get(reason)->text,
		.id = own_id(admission),
		.is_in_band = admission->intent == ADMISSION_SEND,
		.reason = reason,
	};
	return false;
}

/* ---- the checks ---- */

static bool is_initialize(const struct envelope *env)
{
	return env->kind == ENVELOPE_REQUEST &&
	       slice_is_equal(env->method, SLICE_LIT("initialize"));
}

static int add_message(struct slice element, void *arg)
{
	struct admission *admission = arg;
	const struct scan_limits *limits = &admission->caller->frontend->router->limits;
	struct envelope *env = &admission->messages[admission->count];

	CHECK(admission->count < BATCH_MAX && admission->plain != NULL);
	CHECK(admission->is_batch || admission->count == 0);
	if (plain_scan(element, limits, 0, 0, &admission->plain[admission->count], env,
		       &admission->err) < 0)
		return -1;
	admission->count++;
	admission->requests += env->kind == ENVELOPE_REQUEST;
	return 0;
}

/*
 * A batch: an array of messages, as revision 2025-03-26 has it. FRONT-POST-06, -07, -08,
 * FRONT-INIT-03
 */
static int read_batch(struct admission *admission)
{
	bool has_initialize = false;
	size_t responses = 0;

	admission->messages = mem_alloc(BATCH_MAX * sizeof(*admission->messages));
	admission->plain = mem_zalloc(BATCH_MAX * sizeof(*admission->plain));
	if (scan_array(admission->body, BATCH_MAX, add_message, admission, &admission->err) < 0)
		return -1;
	for (size_t i = 0; i < admission->count; i++) {
		const struct envelope *env = &admission->messages[i];

		has_initialize |= is_initialize(env);
		responses += env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR;
	}
	if (admission->count > 0 && !has_initialize && (admission->requests == 0 || responses == 0))
		return 0;
	return error_set(
		&admission->err, ERROR_INVALID,
		"Invalid request: a batch is not empty, has no initialize, and either asks or answers");
}

/*
 * Copies the head's trace into a message that has none, so that all later code finds it in one
 * place. RPC-07
 */
static int take_trace(struct admission *admission)
{
	const char *trace = admission->caller->trace;

	if (trace == NULL || !trace_message_add(&admission->traced, &admission->single, trace))
		return 0;
	admission->count = admission->requests = 0;
	return add_message(buf_slice(&admission->traced), admission);
}

static int read_single(struct admission *admission)
{
	admission->messages = &admission->single;
	admission->plain = &admission->plain_single;
	if (add_message(admission->body, admission) < 0 || take_trace(admission) < 0)
		return -1;
	admission->is_initialize = is_initialize(&admission->single);
	return 0;
}

static void open_aside(const struct admission *admission)
{
	if (admission->may_pause)
		aside_open();
}

static void close_aside(struct admission *admission)
{
	if (admission->may_pause)
		admission->has_paused = aside_close();
}

/* Whether anybody will ask for the canonical form of arguments: for a record, a schema, or a retry. */
static bool needs_forms(const struct admission *admission)
{
	const struct caller *caller = admission->caller;

	return caller->frontend->router->audit != NULL ||
	       caller->endpoint->server->conf.checks_schemas || admission->front == FRONT_STATELESS;
}

/* What takes long is done here, where it may give way. */
static void make_forms(struct admission *admission)
{
	admission->forms = mem_zalloc((admission->count + 1) * sizeof(*admission->forms));
	for (size_t i = 0; i < admission->count; i++)
		canonical_keep(&admission->messages[i], &admission->forms[i]);
}

static void read_body(struct admission *admission)
{
	log_payload("from_client", admission->caller->endpoint->server->conf.name, &admission->body,
		    1);
	admission->is_batch = scan_type(admission->body) == JSON_ARRAY;
	open_aside(admission);
	admission->is_readable =
		(admission->is_batch ? read_batch(admission) : read_single(admission)) == 0;
	admission->is_read = true;
	if (admission->is_readable && admission->body.n >= ASIDE_BYTES && admission->may_pause &&
	    needs_forms(admission))
		make_forms(admission);
	close_aside(admission);
}

/* Every message is parsed here, once. FRONT-HTTP-10, -11, FRONT-POST-07 */
static bool check_body(struct admission *admission)
{
	int code;

	if (admission->intent != ADMISSION_SEND)
		return true;
	if (!admission->is_read)
		read_body(admission);
	if (admission->is_readable || admission->has_paused)
		return !admission->has_paused;
	code = admission->err.kind == ERROR_SYNTAX ? MCP_PARSE_ERROR : MCP_INVALID_REQUEST;
	admission_refuse(admission, 400, code, admission->err.text);
	if (!admission->is_batch)
		admission->refusal.id = admission->single.id.text; /* if it could be read */
	return false;
}

/* The token has neither expired nor been denied while the body arrived. AUTH-CH-08, AUTH-SES-07 */
static bool check_access(struct admission *admission)
{
	struct caller *caller = admission->caller;

	if (authorization_is_current(&caller->frontend->authorization, &caller->endpoint->place,
				     &caller->access, &admission->refusal))
		return true;
	/* The gateway has written it: the record names what was asked for. */
	if (admission->front == FRONT_AGGREGATE)
		(void)check_body(admission);
	return false;
}

/* Whether the request must name a session or, with HTTP+SSE, the client's stream. FRONT-INIT-05 */
static bool needs_name(const struct admission *admission)
{
	if (admission->front == FRONT_STATELESS || admission->has_no_effect)
		return false;
	if (admission->front == FRONT_HTTP_SSE)
		return admission->intent != ADMISSION_LISTEN || admission->is_resuming;
	return !admission->is_initialize;
}

static bool refuse_by_problem(struct admission *admission, const struct modern_problem *problem)
{
	admission_refuse(admission, problem->status, problem->code, problem->text);
	admission->refusal.data = problem->data;
	if (problem->requested.n > 0) {
		admission->refusal.version = admission->head->version;
		admission->refusal.is_legacy_claim = problem->is_legacy_claim;
	}
	return false;
}

/* It has no effect, but the version that it names is checked all the same. FRONT-POST-10 */
static bool take_modern_notification(struct admission *admission)
{
	struct json claim = admission->single.protocol_version;
	struct slice named =
		claim.type != JSON_ABSENT ? scan_plain_string(claim) : admission->version;

	admission->has_no_effect = true;
	if (revision_is_modern(named))
		return true;
	admission_refuse(admission, 400, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version");
	admission->refusal.version = named;
	admission->refusal.is_legacy_claim = revision_find(named) != NULL;
	return false;
}

/* Looked up only for the few methods to which it matters. MOD-TASK-01 */
static bool admission_has_tasks(const struct admission *admission)
{
	const struct caller *caller = admission->caller;
	struct slice method = admission->single.method;

	return (slice_has_prefix(method, SLICE_LIT("tasks/")) ||
		slice_is_equal(method, SLICE_LIT("subscriptions/listen"))) &&
	       modern_tasks_are_known(caller->frontend->router, caller->endpoint->server);
}

/*
 * A modern request says that it is one in its head and in its body alike. If only its body does, it
 * is a modern request all the same, and an invalid one. FRONT-ERA-02 … -09, FRONT-VER-05
 */
static bool check_modern(struct admission *admission)
{
	const struct modern_post post = {
		.version = admission->names_version ? admission->version : slice_of(NULL, 0),
		.messages = admission->messages,
		.count = admission->count,
		.is_batch = admission->is_batch,
		.has_session = admission->session.is_known,
	};
	bool is_stateless = admission->front == FRONT_STATELESS;
	struct modern_problem problem;

	if (admission->intent != ADMISSION_SEND || admission->front == FRONT_HTTP_SSE ||
	    (!is_stateless && modern_classify(&post) != MODERN_ERA_MODERN))
		return true;
	if (admission->is_batch)
		return admission_refuse(
			admission, 400, MCP_INVALID_REQUEST,
			"Invalid request: this version of the protocol has no batches");
	if (admission->single.kind == ENVELOPE_NOTIFICATION)
		return take_modern_notification(admission);
	if (!modern_check(admission->head, &admission->single, admission_has_tasks(admission),
			  &problem))
		return refuse_by_problem(admission, &problem);
	CHECK(is_stateless); /* a head that agrees has led to this front */
	return true;
}

/* If lists show only what the reader's scopes suffice for, scopes that these imply count, too. */
static struct rights rights_of(const struct caller *caller)
{
	if (caller->endpoint->server->conf.needs.hides)
		return authorization_rights(&caller->frontend->authorization, &caller->access);
	return caller->access.rights;
}

/* A session that began in an earlier gateway goes on with this request. bridging.md §4.1 */
static bool check_asleep(struct admission *admission)
{
	const struct caller *caller = admission->caller;
	struct router *router = caller->frontend->router;
	struct denial_marks marks;
	struct session *session;
	enum reason reason;

	if (!needs_name(admission) || admission->session.is_known || admission->session.id.n == 0 ||
	    caller->frontend->conf.is_operators || list_is_empty(&router->kept_sessions.asleep))
		return true;
	access_keep_claims(&caller->access);
	session = client_session_wake(router, caller->endpoint->server, caller->access.principal,
				      admission->peer, admission->session.id, &reason);
	if (reason != REASON_NONE)
		return refuse_by_reason(admission, reason);
	if (session == NULL)
		return true;
	access_show(&caller->access, &marks);
	if (marks.issuer.n > 0 && session->marks == NULL) /* as when it began. AUTH-SES-07 */
		session_keep_marks(session, &marks);
	admission->session.is_known = true;
	admission->session.client = client_session_client(session);
	admission->session.client->rights = rights_of(caller);
	return true;
}

/* Sessions of other principals and servers are unknown. FRONT-SESS-04, -05, AUTH-SES-02 */
static bool check_known(struct admission *admission)
{
	if (!needs_name(admission) || !admission->session.is_named)
		return true;
	if (!admission->session.is_known && admission->session.is_taken)
		return admission_refuse(
			admission, 503, MCP_INTERNAL_ERROR,
			"Another node of the cluster has taken this session; try again");
	if (!admission->session.is_known)
		return admission_refuse(admission, 404, MCP_SESSION_NOT_FOUND, "Session not found");
	admission->client = admission->session.client;
	if (admission->client != NULL) {
		session_hold(admission->client->session); /* restarts its idle time */
		session_release(admission->client->session);
	}
	return true;
}

/* A server that a reload has removed serves only the sessions that it has. */
static bool check_retired(struct admission *admission)
{
	if (admission->client != NULL || !admission->caller->endpoint->server->is_retired)
		return true;
	return admission_refuse(admission, 404, MCP_INVALID_REQUEST,
				"Not found: no server has this path; they are at /NAME/mcp");
}

/* FRONT-VER-01 … -04 */
static bool check_version(struct admission *admission)
{
	const struct client *client = admission->client;
	const struct revision *revision;

	if (!admission->names_version || admission->is_initialize || admission->has_no_effect ||
	    admission->front == FRONT_STATELESS)
		return true;
	revision = revision_find(admission->version);
	if (revision == NULL) {
		admission_refuse(admission, 400, MCP_UNSUPPORTED_VERSION,
				 "Unsupported protocol version");
		admission->refusal.version = admission->version;
		return false;
	}
	if (client != NULL && revision != client->revision)
		LOG(SESSION_VERSION, LOG_SLICE("header", revision->name),
		    LOG_SLICE("session", client->revision->name));
	return true;
}

/* FRONT-SESS-03, FRONT-OLD-03 */
static bool check_named(struct admission *admission)
{
	if (!needs_name(admission) || admission->session.is_named)
		return true;
	return admission_refuse(admission, 400, MCP_INVALID_REQUEST,
				fronts[admission->front].unnamed);
}

/*
 * Each request is answered with the text in admission->err. The status is 200 only for a single
 * legacy request.
 */
static bool admission_refuse_params(struct admission *admission, const struct rule *rule)
{
	bool is_modern = admission->front == FRONT_STATELESS;
	int status = own_id(admission).n > 0 && !is_modern ? 200 : 400;

	admission_refuse(admission, status, MCP_INVALID_PARAMS, admission->err.text);
	admission->refusal.is_in_band = admission->requests > 0;
	admission->refusal.rule = *rule;
	return false;
}

/* Message i has other names now. -1: why not is in admission->err. */
static int take_real_names(struct admission *admission, size_t i, struct buf *text)
{
	const struct scan_limits *limits = &admission->caller->frontend->router->limits;
	struct canonical_form form = admission->messages[i].canonical;
	struct buf plainer = { 0 };
	int result = plain_scan(buf_slice(text), limits, 0, 0, &plainer, &admission->messages[i],
				&admission->err);

	buf_fini(&admission->plain[i]);
	admission->plain[i] = plainer.len > 0 ? plainer : *text;
	if (plainer.len > 0)
		buf_fini(text);
	if (result == 0)
		admission->messages[i].canonical = form; /* its arguments are the same */
	return result;
}

/* What clients call by the names that they are shown, everything below knows by the server's own. */
static bool check_names(struct admission *admission)
{
	const struct shown *shown = &admission->caller->endpoint->server->conf.shown;
	const char *what = NULL;
	struct rule rule = { .key = RULE_TOOLS_RENAME };

	/* All of them, also behind one that is refused: records have the server's names. */
	for (size_t i = 0; i < admission->count && !admission->has_real_names; i++) {
		struct buf text = { 0 };
		const char *unknown = shown_take_message(shown, &admission->messages[i], &text);

		what = what != NULL ? what : unknown;
		if (unknown != NULL)
			buf_fini(&text);
		else if (text.len > 0 && take_real_names(admission, i, &text) < 0)
			return admission_refuse(admission, 400, MCP_INVALID_REQUEST,
						admission->err.text);
	}
	admission->has_real_names = what == NULL;
	if (what == NULL)
		return true;
	if (strcmp(what, "tool") != 0)
		rule.key = RULE_PROMPTS_RENAME;
	error_set(&admission->err, ERROR_INVALID, "Invalid params: there is no such %s", what);
	return admission_refuse_params(admission, &rule);
}

/* AUTH-SCP-12 */
static bool admission_refuse_name(struct admission *admission, const struct needs_flaw *flaw)
{
	struct rule rule = { .key = RULE_NONE };

	error_set(&admission->err, ERROR_INVALID, "Invalid params: the name of the %s %s",
		  flaw->what, flaw->why);
	rule.key = strcmp(flaw->what, "tool") == 0   ? RULE_TOOLS_SCOPES :
		   strcmp(flaw->what, "prompt") == 0 ? RULE_PROMPTS_SCOPES :
						       RULE_RESOURCES_SCOPES;
	return admission_refuse_params(admission, &rule);
}

/*
 * At an endpoint over several servers, a tool or prompt needs what it needs at its server, so that its
 * client learns which scopes to get. What its name does not tell is judged there alone.
 */
static struct needs_flaw add_of_leg(const struct caller *caller, const struct envelope *env,
				    struct scope_set *needed)
{
	struct slice name = scan_plain_string(env->name);
	const struct server_leg *leg = server_leg_find(&caller->endpoint->server->conf.legs, name);
	struct needs_flaw flaw = { .what = NULL };
	const struct endpoint *own;
	struct envelope message = *env;
	at_end(buf_fini) struct buf text = { 0 };

	if (env->kind != ENVELOPE_REQUEST || name.n == 0 || leg == NULL)
		return flaw;
	own = endpoint_of_server(&caller->frontend->conf, leg->server);
	name = slice_of(name.p + leg->prefix.n, name.n - leg->prefix.n);
	if (own == NULL ||
	    !shown_find_real(&own->server->conf.shown,
			     operation_of(env) == OPERATION_PROMPT ? PERMISSION_PROMPT :
								     PERMISSION_TOOL,
			     name, &name))
		return flaw;
	write_string(&text, name);
	message.name.text = buf_slice(&text);
	scope_set_join(needed, &own->place.base);
	return needs_add_of_message(&own->server->conf.needs, &message, needed);
}

/* The scopes that all messages of the body need together. AUTH-SCP-02, -06, -11, -12 */
static bool check_scopes(struct admission *admission)
{
	const struct caller *caller = admission->caller;
	const struct protected_resource *place = &caller->endpoint->place;
	struct refusal *refusal = &admission->refusal;
	struct scope_set needed = { { 0 } };
	const struct needs *needs = &caller->endpoint->server->conf.needs;
	struct needs_flaw flaw = { .what = NULL };

	for (size_t i = 0; i < admission->count; i++) {
		const struct envelope *env = &admission->messages[i];
		struct needs_flaw next = caller->endpoint->server->conf.legs.count > 0 ?
						 add_of_leg(caller, env, &needed) :
						 needs_add_of_message(needs, env, &needed);

		flaw = flaw.what != NULL ? flaw : next;
	}
	if (authorization_covers(&caller->frontend->authorization, place, &caller->access, &needed,
				 refusal))
		return flaw.what == NULL || admission_refuse_name(admission, &flaw);
	refusal->id = own_id(admission);
	refusal->is_for_modern = admission->front == FRONT_STATELESS;
	refusal->is_for_result = place->tells_in_result && admission->takes_results &&
				 refusal->id.n > 0 && !admission->is_initialize;
	return false;
}

/* What the server's rules do not allow is treated as if it did not exist. mcpgated.yaml(5), SEC-50 */
static bool check_permissions(struct admission *admission)
{
	const struct caller *caller = admission->caller;
	const struct permissions *permissions = &caller->endpoint->server->conf.permissions;
	const struct rights *rights = &caller->access.rights;
	const char *what = NULL;
	struct rule rule;

	for (size_t i = 0; what == NULL && i < admission->count; i++)
		what = permissions_find_denied(permissions, rights, &admission->messages[i], &rule);
	if (what == NULL)
		return true;
	counter_add(COUNTER_REQUESTS_DENIED);
	error_set(&admission->err, ERROR_INVALID, "Invalid params: there is no such %s", what);
	return admission_refuse_params(admission, &rule);
}

/* SEC-65 */
static bool check_pins(struct admission *admission)
{
	static const struct rule rule = { .key = RULE_PIN };
	const struct server *server = admission->caller->endpoint->server;
	const char *what = NULL;

	for (size_t i = 0; what == NULL && i < admission->count; i++)
		what = pinning_find_withheld(server, &admission->messages[i]);
	if (what == NULL)
		return true;
	counter_add(COUNTER_REQUESTS_WITHHELD);
	error_set(&admission->err, ERROR_INVALID,
		  "Invalid params: there is no such %s, or its definition is not approved", what);
	return admission_refuse_params(admission, &rule);
}

/* On HTTP+SSE, a client that tries the modern era learns that it must initialize. FRONT-OLD-06 */
static bool check_era(struct admission *admission)
{
	if (admission->front != FRONT_HTTP_SSE)
		return true;
	for (size_t i = 0; i < admission->count; i++) {
		const struct envelope *env = &admission->messages[i];

		if (env->kind == ENVELOPE_REQUEST && env->protocol_version.type != JSON_ABSENT)
			return refuse_requests(admission, 200, MCP_METHOD_NOT_FOUND,
					       "Method not found");
	}
	return true;
}

/* Whether this shows that its client has initialized before. A new client may ping. FRONT-OLD-09 */
static bool goes_on(const struct admission *admission)
{
	const struct envelope *first = &admission->messages[0];

	CHECK(admission->count > 0);
	return admission->session.says_so ||
	       (admission->session.may_go_on && first->kind == ENVELOPE_REQUEST &&
		!slice_is_equal(first->method, SLICE_LIT("ping")));
}

/*
 * A client of HTTP+SSE has no session at first, and no server process yet to which its
 * notifications could go.
 */
static bool check_begun(struct admission *admission)
{
	if (!needs_name(admission) || admission->client != NULL || admission->is_initialize ||
	    admission->intent == ADMISSION_LISTEN)
		return true;
	if (admission->session.is_replaying)
		return admission_refuse(admission, 503, MCP_INTERNAL_ERROR,
					"The session is being opened anew; try again");
	admission->goes_on = goes_on(admission);
	if (admission->goes_on)
		return false;
	admission_refuse(admission, 400, MCP_INVALID_REQUEST,
			 "Invalid request: initialize must come first");
	admission->refusal.is_in_band = !admission->is_batch;
	return false;
}

/*
 * A request is refused if its response would go to a stream that nobody reads, and to which nobody
 * may come back. FRONT-OLD-04
 */
static bool check_reader(struct admission *admission)
{
	if (!admission->session.is_lost)
		return true;
	for (size_t i = 0; i < admission->count; i++)
		if (admission->messages[i].kind == ENVELOPE_REQUEST)
			return admission_refuse(
				admission, 503, MCP_INTERNAL_ERROR,
				"The event stream of this session has ended; open it again "
				"(GET), and then try again");
	return true;
}

/* FRONT-POST-08, FRONT-OLD-05 */
static bool check_batch(struct admission *admission)
{
	if (!admission->is_batch)
		return true;
	CHECK(admission->client != NULL);
	if (admission->client->revision->has_batches)
		return true;
	return admission_refuse(admission, 400, MCP_INVALID_REQUEST,
				"Invalid request: this session's revision has no batches");
}

/* FRONT-INIT-01, -02, DEF-11 */
static bool check_initialize(struct admission *admission)
{
	const struct envelope *env = &admission->single;
	struct slice params = env->params.text;

	if (!admission->is_initialize)
		return true;
	if (admission->client != NULL || admission->session.is_opening)
		return refuse_requests(admission, 400, MCP_INVALID_REQUEST,
				       "Invalid request: initialize was sent before");
	if (env->text.n > INITIALIZE_BYTES_MAX)
		return refuse_requests(admission, 200, MCP_INVALID_PARAMS,
				       "Invalid params: initialize is longer than 64 KiB");
	if (env->params.type == JSON_OBJECT &&
	    scan_member(params, SLICE_LIT("protocolVersion")).type == JSON_STRING &&
	    scan_member(params, SLICE_LIT("capabilities")).type == JSON_OBJECT &&
	    scan_member(params, SLICE_LIT("clientInfo")).type == JSON_OBJECT)
		return true;
	return refuse_requests(
		admission, 200, MCP_INVALID_PARAMS,
		"Invalid params: initialize needs protocolVersion, capabilities and clientInfo");
}

/* Notifications, responses and resumed streams still matter to the calls in flight. REL-41 */
static bool check_draining(struct admission *admission)
{
	bool is_new = admission->requests > 0 ||
		      (admission->intent == ADMISSION_LISTEN && !admission->is_resuming);

	return !is_new || !admission->caller->frontend->router->is_draining ||
	       refuse_by_reason(admission, REASON_DRAINING);
}

/* A batch is taken or refused as a whole. */
static bool check_calls(struct admission *admission)
{
	const struct client *client = admission->client;

	return client == NULL || admission->requests == 0 ||
	       client->call_count + admission->requests <= fronts[admission->front].calls_max ||
	       refuse_by_reason(admission, REASON_OVER_LIMIT);
}

/*
 * Only a tools/call request can be checked against its tool's schema; anything else that a server
 * might take for one is refused. SEC-59
 */
static bool can_be_checked(const struct server_conf *conf, const struct envelope *env)
{
	return !conf->checks_schemas || operation_of(env) != OPERATION_TOOL ||
	       (env->kind == ENVELOPE_REQUEST &&
		slice_is_equal(env->method, SLICE_LIT("tools/call")));
}

static void judge_arguments(struct admission *admission)
{
	const struct argument_rules *rules = &admission->caller->endpoint->arguments;
	const struct server_conf *conf = &admission->caller->endpoint->server->conf;
	struct pattern_work work = { 0 };
	struct rule *rule = &admission->arguments_rule;
	const char *why = NULL;

	open_aside(admission);
	for (size_t i = 0; i < admission->count && why == NULL; i++) {
		const struct envelope *env = &admission->messages[i];

		why = arguments_judge(rules, env, &work, rule);
		if (why != NULL || can_be_checked(conf, env))
			continue;
		*rule = (struct rule){ .key = RULE_SCHEMA };
		why = "are held against no schema in such a message";
	}
	admission->arguments_why = why;
	admission->judged_for = admission->caller->endpoint;
	close_aside(admission);
}

/* The operator's rules may refuse the arguments in any of the messages. SEC-54, SEC-55, SEC-59 */
static bool check_arguments(struct admission *admission)
{
	if (admission->judged_for != admission->caller->endpoint)
		judge_arguments(admission);
	if (admission->arguments_why == NULL || admission->has_paused)
		return !admission->has_paused;
	error_set(&admission->err, ERROR_INVALID, "Invalid params: the arguments %s",
		  admission->arguments_why);
	return admission_refuse_params(admission, &admission->arguments_rule);
}

/* A batch is taken or refused as a whole. */
static bool check_limits(struct admission *admission)
{
	const struct caller *caller = admission->caller;
	const struct client *client = admission->client;
	struct rule rule;
	uint64_t wait_ms;
	enum reason reason = call_limits_take(
		&(struct limited_calls){
			.router = caller->frontend->router,
			.limits = &caller->endpoint->server->conf.limits,
			.principal = caller->access.principal,
			/* Those of a session count for the address that began it. */
			.peer = client != NULL ? &client->peer : admission->peer,
			.messages = admission->messages,
			.count = admission->count,
			.is_modern = admission->front == FRONT_STATELESS,
		},
		&wait_ms, &rule);

	if (reason == REASON_NONE)
		return true;
	counter_add(COUNTER_REQUESTS_OVER_RATE);
	refuse_by_reason(admission, reason);
	admission->refusal.is_in_band = admission->requests > 0;
	admission->refusal.rule = rule;
	admission->refusal.retry_after_s = (unsigned int)((wait_ms + 999) / 1000);
	return false;
}

/*
 * In this order: each relies on those before it. A check that returns false has filled the refusal
 * or set goes_on. The check that counts calls comes last: a refused call must not count.
 */
static const struct check {
	bool (*is_passed)(struct admission *admission);
	const char *word; /* for the record of its refusal */
	bool is_repeated; /* for a call that has waited over a reload */
} checks[] = {
	{ check_access, "", true },                      /* 401 */
	{ check_body, "malformed", false },              /* 400 */
	{ check_asleep, "", false },                     /* 503 */
	{ check_modern, "not_modern", false },           /* 400, 404 */
	{ check_known, "unknown_session", false },       /* 404 */
	{ check_retired, "unknown_server", false },      /* 404 */
	{ check_version, "unsupported_version", false }, /* 400 */
	{ check_named, "no_session", false },            /* 400 */
	{ check_names, "not_permitted", false },         /* -32602 */
	{ check_scopes, "bad_name", true },         /* 403, or in the result of the call; -32602 */
	{ check_era, "unsupported_method", false }, /* -32601 */
	{ check_begun, "not_initialized", false },  /* 400, or -32600 */
	{ check_reader, "no_stream", false },       /* 503 */
	{ check_batch, "bad_batch", false },        /* 400 */
	{ check_initialize, "bad_initialize", false }, /* -32602, -32600 */
	{ check_permissions, "not_permitted", true },  /* -32602 */
	{ check_pins, "not_approved", true },          /* -32602 */
	{ check_draining, "", false },                 /* 503 */
	{ check_calls, "", false },                    /* 503 */
	{ check_arguments, "bad_arguments", true },    /* -32602 */
	{ check_limits, "", false },                   /* 429 */
};

/* ---- the record of a refusal ---- */

const char *front_name(enum front front, const struct frontend *frontend)
{
	return frontend->conf.is_operators ? "operator" : fronts[front].name;
}

/* Records each request of the body; if there is none, the first message. */
static void admission_record_refusal(const struct admission *admission, const char *word)
{
	const struct caller *caller = admission->caller;
	const struct client *client = admission->client;
	struct audit *audit = caller->frontend->router->audit;
	bool has_requests = admission->requests > 0;
	struct audit_request request = {
		.origin = admission->origin,
		.server = caller->endpoint->server->conf.name,
		.places = caller->frontend->router->rule_places,
		.principal = caller->access.principal,
		.session = client != NULL ? client->session : NULL,
		.revision = client != NULL                      ? client->revision :
			    admission->front == FRONT_STATELESS ? &revision_modern :
								  NULL,
		.bytes = admission->body.n,
		.batch = admission->is_batch ? admission->count : 0,
	};

	word = refusal_word(&admission->refusal, word);
	call_stats_note_refusal(&caller->endpoint->server->stats->calls, word);
	if (audit == NULL)
		return;
	for (size_t i = 0; i < admission->count; i++) {
		request.env = &admission->messages[i];
		request.bytes = request.env->text.n;
		if (request.env->kind == ENVELOPE_REQUEST || (i == 0 && !has_requests))
			audit_refusal(audit, &request, word, &admission->refusal.rule);
	}
	if (admission->count == 0)
		audit_refusal(audit, &request, word, &admission->refusal.rule);
}

static void hand_on(struct admission *admission)
{
	const struct rights rights = rights_of(admission->caller);

	admission->admitted = admitted_new(admission->client, &rights, &admission->origin,
					   admission->messages, admission->count);
}

bool admission_admit(struct admission *admission)
{
	const struct caller *caller = admission->caller;
	const struct client *client;

	CHECK(admission->admitted == NULL && !admission->goes_on);
	CHECK(admission->is_read || (admission->messages == NULL && admission->count == 0));
	admission->client = NULL;
	admission->has_paused = false;
	CHECK(caller->access.principal != NULL);
	CHECK(admission->peer != NULL);
	admission->origin = (struct audit_origin){
		front_name(admission->front, caller->frontend),
		admission->peer,
	};
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		if (!checks[i].is_passed(admission)) {
			if (admission->has_paused)
				return false;
			admission->refusal.who = caller->access.principal;
			if (!admission->goes_on)
				admission_record_refusal(admission, checks[i].word);
			return false;
		}
	}
	CHECK(admission->requests <= admission->count);
	client = admission->client;
	CHECK(client == NULL || client->session->principal == caller->access.principal);
	CHECK(client == NULL || client->server == caller->endpoint->server);
	CHECK(admission->intent != ADMISSION_SEND || admission->front == FRONT_STATELESS ||
	      admission->has_no_effect || admission->is_initialize == (admission->client == NULL));
	if (admission->intent == ADMISSION_SEND)
		hand_on(admission);
	return true;
}

bool admission_judge(struct caller *caller, struct call *call, const struct envelope *env,
		     struct call_refusal *refusal_r)
{
	struct admission admission;

	admission_init(&admission);
	admission.caller = caller;
	admission.single = *env;
	admission.messages = &admission.single;
	admission.count = admission.requests = 1;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		const struct refusal *refusal = &admission.refusal;

		if (!checks[i].is_repeated || checks[i].is_passed(&admission))
			continue;
		*refusal_r = (struct call_refusal){
			.code = refusal->code != 0 ? refusal->code : MCP_INVALID_REQUEST,
			.rule = refusal->rule.key,
			.word = refusal_word(refusal, checks[i].word),
		};
		snprintf(refusal_r->text, sizeof(refusal_r->text), "%s", refusal->description);
		return false;
	}
	call->rights = call->client->rights = rights_of(caller);
	return true;
}

void admission_fini(struct admission *admission)
{
	admitted_free(&admission->admitted);
	for (size_t i = 0; admission->is_batch && i < BATCH_MAX && admission->plain != NULL; i++)
		buf_fini(&admission->plain[i]);
	if (admission->is_batch) {
		free(admission->messages);
		free(admission->plain);
	}
	admission->messages = NULL;
	admission->plain = NULL;
	for (size_t i = 0; i < admission->count && admission->forms != NULL; i++)
		buf_fini(&admission->forms[i]);
	free(admission->forms);
	buf_fini(&admission->plain_single);
	buf_fini(&admission->traced);
}
