/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of all configured addresses, and the log lines about them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "config/tree.h"

struct handover;

/*
 * Opens all of config->listen, in order, followed by those of enum listener_more (gateway_entry.h),
 * and logs each; those that the program before had open (`from`) are the same sockets, and stay open
 * for it if this fails. Returns an array that the caller owns, as well as the descriptors; -1 where none
 * is wanted. NULL: one cannot be opened, and err names the address and its place in the
 * configuration. An admin socket at its default place may be missing.
 */
int *listeners_open(const struct config *config, struct handover *from, struct error *err)
	must_check;
/* Writes them for the next program, and what systemd has passed. */
void listeners_hand_over(const struct config *config, const int *listeners, struct handover *to);
/* Gives up what the program before had open, and this configuration does not have. */
void listeners_drop(struct handover *from);

/*
 * Adds each address (including admin's) that cannot be listened on, with its place in `root`;
 * closes whatever it opened. An address in use is only a warning, since this daemon itself may be
 * using it; and nothing if the daemon at the admin socket of this configuration has the port. If the
 * daemon is known by a process that has its sockets (0: it is not), nobody else may have it. A missing directory of a unix socket is a
 * warning, too: it may be created with the service.
 */
void listeners_check(const struct config *config, const struct tree *root, pid_t daemon,
		     struct config_problems *problems, struct config_problems *warnings);

/*
 * An admin socket that had to be made beside the usual one is moved there, if the daemon that had it has
 * ended meanwhile. Returns when to call it again (clock_now_ms); UINT64_MAX: not again.
 */
uint64_t listeners_do_due(void);

/* Undoes what a gateway may have changed on them: the next one uses the same sockets. */
void listeners_restore(const struct config *config, const int *listeners);

/*
 * Closes those of config->listen in this process. Once the gateway has closed its own, connections
 * are refused.
 */
void listeners_stop(const struct config *config, int *listeners);

/* Closes the open ones, frees the array, and removes the files of unix sockets that we created. */
void listeners_close(const struct config *config, int **listeners);

/* ---- those of the next configuration ---- */

/*
 * The sockets of the next configuration. Those at an address already in use are the same sockets,
 * so that no connection is refused; the others are opened before anything else changes.
 */

struct next_listeners {
	const struct config *config; /* borrowed; NULL: none */
	int32_t *kept;               /* config_match_listeners */
	int *fds;                    /* opened for it, in order; -1: an existing one is kept */
	size_t sent;
};

/*
 * Opens those that `now` lacks. -1: one cannot be opened, and err names it; nothing is left open.
 */
int next_listeners_open(struct next_listeners *next_r, const struct config *now,
			const struct config *config, struct error *err) must_check;
/* They will not be used: closes what was opened. No-op if there are none. */
void next_listeners_forget(struct next_listeners *next);
/* Sends IPC_LISTENER for each, as far as the socket has room. 0: all are sent. */
int next_listeners_tell(struct next_listeners *next, int gateway_fd) must_check;
/*
 * They replace those of `now`: replaces the array of listeners_open, in which the operator's
 * listeners stay, and gives up the sockets that are no longer used.
 */
void next_listeners_use(struct next_listeners *next, const struct config *now, int **listeners);

/* ---- the certificates of listeners ---- */

/*
 * The files of listen[].tls, as open descriptors. The keeper opens them with its own rights and
 * passes them on; the gateway, which may open nothing, reads them. The set in use stays open, so
 * that a restarted gateway gets the same files, whatever the directory contains by then.
 *
 *  idle -> sending -> judged -> idle
 */

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
