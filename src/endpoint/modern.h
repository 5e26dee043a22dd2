/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MCPGATED_ENDPOINT_MODERN_H
#define MCPGATED_ENDPOINT_MODERN_H
#include <stdbool.h>
#include <stddef.h>
#include "base/slice.h"
struct modern_param { struct slice name, value; };
struct modern_head { struct slice version, method, name; bool is_repeated; const struct modern_param *params; size_t param_count; };
#endif
