/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each command answers at once, or has an exchange that waits for the body with its parameters,
 * or for what comes of it.
 */
#include "admin/admin.h"

#include <string.h>

#include "admin/json.h"
#include "auth/grant.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "endpoint/answer.h"
#include "http/reply.h"
#include "jsonrpc/scan.h"
#include "obs/log.h"
#include "policy/permissions.h"
#include "policy/rule.h"
#include "process/pin_memory.h"
#include "router/listing.h"
#include "router/router.h"

/* NULL: there is none of this name. */
static struct server *find_server(const struct admin *admin, struct slice name)
{
	for (size_t i = 0; i < admin->conf.server_count; i++) {
		struct server *server = &admin->conf.servers[i];

		if (server->conf.name != NULL && !server->is_retired &&
		    slice_is_equal(slice_str(server->conf.name), name))
			return server;
	}
	return NULL;
}

/* The value, or empty. Nothing is decoded: names and ids do not need it. */
static struct slice parameter_of(struct slice query, const char *name)
{
	struct slice value;

	return http_query_find(query, slice_str(name), &value) ? value : slice_of(NULL, 0);
}

/* NULL: there is none, and the answer has said so. */
static struct server *need_server(const struct admin_request *asked)
{
	struct slice name = parameter_of(asked->http->query, "server");
	struct server *server = find_server(asked->admin, name);

	if (name.n == 0)
		admin_reply_error(asked->conn, 400, "the parameter server=NAME is missing");
	else if (server == NULL)
		admin_reply_no_server(asked->conn, asked->admin->conf.servers,
				      asked->admin->conf.server_count, name);
	return server;
}

/* ---- orders: commands that wait for the body of their request ---- */

#define RELOAD_MAX_MS 60000 /* the keeper has read files by then, or hangs with one of them */

struct order;

/* Answers on the connection. False: that is still to come, and order_end is due then. */
typedef bool order_take_fn(struct order *order, struct http_conn *conn, struct slice body);

struct order {
	struct http_exchange exchange;
	struct admin *admin;
	order_take_fn *take;
	/* of a reload */
	struct list link; /* of admin->reloads, once it was given */
	uint64_t number;
	struct timer patience;
};

static void order_end(struct order *order)
{
	list_remove(&order->link);
	timer_stop(&order->patience);
	loop_defer_free(order->admin->conf.router->loop, order);
}

static void order_on_body(struct http_exchange *exchange, struct slice body)
{
	struct order *order = container_of(exchange, struct order, exchange);

	if (order->take(order, exchange->conn, body))
		order_end(order);
}

static void order_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	order_end(container_of(exchange, struct order, exchange));
}

static void order_on_timeout(struct timer *timer)
{
	struct order *order = container_of(timer, struct order, patience);

	admin_reply_error(order->exchange.conn, 504,
			  "nothing has come of it so far; the log has the outcome");
	order_end(order);
}

static const struct http_exchange_ops order_ops = {
	.on_body = order_on_body,
	.on_gone = order_on_gone,
};

static struct http_exchange *order_new(const struct admin_request *asked, order_take_fn *take)
{
	struct order *order = mem_zalloc(sizeof(*order));

	order->exchange.ops = &order_ops;
	order->admin = asked->admin;
	order->take = take;
	list_init(&order->link);
	timer_init(&order->patience, order_on_timeout);
	return &order->exchange;
}

/* ---- single ones ---- */

#define ID_PREFIX_MIN 4 /* of a session, as many as have to be given */

struct http_exchange *command_restart(const struct admin_request *asked)
{
	struct server *server = need_server(asked);
	size_t count;

	if (server == NULL)
		return NULL;
	if (server_is_endpoint(&server->conf)) {
		admin_reply_error(asked->conn, 409,
				  "this is an endpoint over several servers, and has no processes; "
				  "restart its servers");
		return NULL;
	}
	count = report_restart(server);
	LOG(ADMIN_COMMAND, LOG_STR("command", "restart"), LOG_STR("server", server->conf.name),
	    LOG_INT("processes", count));
	admin_reply_number(asked->conn, "restarted", count);
	return NULL;
}

/* The id's beginning is enough if only one live session has it. */
struct http_exchange *command_end_session(const struct admin_request *asked)
{
	const struct session_set *sessions = &asked->admin->conf.router->sessions;
	struct slice prefix = parameter_of(asked->http->query, "id");
	struct session *found = NULL;
	size_t count = 0;

