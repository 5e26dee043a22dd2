/* SPDX-License-Identifier: Apache-2.0 */
/* An issuer that is not configured is refused: such an entry would seem to protect, and never match. */
#include "admin/deny.h"

#include "admin/admin_reply.h"
#include "admin/deny_request.h"
#include "admin/order.h"
#include "admin/value.h"
#include "base/clock.h"
#include "base/text.h"
#include "obs/log.h"

static struct deny_list *deny_list_of(const struct admin *admin)
{
	return &admin->conf.router->sessions.deny_list;
}

/* ---- reporting ---- */

static struct json_t *describe(const struct denial *denial)
{
	struct json_t *value = value_object();

	CHECK(denial->by < DENIAL_BY_COUNT && denial->name.n > 0);
	value_set_number(value, "number", denial->number);
	value_set_text(value, "issuer", denial->issuer);
	value_set_text(value, "by", slice_str(denial_by_name(denial->by)));
	value_set_text(value, "name", denial->name);
	value_set_number(value, "until_ms", denial->until_ms); /* UINT64_MAX is VALUE_NONE */
	value_set_text(value, "origin", slice_str(denial_origin_name(denial->origin)));
	return value;
}

void deny_report(const struct admin *admin, struct buf *out)
{
	struct deny_list *deny_list = deny_list_of(admin);

	deny_list_sweep(deny_list);
	value_list_begin(out, "entries");
	LIST_FOREACH(node, &deny_list->entries) {
		const struct denial *denial = container_of(node, struct denial, link);

		if (!denial->is_lifted)
			value_list_add(out, describe(denial));
	}
	value_list_end(out);
}

/* ---- judging an order ---- */

/* Whether the request can be carried out: NULL, or why not. Fills in what it may leave out. */
static const char *judge(const struct admin *admin, struct deny_request *request)
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

/* ---- commands ---- */

static void carry_out(struct admin *admin, struct http_conn *conn,
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
	value = describe(denial);
	value_set_number(value, "sessions_ended", before - sessions->count);
	admin_reply_value(conn, 200, value);
}

static void take_order(struct admin *admin, struct http_conn *conn, struct slice body)
{
	struct error err = { ERROR_NONE, "" };
	struct deny_request request;
	const char *why;

	if (deny_request_read(body, &request, &err) < 0) {
		admin_reply_error(conn, 400, err.text);
		return;
	}
	why = judge(admin, &request);
	if (why != NULL)
		admin_reply_error(conn, 409, why);
	else
		carry_out(admin, conn, &request);
	deny_request_fini(&request);
}

struct http_exchange *deny_add(const struct inquiry *inquiry)
{
	const struct admin_conf *conf = &inquiry->admin->conf;

	CHECK(conf->on_deny_list != NULL && conf->client_frontend != NULL);
	return order_new(inquiry, take_order);
}

void deny_remove(struct admin *admin, struct http_conn *conn, struct slice number)
{
	uint64_t value;

	if (text_parse_u64(number, &value) < 0 || !deny_list_remove(deny_list_of(admin), value)) {
		admin_reply_error(conn, 404, "there is no entry of this number");
		return;
	}
	LOG(ADMIN_COMMAND, LOG_STR("command", "deny-remove"), LOG_INT("number", value));
	admin->conf.on_deny_list();
	admin_reply_number(conn, "removed", value);
}
