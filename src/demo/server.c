/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of the server's state. What happens in between is dispatch.c. */
#include "demo/server.h"

#include "demo/job.h"
#include "mcp/level.h"

void server_init(struct server *server)
{
	*server = (struct server){ .log_level = level_find(SLICE_LIT("info")) };
	CHECK(server->log_level >= 0);
	list_init(&server->jobs);
}

void server_fini(struct server *server)
{
	job_free_all(server);
	CHECK(server->job_count == 0);
	json_decref(server->client);
	server->client = NULL;
}