	LIST_EACH(struct session, session, &sessions->sessions, link) {
		if (session->state == SESSION_LIVE &&
		    slice_has_prefix(session_id(session), prefix)) {
			found = session;
			count++;
		}
	}
	if (prefix.n < ID_PREFIX_MIN) {
		admin_reply_error(
			asked->conn, 400,
			"an id needs at least 4 characters; mcpgatectl sessions lists them");
	} else if (count != 1) {
		admin_reply_error(asked->conn, count == 0 ? 404 : 409,
				  count == 0 ? "no session has such an id" :
					       "more than one session has an id that begins so");
	} else {
		LOG(ADMIN_COMMAND, LOG_STR("command", "end-session"),
		    LOG_SLICE("session", session_shown_id(found)));
		session_end(found, REASON_OPERATOR);
		admin_reply_number(asked->conn, "ended", 1);
	}
	return NULL;
}

struct http_exchange *command_drain(const struct admin_request *asked)
{
	LOG(ADMIN_COMMAND, LOG_STR("command", "drain"));
	admin_reply_number(asked->conn, "calls", asked->admin->conf.router->calls);
	asked->admin->conf.on_drain();
	return NULL;
}

/*
 * ---- denials: the operator's entries against tokens. AUTH-SES-07 ----
 *
 * An issuer that is not configured is refused: such an entry would seem to protect, and never
 * match.
 */

/* How long an entry lasts by default. */
#define DENY_DEFAULT_MS (24 * 3600 * (uint64_t)1000)

static struct deny_list *deny_list_of(const struct admin *admin)
{
	return &admin->conf.router->sessions.deny_list;
}

static struct json_t *describe_denial(const struct denial *denial)
{
	struct json_t *value = value_object();

	CHECK(denial->by < DENIAL_BY_COUNT && denial->name.n > 0);
#define FACTS_OF_DENIAL
#include "admin/facts.def"
	return value;
}

void command_deny_report(const struct admin *admin, struct buf *out)
{
	struct deny_list *deny_list = deny_list_of(admin);

	deny_list_sweep(deny_list);
	value_list_begin(out, "entries");
	LIST_EACH(const struct denial, denial, &deny_list->entries, link)
		if (!denial->is_lifted)
			value_list_add(out, describe_denial(denial));
	value_list_end(out);
}

/* Whether the request can be carried out: NULL, or why not. Fills in what it may leave out. */
static const char *judge_denial(const struct admin *admin, struct deny_request *request)
{
	const struct authorization_conf *authorization =
		&admin->conf.client_frontend->authorization;
	const struct verifier_conf *issuers = &authorization->issuers;
	const struct static_tokens *tokens = &authorization->tokens;

	CHECK(request->name.n > 0);
	if (authorization->mode < AUTHORIZATION_TOKEN)
		return "no token is required here: see auth.mode";
	if (request->issuer.n == 0 && issuers->count == 1)
		request->issuer = slice_str(issuers->items[0].issuer);
	if (request->issuer.n == 0)
		return "the issuer is missing: one of auth.issuers, or static for auth.tokens";
	if (request->until_ms == 0)
		request->until_ms = clock_wall_ms() + DENY_DEFAULT_MS;
	if (request->until_ms <= clock_wall_ms())
		return "the time is over already";
	if (slice_is_equal(request->issuer, SLICE_LIT(PRINCIPAL_STATIC_ISSUER))) {
		/* Of a static token nothing is known but its name. */
		if (request->by != DENIAL_BY_SUB)
			return "a static token is denied by sub, which is its name in auth.tokens";
		for (size_t i = 0; i < tokens->count; i++)
			if (slice_is_equal(tokens->items[i].name, request->name))
				return NULL;
		return "auth.tokens has no token of this name";
	}
	for (size_t i = 0; i < issuers->count; i++)
		if (slice_is_equal(slice_str(issuers->items[i].issuer), request->issuer))
			return NULL;
	return "the issuer is none of auth.issuers, byte for byte";
}

static void add_denial(struct admin *admin, struct http_conn *conn,
		       const struct deny_request *request)
{
	struct session_set *sessions = &admin->conf.router->sessions;
	size_t before = sessions->count;
	const struct denial *denial = deny_list_add(&sessions->deny_list, request->issuer,
						    request->by, request->name, request->until_ms);
	struct json_t *value;

	CHECK(sessions->count <= before);
	if (denial == NULL) {
		admin_reply_error(conn, 409,
				  "there are as many entries as there may be; remove some");
		return;
	}
	LOG(ADMIN_COMMAND, LOG_STR("command", "deny-add"), LOG_INT("number", denial->number),
	    LOG_SLICE("issuer", denial->issuer), LOG_STR("by", denial_by_name(denial->by)),
	    LOG_SLICE("name", denial->name), LOG_INT("sessions", before - sessions->count));
	admin->conf.on_deny_list();
	value = describe_denial(denial);
	value_set_number(value, "sessions_ended", before - sessions->count);
	admin_reply_value(conn, 200, value);
}

