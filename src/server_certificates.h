/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of all listeners in the gateway: received from the keeper as open files, read,
 * and turned into what the listeners present. A set is used completely or not at all. REL-50.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "config/config.h"

struct server_certificates {
	const struct config *config;
	/* borrowed; live as long as the process, so that clients can resume across sets */
	struct tickets *tickets;
	struct tls_server **servers; /* one per listener; NULL: it has no TLS, or not yet */
	struct buf **texts;          /* what was received: three per entry of each listener */
};

#define CERTIFICATES_FILES 3 /* certificate, key, client_ca */

/* The configuration and the tickets are borrowed as long as it lives. */
void server_certificates_init(struct server_certificates *server_certificates,
			      const struct config *config, struct tickets *tickets);
void server_certificates_fini(struct server_certificates *server_certificates);

/* Whether any listener has TLS, so that a set must arrive before anybody can be served. */
bool server_certificates_are_needed(const struct server_certificates *server_certificates);
/* Reads the files of one entry and closes them. */
void server_certificates_take(struct server_certificates *server_certificates, size_t listener,
			      size_t entry, const int *fds, size_t count);
/*
 * The set is complete. Returns whether it is used from now on; otherwise logs what is wrong with
 * it.
 */
bool server_certificates_use(struct server_certificates *server_certificates);

struct certificate_report;
/* Number `index` of the certificates in use, of all listeners; false: there are no more. */
bool server_certificates_report(const struct server_certificates *server_certificates, size_t index,
				struct certificate_report *report_r) must_check;
