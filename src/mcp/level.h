/* SPDX-License-Identifier: Apache-2.0 */
/* The severities of log messages, RFC 5424 §6.2.1, under their MCP names; least severe first. */
#pragma once

#include "base/slice.h"

#define LEVEL_LEAST 0 /* "debug": all messages */
#define LEVEL_NONE 8  /* above all levels: for modern clients that request none. MOD-LOG-01 */

/* 0 for "debug" to 7 for "emergency"; -1 for anything else. */
int level_find(struct slice name);
/* The name of a level returned by level_find. */
struct slice level_name(int level);
