/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the parent of all processes of the daemon. It opens the listeners and the log, runs
 * the gateway in a confined process, starts and ends server processes at the gateway's request, and
 * makes sure that none of them outlives the daemon. architecture.md §1.
 */
#pragma once

#include "config/config.h"
#include "keeper/programs.h"
#include "keeper/upgrade.h"

/*
 * Runs the daemon until SIGTERM or SIGINT, or until it cannot continue. Call once, in a process
 * with one thread and no children. Returns the exit code: 0 after a requested stop, else 1.
 *
 * config    replaced by reloads; the caller frees the one in use at the end
 * request   where the configuration comes from, also on reload; NULL: reloads do not read it
 * upgrade   of upgrade_begin; if 1 is returned before anything was served, what the program before has
 *           left is still there
 */
int keeper_run(struct config **config, const struct config_request *request,
	       const struct programs *programs, struct upgrade *upgrade) must_check;
