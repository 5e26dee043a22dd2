/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot is made once for all. What waits for a viewer is bounded by the mark of its connection (http_conn_has_room) and one
 * snapshot; whole ones are left out, so that what comes is always true.
 */
#include "admin/viewers.h"

#include "admin/admin.h"
#include "admin/admin_reply.h"
#include "admin/reports.h"
#include "base/clock.h"
#include "base/mem.h"
#include "http/sse.h"

struct viewer {
	struct list link;
	struct http_exchange exchange;
	struct admin *admin;
	uint64_t behind_since_ms; /* no snapshot had room since then; 0: the last one had */
};

/* The event. */
static struct slice make_snapshot(struct admin *admin)
{
	struct viewers *viewers = &admin->viewers;
	struct buf data = { 0 };

	reports_snapshot(admin, &data);
	viewers->last.len = 0;
	viewers->last_ms = clock_now_ms();
	sse_append_message(&viewers->last, slice_of(NULL, 0), buf_slice(&data));
	buf_fini(&data);
	return buf_slice(&viewers->last);
}

/* For who comes: at most VIEWERS_EVERY_MS old. */
static struct slice last_snapshot(struct admin *admin)
{
	const struct viewers *viewers = &admin->viewers;

	if (viewers->last.len > 0 && clock_now_ms() - viewers->last_ms < VIEWERS_EVERY_MS)
		return buf_slice(&viewers->last);
	return make_snapshot(admin);
}

/* May end it. */
static void viewer_take(struct viewer *viewer, struct slice event)
{
	struct http_conn *conn = viewer->exchange.conn;
	uint64_t now_ms = clock_now_ms();

	CHECK(conn != NULL && event.n > 0);
	if (http_conn_has_room(conn)) {
		viewer->behind_since_ms = 0;
		http_stream_write(conn, event);
	} else if (viewer->behind_since_ms == 0) {
		viewer->behind_since_ms = now_ms;
	} else if (now_ms - viewer->behind_since_ms >= VIEWERS_BEHIND_MAX_MS) {
		http_conn_end(conn, REASON_SLOW_READER);
	}
}

static void viewers_on_time(struct timer *timer)
{
	struct viewers *viewers = container_of(timer, struct viewers, every);
	struct admin *admin = container_of(viewers, struct admin, viewers);
	struct slice event;

	CHECK(!list_is_empty(&viewers->all));
	event = make_snapshot(admin);
	timer_start(admin->conf.router->loop, timer, VIEWERS_EVERY_MS);
	LIST_FOREACH_SAFE(node, &viewers->all)
		viewer_take(container_of(node, struct viewer, link), event);
}

static void viewer_on_body(struct http_exchange *exchange, struct slice body)
{
	struct viewer *viewer = container_of(exchange, struct viewer, exchange);
	struct viewers *viewers = &viewer->admin->viewers;
	struct buf event = { 0 };

	(void)body;
	if (list_is_empty(&viewers->all))
		timer_start(viewer->admin->conf.router->loop, &viewers->every, VIEWERS_EVERY_MS);
	list_append(&viewers->all, &viewer->link);
	http_stream_begin(exchange->conn, sse_fields);
	buf_printf(&event, "retry: %d\n\n", VIEWERS_EVERY_MS);
	buf_append_slice(&event, last_snapshot(viewer->admin));
	viewer_take(viewer, buf_slice(&event));
	buf_fini(&event);
}

static void viewer_on_room(struct http_exchange *exchange)
{
	(void)exchange; /* the next snapshot comes in time */
}

static void viewer_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct viewer *viewer = container_of(exchange, struct viewer, exchange);
	struct viewers *viewers = &viewer->admin->viewers;

	(void)reason;
	CHECK(viewers->count > 0);
	viewers->count--;
	list_remove(&viewer->link);
	if (list_is_empty(&viewers->all))
		timer_stop(&viewers->every);
	loop_defer_free(viewer->admin->conf.router->loop, viewer);
}

static const struct http_exchange_ops viewer_ops = {
	.on_body = viewer_on_body,
	.on_room = viewer_on_room,
	.on_gone = viewer_on_gone,
};

struct http_exchange *viewers_join(const struct inquiry *inquiry)
{
	struct viewers *viewers = &inquiry->admin->viewers;
	struct viewer *viewer;

	CHECK(viewers->count <= VIEWERS_MAX);
	if (viewers->count == VIEWERS_MAX) {
		admin_reply_error(inquiry->conn, 503, "too many look at the page already");
		return NULL;
	}
	viewers->count++;
	viewer = mem_zalloc(sizeof(*viewer));
	viewer->exchange.ops = &viewer_ops;
	viewer->admin = inquiry->admin;
	list_init(&viewer->link);
	return &viewer->exchange;
}

void viewers_init(struct viewers *viewers)
{
	*viewers = (struct viewers){ .count = 0 };
	list_init(&viewers->all);
	timer_init(&viewers->every, viewers_on_time);
}

void viewers_fini(struct viewers *viewers)
{
	CHECK(viewers->count == 0);
	buf_fini(&viewers->last);
}