static bool take_denial(struct order *order, struct http_conn *conn, struct slice body)
{
	struct error err = { ERROR_NONE, "" };
	struct deny_request request;
	const char *why;

	if (deny_request_read(body, &request, &err) < 0) {
		admin_reply_error(conn, 400, err.text);
		return true;
	}
	why = judge_denial(order->admin, &request);
	if (why != NULL)
		admin_reply_error(conn, 409, why);
	else
		add_denial(order->admin, conn, &request);
	deny_request_fini(&request);
	return true;
}

struct http_exchange *command_deny_add(const struct admin_request *asked)
{
	const struct admin_conf *conf = &asked->admin->conf;

	CHECK(conf->on_deny_list != NULL && conf->client_frontend != NULL);
	return order_new(asked, take_denial);
}

struct http_exchange *command_deny_remove(const struct admin_request *asked)
{
	struct admin *admin = asked->admin;
	uint64_t number;

	if (text_parse_u64(parameter_of(asked->http->query, "number"), &number) < 0 ||
	    !deny_list_remove(deny_list_of(admin), number)) {
		admin_reply_error(asked->conn, 404, "there is no entry of this number");
		return NULL;
	}
	LOG(ADMIN_COMMAND, LOG_STR("command", "deny-remove"), LOG_INT("number", number));
	admin->conf.on_deny_list();
	admin_reply_number(asked->conn, "removed", number);
	return NULL;
}

/* ---- pins. SEC-65 ---- */

static bool waits(const struct pin *pin)
{
	return pin->state == PIN_NEW || pin->state == PIN_CHANGED;
}

static struct json_t *describe_pin(const struct server *server, const struct pin *pin)
{
	const struct slice none = { NULL, 0 };
	char digest[PIN_DIGEST_BYTES * 2 + 1];

	text_to_hex(pin->waiting.digest, PIN_DIGEST_BYTES, digest);
	return value_pack("{s:s, s:s, s:o?, s:s, s:s, s:b, s:I, s:s?, s:o?, s:o?}", "server",
			  server->conf.name, "kind", pin_kind_name(pin->kind), "name",
			  value_text(pin->name), "state", pin_state_name(pin->state),
			  "until_approved",
			  server->conf.pin == PIN_ENFORCE ? "withheld" : "passed on", "gone",
			  pin->is_gone, "number", (int64_t)pin->number, "digest",
			  waits(pin) ? digest : NULL, "approved",
			  value_text(waits(pin) ? pin->approved.text : none), "waiting",
			  value_text(waits(pin) ? pin->waiting.text : none));
}

struct shadow_list {
	const struct server *server; /* those that it takes part in; NULL: all */
	struct buf *out;
};

static void add_shadow(const struct shadow *shadow, void *arg)
{
	const struct shadow_list *list = arg;
	const char *name = list->server != NULL ? list->server->conf.name : NULL;

	if (name != NULL && strcmp(name, shadow->side->server) != 0 &&
	    strcmp(name, shadow->other->server) != 0)
		return;
	value_list_add(list->out,
		       value_pack("{s:s, s:s, s:o?, s:s, s:s, s:o?}", "server",
				  shadow->side->server, "kind", pin_kind_name(shadow->pin->kind),
				  "name", value_text(shadow->pin->name), "by",
				  shadow->is_mention ? "description" : "name", "other",
				  shadow->other->server, "tool", value_text(shadow->tool->name)));
}

/* Of this server, or of all; those that wait have both texts, as far as they are kept. */
struct http_exchange *command_pins(const struct admin_request *asked)
{
	const struct admin *admin = asked->admin;
	bool is_one = parameter_of(asked->http->query, "server").n > 0;
	const struct server *server = is_one ? need_server(asked) : NULL;
	at_end(buf_fini) struct buf out = { 0 };
	struct shadow_list shadows = { server, &out };

	if (is_one && server == NULL)
		return NULL;
	value_list_begin(&out, "pins");
	for (size_t i = 0; i < admin->conf.server_count; i++) {
		const struct server *of = &admin->conf.servers[i];

		/* Where they follow the server, there is nothing to decide. */
		if (of->conf.name == NULL || of->pins.follows ||
		    (server == NULL ? of->is_retired : server != of))
			continue;
		LIST_EACH(struct pin, pin, &of->pins.all, link)
			value_list_add(&out, describe_pin(of, pin));
	}
	value_list_next(&out, "shadows");
	pin_shadows_find(admin->conf.servers, admin->conf.server_count, add_shadow, &shadows);
	value_list_end(&out);
	admin_reply_json(asked->conn, 200, &out);
	return NULL;
}

