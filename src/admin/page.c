/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing of the page is made here: its files are the same for everybody, what it shows comes as
 * JSON.
 */
#include "admin/page.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "admin/admin.h"
#include "admin/json.h"
#include "admin/reports.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "endpoint/origin.h"
#include "http/reply.h"

/*
 * ---- viewers ----
 *
 * A snapshot is made once for all. What waits for a viewer is bounded by the mark of its
 * connection (http_conn_has_room) and one snapshot; whole ones are left out, so that what comes
 * is always true.
 */

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
	at_end(buf_fini) struct buf data = { 0 };

	reports_snapshot(admin, &data);
	viewers->last.len = 0;
	viewers->last_ms = clock_now_ms();
	sse_append_message(&viewers->last, slice_of(NULL, 0), buf_slice(&data));
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
	LIST_EACH_SAFE(struct viewer, viewer, &viewers->all, link)
		viewer_take(viewer, event);
}

static void viewer_on_body(struct http_exchange *exchange, not_used struct slice body)
{
	struct viewer *viewer = container_of(exchange, struct viewer, exchange);
	struct viewers *viewers = &viewer->admin->viewers;
	at_end(buf_fini) struct buf event = { 0 };

	if (list_is_empty(&viewers->all))
		timer_start(viewer->admin->conf.router->loop, &viewers->every, VIEWERS_EVERY_MS);
	list_append(&viewers->all, &viewer->link);
	http_stream_begin(exchange->conn, sse_fields);
	buf_printf(&event, "retry: %d\n\n", VIEWERS_EVERY_MS);
	buf_append_slice(&event, last_snapshot(viewer->admin));
	viewer_take(viewer, buf_slice(&event));
}

static void viewer_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	struct viewer *viewer = container_of(exchange, struct viewer, exchange);
	struct viewers *viewers = &viewer->admin->viewers;

	CHECK(viewers->count > 0);
	viewers->count--;
	list_remove(&viewer->link);
	if (list_is_empty(&viewers->all))
		timer_stop(&viewers->every);
	loop_defer_free(viewer->admin->conf.router->loop, viewer);
}

static const struct http_exchange_ops viewer_ops = {
	.on_body = viewer_on_body,
	.on_gone = viewer_on_gone,
};

struct http_exchange *viewers_join(const struct admin_request *asked)
{
	struct viewers *viewers = &asked->admin->viewers;
	struct viewer *viewer;

	CHECK(viewers->count <= VIEWERS_MAX);
	if (viewers->count == VIEWERS_MAX) {
		admin_reply_error(asked->conn, 503, "too many look at the page already");
		return NULL;
	}
	viewers->count++;
	viewer = mem_zalloc(sizeof(*viewer));
	viewer->exchange.ops = &viewer_ops;
	viewer->admin = asked->admin;
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

/*
 * Only its own files run; nobody frames it; texts cannot become markup (trusted types). RFC 9110 has none of these:
 * CSP 3, Trusted Types, Fetch §3.7.
 */
static const struct slice page_fields =
	SLICE("Cache-Control: no-store\r\n"
	      "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
	      "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
	      "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"
	      "X-Content-Type-Options: nosniff\r\n"
	      "X-Frame-Options: DENY\r\n"
	      "Referrer-Policy: no-referrer\r\n"
	      "Cross-Origin-Opener-Policy: same-origin\r\n"
	      "Cross-Origin-Resource-Policy: same-origin\r\n");

/* 127.0.0.0/8 in numbers: whatever else begins so is a name. */
static bool is_loopback_number(struct slice host)
{
	size_t i = 0;

	while (i < host.n && ((host.p[i] >= '0' && host.p[i] <= '9') || host.p[i] == '.'))
		i++;
	return i == host.n && slice_has_prefix(host, SLICE_LIT("127."));
}

/* The same for Host alone. */
static bool page_is_own_host(struct slice host)
{
	static const struct slice own[] = { SLICE("localhost"), SLICE("[::1]") };
	struct slice name = origin_host_of(host);

	return is_loopback_number(name) ||
	       slices_has_nocase((struct slices){ own, ARRAY_LEN(own) }, name);
}

const char *page_find_stranger(const struct http_request *request)
{
	static const struct slice scheme = SLICE("http://");
	struct slice origin = request->fields[HTTP_ORIGIN];
	struct slice host = request->fields[HTTP_HOST];
	struct slice site = request->fields[HTTP_SEC_FETCH_SITE];

	if (http_has(request, HTTP_HOST) && !page_is_own_host(host))
		return "the Host header names another machine; here it is localhost or a loopback "
		       "address";
	/* A link to the page may stand anywhere; what it reads, only the page may. Programs send no such field. */
	if (http_has(request, HTTP_SEC_FETCH_SITE) &&
	    !slice_is_equal(request->path, SLICE_LIT("/")) &&
	    !slice_is_equal(site, SLICE_LIT("same-origin")) &&
	    !slice_is_equal(site, SLICE_LIT("none")))
		return "the request comes from another web page";
	if (!http_has(request, HTTP_ORIGIN))
		return NULL;
	if (!http_has(request, HTTP_HOST) || !slice_has_prefix(origin, scheme) ||
	    !slice_is_equal_nocase(slice_of(origin.p + scheme.n, origin.n - scheme.n), host))
		return "the Origin header names another web page";
	return NULL;
}

bool page_reply_file(const struct admin_request *asked)
{
	for (size_t i = 0; i < page_file_count; i++) {
		const struct page_file *file = &page_files[i];
		struct slice part = slice_of((const char *)file->bytes, file->size);

		CHECK(file->size > 0 && file->path[0] == '/');
		if (!slice_is_equal(asked->http->path, slice_str(file->path)))
			continue;
		if (asked->http->method != HTTP_GET)
			admin_reply_error(asked->conn, 405, "the page takes GET");
		else
			http_reply(asked->conn, &(struct http_reply){ .status = 200,
								      .content_type = file->type,
								      .fields = &page_fields,
								      .field_count = 1,
								      .parts = &part,
								      .part_count = 1 });
		return true;
	}
	return false;
}

bool page_has_token(const char *hash, const struct http_request *request)
{
	unsigned char wanted[SHA256_DIGEST_LENGTH], shown[SHA256_DIGEST_LENGTH];
	struct slice token = request->fields[HTTP_AUTHORIZATION];
	struct slice scheme = slice_cut(&token, ' ');

	if (hash == NULL || !http_has(request, HTTP_AUTHORIZATION) ||
	    !slice_is_equal_nocase(scheme, SLICE_LIT("Bearer")))
		return false;
	CHECK(text_from_hex(slice_str(hash), wanted, sizeof(wanted)) == 0); /* config/forms */
	token = slice_trim(token);
	SHA256((const unsigned char *)token.p, token.n, shown);
	return CRYPTO_memcmp(wanted, shown, sizeof(wanted)) == 0;
}

struct http_exchange *page_tell_access(const struct admin_request *asked)
{
	admin_reply_value(asked->conn, 200,
			  value_pack("{s:b, s:b}", "orders", asked->may_order, "token",
				     !asked->may_order && asked->admin->page_token != NULL));
	return NULL;
}
