/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between keeper and gateway, and between gateway and fetcher, over SOCK_SEQPACKET pairs:
 * io/ipc.def. One message is one packet: a head of fixed size, then the texts. Of the other side
 * nothing is believed but the form; numbers are judged by whoever uses them. The gateway can
 * request of the keeper only what the first group lists; it cannot name a command, a user, a path,
 * or any signal but TERM and KILL. Of the fetcher it asks by number, and can name no address.
 * Descriptors pass between keeper and gateway alone.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

enum ipc_type {
	IPC_NONE,
#define X(NAME, name, min, max, texts, fields) IPC_##NAME,
#include "io/ipc.def"
#undef X
	IPC_TYPES
};

/* What a gateway leaves for later ones in memory files (keeper/text_store.h). */
enum ipc_text { IPC_TEXT_PINS, IPC_TEXT_SESSIONS, IPC_TEXT_KINDS };

/* The programs that connect on behalf of a gateway: mcpgated-fetch, mcpgated-store. */
enum ipc_helper { IPC_HELPER_FETCHER, IPC_HELPER_STORE, IPC_HELPERS };

/* Instead of a number of tools. */
enum ipc_found { IPC_FOUND_FAILING = -1, IPC_FOUND_UNLISTED = -2 };

enum ipc_upgrade { IPC_UPGRADE_NONE, IPC_UPGRADE_DONE, IPC_UPGRADE_FAILED };

#define IPC_FDS_MAX 3
/* The error of a process that was not started because its caller has no file for the server. */
#define IPC_NO_CREDENTIAL ENOKEY
#define IPC_TEXTS_MAX 3
#define IPC_OWNER_BYTES 64
#define IPC_PACKET_BYTES_MAX (32 * 1024)
/* Of the texts of one message together. */
#define IPC_TEXT_BYTES_MAX (IPC_PACKET_BYTES_MAX - 64)

struct ipc_message {
	uint32_t type; /* enum ipc_type; from the other side: any number, as all below */
	uint32_t text_bytes[IPC_TEXTS_MAX]; /* set by ipc_send and ipc_unpack */
	union {                             /* those of the type */
#define F(type, name) type name;
#define X(NAME, name, min, max, texts, fields) \
	struct {                               \
		fields                         \
	} __attribute__((packed)) name;
#include "io/ipc.def"
#undef X
#undef F
	};
	/* Not in the head. Texts that were received are borrowed until the next ipc_recv. */
	struct slice texts[IPC_TEXTS_MAX];
	int fds[IPC_FDS_MAX];
	size_t fd_count;
};

#define IPC_HEAD_BYTES offsetof(struct ipc_message, texts)

/* Creates a socket pair; both ends are non-blocking and close-on-exec. Returns 0 or -1. */
int ipc_pair(int fds_r[2], struct error *err) must_check;

/*
 * Sends one message with duplicates of its descriptors. Returns 0, or -1; ERROR_BUSY means that
 * there is no room at the moment. Nothing of our memory goes with it but the fields and texts of
 * its type.
 */
int ipc_send(int fd, const struct ipc_message *message, struct error *err) must_check;

/*
 * Receives one message. Returns 1, 0 if there is none yet, or -1 if the other side is gone or sent
 * something that is no message. The caller owns the descriptors (close-on-exec): never more than
 * the type brings, and none if that is less than it brings, as this process may have no free ones.
 */
int ipc_recv(int fd, struct ipc_message *message_r, struct error *err) must_check;

/* The same by recv, for ends that pass no descriptors: those that come all the same are closed. */
int ipc_recv_plain(int fd, struct ipc_message *message_r, struct error *err) must_check;

/*
 * Takes a packet apart; texts are slices of it. False: it is no message. The type may be unknown.
 */
bool ipc_unpack(struct slice packet, struct ipc_message *message_r) must_check;

/*
 * Closes a received descriptor without blocking: closing a lingering socket could wait for unsent
 * data, even on a non-blocking socket.
 */
void ipc_drop(int fd);

/* Closes our end, and the descriptors in messages that were not received yet. */
void ipc_close(int fd);
