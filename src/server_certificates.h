/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of all listeners as the gateway has them: taken from the keeper as open files, read,
 * and made into what the listeners show. A set is used whole or not at all. REL-50.
 */
#ifndef MCPGATED_SERVER_CERTIFICATES_H
#define MCPGATED_SERVER_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "config/config.h"
#include "io/tls.h"

struct server_certificates {
	const struct config *config;
	struct tickets
		*tickets; /* borrowed; as long as the process: clients resume across a new set */
	struct tls_server **servers; /* one for each listener; NULL: it has no TLS, or none yet */
	struct buf **texts;          /* what has come: three for each entry of each listener */
};

#define CERTIFICATES_FILES 3 /* certificate, key, client_ca */

/* The configuration and the tickets are borrowed for the life of it. */
void server_certificates_init(struct server_certificates *server_certificates,
			      const struct config *config, struct tickets *tickets);
void server_certificates_fini(struct server_certificates *server_certificates);

/* Whether any listener has TLS, so that a set must come before anybody can be served. */
bool server_certificates_are_needed(const struct server_certificates *server_certificates);
/* Reads the files of one entry and closes them. */
void server_certificates_take(struct server_certificates *server_certificates, size_t listener,
			      size_t entry, const int *fds, size_t count);
/* The set is complete: returns whether it is used from now on; logs what is wrong with it otherwise. */
bool server_certificates_use(struct server_certificates *server_certificates);

#endif
