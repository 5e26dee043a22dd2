/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets: opening them, taking them from systemd, and telling what they are. The texts of
 * the configuration have been understood before (config/address.h). Only for the time of start:
 * opening waits for nobody, but it touches the file system.
 */
#ifndef MCPGATED_IO_ADDRESS_H
#define MCPGATED_IO_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/error.h"

/* Room for what address_format writes. */
#define ADDRESS_TEXT_BYTES 128

/*
 * Opens a socket that listens on an AF_INET, AF_INET6 or AF_UNIX address: non-blocking and
 * close-on-exec. A unix socket gets mode 0660; a socket file in its way is removed if nobody listens
 * on it, anything else there is an error. Returns the descriptor (the caller's) or -1.
 */
int address_listen(const struct sockaddr *address, socklen_t size, struct error *err) must_check;

/* The same; a unix socket gets mode 0600. */
int address_listen_private(const struct sockaddr *address, socklen_t size, struct error *err)
	must_check;

/*
 * Takes the number `nth` (from 0) of the sockets that systemd passed under FileDescriptorName=`name`,
 * makes it non-blocking and close-on-exec. Returns the descriptor (the caller's) or -1; then systemd
 * passed no such socket, or it does not listen. sd_listen_fds(3).
 */
int address_take_systemd(const char *name, size_t nth, struct error *err) must_check;

/* Where the socket listens: `127.0.0.1:8808`, `[::1]:8808`, `unix:PATH`; a port 0 has become real. */
void address_format(int fd, char text_r[ADDRESS_TEXT_BYTES]);

/* Whether only this machine can connect: a loopback address or a unix socket. */
bool address_is_loopback(int fd);

/*
 * Removes the file of a unix socket that nobody listens on any more, so that none is left after a clean
 * stop. Other kinds of address, and sockets that somebody listens on again, stay as they are.
 */
void address_remove_stale(const struct sockaddr *address, socklen_t size);

#endif