static struct pin *find_number(const struct pins *pins, struct slice text)
{
	uint64_t number;

	if (text_parse_u64(text, &number) < 0)
		return NULL;
	LIST_EACH(struct pin, pin, &pins->all, link)
		if (pin->number == number)
			return pin;
	return NULL;
}

static bool has_digest(const struct pin *pin, struct slice hex)
{
	unsigned char digest[PIN_DIGEST_BYTES];

	return waits(pin) && text_from_hex(hex, digest, sizeof(digest)) == 0 &&
	       memcmp(digest, pin->waiting.digest, sizeof(digest)) == 0;
}

/*
 * Decides on the definition with this number, if it still waits with this digest: nothing is
 * decided that the operator has not seen.
 */
static void decide_on_pin(const struct admin_request *asked, bool is_approved)
{
	struct slice query = asked->http->query;
	struct server *server = need_server(asked);
	struct pin *pin;
	uint64_t decided;

	if (server == NULL)
		return;
	pin = find_number(&server->pins, parameter_of(query, "number"));
	if (pin == NULL || !has_digest(pin, parameter_of(query, "digest"))) {
		admin_reply_error(asked->conn, 409,
				  "it does not wait any more, or is another definition by now; "
				  "look again");
		return;
	}
	LOG(ADMIN_COMMAND, LOG_STR("command", is_approved ? "pins-approve" : "pins-reject"),
	    LOG_STR("server", server->conf.name), LOG_STR("kind", pin_kind_name(pin->kind)),
	    LOG_SLICE("name", pin->name));
	decided = pin->number;
	if (is_approved)
		pins_approve(&server->pins, pin);
	else
		pins_reject(&server->pins, pin);
	pin_memory_save(server->pin_memory);
	router_note_decision(asked->admin->conf.router, server);
	admin_reply_number(asked->conn, is_approved ? "approved" : "rejected", decided);
}

struct http_exchange *command_pins_approve(const struct admin_request *asked)
{
	decide_on_pin(asked, true);
	return NULL;
}

struct http_exchange *command_pins_reject(const struct admin_request *asked)
{
	decide_on_pin(asked, false);
	return NULL;
}

/*
 * ---- reloads ----
 *
 * The answer has a list for each kind of line in the report, and says whether there was an error.
 */

static void refuse_reload(struct order *order)
{
	admin_reply_error(order->exchange.conn, 503, "the daemon is about to stop");
	order_end(order);
}

static bool begin_reload(struct order *order, bool is_upgrade)
{
	LOG(ADMIN_COMMAND, LOG_STR("command", is_upgrade ? "upgrade" : "reload"));
	if (order->admin->is_leaving) {
		refuse_reload(order);
		return false;
	}
	list_append(&order->admin->reloads, &order->link);
	timer_start(order->admin->conf.router->loop, &order->patience, RELOAD_MAX_MS);
	order->number = order->admin->conf.on_reload(is_upgrade);
	return false;
}

static bool take_reload(struct order *order, not_used struct http_conn *conn,
			not_used struct slice body)
{
	return begin_reload(order, false);
}

static bool take_upgrade(struct order *order, not_used struct http_conn *conn,
			 not_used struct slice body)
{
	return begin_reload(order, true);
}

struct http_exchange *command_reload(const struct admin_request *asked)
{
	return order_new(asked, take_reload);
}

struct http_exchange *command_upgrade(const struct admin_request *asked)
{
	return order_new(asked, take_upgrade);
}

static struct json_t *describe_reload(bool is_used, struct slice report)
{
	static const char *const kinds[][2] = {
		{ "error", "errors" },
		{ "warning", "warnings" },
		{ "added", "added" },
		{ "changed", "changed" },
		{ "rules", "rules" },
		{ "removed", "removed" },
		{ "listen_added", "listen_added" },
		{ "listen_changed", "listen_changed" },
		{ "listen_removed", "listen_removed" },
	};
	struct json_t *answer = value_object();

	value_set_flag(answer, "used", is_used);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct json_t *list = value_array();
		struct slice rest = report;

		while (rest.n > 0) {
			struct slice line = slice_cut(&rest, '\n');
			struct slice kind = slice_cut(&line, ' ');

			if (line.n > 0 && slice_is_equal(kind, slice_str(kinds[i][0])))
				value_append(list, value_text(line));
		}
		value_set(answer, kinds[i][1], list);
	}
	return answer;
}

