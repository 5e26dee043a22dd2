/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3) without the library. A no-op without NOTIFY_SOCKET. REL-52. */
#ifndef MCPGATED_KEEPER_NOTIFY_H
#define MCPGATED_KEEPER_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int fd; /* -1: no NOTIFY_SOCKET */
	struct sockaddr_un address;
	socklen_t size;
	uint64_t watchdog_ms; /* interval of WATCHDOG=1; 0: never */
};

/* Reads NOTIFY_SOCKET and WATCHDOG_* and removes them from the environment. */
void notify_init(struct notify *notify);
/* Sends one datagram, e.g. "READY=1". Never blocks; drops what cannot be delivered. */
void notify_send(const struct notify *notify, const char *text);

#endif
