/* SPDX-License-Identifier: Apache-2.0 */
#include "process/server_rules.h"

#include "base/check.h"
#include "process/server.h"

uint64_t server_rules(const struct server *server)
{
	return server->rules + server->pins.decisions;
}

void server_take_rules(struct server *server, const struct server_conf *conf, bool is_other)
{
	struct server_conf *own = &server->conf;
	struct server_conf merged = *conf;

	CHECK(own->name != NULL);
	merged.name = own->name;
	merged.isolation = own->isolation;
	merged.era = own->era;
	merged.never_asks = own->never_asks;
	merged.pool_min = own->pool_min;
	merged.warm = own->warm;
	merged.reclaims = own->reclaims;
	merged.sleep_after_ms = own->sleep_after_ms;
	merged.sleep_gone_ms = own->sleep_gone_ms;
	merged.start_rate = own->start_rate;
	merged.is_tried = own->is_tried;
	merged.server = own->server;
	merged.fleet = own->fleet;
	merged.claims = own->claims;
	merged.credential = own->credential;
	merged.for_caller = own->for_caller;
	merged.legs = own->legs;
	merged.in_meta = own->in_meta;
	merged.confinement = own->confinement;
	merged.line_max = own->line_max;
	merged.queue_max = own->queue_max;
	*own = merged;
	server->rules += is_other;
}