void command_reload_tell(struct admin *admin, uint64_t order, bool is_used, struct slice report)
{
	LIST_EACH_SAFE(struct order, waiting, &admin->reloads, link) {
		CHECK(waiting->number > 0);
		if (waiting->number > order)
			continue;
		admin_reply_value(waiting->exchange.conn, 200, describe_reload(is_used, report));
		order_end(waiting);
	}
}

void command_reload_refuse_all(struct admin *admin)
{
	CHECK(admin->is_leaving);
	LIST_EACH_SAFE(struct order, order, &admin->reloads, link)
		refuse_reload(order);
}

/*
 * ---- logs ----
 *
 * Pulls: lines that a slow reader has no room for wait in the stderr ring, which drops the
 * oldest.
 */

struct follower {
	struct http_exchange exchange;
	struct stderr_ring_reader reader;
	struct loop *loop;
	struct server *server;    /* until its lines are read; then NULL */
	struct stderr_ring *ring; /* of all that have its name, one after the other */
	uint64_t last;            /* the number of the last line sent */
};

static struct json_t *describe_line(const struct stderr_line *line)
{
	return value_pack("{s:I, s:I, s:o?}", "at_ms", (int64_t)line->at_ms, "pid",
			  (int64_t)line->pid, "text",
			  value_text(slice_of(line->text, line->length)));
}

/* All that are kept. */
static struct json_t *describe_lines(const struct server *server)
{
	const struct stderr_line *line = stderr_ring_next(&server->stats->stderr_ring, 0);
	struct json_t *lines = value_array();

	for (; line != NULL; line = stderr_ring_next(&server->stats->stderr_ring, line->number))
		value_append(lines, describe_line(line));
	return value_pack("{s:s, s:o}", "server", server->conf.name, "lines", lines);
}

static void follower_write(struct follower *follower)
{
	struct http_conn *conn = follower->exchange.conn;
	const struct stderr_line *line;

	CHECK(conn != NULL);
	while (http_conn_has_room(conn) &&
	       (line = stderr_ring_next(follower->ring, follower->last)) != NULL) {
		at_end(buf_fini) struct buf data = { 0 }, event = { 0 };

		CHECK(line->number > follower->last);
		value_write(describe_line(line), &data);
		sse_append_message(&event, (struct slice){ NULL, 0 }, buf_slice(&data));
		http_stream_write(conn, buf_slice(&event));
		follower->last = line->number;
	}
}

/* One that a reload has retired goes, whoever reads on. */
static void follower_leave_server(struct follower *follower)
{
	if (follower->server != NULL)
		follower->server->users--;
	follower->server = NULL;
}

static void follower_on_line(struct stderr_ring_reader *reader)
{
	follower_write(container_of(reader, struct follower, reader));
}

static void follower_on_end(struct stderr_ring_reader *reader)
{
	struct follower *follower = container_of(reader, struct follower, reader);

	http_stream_end(follower->exchange.conn);
	loop_defer_free(follower->loop, follower);
}

static void follower_on_body(struct http_exchange *exchange, not_used struct slice body)
{
	struct follower *follower = container_of(exchange, struct follower, exchange);

	CHECK(follower->last == 0);
	http_stream_begin(exchange->conn, sse_fields);
	follower->ring = &follower->server->stats->stderr_ring;
	stderr_ring_attach(follower->ring, &follower->reader);
	follower_leave_server(follower);
	follower_write(follower);
}

static void follower_on_room(struct http_exchange *exchange)
{
	follower_write(container_of(exchange, struct follower, exchange));
}

static void follower_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	struct follower *follower = container_of(exchange, struct follower, exchange);

	stderr_ring_detach(&follower->reader);
	follower_leave_server(follower);
	loop_defer_free(follower->loop, follower);
}

static const struct http_exchange_ops follower_ops = {
	.on_body = follower_on_body,
	.on_room = follower_on_room,
	.on_gone = follower_on_gone,
};

/* Sends an event for each line that is kept, and then for each new one. */
static struct http_exchange *follow_logs(struct server *server)
{
	struct follower *follower = mem_zalloc(sizeof(*follower));

	follower->exchange.ops = &follower_ops;
	follower->reader.on_line = follower_on_line;
	follower->reader.on_end = follower_on_end;
	follower->loop = server->loop;
	follower->server = server;
	server->users++;
	list_init(&follower->reader.link);
	return &follower->exchange;
}

struct http_exchange *command_logs(const struct admin_request *asked)
{
	struct server *server = need_server(asked);

