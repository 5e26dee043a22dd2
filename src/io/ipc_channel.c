/* SPDX-License-Identifier: Apache-2.0 */
#include "io/ipc_channel.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define MESSAGES_PER_TURN 64

static size_t text_bytes_of(const struct ipc_message *message)
{
	size_t n = 0;

	for (size_t i = 0; i < IPC_TEXTS_MAX; i++)
		n += message->texts[i].n;
	return n;
}

static void close_fds(const struct ipc_message *message)
{
	for (size_t i = 0; i < message->fd_count; i++)
		close(message->fds[i]);
}

static void unsent_free(struct ipc_channel *channel, struct ipc_unsent *unsent)
{
	size_t n = text_bytes_of(&unsent->message);

	CHECK(channel->unsent_bytes >= IPC_HEAD_BYTES + n);
	channel->unsent_bytes -= IPC_HEAD_BYTES + n;
	close_fds(&unsent->message);
	list_remove(&unsent->link);
	explicit_bzero(unsent->bytes, n);
	free(unsent->bytes);
	free(unsent);
}

/* With a copy of its texts. */
static void keep_unsent(struct ipc_channel *channel, const struct ipc_message *message)
{
	struct ipc_unsent *unsent = mem_zalloc(sizeof(*unsent));
	size_t at = 0;

	unsent->message = *message;
	unsent->bytes = mem_alloc(text_bytes_of(message) + 1);
	for (size_t i = 0; i < IPC_TEXTS_MAX; i++) {
		struct slice *text = &unsent->message.texts[i];

		if (text->n > 0)
			memcpy(unsent->bytes + at, text->p, text->n);
		text->p = unsent->bytes + at;
		at += text->n;
	}
	list_append(&channel->unsent, &unsent->link);
	channel->unsent_bytes += IPC_HEAD_BYTES + at;
	watch_set(&channel->writing, true);
	if (channel->unsent_bytes > channel->unsent_bytes_max)
		watch_set(&channel->reading, false);
}

/* False: not now. */
static bool try_send(struct ipc_channel *channel, const struct ipc_message *message)
{
	struct error err;

	if (ipc_send(channel->fd, message, &err) == 0)
		return true;
	if (err.kind == ERROR_BUSY)
		return false;
	if (channel->ops->on_unsent != NULL)
		channel->ops->on_unsent(channel, &err);
	return true;
}

void ipc_channel_send(struct ipc_channel *channel, const struct ipc_message *message)
{
	CHECK(ipc_channel_is_open(channel));
	if (!list_is_empty(&channel->unsent) || !try_send(channel, message))
		keep_unsent(channel, message);
	else
		close_fds(message);
}

void ipc_channel_send_body(struct ipc_channel *channel, uint32_t id, struct slice body)
{
	while (body.n > 0) {
		size_t n = body.n < IPC_TEXT_BYTES_MAX ? body.n : IPC_TEXT_BYTES_MAX;
		struct ipc_message message = { .type = IPC_PART,
					       .part = { id },
					       .texts = { slice_of(body.p, n) } };

		ipc_channel_send(channel, &message);
		body = slice_of(body.p + n, body.n - n);
	}
}

static void channel_on_writable(struct watch *watch)
{
	struct ipc_channel *channel = container_of(watch, struct ipc_channel, writing);

	LIST_DRAIN(struct ipc_unsent, unsent, &channel->unsent, link) {
		if (!try_send(channel, &unsent->message))
			return;
		unsent_free(channel, unsent);
	}
	watch_set(&channel->writing, false);
	watch_set(&channel->reading, true);
}

static void channel_on_readable(struct watch *watch)
{
	struct ipc_channel *channel = container_of(watch, struct ipc_channel, reading);

	for (int i = 0; i < MESSAGES_PER_TURN && channel->reading.is_on; i++) {
		struct ipc_message message;
		int result = channel->takes_fds ? ipc_recv(channel->fd, &message, NULL) :
						  ipc_recv_plain(channel->fd, &message, NULL);

		if (result == 0)
			return;
		if (result < 0) {
			watch_set(&channel->reading, false);
			channel->ops->on_end(channel);
			return;
		}
		channel->ops->on_message(channel, &message);
	}
}

void ipc_channel_init(struct ipc_channel *channel, struct loop *loop,
		      const struct ipc_channel_ops *ops)
{
	CHECK(ops->on_message != NULL && ops->on_end != NULL);
	*channel = (struct ipc_channel){
		.ops = ops, .loop = loop, .fd = -1, .unsent_bytes_max = SIZE_MAX
	};
	list_init(&channel->unsent);
}

void ipc_channel_open(struct ipc_channel *channel, int fd)
{
	CHECK(channel->fd < 0 && fd >= 0);
	channel->fd = fd;
	watch_init(&channel->reading, channel->loop, fd, WATCH_READ, channel_on_readable);
	watch_init(&channel->writing, channel->loop, fd, WATCH_WRITE, channel_on_writable);
	watch_set(&channel->reading, true);
}

bool ipc_channel_is_open(const struct ipc_channel *channel)
{
	return channel->fd >= 0;
}

void ipc_channel_leave(struct ipc_channel *channel)
{
	if (channel->fd < 0)
		return;
	watch_set(&channel->reading, false);
	watch_set(&channel->writing, false);
	channel->fd = -1;
	LIST_DRAIN(struct ipc_unsent, unsent, &channel->unsent, link)
		unsent_free(channel, unsent);
}

void ipc_channel_close(struct ipc_channel *channel)
{
	int fd = channel->fd;

	ipc_channel_leave(channel);
	file_close(&fd);
}
