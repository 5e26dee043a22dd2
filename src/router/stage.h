/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the stage of process/stage.h with the router. It admits at most four sessions; a test
 * sets what else it needs in router.sessions.conf.
 */
#pragma once

#include "process/stage.h"
#include "router/router.h"

extern struct router router;

void router_stage_open(void);
/* A cmocka teardown: ends all sessions, then all processes, and checks that nothing is left. */
int router_stage_close(void **state);