	if (server == NULL)
		return NULL;
	if (slice_is_equal(parameter_of(asked->http->query, "follow"), SLICE_LIT("1")))
		return follow_logs(server);
	admin_reply_value(asked->conn, 200, describe_lines(server));
	return NULL;
}

/*
 * ---- can ----
 *
 * A message as a client would send it is shown to the very functions that admission asks. What
 * arguments may hold, rates, whether the server has listed it, and the state of a session are
 * not asked about.
 */

/* What is asked, and what was found out. */
struct inquest {
	const struct authorization_conf *conf;
	const struct endpoint *entered;  /* what was asked about */
	const struct endpoint *endpoint; /* whose rules count: the same, or one of its servers */
	const struct roles *roles;
	const struct can_request *request;
	struct slice name;       /* as that server calls it */
	struct access access;    /* its rights alone */
	const char *hindrance;   /* what keeps a static token from the server; or NULL */
	struct scope_set needed; /* the base scopes included */
	bool has_flaw;           /* the name is none that scopes can be asked about */
	struct permission_verdict verdict;
	bool is_withheld;  /* its definition waits for the operator */
	bool is_unwritten; /* no `allow` of the server is written: what has decided is the default */
	bool is_allowed;
};

/* ---- who ---- */

static const char *find_token(struct inquest *inquest, struct error *err)
{
	const struct static_tokens *tokens = &inquest->conf->tokens;
	struct slice wanted = inquest->request->who_name, nearest = { NULL, 0 };
	const struct static_token *found = NULL;
	size_t distance = SIZE_MAX;

	for (size_t i = 0; i < tokens->count; i++) {
		const struct static_token *token = &tokens->items[i];

		if (text_is_nearer(wanted, token->name, &distance))
			nearest = token->name;
		if (!slice_is_equal(token->name, wanted))
			continue;
		if (found != NULL)
			return "auth.tokens has several tokens of this name";
		found = token;
	}
	if (found == NULL && nearest.n == 0)
		return "auth.tokens has no token of this name";
	if (found == NULL) {
		error_set(err, ERROR_INVALID,
			  "auth.tokens has no token of this name; did you mean '%.*s'?",
			  SLICE_ARG(nearest));
		return err->text;
	}
	inquest->access.rights = found->rights;
	if (static_token_is_over(found))
		inquest->hindrance = "the token has expired";
	else if (!static_token_is_for(found, inquest->entered->place.server))
		inquest->hindrance = "the token is for other servers";
	return NULL;
}

/* As he was with his last request; at this server, if he has a session there. */
static const char *find_principal(struct inquest *inquest, const struct session_set *sessions)
{
	const struct client *found = NULL;

	LIST_EACH(struct session, session, &sessions->sessions, link) {
		const struct client *client = client_session_client(session);

		if (session->state != SESSION_LIVE ||
		    !slice_is_equal(session->principal->identity.subject,
				    inquest->request->who_name))
			continue;
		if (found != NULL && found->principal != client->principal)
			return "several callers have this name; name the claims of a token instead";
		if (found == NULL || client->server == inquest->endpoint->server)
			found = client;
	}
	if (found == NULL)
		return "there is no session of such a caller (mcpgatectl sessions lists them); name "
		       "a static token (--token), or the claims of one (--claims), instead";
	inquest->access.rights = found->rights;
	return NULL;
}

static const char *find_claims(struct inquest *inquest, struct error *err)
{
	at_end(grant_unref) struct grant *grant =
		can_request_grant(inquest->request, inquest->roles, err);

	if (grant == NULL)
		return err->text;
	inquest->access.rights = authorization_rights_of(inquest->conf, grant);
	return NULL;
}

/* ---- what ---- */

static void write_message(enum permission_kind kind, struct slice name, struct buf *out)
{
	static const struct {
		const char *method;
		const char *member;
	} uses[] = {
		[PERMISSION_TOOL] = { "tools/call", "name" },
		[PERMISSION_PROMPT] = { "prompts/get", "name" },
		[PERMISSION_RESOURCE] = { "resources/read", "uri" },
	};

	CHECK(kind < ARRAY_LEN(uses));
	value_write(value_pack("{s:s, s:i, s:s, s:{s:o?}}", "jsonrpc", "2.0", "id", 1, "method",
			       uses[kind].method, "params", uses[kind].member, value_text(name)),
		    out);
}

