/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-fetch: fetches what the issuers of the configuration publish, asks them about tokens, gets tokens for servers
 * behind a URL, and takes spans to the collector of traces, for one gateway, and ends with it. It alone has libcurl, the resolver, the credentials for issuers
 * and collector, and a way to connect. SEC-10, SEC-61.
 */
#include <stdlib.h>
#include <unistd.h>

#include "auth/fetch_service.h"
#include "base/mem.h"
#include "io/loop.h"
#include "keeper/programs.h"
#include "keeper/program_entry.h"
#include "obs/log.h"

static void on_gateway_gone(void *arg)
{
	loop_stop(arg);
}

/* What has to read files comes first: afterwards only what resolves names can be opened. Returns the configuration. */
static const struct config *begin(void)
{
	struct program_entry entry;
	struct error err;

	program_entry_begin(&entry, "mcpgated-fetch", "mcpgated-fetch", "fetch", HELPER_LOG,
			    HELPER_CONFIG);
	if (fetch_service_prepare(&err) < 0) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	program_entry_confine(&entry, &(struct confinement){ .fetches = true });
	return entry.config;
}

int main(void)
{
	const struct config *config = begin();
	struct fetch_service *service = NULL;
	struct error err = { ERROR_NONE, "" };
	struct loop *loop = loop_new(&err);

	const struct credential_conf **credentials =
		mem_zalloc((config->server_count + 1) * sizeof(*credentials));
	struct fetch_service_conf conf = { .issuers = &config->frontend.authorization.issuers,
					   .credentials = credentials,
					   .collector = &config->traces.collector };

	/* Its configuration has no other servers. */
	for (; conf.credential_count < config->server_count; conf.credential_count++)
		credentials[conf.credential_count] =
			&config->servers[conf.credential_count].credential;

	if (loop != NULL)
		service =
			fetch_service_new(loop, &conf, HELPER_GATEWAY, on_gateway_gone, loop, &err);
	if (service == NULL) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	loop_run(loop);
	/* What is left belongs to the process, and ends with it. */
	_exit(0);
}
