/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of listen[].tls, as open descriptors. The keeper opens them with its own rights and hands
 * them over; the gateway, which may open nothing, reads them. The set that is in use stays open, so that
 * a gateway that has to be started again gets what it had, whatever stands in the directory by then.
 *
 *	idle -> sending -> judged -> idle
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
	const struct config
		*running; /* of all servers that may have processes; NULL: there are none */
	int *used;        /* CERTIFICATES_FILES for each entry of each listener; -1: no such file */
	int *next;        /* those read again, until the gateway has judged them; NULL: none */
	size_t count;     /* entries of all listeners together */
	size_t sent;      /* messages; count + 1 of them are a set */
	bool is_asked_for; /* again, while a set is being judged */
	bool is_next;      /* of a configuration that is not in use */
};

/*
 * Opens all files, by no link that servers of either configuration may have made (`running`: of all that may have processes, or NULL;
 * borrowed). Without TLS in
 * the configuration there are none, and all below does nothing.
 */
int certificates_init(struct certificates *certificates, const struct config *config,
		      const struct config *running, struct error *err) must_check;
void certificates_fini(struct certificates *certificates);

/* Another configuration is in use, whose `listen` says the same. */
void certificates_renew(struct certificates *certificates, const struct config *config);
/* Whether there are any. */
bool certificates_exist(const struct certificates *certificates);
/* There is another gateway: it gets the set in use. */
void certificates_set_gateway(struct certificates *certificates);
/* Opens all files again, to be sent; what was open stays in use. Logs what cannot be opened. */
void certificates_reload(struct certificates *certificates);
/* The same when there is no gateway now: for the next one, once it serves. */
void certificates_reload_later(struct certificates *certificates);
/* The gateway serves. */
void certificates_on_ready(struct certificates *certificates);
/* The gateway says whether it uses the set that was sent. True: the reload that was asked for is over. */
bool certificates_on_verdict(struct certificates *certificates, bool is_used);

/*
 * Sends all files to the gateway as those of the configuration that comes, as far as the socket takes them. 0: all are sent.
 */
int certificates_tell_next(struct certificates *next, int gateway_fd) must_check;
/* What was told so is in use: `next`, which is left empty, takes the place of the others. */
void certificates_replace(struct certificates *certificates, struct certificates *next);
/* The gateway does not judge, and has been ended: the set before stays in use. */
void certificates_give_up(struct certificates *certificates);

/* Whether the gateway has yet to judge. */
bool certificates_is_reloading(const struct certificates *certificates);
/* Sends what the gateway has not got yet, as far as the socket takes it. */
void certificates_tell(struct certificates *certificates, int gateway_fd);
bool certificates_has_untold(const struct certificates *certificates);

#endif
