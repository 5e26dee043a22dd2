/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets: opens them, takes them over from systemd, and describes them. The addresses of
 * the configuration are parsed beforehand (config/forms.h). For startup only: opening does not
 * block, but it accesses the file system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"

/* Room for what address_format writes. */
#define ADDRESS_TEXT_BYTES 128

/*
 * Opens a listening socket on an AF_INET, AF_INET6 or AF_UNIX address, non-blocking and
 * close-on-exec. A unix socket gets mode 0660; an existing socket file is removed if nobody listens
 * on it, and any other existing file is an error. Returns the descriptor, which the caller owns, or
 * -1.
 */
int address_listen(const struct sockaddr *address, socklen_t size, struct error *err) must_check;

/* Like address_listen, but a unix socket gets mode 0600. */
int address_listen_private(const struct sockaddr *address, socklen_t size, struct error *err)
	must_check;

/* How many descriptors systemd has passed to this process, from ADDRESS_SYSTEMD_BEGIN on. */
uint64_t address_count_systemd(void);
#define ADDRESS_SYSTEMD_BEGIN 3
/*
 * Takes the `nth` (from 0) of the sockets that systemd passed under FileDescriptorName=`name` and
 * makes it non-blocking and close-on-exec. Returns the descriptor, which the caller owns, or -1 if
 * systemd passed no such socket or it does not listen. sd_listen_fds(3).
 */
int address_take_systemd(const char *name, size_t nth, struct error *err) must_check;

/*
 * Writes the local address of a socket: `127.0.0.1:8808`, `[::1]:8808`, `unix:PATH`. A configured
 * port of 0 shows as the port that the kernel chose.
 */
void address_format(int fd, char text_r[ADDRESS_TEXT_BYTES]);

/* Whether only this machine can connect: a loopback address or a unix socket. */
bool address_is_loopback(int fd);

/* The process that listens on the unix socket of this path, as it began to; 0: none that can be told. */
pid_t address_owner(const char *path);

/*
 * Removes the file of a unix socket that nobody listens on any more, so that none remains after a
 * clean stop. Does nothing for other kinds of addresses or if somebody listens on it again.
 */
void address_remove_stale(const struct sockaddr *address, socklen_t size);