static void judge(struct inquest *inquest)
{
	static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX, .id_max = 20 };
	const struct server_conf *server = &inquest->endpoint->server->conf;
	const struct authorization auth = { .conf = *inquest->conf };
	const struct rights *rights = &inquest->access.rights;
	struct needs_flaw flaw;
	struct refusal refusal;
	struct envelope env;
	at_end(buf_fini) struct buf text = { 0 };
	struct rule rule;

	write_message(inquest->request->kind, inquest->name, &text);
	CHECK(scan_envelope(buf_slice(&text), &limits, 0, &env, NULL) == 0);
	inquest->needed = inquest->endpoint->place.base;
	scope_set_join(&inquest->needed, &inquest->entered->place.base);
	flaw = needs_add_of_message(&server->needs, &env, &inquest->needed);
	inquest->verdict = permissions_judge(&server->permissions, rights, inquest->request->kind,
					     inquest->name);
	inquest->has_flaw = flaw.what != NULL;
	inquest->is_withheld = pinning_find_withheld(inquest->endpoint->server, &env) != NULL;
	inquest->is_allowed =
		inquest->hindrance == NULL && !inquest->has_flaw && !inquest->is_withheld &&
		authorization_has_role(&inquest->endpoint->place, rights) &&
		authorization_covers(&auth, &inquest->endpoint->place, &inquest->access,
				     &inquest->needed, &refusal) &&
		permissions_find_denied(&server->permissions, rights, &env, &rule) == NULL;
}

/* ---- why ---- */

/* Without an `allow` all is allowed: that is no rule which somebody could find. */
static void note_unwritten(struct inquest *inquest, const struct rule_places *places)
{
	const struct permission_verdict *verdict = &inquest->verdict;
	struct rule rule = permission_rule(inquest->request->kind, verdict);

	CHECK(inquest->endpoint != NULL);
	inquest->is_unwritten = places != NULL && verdict->ground == PERMISSION_ALLOWED &&
				verdict->role == NULL &&
				!rule_places_has(places, &rule, inquest->endpoint->place.server);
}

/* The rule that has decided, and where it stands. */
static void set_rule(const struct inquest *inquest, const struct rule_places *places,
		     struct json_t *answer)
{
	struct rule rule = permission_rule(inquest->request->kind, &inquest->verdict);
	at_end(buf_fini) struct buf key = { 0 }, place = { 0 };

	if (inquest->verdict.ground == PERMISSION_NO_NAME || inquest->hindrance != NULL ||
	    inquest->is_unwritten)
		rule = (struct rule){ .key = RULE_NONE };
	rule_append(&rule, inquest->endpoint->place.server, &key);
	value_set_text(answer, "rule", buf_slice(&key));
	if (places != NULL)
		rule_places_append(places, &rule, inquest->endpoint->place.server, &place);
	value_set_text(answer, "rule_at", buf_slice(&place));
}

static const char *why(const struct inquest *inquest)
{
	static const char *const grounds[] = {
		[PERMISSION_FREE] = "there is no rule for it",
		[PERMISSION_ALLOWED] = "this rule allows it",
		[PERMISSION_DENIED] = "this rule denies it",
		[PERMISSION_NOT_ALLOWED] = "allow of the server has no pattern for it",
		[PERMISSION_NO_ROLE] = "no role of this caller allows it",
		[PERMISSION_NO_NAME] = "rules cannot be asked about such a name",
	};
	enum permission_ground ground =
		inquest->is_unwritten ? PERMISSION_FREE : inquest->verdict.ground;
	bool is_open = ground <= PERMISSION_ALLOWED;

	if (inquest->hindrance != NULL)
		return inquest->hindrance;
	if (!authorization_has_role(&inquest->endpoint->place, &inquest->access.rights))
		return "no role of this caller, nor tools of its token, allow anything of the server: 403";
	if (is_open && inquest->has_flaw)
		return grounds[PERMISSION_NO_NAME];
	if (is_open && inquest->is_withheld)
		return "its definition is not approved: mcpgatectl pins shows and approves it";
	if (is_open && !inquest->is_allowed)
		return "a scope is missing that it needs: 403, and the client is told";
	return grounds[ground];
}

static void set_scopes(const struct inquest *inquest, struct json_t *answer)
{
	at_end(buf_fini) struct buf text = { 0 };

	scope_table_append(inquest->conf->scopes, &inquest->needed, &text);
	value_set_text(answer, "scopes_needed", buf_slice(&text));
	text.len = 0;
	scope_table_append(inquest->conf->scopes, &inquest->access.rights.scopes, &text);
	value_set_text(answer, "scopes", buf_slice(&text));
}

