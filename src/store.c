/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-store: the way of one gateway to the store of its cluster, Valkey or Redis, and nowhere else; it
 * ends with the gateway. It alone has the credentials for the store. CLU-SEC-*
 */
#include <stdlib.h>
#include <unistd.h>

#include "cluster/redis.h"
#include "cluster/store_service.h"
#include "cluster/store_url.h"
#include "io/loop.h"
#include "io/tls.h"
#include "keeper/program_entry.h"
#include "keeper/programs.h"
#include "obs/log.h"

static void on_gateway_gone(void *arg)
{
	loop_stop(arg);
}

/* And whom to trust there, while files can be read. */
static struct confinement confinement_for(const struct cluster_conf *conf,
					  struct tls_client **trust_r)
{
	struct confinement what = { .fetches = true };
	struct store_url url;
	struct error err;

	if (store_url_parse(conf->store, &url, &err) < 0) { /* it was checked before */
		LOG(STORE_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	if (url.is_tls)
		*trust_r = tls_client_new(conf->ca, &err);
	if (url.is_tls && *trust_r == NULL) {
		LOG(STORE_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	what.unix_sockets = url.is_unix;
	what.port = url.is_unix ? 0 : (uint16_t)atoi(url.port);
	return what;
}

int main(void)
{
	struct store_service *service = NULL;
	struct program_entry entry;
	struct error err = { ERROR_NONE, "" };
	struct store_service_conf conf = { .sessions = HELPER_SESSIONS, .streams = HELPER_STREAMS };
	struct tls_client *trust = NULL;
	struct confinement confinement;
	struct loop *loop;

	program_entry_begin(&entry, "mcpgated-store", "mcpgated-store", "store", HELPER_LOG,
			    HELPER_CONFIG);
	conf.cluster = &entry.config->cluster;
	conf.idle_ms = entry.config->sessions.idle_ms;
	redis_prepare();
	confinement = confinement_for(conf.cluster, &trust);
	conf.trust = trust;
	program_entry_confine(&entry, &confinement);
	loop = loop_new(&err);
	if (loop != NULL)
		service =
			store_service_new(loop, &conf, HELPER_GATEWAY, on_gateway_gone, loop, &err);
	if (service == NULL) {
		LOG(STORE_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	close(HELPER_SESSIONS);
	close(HELPER_STREAMS);
	loop_run(loop);
	/* What is left belongs to the process, and ends with it. */
	_exit(0);
}
