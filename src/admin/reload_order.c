/* SPDX-License-Identifier: Apache-2.0 */
/* The answer has a list for each kind of line in the report, and says whether there was an error. */
#include "admin/reload_order.h"

#include "admin/admin_reply.h"
#include "base/mem.h"
#include "endpoint/answer.h"
#include "obs/log.h"

#define REPORT_MAX_MS 60000 /* the keeper has read files by then, or hangs with one of them */

struct reload_order {
	struct http_exchange exchange;
	struct list link; /* of admin->reloads, once it was given */
	struct admin *admin;
	uint64_t number;
	struct timer patience;
};

static void order_end(struct reload_order *order)
{
	list_remove(&order->link);
	timer_stop(&order->patience);
	loop_defer_free(order->admin->conf.router->loop, order);
}

static void order_on_timeout(struct timer *timer)
{
	struct reload_order *order = container_of(timer, struct reload_order, patience);

	admin_reply_error(order->exchange.conn, 504,
			  "nothing has come of it so far; the log has the outcome");
	order_end(order);
}

static void order_refuse(struct reload_order *order)
{
	admin_reply_error(order->exchange.conn, 503, "the daemon is about to stop");
	order_end(order);
}

static void order_on_body(struct http_exchange *exchange, struct slice body)
{
	struct reload_order *order = container_of(exchange, struct reload_order, exchange);

	(void)body;
	LOG(ADMIN_COMMAND, LOG_STR("command", "reload"));
	if (order->admin->is_leaving) {
		order_refuse(order);
		return;
	}
	list_append(&order->admin->reloads, &order->link);
	timer_start(order->admin->conf.router->loop, &order->patience, REPORT_MAX_MS);
	order->number = order->admin->conf.on_reload();
}

static void order_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
	order_end(container_of(exchange, struct reload_order, exchange));
}

static const struct http_exchange_ops order_ops = {
	.on_body = order_on_body,
	.on_room = answer_ignore_room,
	.on_gone = order_on_gone,
};

struct http_exchange *reload_order_new(const struct inquiry *inquiry)
{
	struct reload_order *order = mem_zalloc(sizeof(*order));

	order->exchange.ops = &order_ops;
	order->admin = inquiry->admin;
	list_init(&order->link);
	timer_init(&order->patience, order_on_timeout);
	return &order->exchange;
}

/* ---- the outcome ---- */

static struct json_t *describe(bool is_used, struct slice report)
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

void reload_order_tell(struct admin *admin, uint64_t order, bool is_used, struct slice report)
{
	LIST_FOREACH_SAFE(node, &admin->reloads) {
		struct reload_order *waiting = container_of(node, struct reload_order, link);

		CHECK(waiting->number > 0);
		if (waiting->number > order)
			continue;
		admin_reply_value(waiting->exchange.conn, 200, describe(is_used, report));
		order_end(waiting);
	}
}

void reload_order_refuse_all(struct admin *admin)
{
	CHECK(admin->is_leaving);
	LIST_FOREACH_SAFE(node, &admin->reloads)
		order_refuse(container_of(node, struct reload_order, link));
}
