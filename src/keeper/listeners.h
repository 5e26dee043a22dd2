/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of all configured addresses, and telling the user where the servers are. */
#ifndef MCPGATED_KEEPER_LISTENERS_H
#define MCPGATED_KEEPER_LISTENERS_H

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "config/tree.h"

/*
 * Opens all of config->listen, in order, and behind them those of enum listener_more (keeper.h), and logs each.
 * Returns the array, which is the caller's, as are the descriptors; -1 where none is wanted. NULL: one cannot be
 * opened, and err names the address, and its place in the configuration. An admin socket whose place was not chosen by the user may be missing.
 */
int *listeners_open(const struct config *config, struct error *err) must_check;

/* One of them, by its number. -1: it cannot be opened, and err names the address, and its place in the configuration. */
int listeners_open_one(const struct config *config, size_t at, struct error *err) must_check;
/* Puts that place in front of what is wrong. Returns -1. */
int listeners_tell_place(const struct config *config, size_t at, struct error *err);
/*
 * Closes one of that address and removes the file of a unix socket, if no other process has it open. What systemd has opened
 * stays open, to be taken again.
 */
void listeners_give_up(const char *address, int fd);

/*
 * Adds each address, of admin as well, that cannot be listened on, with its place in `root`; whatever was opened is closed. One in
 * use is a warning, for this daemon itself may be the user; so is the directory of a unix socket, which may be made with the service.
 */
void listeners_check(const struct config *config, const struct tree *root,
		     struct config_problems *problems, struct config_problems *warnings);

/* Takes back what a gateway can have changed of them: the next one has the same sockets. */
void listeners_restore(const struct config *config, const int *listeners);

/* Closes those of config->listen in this process. When the gateway has closed its own, connections are refused. */
void listeners_stop(const struct config *config, int *listeners);

/* Closes those that are open, frees the array, and removes the files of unix sockets that we made. */
void listeners_close(const struct config *config, int **listeners);

#endif
