/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the keeper for child processes, and hearing of their ends. */
#ifndef MCPGATED_PROCESS_SPAWN_H
#define MCPGATED_PROCESS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "io/loop.h"
#include "mcp/era.h"

struct spawner;

/* One process that was asked for; embedded by its owner. */
struct spawned {
	const struct spawned_ops *ops;
	struct spawner *spawner;
	uint64_t id; /* never used again */
};

struct spawned_ops {
	/* It runs. Takes the three descriptors: our ends of stdin, stdout, stderr. */
	void (*on_started)(struct spawned *spawned, int pid, const int fds[3]);
	/* It could not be started; `error` is an errno. Nothing follows. */
	void (*on_failed)(struct spawned *spawned, int error);
	/* The process has ended with this wait status. Nothing follows. */
	void (*on_exited)(struct spawned *spawned, int status);
};

/* A question about a connection to the admin socket; embedded by its owner. */
struct spawner_question {
	uint64_t id;
	/* It may be the operator's, or is a server's. Nothing follows. */
	void (*on_answer)(struct spawner_question *question, bool is_allowed);
};

/* What the keeper says beyond processes. */
struct spawner_ops {
	void (*on_drain)(struct spawner *spawner); /* maybe more than once */
	void (*on_lost)(struct spawner *spawner);  /* the keeper has gone */
	/*
	 * The files of one certificate of a listener, if `is_next`, of the configuration that comes; takes the two or three
	 * descriptors.
	 */
	void (*on_certificate)(struct spawner *spawner, bool is_next, size_t listener, size_t entry,
			       const int *fds, size_t count);
	/* There are no more; spawner_judge_certificates is expected. */
	void (*on_certificates_end)(struct spawner *spawner);
	/* Records of the audit can be written again (0), or why they cannot (errno). NULL: of no interest. */
	void (*on_audit)(struct spawner *spawner, int error);
	/* A listener of the configuration that comes (IPC_LISTENER); takes fd, -1: there is none. NULL: not used */
	void (*on_listener)(struct spawner *spawner, size_t listener, int kept, int fd);
	/*
	 * Another configuration (IPC_CONFIG); takes the two descriptors, NULL: there was no room for them here.
	 * spawner_judge_config is expected. NULL: not used
	 */
	void (*on_config)(struct spawner *spawner, const int fds[2], bool has_other_issuers);
	/* What has come of the orders of spawner_reload up to this number (IPC_RELOADED); takes the descriptor, -1: no room for it here. NULL: ignored */
	void (*on_reloaded)(struct spawner *spawner, uint64_t order, bool is_used, int fd);
	/* What fetches has been started (anew); takes the descriptor to it. NULL: it is closed. */
	void (*on_fetcher)(struct spawner *spawner, int fd);
};

struct spawner *spawner_new(struct loop *loop, int keeper_fd, const struct spawner_ops *ops);
void spawner_free(struct spawner **spawner);
/* Tells the keeper that requests are served. */
void spawner_ready(struct spawner *spawner);
/* Tells the keeper whether the certificates that came are in use. */
void spawner_judge_certificates(struct spawner *spawner, bool is_used);

/* Tells the keeper that the daemon is to end; on_drain follows. */
void spawner_stop(struct spawner *spawner);
/* Tells the keeper to do what SIGHUP makes it do. Returns the number of the order. */
uint64_t spawner_reload(struct spawner *spawner);
/* Tells the keeper whether the configuration that came is in use. */
void spawner_judge_config(struct spawner *spawner, bool is_used);
/* Tells the keeper that this server of an earlier configuration needs no processes any more. */
void spawner_release(struct spawner *spawner, uint32_t server);

/* Tells the keeper of which era a server is, to be remembered; `is_probed`: it was asked just now. */
void spawner_note_era(struct spawner *spawner, uint32_t server, enum era era, bool is_probed);

/*
 * Tells the keeper what a server that was started to be seen is: how many tools it has, or enum ipc_found, and what it calls
 * itself.
 */
void spawner_note_found(struct spawner *spawner, uint32_t server, int tools, struct slice name,
			struct slice version);

/* Tells the keeper that the pins in their memory file are others. */
void spawner_note_pins(struct spawner *spawner);

/* Asks whether that unix socket may be the operator's. Borrows fd. on_answer follows, not before the return. */
void spawner_ask(struct spawner *spawner, struct spawner_question *question, int fd);
/* Its owner needs no answer any more. */
void spawner_drop_question(struct spawner *spawner, struct spawner_question *question);

/*
 * Asks for a process of server number `server`. Takes claims_fd, which holds the claims of its principal (IPC_START;
 * -1: none). on_started or on_failed follows, not before the return.
 */
void spawned_start(struct spawned *spawned, struct spawner *spawner, uint32_t server, int claims_fd,
		   const struct spawned_ops *ops);
/* Sends SIGTERM or SIGKILL to its process group. */
void spawned_signal(struct spawned *spawned, int number);

#endif
