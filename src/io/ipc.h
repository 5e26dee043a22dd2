/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between keeper and gateway: fixed size, over a SOCK_SEQPACKET pair, with descriptors.
 * The gateway can ask for what the first group names and for nothing else; it cannot name a command,
 * a user, a path or any signal but TERM and KILL.
 */
#ifndef MCPGATED_IO_IPC_H
#define MCPGATED_IO_IPC_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

enum ipc_type {
	/* gateway to keeper */
	IPC_READY = 1, /* serving; the keeper tells the user and systemd */
	/*
	 * start server number `server` as child `child` (chosen by the gateway, new); descriptor, if the server
	 * declares claims: a pipe with all of "NAME\0VALUE\0…", at most 16 KiB
	 */
	IPC_START,
	IPC_SIGNAL, /* send `value` (SIGTERM or SIGKILL) to the process group of `child` */
	IPC_FORGET, /* the gateway has let go of `child`: kill what is left of it, drop the row */
	IPC_STOP,   /* the operator wants the daemon to end, as SIGTERM does */
	IPC_RELOAD, /* and that it reads the configuration again, as SIGHUP does; order `child`: 1, 2, 3 … */
	IPC_CONFIG_USED, /* the configuration that came is in use; `value` 0: it is not, and the log says why */
	IPC_RELEASE, /* of server number `server` of an earlier configuration no process is wanted any more */
	IPC_CERTIFICATES_USED, /* the set that came last is in use; `value` 0: it is not, it is bad */
	IPC_ALIVE,             /* the answer to IPC_PING */
	/*
	 * question `child` (likewise chosen): may it be the operator who has connected to the admin socket?
	 * descriptor: the connection
	 */
	IPC_JUDGE,
	/*
	 * it has turned out that server number `server` is of era `value` (enum era; the keeper remembers it); `child`
	 * 1: it was asked just now
	 */
	IPC_ERA,
	IPC_PINS, /* the memory file with the pins of servers has changed: it is to be remembered */
	/*
	 * server number `server` was started to see what it is (start.try): it has `value` tools, or enum ipc_found;
	 * descriptor, if it says: a pipe with its "NAME\0VERSION\0", at most IPC_FOUND_BYTES
	 */
	IPC_FOUND,
	/* keeper to gateway */
	IPC_STARTED, /* `child` runs as `pid`; descriptors: its stdin, stdout, stderr (our ends) */
	IPC_FAILED,  /* `child` could not be started; `value` is errno */
	IPC_EXITED,  /* `child` has ended; `value` is the wait status */
	IPC_DRAIN,   /* stop serving: finish within the grace, then exit; a second one hurries */
	/*
	 * entry `value` of listener `server`; `child` 1: of the configuration that comes. Descriptors: certificate, key, maybe
	 * client_ca (files)
	 */
	IPC_CERTIFICATE,
	IPC_CERTIFICATES_END, /* that were all entries of all listeners: use them, and say so */
	/*
	 * listener `server` of the configuration that comes; `value`: the one whose socket it goes on with, or -1; then there is
	 * a descriptor: its socket. One for each, in order, before IPC_CONFIG; none at all: they are as they were
	 */
	IPC_LISTENER,
	/*
	 * another configuration, `value` 1: with other issuers; descriptors, memory files: as GATEWAY_CONFIG and
	 * GATEWAY_SERVERS. Use it, and say so
	 */
	IPC_CONFIG,
	/* what has come of all orders up to `child`; `value` 1: a configuration is in use; descriptor: keeper/reload.h */
	IPC_RELOADED,
	IPC_PING, /* does your loop turn? Answer IPC_ALIVE */
	IPC_AUDIT, /* `value` 0: records of the audit can be written again; else errno: why they cannot */
	IPC_JUDGED, /* `value` answers question `child`: 1, or 0: it is a server's process */
	IPC_FETCHER, /* there is a new process that fetches; descriptor: our end of its socket (auth/fetch_wire.h) */
};

/* `value` of IPC_FOUND below 0. */
enum ipc_found { IPC_FOUND_FAILING = -1, IPC_FOUND_UNLISTED = -2 };

#define IPC_FOUND_BYTES 1024
#define IPC_FDS_MAX 3

struct ipc_message {
	uint32_t type; /* enum ipc_type */
	uint32_t server;
	uint64_t child;
	int32_t pid;
	int32_t value;
};

/* Both ends non-blocking and close-on-exec. */
int ipc_pair(int fds_r[2], struct error *err) must_check;

/* Sends one message and duplicates `count` descriptors; returns 0, or -1 (ERROR_BUSY: full now). */
int ipc_send(int fd, const struct ipc_message *message, const int *fds, size_t count,
	     struct error *err) must_check;

/*
 * Receives one message. Returns 1, 0 if there is none now, -1 if the other side has gone or sent
 * something else. The caller owns the descriptors in fds_r (close-on-exec); *count_r says how many: fewer than were
 * sent if this process may have no more.
 */
int ipc_recv(int fd, struct ipc_message *message_r, int fds_r[IPC_FDS_MAX], size_t *count_r,
	     struct error *err) must_check;

/* A pipe with all of `text` in it, to be sent. -1: there is no text, or no room for it. */
int ipc_open_text(struct slice text) must_check;
/*
 * What is in such a pipe now, at most `max` bytes of it; returns how many. It never waits: what came may be empty, endless or no
 * pipe, whatever flags the other side has set on it.
 */
size_t ipc_read_text(int fd, char *bytes_r, size_t max);

/*
 * Closes a descriptor that came, without waiting: a socket that lingers would wait for what it has still to send, even
 * one that does not block.
 */
void ipc_drop(int fd);

/* Closes our end, after closing the descriptors in messages that nobody will receive any more. */
void ipc_close(int fd);

#endif
