/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of listen[].tls, as open descriptors. The keeper opens them with its own rights and
 * passes them on; the gateway, which may open nothing, reads them. The set in use stays open, so
 * that a restarted gateway gets the same files, whatever the directory contains by then.
 *
 *  idle -> sending -> judged -> idle
 */
#ifndef MCPGATED_KEEPER_CERTIFICATES_H
#define MCPGATED_KEEPER_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

struct certificates {
	const struct config *config;
	/* With all servers that may have processes; NULL: none. */
	const struct config *running;
	int *used;         /* CERTIFICATES_FILES for each entry of each listener; -1: no file */
	int *next;         /* a newly read set, until the gateway has judged it; NULL: none */
	size_t count;      /* entries of all listeners */
	size_t sent;       /* messages; count + 1 of them make up a set */
	bool is_asked_for; /* again, while a set is being judged */
	bool is_next;      /* of a configuration that is not in use yet */
};

/*
 * Opens all files, following no link that servers of either configuration may have made (`running`:
 * with all that may have processes, or NULL; borrowed). Without TLS in the configuration there are
 * no files, and all functions below are no-ops.
 */
int certificates_init(struct certificates *certificates, const struct config *config,
		      const struct config *running, struct error *err) must_check;
void certificates_fini(struct certificates *certificates);

/* Switches to another configuration, whose `listen` is equal. */
void certificates_renew(struct certificates *certificates, const struct config *config);
/* Whether there are any. */
bool certificates_exist(const struct certificates *certificates);
/* There is another gateway, which has to get the set in use. */
void certificates_set_gateway(struct certificates *certificates);
/* Reopens all files for the gateway; the set in use stays open. Logs what cannot be opened. */
void certificates_reload(struct certificates *certificates);
/* The same without a gateway: for the next one, once it serves. */
void certificates_reload_later(struct certificates *certificates);
/* The gateway serves. */
void certificates_on_ready(struct certificates *certificates);
/*
 * The gateway reports whether it uses the set that was sent. True: the requested reload is
 * complete.
 */
bool certificates_on_verdict(struct certificates *certificates, bool is_used);

/*
 * Sends all files to the gateway as those of the next configuration, as far as the socket has room.
 * 0: all are sent.
 */
int certificates_tell_next(struct certificates *next, int gateway_fd) must_check;
/* The set sent this way is in use: `next` replaces the old set and is left empty. */
void certificates_replace(struct certificates *certificates, struct certificates *next);
/* The gateway did not judge, and has been killed: the old set stays in use. */
void certificates_give_up(struct certificates *certificates);

/* Whether the gateway still has to judge. */
bool certificates_is_reloading(const struct certificates *certificates);
/* Sends the gateway what it has not got yet, as far as the socket has room. */
void certificates_tell(struct certificates *certificates, int gateway_fd);
bool certificates_has_untold(const struct certificates *certificates);

#endif
