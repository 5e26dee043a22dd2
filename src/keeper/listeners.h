/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of all configured addresses, and telling the user where the servers are. */
#ifndef MCPGATED_KEEPER_LISTENERS_H
#define MCPGATED_KEEPER_LISTENERS_H

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Opens all of config->listen, in order, and logs each. Returns an array of config->listen_count
 * descriptors (the caller's, as is the array), or NULL: then err names the address.
 */
int *listeners_open(const struct config *config, struct error *err) must_check;

/* Closes them here: with the gateway's own, nobody connects any more, instead of waiting for nobody. */
void listeners_stop(const struct config *config, int *listeners);

/* Closes those that are open, frees the array, and removes the files of unix sockets that we made. */
void listeners_close(const struct config *config, int **listeners);

/* One line on stderr for each enabled server and listener: product.md §2. Never waits. */
void listeners_announce(const struct config *config, const int *listeners);

#endif
