/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/pin_orders.h"

#include <string.h>

#include "admin/admin_reply.h"
#include "base/text.h"
#include "obs/log.h"
#include "process/pin_memory.h"

/* ---- reporting ---- */

static bool waits(const struct pin *pin)
{
	return pin->state == PIN_NEW || pin->state == PIN_CHANGED;
}

static void set_digest(struct json_t *value, const struct pin *pin)
{
	struct buf text = { 0 };

	for (size_t i = 0; waits(pin) && i < PIN_DIGEST_BYTES; i++)
		buf_printf(&text, "%02x", pin->waiting.digest[i]);
	value_set_text(value, "digest", buf_slice(&text));
	buf_fini(&text);
}

static struct json_t *describe(const struct server *server, const struct pin *pin)
{
	const struct slice none = { NULL, 0 };
	struct json_t *value = value_object();

	value_set_text(value, "server", slice_str(server->conf.name));
	value_set_text(value, "kind", slice_str(pin_kind_name(pin->kind)));
	value_set_text(value, "name", pin->name);
	value_set_text(value, "state", slice_str(pin_state_name(pin->state)));
	value_set_text(value, "until_approved",
		       server->conf.pin == PIN_ENFORCE ? SLICE_LIT("withheld") :
							 SLICE_LIT("passed on"));
	value_set_flag(value, "gone", pin->is_gone);
	value_set_number(value, "number", pin->number);
	set_digest(value, pin);
	value_set_text(value, "approved", waits(pin) ? pin->approved.text : none);
	value_set_text(value, "waiting", waits(pin) ? pin->waiting.text : none);
	return value;
}

static void report_server(const struct server *server, struct buf *out)
{
	if (server->pins.follows) /* there is nothing to decide */
		return;
	LIST_FOREACH(node, &server->pins.all)
		value_list_add(out, describe(server, container_of(node, struct pin, link)));
}

struct shadow_list {
	const struct server *server; /* those that it takes part in; NULL: all */
	struct buf *out;
};

static void add_shadow(const struct shadow *shadow, void *arg)
{
	const struct shadow_list *list = arg;
	const char *name = list->server != NULL ? list->server->conf.name : NULL;
	struct json_t *value;

	if (name != NULL && strcmp(name, shadow->side->server) != 0 &&
	    strcmp(name, shadow->other->server) != 0)
		return;
	value = value_object();
	value_set_text(value, "server", slice_str(shadow->side->server));
	value_set_text(value, "kind", slice_str(pin_kind_name(shadow->pin->kind)));
	value_set_text(value, "name", shadow->pin->name);
	value_set_text(value, "by",
		       shadow->is_mention ? SLICE_LIT("description") : SLICE_LIT("name"));
	value_set_text(value, "other", slice_str(shadow->other->server));
	value_set_text(value, "tool", shadow->tool->name);
	value_list_add(list->out, value);
}

void pin_orders_report(const struct admin *admin, struct http_conn *conn,
		       const struct server *server)
{
	struct buf out = { 0 };
	struct shadow_list shadows = { server, &out };

	value_list_begin(&out, "pins");
	for (size_t i = 0; i < admin->conf.server_count; i++)
		if (admin->conf.servers[i].conf.name != NULL &&
		    (server == NULL ? !admin->conf.servers[i].is_retired :
				      server == &admin->conf.servers[i]))
			report_server(&admin->conf.servers[i], &out);
	value_list_next(&out, "shadows");
	pin_shadows_find(admin->conf.servers, admin->conf.server_count, add_shadow, &shadows);
	value_list_end(&out);
	admin_reply_json(conn, 200, &out);
	buf_fini(&out);
}

/* ---- deciding ---- */

static struct pin *find_number(const struct pins *pins, struct slice text)
{
	uint64_t number;

	if (text_parse_u64(text, &number) < 0)
		return NULL;
	LIST_FOREACH(node, &pins->all) {
		struct pin *pin = container_of(node, struct pin, link);

		if (pin->number == number)
			return pin;
	}
	return NULL;
}

static bool has_digest(const struct pin *pin, struct slice hex)
{
	unsigned char digest[PIN_DIGEST_BYTES];

	return waits(pin) && text_from_hex(hex, digest, sizeof(digest)) == 0 &&
	       memcmp(digest, pin->waiting.digest, sizeof(digest)) == 0;
}

void pin_orders_decide(struct server *server, struct http_conn *conn, bool is_approved,
		       struct slice number, struct slice digest)
{
	struct pin *pin = find_number(&server->pins, number);
	uint64_t decided;

	if (pin == NULL || !has_digest(pin, digest)) {
		admin_reply_error(conn, 409,
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
	admin_reply_number(conn, is_approved ? "approved" : "rejected", decided);
}
