/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of children: what was started for the gateway, what the gateway still has to be told,
 * and what has to be reaped. The gateway identifies a child by a number of its choice; nothing that
 * it says is trusted.
 *
 * Children that have an owner outlive a gateway that dies: the keeper has copies of their pipes, and
 * offers them to the next one, under new numbers. What that one does not want it forgets.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/map.h"
#include "config/config.h"
#include "io/ipc.h"
#include "keeper/cgroups.h"
#include "keeper/launch.h"
#include "keeper/programs.h"
#include "keeper/server_slots.h"

struct handover;

/*
 * Limit on children between fork and exec; beyond it, the gateway's requests wait in its socket.
 * REL-51.
 */
#define CHILDREN_STARTING_MAX 64
/* With this many children to report on, the gateway's requests wait until it reads. */
#define CHILDREN_UNTOLD_MAX 1024
/* The same for answers to IPC_JUDGE. */
#define CHILDREN_JUDGED_MAX 64
#define CHILDREN_DEATHS_MAX 3
#define CHILDREN_DEATHS_WINDOW_MS 60000

struct children {
	const struct server_slots *slots;
	const struct config *config; /* of the slots */
	struct launch *launch;
	struct reaper *reaper;
	struct cgroups *cgroups;
	int gateway_fd;    /* -1: there is no gateway */
	struct map by_id;  /* those that the gateway may name */
	struct map by_pid; /* those that have not been reaped */
	struct list starting;
	struct list others;
	struct list untold; /* those with something to report to the gateway */
	size_t untold_count;
	size_t starting_count;
	size_t count;             /* entries */
	int pipes_below;          /* descriptors that copies of pipes may have */
	bool owes_end;            /* IPC_INHERIT_END, once what is inherited has been told */
	enum ipc_upgrade outcome; /* goes with it */
	struct {
		uint64_t question;
		bool is_allowed;
	} judged[CHILDREN_JUDGED_MAX]; /* answers not sent to the gateway yet */
	size_t judged_count;
};

/* All are borrowed. */
void children_init(struct children *children, const struct server_slots *slots,
		   struct launch *launch, struct reaper *reaper, struct cgroups *cgroups);

/* The configuration has changed: logs what has to be logged once about each new server. */
void children_note_servers(const struct children *children);
/*
 * Handles IPC_START, IPC_SIGNAL, IPC_FORGET, IPC_CLOSE, IPC_OWNER or IPC_JUDGE. An illegal request is
 * logged and ignored; a start with invalid claims fails.
 */
void children_request(struct children *children, const struct ipc_message *message);

/* Adds the descriptors of starting children to poll; returns how many. */
size_t children_poll_fill(const struct children *children, struct pollfd *polls_r);
/* Checks which starting children have executed their program, or have failed. */
void children_read_verdicts(struct children *children);
/* Whether `pid` is a child waiting to be reaped; if so, kills its whole group first. */
bool children_before_reap(struct children *children, pid_t pid);
void children_on_reaped(struct children *children, pid_t pid, int status);

/* Whether requests of the gateway can be accepted now. */
bool children_may_be_asked(const struct children *children);
/* Sends the gateway pending reports, as far as the socket has room. */
void children_tell(struct children *children);
/* Whether reports are pending. */
bool children_has_untold(const struct children *children);

/*
 * The gateway has died, and there will be another one: keeps the children that have an owner, kills
 * and forgets the others. One that was there at CHILDREN_DEATHS_MAX deaths within
 * CHILDREN_DEATHS_WINDOW_MS is killed, too, as it may be the cause.
 */
void children_keep(struct children *children);
/*
 * The same where it has made place for another one as it was asked to: that is nobody's fault, and the
 * others, whose stdin has ended with it, are left to end by themselves (children_end_others).
 */
void children_keep_orderly(struct children *children);
/* Sends this signal (0: none) to those that children_keep_orderly forgot. Returns how many are left. */
size_t children_end_others(struct children *children, int number);
/* Kills and forgets all but those that were kept. */
void children_kill_others(struct children *children);
/* Writes those that were kept for the next program. */
void children_hand_over(const struct children *children, struct handover *to);
/*
 * Takes those that the program before has kept; kills one whose server is gone, or has other processes
 * in this configuration. Returns how many there are.
 */
size_t children_take_over(struct children *children, struct handover *from);
/*
 * There is another gateway, which is offered what was kept, or none (-1); kills and forgets all
 * others.
 */
void children_set_gateway(struct children *children, int gateway_fd);
/* There is another reaper: tells it all groups. */
void children_set_reaper(struct children *children);
/* Kills the processes of this server; the gateway is told as they end. */
void children_kill_server(struct children *children, size_t server);
