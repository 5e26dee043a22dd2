/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a pair for messages (io/ipc.h), served by a loop: what does not fit into the socket
 * waits. The keeper, which has no loop, uses ipc_send and ipc_recv.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/ipc.h"
#include "io/loop.h"

struct ipc_channel;

struct ipc_channel_ops {
	/* Takes ownership of the descriptors. It may close the channel. */
	void (*on_message)(struct ipc_channel *channel, const struct ipc_message *message);
	/*
	 * The other side has gone, or does not keep to the form. Nothing follows; it is still to be
	 * closed.
	 */
	void (*on_end)(struct ipc_channel *channel);
	/*
	 * A message was dropped that cannot be sent at all; reading may tell of the end. It may
	 * not close the channel. NULL: ignored.
	 */
	void (*on_unsent)(struct ipc_channel *channel, const struct error *err);
};

struct ipc_channel {
	const struct ipc_channel_ops *ops;
	struct loop *loop;
	int fd;         /* -1: closed */
	bool takes_fds; /* set by the owner; otherwise no descriptor is received */
	struct watch reading;
	struct watch writing;
	struct list unsent; /* struct ipc_unsent */
	size_t unsent_bytes;
	/* Set by the owner: nothing is read while there is more. One end alone may have this. */
	size_t unsent_bytes_max;
};

/* A message that waits for room; its fields may be changed. */
struct ipc_unsent {
	struct list link;
	struct ipc_message message;
	char *bytes; /* of its texts, which may be secret */
};

/* Nothing is connected yet. ops is borrowed. */
void ipc_channel_init(struct ipc_channel *channel, struct loop *loop,
		      const struct ipc_channel_ops *ops);
/* Begins to read. */
void ipc_channel_open(struct ipc_channel *channel, int fd);
bool ipc_channel_is_open(const struct ipc_channel *channel);
/* Wipes what is not sent. Also if it is closed. */
void ipc_channel_close(struct ipc_channel *channel);
/* The same, but the descriptor stays open: it is the caller's again. */
void ipc_channel_leave(struct ipc_channel *channel);
/*
 * To an open one. Takes ownership of the descriptors; keeps what does not fit now: whoever sends
 * bounds how much that is.
 */
void ipc_channel_send(struct ipc_channel *channel, const struct ipc_message *message);
/* As many parts as this body takes, of an ask or an answer. */
void ipc_channel_send_body(struct ipc_channel *channel, uint32_t id, struct slice body);
