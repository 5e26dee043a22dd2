/* SPDX-License-Identifier: Apache-2.0 */
/* While many answers wait to be read, no question is: who does not listen is not heard. */
#include "auth/fetch_service.h"

#include <jansson.h>
#include <stdlib.h>

#include "auth/fetch_site.h"
#include "base/mem.h"
#include "base/random.h"
#include "io/ipc_channel.h"

#define UNSENT_BYTES_MAX (1024 * 1024)

/* Spans on their way to the collector: one body at a time. */
struct export
{
	bool is_under_way;
	uint32_t id;
	size_t body_bytes; /* that were announced */
	struct buf body;   /* what has come of them */
	struct fetch fetch;
};

struct fetch_service {
	struct ipc_channel wire;
	struct fetch_site *sites;
	size_t count;
	struct list tickets;
	struct collector *collector; /* NULL: there is none */
	struct export export;
	fetch_service_end_fn *on_end;
	void *arg;
};

/* A question of the gateway's that is being worked on. */
struct ticket {
	struct list link;
	struct fetch_service *service;
	struct site_question question;
	uint32_t id;
};

/* ---- answering ---- */

static struct slice cut(struct slice text)
{
	return text.n <= FETCH_FIELD_BYTES_MAX ? text : slice_of(text.p, FETCH_FIELD_BYTES_MAX);
}

/* A field that is too long says nothing: a part of it would say something else. */
static struct slice fit(struct slice field)
{
	return field.n <= FETCH_FIELD_BYTES_MAX ? field : slice_of(NULL, 0);
}

static void service_send(struct fetch_service *service, uint32_t id,
			 const struct fetch_answer *answer)
{
	const struct ipc_message message = {
		.type = IPC_ANSWER,
		.answer = { id, answer->status, (uint32_t)answer->body.n, answer->retry_after_s },
		.texts = { cut(slice_str(answer->error != NULL ? answer->error : "")),
			   fit(answer->cache_control), fit(answer->etag) },
	};

	CHECK(answer->body.n <= FETCH_BODY_BYTES_MAX);
	ipc_channel_send(&service->wire, &message);
	ipc_channel_send_body(&service->wire, id, answer->body);
}

static void refuse(struct fetch_service *service, uint32_t id, const char *why)
{
	service_send(service, id, &(struct fetch_answer){ .error = why });
}

static void ticket_free(struct ticket *ticket)
{
	site_question_cancel(&ticket->question);
	list_remove(&ticket->link);
	free(ticket);
}

static void ticket_on_done(struct site_question *question, const struct fetch_answer *answer)
{
	struct ticket *ticket = container_of(question, struct ticket, question);

	if (ipc_channel_is_open(&ticket->service->wire))
		service_send(ticket->service, ticket->id, answer);
	ticket_free(ticket);
}

/* ---- spans ---- */

static void export_end(struct export *export)
{
	fetch_cancel(&export->fetch);
	buf_fini(&export->body);
	*export = (struct export){ .is_under_way = false };
}

static void export_on_done(struct fetch *fetch, const struct fetch_answer *answer)
{
	struct fetch_service *service = container_of(fetch, struct fetch_service, export.fetch);
	struct fetch_answer shown = *answer;
	struct buf body = { 0 };

	buf_append_slice(&body, answer->body);
	collector_hide_secrets(service->collector, &body);
	shown.body = buf_slice(&body);
	if (ipc_channel_is_open(&service->wire))
		service_send(service, service->export.id, &shown);
	buf_fini(&body);
	export_end(&service->export);
}

static void service_begin_export(struct fetch_service *service, uint32_t id, uint32_t body_bytes)
{
	struct export *export = &service->export;

	if (service->collector == NULL || body_bytes == 0 ||
	    body_bytes > COLLECTOR_BODY_BYTES_MAX) {
		refuse(service, id, "there is no collector, or nothing to send to it");
		return;
	}
	if (export->is_under_way) {
		refuse(service, id, "spans are already being sent");
		return;
	}
	*export = (struct export){ .is_under_way = true,
				   .id = id,
				   .body_bytes = body_bytes,
				   .fetch = { .on_done = export_on_done } };
}

