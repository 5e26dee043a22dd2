/* SPDX-License-Identifier: Apache-2.0 */
/* The origin that clients are told: the part of a server's URL before the path. */
#ifndef MCPGATED_CONFIG_ORIGIN_H
#define MCPGATED_CONFIG_ORIGIN_H

#include "config/config.h"

/*
 * public_url, or else the address of the first listener that is not a unix socket. For a listener
 * on all addresses it names the first of `hosts`, or loopback. `listeners` are the open sockets of
 * config->listen, which know their ports; NULL: use the configured ports. The caller frees the
 * result. NULL: there is none.
 */
char *origin_find(const struct config *config, const int *listeners);
/* The same for one listener; fd: its open socket, or -1. Also NULL for a unix socket. */
char *origin_of_listener(const struct config *config, size_t i, int fd);
/* The value of auth.mode: none, anonymous, token or oauth. */
const char *origin_auth_mode(const struct config *config);

#endif
