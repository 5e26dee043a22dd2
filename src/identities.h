/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of all listeners as the gateway has them: taken from the keeper as open files, read,
 * and made into what the listeners show. A set is used whole or not at all. REL-50.
 */
#ifndef MCPGATED_IDENTITIES_H
#define MCPGATED_IDENTITIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "config/config.h"
#include "io/tls.h"

struct identities {
	const struct config *config;
	struct tickets *tickets;     /* as long as the process: clients resume across a new set */
	struct tls_server **servers; /* one for each listener; NULL: it has no TLS, or none yet */
	struct buf **texts;          /* what has come: three for each entry of each listener */
};

/* The configuration is borrowed for the life of it. */
void identities_init(struct identities *identities, const struct config *config);
void identities_fini(struct identities *identities);

/* Whether any listener has TLS, so that a set must come before anybody can be served. */
bool identities_are_needed(const struct identities *identities);
/* Reads the files of one entry and closes them. */
void identities_take(struct identities *identities, size_t listener, size_t entry, const int *fds,
		     size_t count);
/* That was the set: returns whether it is used from now on. Logs what is wrong with it otherwise. */
bool identities_use(struct identities *identities);

#endif