/* False: more than was announced. Parts of what was refused are dropped. */
static bool service_take_part(struct fetch_service *service, uint32_t id, struct slice part)
{
	struct export *export = &service->export;
	struct error err;

	if (!export->is_under_way || export->id != id)
		return true;
	if (part.n > export->body_bytes - export->body.len)
		return false;
	buf_append_slice(&export->body, part);
	if (export->body.len < export->body_bytes || part.n == 0)
		return true;
	if (collector_send(service->collector, &export->fetch, buf_slice(&export->body), &err) <
	    0) {
		refuse(service, export->id, err.text);
		export_end(export);
	}
	return true;
}

/* ---- being asked ---- */

static void service_ask(struct fetch_service *service, const struct ipc_message *message)
{
	uint32_t id = message->ask.id, kind = message->ask.kind, issuer = message->ask.issuer;
	struct error err = { ERROR_INVALID, "there is no such issuer, or nothing of that kind" };
	struct ticket *ticket;

	if (kind == FETCH_SPANS) {
		service_begin_export(service, id, message->ask.body_bytes);
		return;
	}
	if (issuer < service->count && kind < FETCH_KIND_COUNT) {
		ticket = mem_zalloc(sizeof(*ticket));
		ticket->service = service;
		ticket->id = id;
		ticket->question.on_done = ticket_on_done;
		list_append(&service->tickets, &ticket->link);
		if (fetch_site_ask(&service->sites[issuer], &ticket->question,
				   (enum fetch_kind)kind, message->texts[0], message->texts[1],
				   &err) == 0)
			return;
		ticket_free(ticket);
	}
	refuse(service, id, err.text);
}

static void service_cancel(struct fetch_service *service, uint32_t id)
{
	if (service->export.is_under_way && service->export.id == id)
		export_end(&service->export);
	LIST_FOREACH(node, &service->tickets) {
		struct ticket *ticket = container_of(node, struct ticket, link);

		if (ticket->id == id) {
			ticket_free(ticket);
			return;
		}
	}
}

static void service_on_end(struct ipc_channel *wire)
{
	struct fetch_service *service = container_of(wire, struct fetch_service, wire);

	ipc_channel_close(wire);
	service->on_end(service->arg);
}

static void service_on_message(struct ipc_channel *wire, const struct ipc_message *message)
{
	struct fetch_service *service = container_of(wire, struct fetch_service, wire);

	if (message->type == IPC_ASK)
		service_ask(service, message);
	else if (message->type == IPC_CANCEL)
		service_cancel(service, message->cancel.id);
	else if (message->type != IPC_PART ||
		 !service_take_part(service, message->part.id, message->texts[0]))
		service_on_end(wire);
}

static const struct ipc_channel_ops service_ops = {
	.on_message = service_on_message,
	.on_end = service_on_end,
};

/* ---- whole ---- */

int fetch_service_prepare(struct error *err)
{
	uint64_t seed;

	random_bytes(&seed, sizeof(seed));
	json_object_seed((size_t)seed);
	return fetch_prepare(err);
}

struct fetch_service *fetch_service_new(struct loop *loop, const struct fetch_service_conf *conf,
					int fd, fetch_service_end_fn *on_end, void *arg,
					struct error *err)
{
	struct fetch_service *service = mem_zalloc(sizeof(*service));
	const struct verifier_conf *issuers = conf->issuers;

	service->on_end = on_end;
	service->arg = arg;
	list_init(&service->tickets);
	ipc_channel_init(&service->wire, loop, &service_ops);
	service->wire.unsent_bytes_max = UNSENT_BYTES_MAX;
	service->sites = mem_zalloc((issuers->count + 1) * sizeof(*service->sites));
	for (; service->count < issuers->count; service->count++) {
		if (fetch_site_init(&service->sites[service->count], loop,
				    &issuers->items[service->count], err) < 0) {
			fetch_service_free(&service);
			return NULL;
		}
	}
	if (conf->collector->endpoint != NULL)
		service->collector = collector_new(loop, conf->collector);
	ipc_channel_open(&service->wire, fd);
	return service;
}

void fetch_service_free(struct fetch_service **service)
{
	struct fetch_service *s = *service;

	if (s == NULL)
		return;
	ipc_channel_close(&s->wire);
	while (!list_is_empty(&s->tickets))
		ticket_free(container_of(s->tickets.next, struct ticket, link));
	export_end(&s->export);
	collector_free(&s->collector);
	for (size_t i = 0; i < s->count; i++)
		fetch_site_fini(&s->sites[i]);
	free(s->sites);
	free(s);
	*service = NULL;
}
