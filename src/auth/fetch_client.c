/* SPDX-License-Identifier: Apache-2.0 */
/* Questions wait in a list until there is a wire, then for their answer; of a body no more is taken than was announced. */
#include "auth/fetch_client.h"

#include <stdlib.h>

#include "auth/collector.h"
#include "base/buf.h"
#include "base/mem.h"
#include "io/ipc_channel.h"

#define NOT_REACHED "the fetcher has ended, or cannot be reached"

struct asked {
	struct list link;
	struct fetch_client *client;
	struct inquiry *inquiry;
	struct timer deadline;
	uint32_t id;
	uint32_t kind;
	uint32_t issuer;
	char *etag;
	struct buf sent; /* a token, which is wiped at the end, or spans */
	bool is_sent;
	bool is_answered; /* the body is coming */
	size_t body_bytes;
	struct buf body;
	struct fetch_answer answer; /* its texts are these, but the body */
	struct buf texts;
};

struct fetch_client {
	struct loop *loop;
	struct ipc_channel wire;
	struct list asked;
	uint32_t last_id;
};

/* ---- ends ---- */

static void asked_free(struct asked *asked)
{
	list_remove(&asked->link);
	timer_stop(&asked->deadline);
	free(asked->etag);
	buf_wipe(&asked->sent);
	buf_fini(&asked->body);
	buf_fini(&asked->texts);
	free(asked);
}

static void asked_finish(struct asked *asked, const struct fetch_answer *answer)
{
	struct inquiry *inquiry = asked->inquiry;

	CHECK(inquiry->asked == asked);
	inquiry->asked = NULL;
	inquiry->on_done(inquiry, answer);
	asked_free(asked);
}

static void asked_forget(struct asked *asked)
{
	struct ipc_channel *wire = &asked->client->wire;

	if (asked->is_sent && ipc_channel_is_open(wire))
		ipc_channel_send(wire, &(struct ipc_message){ .type = IPC_CANCEL,
							      .cancel = { asked->id } });
}

static void asked_on_deadline(struct timer *timer)
{
	struct asked *asked = container_of(timer, struct asked, deadline);

	asked_forget(asked);
	asked_finish(asked, &(struct fetch_answer){ .error = asked->is_sent ? "no answer in time" :
									      NOT_REACHED });
}

/* What it was asked is lost. Callbacks may ask again: that waits for the next one. */
static void client_disconnect(struct fetch_client *client)
{
	struct list lost;

	ipc_channel_close(&client->wire);
	list_init(&lost);
	LIST_EACH_SAFE(struct asked, asked, &client->asked, link)
		if (asked->is_sent)
			list_move(&lost, &asked->link);
	LIST_DRAIN(struct asked, asked, &lost, link)
		asked_finish(asked, &(struct fetch_answer){ .error = NOT_REACHED });
}

/* ---- answers ---- */

static struct asked *client_find(const struct fetch_client *client, uint32_t id)
{
	LIST_EACH(struct asked, asked, &client->asked, link)
		if (asked->id == id && asked->is_sent)
			return asked;
	return NULL;
}

/* Copies the texts, each terminated, behind each other. */
static bool asked_take_head(struct asked *asked, const struct ipc_message *head)
{
	size_t most =
		asked->kind == FETCH_STORE_TAKE ? FETCH_STORE_BODY_BYTES_MAX : FETCH_BODY_BYTES_MAX;
	size_t at[IPC_TEXTS_MAX];

	if (asked->is_answered || head->answer.body_bytes > most || head->answer.status < 0)
		return false;
	for (size_t i = 0; i < IPC_TEXTS_MAX; i++) {
		at[i] = asked->texts.len;
		buf_append_slice(&asked->texts, head->texts[i]);
		buf_append_char(&asked->texts, '\0');
	}
	asked->is_answered = true;
	asked->body_bytes = head->answer.body_bytes;
	asked->answer = (struct fetch_answer){
		.status = head->answer.status,
		.retry_after_s = head->answer.retry_after_s,
		.error = asked->texts.data + at[0],
		.cache_control = slice_of(asked->texts.data + at[1], head->texts[1].n),
		.etag = slice_of(asked->texts.data + at[2], head->texts[2].n),
	};
	return true;
}

static bool asked_take_part(struct asked *asked, struct slice part)
{
	if (!asked->is_answered || part.n > asked->body_bytes - asked->body.len)
		return false;
	buf_append_slice(&asked->body, part);
	return true;
}

