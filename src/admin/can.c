/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as a client would send it is shown to the very functions that admission asks. What arguments may hold, rates,
 * whether the server has listed it, and the state of a session are not asked about.
 */
#include "admin/can.h"

#include "admin/admin_reply.h"
#include "admin/can_request.h"
#include "admin/order.h"
#include "auth/grant.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "policy/needs.h"
#include "policy/rule_places.h"
#include "router/listing.h"

/* What is asked, and what was found out. */
struct inquest {
	const struct authorization_conf *conf;
	const struct endpoint *endpoint;
	const struct roles *roles;
	const struct can_request *request;
	struct access access;    /* its rights alone */
	const char *hindrance;   /* what keeps a static token from the server; or NULL */
	struct scope_set needed; /* the base scopes included */
	bool has_flaw;           /* the name is none that scopes can be asked about */
	struct permission_verdict verdict;
	bool is_withheld; /* its definition waits for the operator */
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
	else if (!static_token_is_for(found, inquest->endpoint->place.server))
		inquest->hindrance = "the token is for other servers";
	return NULL;
}

/* As he was with his last request; at this server, if he has a session there. */
static const char *find_principal(struct inquest *inquest, const struct session_set *sessions)
{
	const struct client *found = NULL;

	LIST_FOREACH(node, &sessions->sessions) {
		struct session *session = container_of(node, struct session, link);
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
		       "the claims of a token instead";
	inquest->access.rights = found->rights;
	return NULL;
}

static const char *find_claims(struct inquest *inquest, struct error *err)
{
	struct grant *grant = can_request_grant(inquest->request, inquest->roles, err);

	if (grant == NULL)
		return err->text;
	inquest->access.rights = authorization_rights_of(inquest->conf, grant);
	grant_unref(&grant);
	return NULL;
}

/* ---- what ---- */

static void write_message(const struct can_request *request, struct buf *out)
{
	static const struct {
		struct slice method;
		const char *member;
	} uses[] = {
		[PERMISSION_TOOL] = { SLICE("tools/call"), "name" },
		[PERMISSION_PROMPT] = { SLICE("prompts/get"), "name" },
		[PERMISSION_RESOURCE] = { SLICE("resources/read"), "uri" },
	};
	struct json_t *message = value_object();
	struct json_t *params = value_object();

	CHECK(request->kind < ARRAY_LEN(uses));
	value_set_text(params, uses[request->kind].member, request->name);
	value_set_text(message, "jsonrpc", SLICE_LIT("2.0"));
	value_set_number(message, "id", 1);
	value_set_text(message, "method", uses[request->kind].method);
	value_set(message, "params", params);
	value_write(message, out);
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
	struct buf text = { 0 };
	struct rule rule;
	struct error err;

	write_message(inquest->request, &text);
	CHECK(scan_envelope(buf_slice(&text), &limits, 0, &env, &err) == 0);
	inquest->needed = inquest->endpoint->place.base;
	flaw = needs_add_of_message(&server->needs, &env, &inquest->needed);
	inquest->verdict = permissions_judge(&server->permissions, rights, inquest->request->kind,
					     inquest->request->name);
	inquest->has_flaw = flaw.what != NULL;
	inquest->is_withheld = pinning_find_withheld(inquest->endpoint->server, &env) != NULL;
	inquest->is_allowed =
		inquest->hindrance == NULL && !inquest->has_flaw && !inquest->is_withheld &&
		authorization_has_role(&inquest->endpoint->place, rights) &&
		authorization_covers(&auth, &inquest->endpoint->place, &inquest->access,
				     &inquest->needed, &refusal) &&
		permissions_find_denied(&server->permissions, rights, &env, &rule) == NULL;
	buf_fini(&text);
}

/* ---- why ---- */

/* The rule that has decided, and where it stands. */
static void set_rule(const struct inquest *inquest, const struct rule_places *places,
		     struct json_t *answer)
{
	struct rule rule = permission_rule(inquest->request->kind, &inquest->verdict);
	struct buf key = { 0 }, place = { 0 };

	if (inquest->verdict.ground == PERMISSION_NO_NAME)
		rule = (struct rule){ .key = RULE_NONE };
	rule_append(&rule, inquest->endpoint->place.server, &key);
	value_set_text(answer, "rule", buf_slice(&key));
	if (places != NULL)
		rule_places_append(places, &rule, inquest->endpoint->place.server, &place);
	value_set_text(answer, "rule_at", buf_slice(&place));
	buf_fini(&key);
	buf_fini(&place);
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
	bool is_open = inquest->verdict.ground <= PERMISSION_ALLOWED;

	if (inquest->hindrance != NULL)
		return inquest->hindrance;
	if (!authorization_has_role(&inquest->endpoint->place, &inquest->access.rights))
		return "no role of this caller allows anything of the server: 403";
	if (is_open && inquest->has_flaw)
		return grounds[PERMISSION_NO_NAME];
	if (is_open && inquest->is_withheld)
		return "its definition is not approved: mcpgatectl pins shows and approves it";
	if (is_open && !inquest->is_allowed)
		return "a scope is missing that it needs: 403, and the client is told";
	return grounds[inquest->verdict.ground];
}

static void set_scopes(const struct inquest *inquest, struct json_t *answer)
{
	struct buf text = { 0 };

	scope_table_append(inquest->conf->scopes, &inquest->needed, &text);
	value_set_text(answer, "scopes_needed", buf_slice(&text));
	text.len = 0;
	scope_table_append(inquest->conf->scopes, &inquest->access.rights.scopes, &text);
	value_set_text(answer, "scopes", buf_slice(&text));
	buf_fini(&text);
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
		if (permissions_allow(permissions, &alone, inquest->request->kind,
				      inquest->request->name))
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

static void answer(const struct admin *admin, struct http_conn *conn,
		   const struct can_request *request)
{
	const struct authorization_conf *conf = &admin->conf.client_frontend->authorization;
	struct inquest inquest = { .conf = conf, .roles = conf->roles, .request = request };
	struct error err = { ERROR_NONE, "" };
	const char *problem;

	inquest.endpoint = find_endpoint(admin, request->server);
	if (inquest.endpoint == NULL) {
		admin_reply_no_server(conn, admin->conf.servers, admin->conf.server_count,
				      request->server);
		return;
	}
	problem = find_rights(&inquest, admin, &err);
	if (problem != NULL) {
		admin_reply_error(conn, 409, problem);
		return;
	}
	judge(&inquest);
	admin_reply_value(conn, 200, explain(&inquest, admin->conf.router->rule_places));
}

static void take_question(struct admin *admin, struct http_conn *conn, struct slice body)
{
	struct error err = { ERROR_NONE, "" };
	struct can_request request;

	if (can_request_read(body, &request, &err) < 0) {
		admin_reply_error(conn, 400, err.text);
		return;
	}
	answer(admin, conn, &request);
	can_request_fini(&request);
}

struct http_exchange *can_ask(const struct inquiry *inquiry)
{
	CHECK(inquiry->admin->conf.client_frontend != NULL);
	return order_new(inquiry, take_question);
}
