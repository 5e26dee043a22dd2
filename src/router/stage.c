/* SPDX-License-Identifier: Apache-2.0 */
/* See stage.h. */
#include "router/stage.h"

struct router router;

void router_stage_open(void)
{
	static const struct session_conf sessions = {
		.max_sessions = 4,
		.idle_ms = 3600000,
		.max_age_ms = 86400000,
		.store = { .stream = { .max_bytes = 1 << 20, .replay_age_ms = 600000 },
			   .session_bytes = 64 << 20,
			   .total_bytes = 256 << 20 },
	};

	stage_open();
	router_init(&router, loop, &(struct scan_limits){ 64, 200 }, &sessions);
}

int router_stage_close(void **state)
{
	router_end_sessions(&router, REASON_DRAINING);
	router_end_processes(&router, REASON_DRAINING);
	stage_end_processes();
	assert_int_equal(router.calls, 0);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	assert_int_equal(router.sessions.holders.by_key.count, 0);
	router_fini(&router);
	return stage_close(state);
}
