/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of waiting tool calls. It is searched from front to back: there are few.
 *
 * Invariant: a job is in the list from job_start until job_finish, job_cancel or the end of input,
 * and only job_finish answers its request.
 */
#include "demo/job.h"

#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "demo/rpc.h"

#define JOBS_MAX 4096

struct job *job_start(struct server *server, struct call *call, uint64_t delay_ms)
{
	struct job *job;

	CHECK(call->id != NULL && !call->is_later && call->code == 0);
	if (server->job_count == JOBS_MAX) {
		call_fail(call, MCP_INVALID_REQUEST, "Too many calls wait: %d", JOBS_MAX);
		return NULL;
	}
	job = mem_zalloc(sizeof(*job));
	job->id = json_deep_copy(call->id);
	job->due_ms = clock_now_ms() + delay_ms;
	list_append(&server->jobs, &job->node);
	server->job_count++;
	call->is_later = true;
	return job;
}

static void job_free(struct server *server, struct job *job)
{
	CHECK(server->job_count > 0 && !list_is_empty(&job->node));
	list_remove(&job->node);
	server->job_count--;
	json_decref(job->id);
	json_decref(job->token);
	free(job);
}

void job_ask(struct server *server, struct job *job, const char *method, json_t *params)
{
	CHECK(job->asked == 0 && job->on_answer != NULL && job->on_due != NULL);
	job->asked = ++server->last_request_id;
	rpc_send_request(job->asked, method, params);
}

void job_finish(struct server *server, struct job *job, json_t *result)
{
	CHECK(result != NULL && !list_is_empty(&job->node));
	rpc_send_result(job->id, result);
	job_free(server, job);
}

void job_withdraw(struct job *job, const char *reason)
{
	if (job->asked != 0)
		rpc_send_notification("notifications/cancelled",
				      json_pack("{s:I, s:s}", "requestId", job->asked, "reason",
						reason));
}

void job_cancel(struct server *server, const json_t *id)
{
	LIST_FOREACH(node, &server->jobs) {
		struct job *job = container_of(node, struct job, node);

		if (id != NULL && json_equal(job->id, id)) {
			job_withdraw(job, "The call that needed it was cancelled");
			job_free(server, job);
			return;
		}
	}
}

void job_take_answer(struct server *server, const json_t *id, const json_t *result,
		     const json_t *error)
{
	const char *text = json_string_value(json_object_get(error, "message"));

	CHECK((result != NULL) != (error != NULL));
	LIST_FOREACH(node, &server->jobs) {
		struct job *job = container_of(node, struct job, node);

		if (job->asked == 0 || !json_is_integer(id) || json_integer_value(id) != job->asked)
			continue;
		CHECK(job->on_answer != NULL);
		if (error == NULL)
			job->on_answer(server, job, result);
		else
			job_finish(server, job,
				   call_result_error(
					   json_sprintf("The client refused: %s",
							text != NULL ? text : "no reason")));
		return;
	}
}

int job_run_due(struct server *server)
{
	uint64_t now_ms = clock_now_ms(), next_ms = UINT64_MAX;

	LIST_FOREACH_SAFE(node, &server->jobs) {
		struct job *job = container_of(node, struct job, node);

		CHECK(job->on_due != NULL);
		if (job->due_ms <= now_ms)
			job->on_due(server, job);
	}
	LIST_FOREACH(node, &server->jobs) {
		struct job *job = container_of(node, struct job, node);

		if (job->due_ms < next_ms)
			next_ms = job->due_ms;
	}
	if (next_ms == UINT64_MAX)
		return -1;
	if (next_ms <= now_ms)
		return 0;
	return next_ms - now_ms < INT_MAX ? (int)(next_ms - now_ms) : INT_MAX;
}

void job_free_all(struct server *server)
{
	LIST_FOREACH_SAFE(node, &server->jobs)
		job_free(server, container_of(node, struct job, node));
}