/* The roles that he has, and those that would allow it, whoever had them alone. */
static void set_roles(const struct inquest *inquest, struct json_t *answer)
{
	const struct permissions *permissions = &inquest->endpoint->server->conf.permissions;
	struct json_t *has = value_array(), *allow = value_array();

	for (size_t i = 0; i < inquest->roles->count && i < ROLES_MAX; i++) {
		struct rights alone = { .needs_roles = true };

		if (!role_is_named(&inquest->roles->items[i]))
			continue;
		role_set_add(&alone.roles, i);
		if (role_set_has(&inquest->access.rights.roles, i))
			value_append(has, value_text(inquest->roles->items[i].name));
		if (permissions_allow(permissions, &alone, inquest->request->kind, inquest->name))
			value_append(allow, value_text(inquest->roles->items[i].name));
	}
	value_set(answer, "roles", has);
	value_set(answer, "roles_that_allow", allow);
}

static struct json_t *explain(const struct inquest *inquest, const struct rule_places *places)
{
	struct json_t *answer = value_object();

	value_set_flag(answer, "allowed", inquest->is_allowed);
	value_set_text(answer, "why", slice_str(why(inquest)));
	set_rule(inquest, places, answer);
	set_roles(inquest, answer);
	set_scopes(inquest, answer);
	return answer;
}

/* ---- the command ---- */

static const struct endpoint *find_endpoint(const struct admin *admin, struct slice name)
{
	const struct frontend_conf *conf = admin->conf.client_frontend;

	for (size_t i = 0; i < conf->endpoint_count; i++)
		if (conf->endpoints[i].server != NULL && !conf->endpoints[i].server->is_retired &&
		    slice_is_equal(conf->endpoints[i].place.server, name))
			return &conf->endpoints[i];
	return NULL;
}

/* At an endpoint over several servers the rules are those of the server that has it. NULL, or why it cannot be told. */
static const char *find_rules(struct inquest *inquest, const struct admin *admin)
{
	const struct server_legs *legs = &inquest->entered->server->conf.legs;
	const struct server_leg *leg = server_leg_find(legs, inquest->request->name);

	inquest->endpoint = inquest->entered;
	inquest->name = inquest->request->name;
	if (legs->count == 0)
		return NULL;
	if (inquest->request->kind == PERMISSION_RESOURCE || leg == NULL)
		return "this is an endpoint over several servers; ask about the server that has it";
	inquest->endpoint = find_endpoint(admin, leg->server);
	inquest->name.p += leg->prefix.n;
	inquest->name.n -= leg->prefix.n;
	return inquest->endpoint != NULL ? NULL : "the server of this name is not there now";
}

/* NULL, or why it cannot be told. Where nobody is asked for a token all have the same rights, whoever is named. */
static const char *find_rights(struct inquest *inquest, const struct admin *admin,
			       struct error *err)
{
	if (inquest->conf->mode < AUTHORIZATION_TOKEN)
		return NULL;
	switch (inquest->request->who) {
	case CAN_PRINCIPAL:
		return find_principal(inquest, &admin->conf.router->sessions);
	case CAN_TOKEN:
		return find_token(inquest, err);
	case CAN_CLAIMS:
		break;
	}
	return find_claims(inquest, err);
}

static void answer_question(const struct admin *admin, struct http_conn *conn,
			    const struct can_request *request)
{
	const struct authorization_conf *conf = &admin->conf.client_frontend->authorization;
	struct inquest inquest = { .conf = conf, .roles = conf->roles, .request = request };
	struct error err = { ERROR_NONE, "" };
	const char *problem;

	inquest.entered = find_endpoint(admin, request->server);
	if (inquest.entered == NULL) {
		admin_reply_no_server(conn, admin->conf.servers, admin->conf.server_count,
				      request->server);
		return;
	}
	problem = find_rules(&inquest, admin);
	if (problem == NULL)
		problem = find_rights(&inquest, admin, &err);
	if (problem != NULL) {
		admin_reply_error(conn, 409, problem);
		return;
	}
	judge(&inquest);
	note_unwritten(&inquest, admin->conf.router->rule_places);
	admin_reply_value(conn, 200, explain(&inquest, admin->conf.router->rule_places));
}

static bool take_question(struct order *order, struct http_conn *conn, struct slice body)
{
	struct error err = { ERROR_NONE, "" };
	struct can_request request;

	if (can_request_read(body, &request, &err) < 0) {
		admin_reply_error(conn, 400, err.text);
		return true;
	}
	answer_question(order->admin, conn, &request);
	can_request_fini(&request);
	return true;
}

struct http_exchange *command_can(const struct admin_request *asked)
{
	CHECK(asked->admin->conf.client_frontend != NULL);
	return order_new(asked, take_question);
}
