/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandbox: {mode: report}`: what the rules of a sandbox would refuse is told, and nothing is refused. It is for finding
 * the rules, and no boundary: a server that wants to can do what nobody sees.
 */
#pragma once

#include "base/check.h"
#include "config/config.h"

/*
 * Makes two processes of this one, which has no others and shares its memory with none. The other is to execute the
 * server: there this returns 0, or -1 with errno. This one looks at what the other and its children open, change,
 * execute, connect to and listen on. What would be refused it writes to stderr, each line once, with
 * CHILD_REPORT_MARK (process/child.h) before what to add to the configuration. It ends as the other does.
 * `programs`: as for sandbox_enter. no_new_privs must be set, and no signal be handled or ignored.
 */
int sandbox_report_enter(const struct config_server *server, char *const *programs) must_check;
