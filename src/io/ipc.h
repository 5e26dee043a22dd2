/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between keeper and gateway: fixed size, over a SOCK_SEQPACKET pair, with descriptors.
 * The gateway can request only what the first group lists; it cannot name a command, a user, a
 * path, or any signal but TERM and KILL.
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
	 * start server number `server` as child `child` (a new number chosen by the gateway);
	 * descriptor, if the server declares claims: a pipe that contains "NAME\0VALUE\0…", at most
	 * 16 KiB
	 */
	IPC_START,
	IPC_SIGNAL, /* send `value` (SIGTERM or SIGKILL) to the process group of `child` */
	IPC_FORGET, /* the gateway is done with `child`: kill what is left of it, drop the row */
	IPC_STOP,   /* the operator asks the daemon to stop, as SIGTERM does */
	/*
	 * likewise to reload the configuration, as SIGHUP does; `child`: number of the order, 1, 2,
	 * 3 …
	 */
	IPC_RELOAD,
	/* the new configuration is in use; `value` 0: it is not, and the log says why */
	IPC_CONFIG_USED,
	/* no more processes are needed of server number `server` of an earlier configuration */
	IPC_RELEASE,
	IPC_CERTIFICATES_USED, /* the last set is in use; `value` 0: it is not, because it is bad */
	IPC_ALIVE,             /* the answer to IPC_PING */
	/*
	 * question number `child` (chosen by the gateway): may the peer of this connection to the
	 * admin socket be the operator? descriptor: the connection
	 */
	IPC_JUDGE,
	/*
	 * server number `server` is of era `value` (enum era; the keeper remembers it); `child` 1:
	 * it was probed just now
	 */
	IPC_ERA,
	/* the memory file of kind `server` (enum ipc_text) has changed; the keeper is to save it */
	IPC_TEXT,
	/*
	 * server number `server` was started to see what it is (start.try): `value` is the number
	 * of its tools, or enum ipc_found; descriptor, if it identified itself: a pipe with
	 * "NAME\0VERSION\0", at most IPC_FOUND_BYTES
	 */
	IPC_FOUND,
	/* keeper to gateway */
	IPC_STARTED, /* `child` runs as `pid`; descriptors: our ends of its stdin, stdout, stderr */
	IPC_FAILED,  /* `child` could not be started; `value` is errno */
	IPC_EXITED,  /* `child` has ended; `value` is the wait status */
	/* stop serving: finish within the grace period, then exit; a second one shortens it */
	IPC_DRAIN,
	/*
	 * entry `value` of listener `server`; `child` 1: for the configuration about to be sent.
	 * Descriptors: certificate, key, possibly client_ca (files)
	 */
	IPC_CERTIFICATE,
	IPC_CERTIFICATES_END, /* all entries of all listeners were sent: use them and report it */
	/*
	 * listener `server` of the configuration about to be sent; `value`: the current listener
	 * whose socket it keeps, or -1 and its socket as the descriptor. One message per listener,
	 * in order, before IPC_CONFIG; none at all: they are unchanged
	 */
	IPC_LISTENER,
	/*
	 * a new configuration; `value` 1: its issuers differ. Descriptors: memory files, as
	 * GATEWAY_CONFIG and GATEWAY_SERVERS. Use it and report it
	 */
	IPC_CONFIG,
	/*
	 * the outcome of all orders up to number `child`; `value` 1: a configuration is in use;
	 * descriptor: see keeper/reload.h
	 */
	IPC_RELOADED,
	IPC_PING, /* is the event loop running? Answer IPC_ALIVE */
	/* `value` 0: audit records can be written again; otherwise the errno that prevents it */
	IPC_AUDIT,
	IPC_JUDGED, /* answers question `child`; `value` 1: yes, 0: no, it is a server's process */
	/* a new fetcher process runs; descriptor: our end of its socket (auth/fetch_wire.h) */
	IPC_FETCHER,
};

/* What a gateway leaves for later ones in memory files (keeper/text_store.h). */
enum ipc_text { IPC_TEXT_PINS, IPC_TEXT_SESSIONS, IPC_TEXT_KINDS };

/* Negative `value` of IPC_FOUND. */
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

/* Creates a socket pair; both ends are non-blocking and close-on-exec. Returns 0 or -1. */
int ipc_pair(int fds_r[2], struct error *err) must_check;

/*
 * Sends one message with duplicates of `count` descriptors. Returns 0, or -1; ERROR_BUSY means that
 * there is no room at the moment.
 */
int ipc_send(int fd, const struct ipc_message *message, const int *fds, size_t count,
	     struct error *err) must_check;

/*
 * Receives one message. Returns 1, 0 if there is none yet, or -1 if the other side is gone or sent
 * something invalid. The caller owns the descriptors in fds_r (close-on-exec). *count_r is their
 * number; it is lower than the number sent if this process has no free descriptors.
 */
int ipc_recv(int fd, struct ipc_message *message_r, int fds_r[IPC_FDS_MAX], size_t *count_r,
	     struct error *err) must_check;

/*
 * Creates a pipe that contains all of `text`, for sending with ipc_send. Returns its read end,
 * which the caller owns, or -1 if the text is empty or does not fit.
 */
int ipc_open_text(struct slice text) must_check;
/*
 * Reads at most `max` bytes of what such a pipe contains now; returns their number. Never blocks,
 * whatever the descriptor is and whatever flags the other side sets on it: it may be empty, endless
 * or not a pipe.
 */
size_t ipc_read_text(int fd, char *bytes_r, size_t max);

/*
 * Closes a received descriptor without blocking: closing a lingering socket could wait for unsent
 * data, even on a non-blocking socket.
 */
void ipc_drop(int fd);

/* Closes our end, and the descriptors in messages that were not received yet. */
void ipc_close(int fd);

#endif
