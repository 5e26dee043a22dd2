/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/order.h"

#include "base/mem.h"
#include "endpoint/answer.h"

struct order {
	struct http_exchange exchange;
	struct admin *admin;
	order_take_fn *take;
};

static void order_end(struct order *order)
{
	loop_defer_free(order->admin->conf.router->loop, order);
}

static void order_on_body(struct http_exchange *exchange, struct slice body)
{
	struct order *order = container_of(exchange, struct order, exchange);

	order->take(order->admin, exchange->conn, body);
	order_end(order);
}

static void order_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
	order_end(container_of(exchange, struct order, exchange));
}

static const struct http_exchange_ops order_ops = {
	.on_body = order_on_body,
	.on_room = answer_ignore_room,
	.on_gone = order_on_gone,
};

struct http_exchange *order_new(const struct inquiry *inquiry, order_take_fn *take)
{
	struct order *order = mem_zalloc(sizeof(*order));

	order->exchange.ops = &order_ops;
	order->admin = inquiry->admin;
	order->take = take;
	return &order->exchange;
}
