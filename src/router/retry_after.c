/* SPDX-License-Identifier: Apache-2.0 */
/* Only looks, and promises nothing: others may come first. */
#include "router/retry_after.h"

#include "process/server.h"
#include "router/reclaim.h"
#include "router/router.h"
#include "session/session.h"

#define UNKNOWN_MS 1000
#define LONGEST_MS (5 * 60 * 1000) /* by then, things may be quite different */

/* The time after which half of all calls are over. */
static uint64_t usual_call_ms(const struct server *server)
{
	return server->stats->answered.count > 0 ?
		       latency_histogram_quantile_ms(&server->stats->answered, 500) :
		       UNKNOWN_MS;
}

static uint64_t process_wait_ms(const struct router *router, const struct server *server)
{
	uint64_t wait_ms = backoff_refuses_for_ms(&server->backoff);

	if (server_has_room(server) && wait_ms > 0)
		return wait_ms;
	if (server->conf.isolation != ISOLATION_SESSION || server_has_room(server))
		return usual_call_ms(server);
	wait_ms = reclaim_wait_ms(&router->reclaim, server);
	return wait_ms != UINT64_MAX ? wait_ms : usual_call_ms(server);
}

static uint64_t limit_wait_ms(const struct router *router, const struct server *server,
			      const struct principal *principal)
{
	uint64_t wait_ms =
		principal != NULL ? session_set_wait_ms(&router->sessions, principal) : 0;

	if (wait_ms == UINT64_MAX)
		return usual_call_ms(server);
	return wait_ms > 0 ? wait_ms : process_wait_ms(router, server);
}

unsigned int retry_after_s(const struct router *router, const struct server *server,
			   const struct principal *principal, enum reason reason)
{
	uint64_t wait_ms = reason == REASON_OVER_LIMIT ? limit_wait_ms(router, server, principal) :
			   reason == REASON_DRAINING   ? UNKNOWN_MS :
							 backoff_wait_ms(&server->backoff);

	if (wait_ms > LONGEST_MS)
		wait_ms = LONGEST_MS;
	/*
	 * A client that counts whole seconds must not be early: a process takes time to stop and to
	 * start.
	 */
	return (unsigned int)((wait_ms + 999) / 1000) + 1;
}
