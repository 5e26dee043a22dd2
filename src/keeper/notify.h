/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3) without the library. Does nothing where there is no NOTIFY_SOCKET. REL-52. */
#ifndef MCPGATED_KEEPER_NOTIFY_H
#define MCPGATED_KEEPER_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int fd; /* -1: there is no NOTIFY_SOCKET */
	struct sockaddr_un address;
	socklen_t size;
	uint64_t watchdog_ms; /* send WATCHDOG=1 that often; 0: never */
};

/* Reads NOTIFY_SOCKET and WATCHDOG_* and takes them out of the environment. */
void notify_init(struct notify *notify);
/* Sends one datagram, like "READY=1". Never waits; what cannot be delivered is lost. */
void notify_send(const struct notify *notify, const char *text);

#endif
