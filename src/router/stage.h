/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the stage of process/stage.h with the router on it. It takes at most four sessions; a test puts what
 * else it wants into router.sessions.conf.
 */
#ifndef MCPGATED_ROUTER_STAGE_H
#define MCPGATED_ROUTER_STAGE_H

#include "process/stage.h"
#include "router/router.h"

extern struct router router;

void router_stage_open(void);
/* For cmocka: whatever a test did, all sessions end, then all processes, and nothing is left. */
int router_stage_close(void **state);

#endif
