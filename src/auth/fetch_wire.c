/* SPDX-License-Identifier: Apache-2.0 */
/* Packets are what they are in memory: both ends are built together and run on one machine. */
#include "auth/fetch_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define FRAMES_PER_TURN 64

struct header {
	uint32_t type;
	uint32_t id;
	uint32_t kind;
	uint32_t issuer;
	int32_t status;
	uint32_t body_bytes;
	uint32_t retry_after_s;
	uint32_t text_bytes[FETCH_TEXTS];
};

struct packet {
	struct list link;
	struct buf bytes; /* may hold a token */
};

_Static_assert(sizeof(struct header) + FETCH_TEXT_BYTES_MAX <= FETCH_PACKET_BYTES_MAX, "room");
_Static_assert(FETCH_PACKET_BYTES_MAX < LOOP_BUFFER_BYTES, "what is longer is noticed");

/* ---- packets ---- */

static void pack(const struct fetch_frame *frame, struct buf *out)
{
	struct header header = {
		.type = frame->type,
		.id = frame->id,
		.kind = frame->kind,
		.issuer = frame->issuer,
		.status = frame->status,
		.body_bytes = frame->body_bytes,
		.retry_after_s = frame->retry_after_s,
	};
	size_t total = 0;

	for (size_t i = 0; i < FETCH_TEXTS; i++) {
		header.text_bytes[i] = (uint32_t)frame->texts[i].n;
		total += frame->texts[i].n;
	}
	CHECK(total <= FETCH_TEXT_BYTES_MAX);
	buf_reserve(out, sizeof(header) + total); /* so that it does not move, and is wiped whole */
	buf_append(out, &header, sizeof(header));
	for (size_t i = 0; i < FETCH_TEXTS; i++)
		buf_append_slice(out, frame->texts[i]);
}

bool fetch_wire_unpack(struct slice packet, struct fetch_frame *frame_r)
{
	struct header header;
	size_t at = sizeof(header);

	if (packet.n < sizeof(header) || packet.n > FETCH_PACKET_BYTES_MAX)
		return false;
	memcpy(&header, packet.p, sizeof(header));
	*frame_r = (struct fetch_frame){
		.type = header.type,
		.id = header.id,
		.kind = header.kind,
		.issuer = header.issuer,
		.status = header.status,
		.body_bytes = header.body_bytes,
		.retry_after_s = header.retry_after_s,
	};
	for (size_t i = 0; i < FETCH_TEXTS; i++) {
		if (header.text_bytes[i] > packet.n - at)
			return false;
		frame_r->texts[i] = slice_of(packet.p + at, header.text_bytes[i]);
		at += header.text_bytes[i];
	}
	return at == packet.n;
}

static void packet_free(struct packet *packet)
{
	list_remove(&packet->link);
	buf_wipe(&packet->bytes);
	free(packet);
}

/* ---- sending ---- */

/* False: not now. What cannot be sent at all is dropped: reading tells of the end. */
static bool try_send(const struct fetch_wire *wire, const struct buf *bytes)
{
	ssize_t n;

	do
		n = send(wire->fd, bytes->data, bytes->len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

static void wire_on_writable(struct watch *watch)
{
	struct fetch_wire *wire = container_of(watch, struct fetch_wire, writing);

	while (!list_is_empty(&wire->packets)) {
		struct packet *packet = container_of(wire->packets.next, struct packet, link);

		if (!try_send(wire, &packet->bytes))
			return;
		wire->unsent_bytes -= packet->bytes.len;
		packet_free(packet);
	}
	watch_set(&wire->writing, false);
	watch_set(&wire->reading, true);
}

void fetch_wire_send(struct fetch_wire *wire, const struct fetch_frame *frame)
{
	struct packet *packet = mem_zalloc(sizeof(*packet));

	CHECK(fetch_wire_is_open(wire));
	pack(frame, &packet->bytes);
	if (list_is_empty(&wire->packets) && try_send(wire, &packet->bytes)) {
		buf_wipe(&packet->bytes);
		free(packet);
		return;
	}
	list_append(&wire->packets, &packet->link);
	wire->unsent_bytes += packet->bytes.len;
	watch_set(&wire->writing, true);
	if (wire->unsent_bytes > wire->unsent_bytes_max)
		watch_set(&wire->reading, false);
}

void fetch_wire_send_body(struct fetch_wire *wire, uint32_t id, struct slice body)
{
	while (body.n > 0) {
		size_t n = body.n < FETCH_TEXT_BYTES_MAX ? body.n : FETCH_TEXT_BYTES_MAX;
		struct fetch_frame frame = { .type = FETCH_PART,
					     .id = id,
					     .texts = { slice_of(body.p, n) } };

		fetch_wire_send(wire, &frame);
		body = slice_of(body.p + n, body.n - n);
	}
}

/* ---- receiving ---- */

/* 1, 0 if there is nothing now, -1 if nothing will come any more. */
static int receive(struct fetch_wire *wire, struct fetch_frame *frame_r)
{
	char *buffer = loop_buffer(wire->loop);
	ssize_t n = recv(wire->fd, buffer, LOOP_BUFFER_BYTES, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n > 0 && fetch_wire_unpack(slice_of(buffer, (size_t)n), frame_r) ? 1 : -1;
}

static void wire_on_readable(struct watch *watch)
{
	struct fetch_wire *wire = container_of(watch, struct fetch_wire, reading);

	for (int i = 0; i < FRAMES_PER_TURN && fetch_wire_is_open(wire) && wire->reading.is_on;
	     i++) {
		struct fetch_frame frame;
		int result = receive(wire, &frame);

		if (result == 0)
			return;
		if (result < 0) {
			watch_set(&wire->reading, false);
			wire->ops->on_end(wire);
			return;
		}
		wire->ops->on_frame(wire, &frame);
	}
}

/* ---- whole ---- */

void fetch_wire_init(struct fetch_wire *wire, struct loop *loop, const struct fetch_wire_ops *ops)
{
	CHECK(ops->on_frame != NULL && ops->on_end != NULL);
	*wire = (struct fetch_wire){
		.ops = ops, .loop = loop, .fd = -1, .unsent_bytes_max = SIZE_MAX
	};
	list_init(&wire->packets);
}

void fetch_wire_open(struct fetch_wire *wire, int fd)
{
	CHECK(wire->fd < 0 && fd >= 0);
	wire->fd = fd;
	watch_init(&wire->reading, wire->loop, fd, WATCH_READ, wire_on_readable);
	watch_init(&wire->writing, wire->loop, fd, WATCH_WRITE, wire_on_writable);
	watch_set(&wire->reading, true);
}

bool fetch_wire_is_open(const struct fetch_wire *wire)
{
	return wire->fd >= 0;
}

void fetch_wire_close(struct fetch_wire *wire)
{
	if (wire->fd < 0)
		return;
	watch_set(&wire->reading, false);
	watch_set(&wire->writing, false);
	close(wire->fd);
	wire->fd = -1;
	while (!list_is_empty(&wire->packets))
		packet_free(container_of(wire->packets.next, struct packet, link));
	wire->unsent_bytes = 0;
}
