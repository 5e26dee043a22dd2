/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/fake_fetcher.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/fetch_client.h"
#include "base/buf.h"
#include "base/unit_test.h"
#include "io/ipc_channel.h"

static struct {
	struct loop *loop;
	struct fetch_client *client;
	struct ipc_channel wire;
	uint32_t id;
	size_t body_bytes; /* 0: nothing is asked */
	struct buf body;
} fake;

static void on_message(struct ipc_channel *wire, const struct ipc_message *message)
{
	if (message->type == IPC_ASK) {
		assert_int_equal(message->ask.kind, FETCH_SPANS);
		assert_int_equal(fake.body_bytes, 0);
		fake.id = message->ask.id;
		fake.body_bytes = message->ask.body_bytes;
		fake.body.len = 0;
	} else if (message->type == IPC_PART) {
		assert_int_equal(message->part.id, fake.id);
		buf_append_slice(&fake.body, message->texts[0]);
	} else {
		assert_int_equal(message->type, IPC_CANCEL);
		fake.body_bytes = 0;
	}
}

static void on_end(struct ipc_channel *wire)
{
	ipc_channel_close(wire);
}

static const struct ipc_channel_ops ops = { .on_message = on_message, .on_end = on_end };

struct fetch_client *fake_fetcher_start(struct loop *loop)
{
	int fds[2];

	memset(&fake, 0, sizeof(fake));
	assert_int_equal(ipc_pair(fds, NULL), 0);
	fake.loop = loop;
	fake.client = fetch_client_new(loop);
	fetch_client_connect(fake.client, fds[0]);
	ipc_channel_init(&fake.wire, loop, &ops);
	ipc_channel_open(&fake.wire, fds[1]);
	return fake.client;
}

void fake_fetcher_stop(void)
{
	fetch_client_free(&fake.client);
	ipc_channel_close(&fake.wire);
	buf_fini(&fake.body);
}

bool fake_fetcher_is_asked(void)
{
	for (int i = 0; i < 3; i++)
		loop_turn(fake.loop, false);
	return fake.body_bytes > 0;
}

json_t *fake_fetcher_take(void)
{
	json_error_t problem;
	json_t *body;

	while (fake.body_bytes == 0 || fake.body.len < fake.body_bytes)
		loop_turn(fake.loop, true);
	assert_int_equal(fake.body.len, fake.body_bytes);
	body = json_loadb(fake.body.data, fake.body.len, JSON_REJECT_DUPLICATES, &problem);
	if (body == NULL)
		fail_msg("%s: %.*s", problem.text, (int)fake.body.len, fake.body.data);
	return body;
}

void fake_fetcher_answer(int status, uint32_t retry_after_s, const char *body)
{
	const struct ipc_message message = {
		.type = IPC_ANSWER,
		.answer = { fake.id, status, (uint32_t)strlen(body), retry_after_s },
		.texts = { SLICE("why") },
	};

	fake.body_bytes = 0;
	ipc_channel_send(&fake.wire, &message);
	ipc_channel_send_body(&fake.wire, fake.id, slice_str(body));
	for (int i = 0; i < 3; i++)
		loop_turn(fake.loop, false);
}

static const json_t *spans_of(const json_t *body)
{
	const json_t *resource = json_array_get(json_object_get(body, "resourceSpans"), 0);
	const json_t *scope = json_array_get(json_object_get(resource, "scopeSpans"), 0);

	return json_object_get(scope, "spans");
}

const json_t *fake_fetcher_span(const json_t *body, size_t number)
{
	const json_t *span = json_array_get(spans_of(body), number);

	assert_non_null(span);
	return span;
}

const char *fake_fetcher_attribute(const json_t *span, const char *name)
{
	const json_t *attribute;
	size_t i;

	json_array_foreach(json_object_get(span, "attributes"), i, attribute) if (
		strcmp(json_string_value(json_object_get(attribute, "key")), name) ==
		0) return json_string_value(json_object_get(json_object_get(attribute, "value"),
							    "stringValue"));
	return NULL;
}

size_t fake_fetcher_count(const json_t *body)
{
	return json_array_size(spans_of(body));
}
