/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the children: what was started for the gateway, what the gateway has still to be told, and
 * what is to be reaped. The gateway names a child by a number that it chose; nothing that it says is trusted.
 */
#ifndef MCPGATED_KEEPER_CHILDREN_H
#define MCPGATED_KEEPER_CHILDREN_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/map.h"
#include "config/config.h"
#include "io/ipc.h"
#include "keeper/cgroups.h"
#include "keeper/reaper.h"
#include "keeper/launch.h"

/* At most so many are between fork and exec; then the gateway's requests wait in its socket. REL-51. */
#define CHILDREN_STARTING_MAX 64
/* When so many children have something to tell the gateway, its requests wait until it reads. */
#define CHILDREN_UNTOLD_MAX 1024
/* Likewise of answers to IPC_JUDGE. */
#define CHILDREN_JUDGED_MAX 64

struct children {
	const struct config *config;
	struct launch *launch;
	struct reaper *reaper;
	struct cgroups *cgroups;
	int gateway_fd;    /* -1: there is no gateway to tell */
	struct map by_id;  /* those the gateway may name */
	struct map by_pid; /* those that have not been reaped */
	struct list starting;
	struct list others;
	struct list untold; /* those of which the gateway has still to be told something */
	size_t untold_count;
	size_t starting_count;
	size_t count;   /* rows */
	size_t *counts; /* rows of each server */
	struct starts {
		uint64_t second_began_ms;
		uint64_t count; /* in the second that began then */
		struct launch_verdict
			failed; /* how the last start did that is in the log; 0: it did not */
	} * starts;             /* of each server */
	bool *is_noted;         /* whether the log says how each server is kept in */
	struct {
		uint64_t question;
		bool is_allowed;
	} judged[CHILDREN_JUDGED_MAX]; /* answers that the gateway has not been told */
	size_t judged_count;
};

/* All are borrowed. */
void children_init(struct children *children, const struct config *config, struct launch *launch,
		   struct reaper *reaper, struct cgroups *cgroups);
/* Frees the table; processes that still run are not touched. */
void children_fini(struct children *children);

/* The configuration has changed: says of its new servers what is to be said of each. */
void children_note_servers(const struct children *children);
/* IPC_RELEASE: whether it was allowed. */
void children_release(const struct children *children, const struct ipc_message *message,
		      bool is_allowed);
/* A server's number is free: what has come of its starts is not that of the next one. It has no processes. */
void children_forget_server(struct children *children, size_t server);
/* How many processes of the server there are, or are still known to the gateway. */
size_t children_count(const struct children *children, size_t server);

/*
 * IPC_START, IPC_SIGNAL, IPC_FORGET or IPC_JUDGE. A request that is not allowed is logged and ignored; a start with
 * wrong claims has failed. `fd` is what came with it (-1: nothing): claims, or a connection.
 */
void children_request(struct children *children, const struct ipc_message *message, int fd);

/* Adds the descriptors of starting children; returns how many. */
size_t children_poll_fill(const struct children *children, struct pollfd *polls_r);
/* Looks which starting children have become servers, or have failed. */
void children_read_verdicts(struct children *children);
/* Whether `pid` is a child that waits to be reaped; then its whole group is killed first. */
bool children_before_reap(struct children *children, pid_t pid);
void children_on_reaped(struct children *children, pid_t pid, int status);

/* Whether requests of the gateway can be taken now. */
bool children_may_be_asked(const struct children *children);
/* Tells the gateway what it has still to be told, as far as the socket takes it. */
void children_tell(struct children *children);
/* Whether something is left to tell. */
bool children_has_untold(const struct children *children);

/* There is another gateway, or none (-1): kills and forgets all children of the one before. */
void children_set_gateway(struct children *children, int gateway_fd);
/* There is another reaper: tells it all groups. */
void children_set_reaper(struct children *children);
/* Kills the processes of this server; the gateway is told of their ends. */
void children_kill_server(struct children *children, size_t server);
/* Kills all that is left. */
void children_kill_all(struct children *children);

#endif
