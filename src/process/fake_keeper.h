/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the keeper's end of the descriptor, and the processes it would start. The test plays
 * the keeper and every process, step by step and byte by byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/spawn.h"
#include "base/buf.h"
#include "io/ipc.h"
#include "io/loop.h"

#define FAKE_PROCESSES_MAX 128

struct ipc_message;

struct fake_process {
	uint64_t id;
	uint32_t server;
	int in;  /* where it reads its stdin; -1: it has closed it */
	int out; /* where it writes; -1: closed */
	int err;
	int last_signal; /* 0: none */
	unsigned int signals;
	bool is_started;
	bool is_exited;
	bool is_eof; /* its stdin has ended */
	struct buf got;
	size_t used;
	struct buf line;
};

struct fake_keeper {
	struct loop *loop;
	struct spawner *spawner;
	int fd; /* ours */
	int gateway_fd;
	bool holds;  /* it does nothing yet when asked for processes */
	int refuses; /* errno for every process requested; 0: none */
	struct fake_process processes[FAKE_PROCESSES_MAX];
	size_t count;
	size_t claims_told; /* how many processes were to be started with claims */
};

void fake_keeper_init(struct fake_keeper *keeper, struct loop *loop);
/* Closes everything; the spawner is freed. */
void fake_keeper_fini(struct fake_keeper *keeper);
/* Does what the gateway has asked for since. */
void fake_keeper_serve(struct fake_keeper *keeper);
/* Starts a process that was held back. */
void fake_keeper_start(struct fake_keeper *keeper, struct fake_process *process);
/* Another process, of the gateway before and of server 0: what IPC_INHERIT brings. The descriptors are the caller's. */
void fake_keeper_offer(struct fake_keeper *keeper, struct slice owner,
		       struct ipc_message *message_r);
/* Runs the loop and serves, until nothing is left to do (a few turns). */
void fake_keeper_settle(struct fake_keeper *keeper);
/* The process exits: its pipes close, and the keeper reports it. */
void fake_process_exit(struct fake_keeper *keeper, struct fake_process *process, int status);
/* Only the keeper's report: somebody else still holds its pipes. */
void fake_process_tell_exit(struct fake_keeper *keeper, struct fake_process *process, int status);
/* Closes *fd, one of the process's descriptors, if it is open. */
void fake_process_close(int *fd);

void fake_process_write(struct fake_process *process, const char *text);
void fake_process_write_err(struct fake_process *process, const char *text);
/* The next line of its stdin without line ending; NULL: none. Borrowed until the next call. */
const char *fake_process_read(struct fake_process *process);
