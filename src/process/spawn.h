/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's end of the socket to the keeper: requests child processes, and reports their exits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "io/ipc.h"
#include "io/loop.h"

struct spawner;

/*
 * What the next gateway has to know of the pipes to a process if this one dies. In memory that all
 * gateways of a keeper share, indexed by the process's pid. That of pid 0, which is none, has the number that
 * a process was given last.
 */
struct pipe_state {
	uint32_t last_id; /* of the requests sent to it: the next gateway goes on behind it */
	uint32_t is_busy; /* a message may be half written */
};
#define PIPE_STATES (4 * 1024 * 1024) /* the kernel gives no higher numbers */
#define PIPE_STATES_BYTES (PIPE_STATES * sizeof(struct pipe_state))

/* One requested process; embedded by its owner. */
struct spawned {
	const struct spawned_ops *ops;
	struct spawner *spawner;
	/* Never reused by a gateway of this keeper; the next one knows the process by it, too. */
	uint64_t id;
};

struct spawned_ops {
	/* It runs. Takes ownership of the three descriptors: our ends of stdin, stdout, stderr. */
	void (*on_started)(struct spawned *spawned, int pid, const int fds[3]);
	/* It could not be started; `error` is an errno. The last callback. */
	void (*on_failed)(struct spawned *spawned, int error);
	/* The process has exited with this wait status. The last callback. */
	void (*on_exited)(struct spawned *spawned, int status);
};

/* A query about a connection to the admin socket; embedded by its owner. */
struct spawner_question {
	uint64_t id;
	/* The peer may be the operator (allowed), or belongs to a server. The last callback. */
	void (*on_answer)(struct spawner_question *question, bool is_allowed);
};

struct spawner_ops {
	/*
	 * From the keeper, and not about processes: see the second group of io/ipc.def. Takes
	 * ownership of the descriptors.
	 */
	void (*on_message)(struct spawner *spawner, const struct ipc_message *message);
	void (*on_lost)(struct spawner *spawner); /* the keeper is gone */
};

struct spawner *spawner_new(struct loop *loop, int keeper_fd, const struct spawner_ops *ops);
void spawner_free(struct spawner **spawner);
/* Whether a process or question of now has this number. */
bool spawner_knows(const struct spawner *spawner, uint64_t number);
/* From now on the states of pipes are in this memory file, which stays open; before anything is started. False: it cannot be. */
bool spawner_use_pipe_states(struct spawner *spawner, int fd);
/* That of this process; never NULL. */
struct pipe_state *spawner_pipe_state(struct spawner *spawner, int pid);
/* Tells the keeper that requests are being served. */
void spawner_ready(struct spawner *spawner);
/* Tells the keeper whether the certificates received are in use. */
void spawner_judge_certificates(struct spawner *spawner, bool is_used);

/* Tells the keeper that the daemon should stop; IPC_DRAIN follows. */
void spawner_stop(struct spawner *spawner);
/*
 * Asks the keeper to reload, as SIGHUP does, or to upgrade (keeper/upgrade.h). Returns the number of
 * this command.
 */
uint64_t spawner_reload(struct spawner *spawner, bool is_upgrade);
/* Tells the keeper whether the configuration received is in use. */
void spawner_judge_config(struct spawner *spawner, bool is_used);
/* Tells the keeper that this server of an earlier configuration needs no more processes. */
void spawner_release(struct spawner *spawner, uint32_t server);

/*
 * Tells the keeper the result of a look at a server (upstream/prestart): its number of tools, or an
 * enum ipc_found, and the name and version that it reports.
 */
void spawner_note_found(struct spawner *spawner, uint32_t server, int tools, struct slice name,
			struct slice version);

/* Tells the keeper that a memory file has changed. */
void spawner_note_text(struct spawner *spawner, enum ipc_text kind);

/*
 * Asks whether the peer of that unix socket may be the operator. Borrows fd. on_answer follows, but
 * never before this returns.
 */
void spawner_ask(struct spawner *spawner, struct spawner_question *question, int fd);
/* Drops a question whose answer is no longer needed. */
void spawner_drop_question(struct spawner *spawner, struct spawner_question *question);

/*
 * Requests a process of server number `server`, with the claims of its principal as in IPC_START,
 * which are borrowed. on_started or on_failed follows, but never before this returns.
 */
void spawned_start(struct spawned *spawned, struct spawner *spawner, uint32_t server,
		   struct slice claims, const struct spawned_ops *ops);
/*
 * Takes over a process that the keeper has offered under this number (IPC_INHERIT): on_exited
 * follows.
 */
void spawned_inherit(struct spawned *spawned, struct spawner *spawner, uint64_t number,
		     const struct spawned_ops *ops);
/* The process offered under this number is not wanted: it is killed. */
void spawner_forget(struct spawner *spawner, uint64_t number);
/* Sends SIGTERM or SIGKILL to its process group. */
void spawned_signal(struct spawned *spawned, int number);
/* Whose it is: up to IPC_OWNER_BYTES for the next gateway, if this one dies. Cannot be changed. */
void spawned_note_owner(struct spawned *spawned, struct slice owner);
/* Our end of its stdin is closed: the keeper is to close its copy. */
void spawned_close(struct spawned *spawned);
