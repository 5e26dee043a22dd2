/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events have no ids if clients cannot come back (conf.reconnect_ms is 0): nothing is kept for
 * them.
 */
#include "endpoint/sse_get.h"

#include "endpoint/egress.h"
#include "endpoint/origin.h"
#include "http/sse.h"
#include "router/router.h"

static bool may_resume(const struct sse_get *get)
{
	return get->caller.frontend->conf.reconnect_ms > 0;
}

void sse_get_begin(struct sse_get *get, struct slice own, const struct answer *answer,
		   uint64_t after)
{
	const struct frontend_conf *conf = &get->caller.frontend->conf;
	struct buf uri = { 0 };
	struct buf event = { 0 };
	struct buf fields = { 0 };
	char id[EVENT_ID_BYTES];

	answer_append_fields(&fields, answer);
	event_writer_begin(&get->writer, &get->exchange, conf->keepalive_ms, buf_slice(&fields));
	buf_printf(&uri, "%.*s%.*s?sessionId=%.*s",
		   SLICE_ARG(origin_path_of(conf->authorization.public_url)),
		   SLICE_ARG(get->caller.endpoint->message_path), SLICE_ARG(own));
	sse_append_endpoint(&event, buf_slice(&uri),
			    may_resume(get) ? event_id_of_client(own, after, id) :
					      slice_of(NULL, 0),
			    conf->retry_ms);
	http_stream_write(get->exchange.conn, buf_slice(&event));
	token_watch_begin(get->token_watch, &get->caller);
	buf_fini(&fields);
	buf_fini(&event);
	buf_fini(&uri);
}

bool sse_get_attach(struct sse_get *get, struct slice own, struct stream *stream, uint64_t after)
{
	struct event_source source = {
		.stream = stream,
		.after = after,
		.client = may_resume(get) ? own : slice_of(NULL, 0),
		.has_no_ids = !may_resume(get),
	};

	CHECK(get->client != NULL);
	if (event_writer_attach(&get->writer, &source))
		return true;
	source.after = STREAM_FROM_HERE;
	CHECK(event_writer_attach(&get->writer, &source));
	return false;
}

void sse_get_tell_hole(struct sse_get *get, struct slice own)
{
	struct buf error = { 0 };
	struct buf event = { 0 };
	char id[EVENT_ID_BYTES];

	answer_append_expired(&error, slice_of(NULL, 0));
	egress_append_event(&event, event_id_of_client(own, get->writer.reader.position, id),
			    buf_slice(&error));
	http_stream_write(get->exchange.conn, buf_slice(&event));
	buf_fini(&error);
	buf_fini(&event);
}

void sse_get_end(struct sse_get *get)
{
	event_writer_stop(&get->writer);
	token_watch_end(&get->token_watch);
	caller_fini(&get->caller);
	loop_defer_free(get->caller.frontend->router->loop, get);
}
