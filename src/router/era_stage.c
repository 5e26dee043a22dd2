/* SPDX-License-Identifier: Apache-2.0 */
/* See era_stage.h. */
#include "router/era_stage.h"

int era_setup(void **state)
{
	(void)state;
	client_stage_open();
	servers[0].conf.era = ERA_UNKNOWN;
	return 0;
}

int era_setup_modern(void **state)
{
	era_setup(state);
	servers[0].conf.era = ERA_MODERN;
	return 0;
}

struct member *begin_with(const char *client_caps, const char *server_caps)
{
	struct buf initialize = { 0 }, discover = { 0 }, discovered = { 0 };
	struct front *front;
	struct member *member;

	buf_printf(&initialize,
		   "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
		   "'2025-11-25','capabilities':{%s},'clientInfo':" CLIENT "}}",
		   client_caps);
	buf_printf(&discover, DISCOVER("%s", CLIENT), client_caps);
	buf_printf(&discovered, DISCOVERED_WITH("%s"), server_caps);
	front = open_session(buf_terminate(&initialize));
	hears(process(0), buf_terminate(&discover));
	says(process(0), buf_terminate(&discovered));
	member = join(front);
	buf_fini(&initialize);
	buf_fini(&discover);
	buf_fini(&discovered);
	return member;
}

struct member *begin_asked(void)
{
	return begin_with("'sampling':{},'elicitation':{'form':{}}", "'tools':{}");
}
