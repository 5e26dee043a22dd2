/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tool calls that take time: they wait for a clock, for the client's answer, or both. While they
 * wait the server goes on.
 */
#ifndef MCPGATED_DEMO_JOB_H
#define MCPGATED_DEMO_JOB_H

#include <stdint.h>

#include "demo/call.h"
#include "demo/server.h"

struct job;
typedef void job_answer_fn(struct server *server, struct job *job, const json_t *result);

/*
 * on_due      the time has come: set a new due_ms or finish
 * on_answer   the client answered: finish with what it said
 * Neither may touch another job.
 */
struct job {
	struct list node;
	json_t *id; /* of the client's request */
	uint64_t due_ms;
	json_int_t asked; /* our request to the client; 0 is none */
	void (*on_due)(struct server *server, struct job *job);
	job_answer_fn *on_answer;
	/* For progress. */
	json_t *token; /* NULL if the caller wants none */
	json_int_t step, count, interval_ms;
};

/*
 * Makes a job of the call, due in delay_ms; borrowed until it is finished or cancelled. NULL with
 * an error of the call if there are too many.
 */
struct job *job_start(struct server *server, struct call *call, uint64_t delay_ms);
/* Sends a request to the client; on_answer gets its answer, on_due is for silence. Takes params. */
void job_ask(struct server *server, struct job *job, const char *method, json_t *params);
/* Answers the call and frees the job. Takes result. */
void job_finish(struct server *server, struct job *job, json_t *result);
/* Tells the client that its answer is no longer wanted. */
void job_withdraw(struct job *job, const char *reason);

/* The client's cancellation of a call; unknown ids are ignored. */
void job_cancel(struct server *server, const json_t *id);
/* The client's answer to one of our requests; its error, if that is not NULL, is the result of the call. */
void job_take_answer(struct server *server, const json_t *id, const json_t *result,
		     const json_t *error);
/* Runs what is due; returns the milliseconds to the next, or -1 if no job waits. */
int job_run_due(struct server *server);
void job_free_all(struct server *server);

#endif