static void client_on_message(struct ipc_channel *wire, const struct ipc_message *message)
{
	struct fetch_client *client = container_of(wire, struct fetch_client, wire);
	bool is_head = message->type == IPC_ANSWER;
	struct asked *asked;

	if (!is_head && message->type != IPC_PART) {
		client_disconnect(client);
		return;
	}
	asked = client_find(client, is_head ? message->answer.id : message->part.id);
	if (asked == NULL)
		return; /* cancelled meanwhile */
	if (!(is_head ? asked_take_head(asked, message) :
			asked_take_part(asked, message->texts[0]))) {
		client_disconnect(client);
		return;
	}
	if (asked->body.len < asked->body_bytes)
		return;
	asked->answer.body = buf_slice(&asked->body);
	asked_finish(asked, &asked->answer);
}

static void client_on_end(struct ipc_channel *wire)
{
	client_disconnect(container_of(wire, struct fetch_client, wire));
}

static const struct ipc_channel_ops client_ops = {
	.on_message = client_on_message,
	.on_end = client_on_end,
};

/* ---- asking ---- */

static void asked_send(struct asked *asked)
{
	bool has_body = asked->kind == FETCH_SPANS;
	struct slice sent = buf_slice(&asked->sent);
	const struct ipc_message message = {
		.type = IPC_ASK,
		.ask = { asked->id, asked->kind, asked->issuer, has_body ? (uint32_t)sent.n : 0 },
		.texts = { asked->etag != NULL ? slice_str(asked->etag) : slice_of(NULL, 0),
			   has_body ? slice_of(NULL, 0) : sent },
	};

	CHECK(!asked->is_sent);
	asked->is_sent = true;
	ipc_channel_send(&asked->client->wire, &message);
	if (has_body)
		ipc_channel_send_body(&asked->client->wire, asked->id, sent);
}

static void start(struct fetch_client *client, struct inquiry *inquiry, const struct asked *what,
		  struct slice sent)
{
	struct asked *asked = mem_alloc(sizeof(*asked));

	CHECK(inquiry->asked == NULL && inquiry->on_done != NULL);
	*asked = *what;
	asked->client = client;
	asked->inquiry = inquiry;
	asked->id = ++client->last_id;
	buf_reserve(&asked->sent, sent.n);
	buf_append_slice(&asked->sent, sent);
	list_append(&client->asked, &asked->link);
	timer_init(&asked->deadline, asked_on_deadline);
	if (what->kind != FETCH_STORE_WATCH) /* which is answered when there is something to say */
		timer_start(client->loop, &asked->deadline, INQUIRY_MS);
	inquiry->asked = asked;
	if (ipc_channel_is_open(&client->wire))
		asked_send(asked);
}

void inquiry_start(struct fetch_client *client, struct inquiry *inquiry, enum fetch_kind kind,
		   size_t issuer, const char *etag, struct slice token)
{
	const struct asked asked = { .kind = kind,
				     .issuer = (uint32_t)issuer,
				     .etag = etag != NULL ? mem_strdup(etag) : NULL };

	CHECK(kind != FETCH_SPANS);
	start(client, inquiry, &asked, token);
}

void inquiry_start_spans(struct fetch_client *client, struct inquiry *inquiry, struct slice body)
{
	const struct asked asked = { .kind = FETCH_SPANS };

	CHECK(body.n > 0 && body.n <= COLLECTOR_BODY_BYTES_MAX);
	start(client, inquiry, &asked, body);
}

void inquiry_cancel(struct inquiry *inquiry)
{
	struct asked *asked = inquiry->asked;

	if (asked == NULL)
		return;
	CHECK(asked->inquiry == inquiry);
	inquiry->asked = NULL;
	asked_forget(asked);
	asked_free(asked);
}

bool inquiry_is_running(const struct inquiry *inquiry)
{
	return inquiry->asked != NULL;
}

bool fetch_client_is_idle(const struct fetch_client *client)
{
	return list_is_empty(&client->asked);
}

/* ---- whole ---- */

struct fetch_client *fetch_client_new(struct loop *loop)
{
	struct fetch_client *client = mem_zalloc(sizeof(*client));

	client->loop = loop;
	list_init(&client->asked);
	ipc_channel_init(&client->wire, loop, &client_ops);
	return client;
}

void fetch_client_free(struct fetch_client **client)
{
	struct fetch_client *c = *client;

	if (c == NULL)
		return;
	ipc_channel_close(&c->wire);
	LIST_DRAIN(struct asked, asked, &c->asked, link) {
		asked->inquiry->asked = NULL;
		asked_free(asked);
	}
	free(c);
	*client = NULL;
}

void fetch_client_connect(struct fetch_client *client, int fd)
{
	client_disconnect(client);
	ipc_channel_open(&client->wire, fd);
	LIST_EACH(struct asked, asked, &client->asked, link)
		asked_send(asked);
}
