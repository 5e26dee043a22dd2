/* SPDX-License-Identifier: Apache-2.0 */
/* The origin that clients are told: what stands before the path in the URL of a server. */
#ifndef MCPGATED_CONFIG_ORIGIN_H
#define MCPGATED_CONFIG_ORIGIN_H

#include "config/config.h"

/*
 * public_url, or else the address of the first listener that is no unix socket.
 *
 * listeners  the open sockets of config->listen, which know the port; NULL: what the configuration says
 *
 * Instead of all addresses of the machine the first of `hosts`, or loopback, is named. The caller frees it. NULL: there is
 * none that could be told.
 */
char *origin_find(const struct config *config, const int *listeners);
/* That of one listener, likewise; fd: its open socket, or -1. NULL also: it is a unix socket. */
char *origin_of_listener(const struct config *config, size_t i, int fd);
/* The value of auth.mode: none, anonymous, token or oauth. */
const char *origin_auth_mode(const struct config *config);

#endif
