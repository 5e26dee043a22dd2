/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of the tools that a modern server has listed, as far as header fields mirror their
 * arguments. Bounded: of a server with more, some calls are sent without these fields. MOD-HDR-04
 */
#pragma once

#include <stddef.h>

#include "base/list.h"
#include "jsonrpc/scan.h"

#define TOOLS_BYTES_MAX (4 * 1024 * 1024)
#define TOOLS_MAX 1024

struct tools {
	struct list list;
	size_t count, bytes;
};

void tools_init(struct tools *tools);
void tools_fini(struct tools *tools);
/* Takes what the result of a tools/list says; it replaces what was known of these tools. */
void tools_learn(struct tools *tools, struct slice result);
/* The schema of a tool, by its name as a JSON string; valid until the next list. Empty: unknown. */
struct slice tools_schema(const struct tools *tools, struct json name);
