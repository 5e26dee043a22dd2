/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answers to initialize, as the members of a shared pool get it. bridging.md §1.3. */
#ifndef MCPGATED_ROUTER_INITIALIZE_RESULT_H
#define MCPGATED_ROUTER_INITIALIZE_RESULT_H

#include <stdbool.h>

#include "base/slice.h"
#include "jsonrpc/msg.h"

/* A response with `result`, JSON text, less the capabilities that cannot be shared; `is_for_all`: by different principals. */
struct msg *initialize_result_share(struct slice result, bool is_for_all);

#endif
