/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tool calls that take time: they wait for a timer, for the client's answer, or for both. The
 * server does not block meanwhile.
 */
#ifndef MCPGATED_DEMO_JOB_H
#define MCPGATED_DEMO_JOB_H

#include <stdint.h>

#include "demo/call.h"
#include "demo/server.h"

struct job;
typedef void job_answer_fn(struct server *server, struct job *job, const json_t *result);

/*
 * on_due      its time has come: set a new due_ms, or finish
 * on_answer   the client has answered: finish with the answer
 * Neither may touch another job.
 */
struct job {
	struct list node;
	json_t *id; /* of the client's request */
	uint64_t due_ms;
	json_int_t asked; /* id of our request to the client; 0: none */
	void (*on_due)(struct server *server, struct job *job);
	job_answer_fn *on_answer;
	/* For progress. */
	json_t *token; /* NULL if the caller does not want progress */
	json_int_t step, count, interval_ms;
};

/*
 * Turns the call into a job that is due in delay_ms; borrowed until it is finished or cancelled. If
 * there are too many jobs, sets an error of the call and returns NULL.
 */
struct job *job_start(struct server *server, struct call *call, uint64_t delay_ms);
/*
 * Sends a request to the client; on_answer gets the answer, on_due is called if there is none.
 * Takes params.
 */
void job_ask(struct server *server, struct job *job, const char *method, json_t *params);
/* Answers the call and frees the job. Takes result. */
void job_finish(struct server *server, struct job *job, json_t *result);
/* Tells the client that its answer is no longer needed. */
void job_withdraw(struct job *job, const char *reason);

/* Handles the client's cancellation of a call; unknown ids are ignored. */
void job_cancel(struct server *server, const json_t *id);
/*
 * Handles the client's answer to one of our requests. If error is not NULL, it becomes the result
 * of the call.
 */
void job_take_answer(struct server *server, const json_t *id, const json_t *result,
		     const json_t *error);
/* Runs all due jobs. Returns the milliseconds until the next one, or -1 if there are no jobs. */
int job_run_due(struct server *server);
void job_free_all(struct server *server);

#endif
