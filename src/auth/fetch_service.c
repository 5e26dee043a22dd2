/* SPDX-License-Identifier: Apache-2.0 */
/* While many answers wait to be read, no question is: who does not listen is not heard. */
#include "auth/fetch_service.h"

#include <stdlib.h>

#include <jansson.h>

#include "auth/fetch_site.h"
#include "auth/fetch_wire.h"
#include "base/mem.h"
#include "base/random.h"

#define UNSENT_BYTES_MAX (1024 * 1024)

struct fetch_service {
	struct fetch_wire wire;
	struct fetch_site *sites;
	size_t count;
	struct list tickets;
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
	struct slice rest = answer->body;
	struct fetch_frame frame = {
		.type = FETCH_ANSWER,
		.id = id,
		.status = answer->status,
		.body_bytes = (uint32_t)rest.n,
		.texts = { cut(slice_str(answer->error != NULL ? answer->error : "")),
			   fit(answer->cache_control), fit(answer->etag) },
	};

	CHECK(rest.n <= FETCH_BODY_BYTES_MAX);
	fetch_wire_send(&service->wire, &frame);
	while (rest.n > 0) {
		size_t n = rest.n < FETCH_TEXT_BYTES_MAX ? rest.n : FETCH_TEXT_BYTES_MAX;

		frame = (struct fetch_frame){ .type = FETCH_PART,
					      .id = id,
					      .texts = { slice_of(rest.p, n) } };
		fetch_wire_send(&service->wire, &frame);
		rest = slice_of(rest.p + n, rest.n - n);
	}
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

	if (fetch_wire_is_open(&ticket->service->wire))
		service_send(ticket->service, ticket->id, answer);
	ticket_free(ticket);
}

/* ---- being asked ---- */

static void service_ask(struct fetch_service *service, const struct fetch_frame *frame)
{
	struct error err = { ERROR_INVALID, "there is no such issuer, or nothing of that kind" };
	struct ticket *ticket;

	if (frame->issuer < service->count && frame->kind < FETCH_KIND_COUNT) {
		ticket = mem_zalloc(sizeof(*ticket));
		ticket->service = service;
		ticket->id = frame->id;
		ticket->question.on_done = ticket_on_done;
		list_append(&service->tickets, &ticket->link);
		if (fetch_site_ask(&service->sites[frame->issuer], &ticket->question,
				   (enum fetch_kind)frame->kind, frame->texts[0], frame->texts[1],
				   &err) == 0)
			return;
		ticket_free(ticket);
	}
	service_send(service, frame->id, &(struct fetch_answer){ .error = err.text });
}

static void service_cancel(struct fetch_service *service, uint32_t id)
{
	LIST_FOREACH(node, &service->tickets) {
		struct ticket *ticket = container_of(node, struct ticket, link);

		if (ticket->id == id) {
			ticket_free(ticket);
			return;
		}
	}
}

static void service_on_end(struct fetch_wire *wire)
{
	struct fetch_service *service = container_of(wire, struct fetch_service, wire);

	fetch_wire_close(wire);
	service->on_end(service->arg);
}

static void service_on_frame(struct fetch_wire *wire, const struct fetch_frame *frame)
{
	struct fetch_service *service = container_of(wire, struct fetch_service, wire);

	if (frame->type == FETCH_ASK)
		service_ask(service, frame);
	else if (frame->type == FETCH_CANCEL)
		service_cancel(service, frame->id);
	else
		service_on_end(wire);
}

static const struct fetch_wire_ops service_ops = {
	.on_frame = service_on_frame,
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

struct fetch_service *fetch_service_new(struct loop *loop, const struct verifier_conf *conf, int fd,
					fetch_service_end_fn *on_end, void *arg, struct error *err)
{
	struct fetch_service *service = mem_zalloc(sizeof(*service));

	service->on_end = on_end;
	service->arg = arg;
	list_init(&service->tickets);
	fetch_wire_init(&service->wire, loop, &service_ops);
	service->wire.unsent_bytes_max = UNSENT_BYTES_MAX;
	service->sites = mem_zalloc((conf->count + 1) * sizeof(*service->sites));
	for (; service->count < conf->count; service->count++) {
		if (fetch_site_init(&service->sites[service->count], loop,
				    &conf->items[service->count], err) < 0) {
			fetch_service_free(&service);
			return NULL;
		}
	}
	fetch_wire_open(&service->wire, fd);
	return service;
}

void fetch_service_free(struct fetch_service **service)
{
	struct fetch_service *s = *service;

	if (s == NULL)
		return;
	fetch_wire_close(&s->wire);
	while (!list_is_empty(&s->tickets))
		ticket_free(container_of(s->tickets.next, struct ticket, link));
	for (size_t i = 0; i < s->count; i++)
		fetch_site_fini(&s->sites[i]);
	free(s->sites);
	free(s);
	*service = NULL;
}
