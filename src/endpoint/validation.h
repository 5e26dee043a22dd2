/* SPDX-License-Identifier: Apache-2.0 */
/* What every front asks of a message before it hands it on. */
#ifndef MCPGATED_ENDPOINT_VALIDATION_H
#define MCPGATED_ENDPOINT_VALIDATION_H

#include <stdbool.h>

#include "base/error.h"
#include "jsonrpc/scan.h"

/* The JSON-RPC code of an error of the scanner. */
int validation_code(const struct error *err);
bool validation_is_initialize(const struct envelope *env);
/* What is wrong with an initialize request, for its client; NULL: nothing. FRONT-INIT-01, DEF-11 */
const char *validation_check_initialize(const struct envelope *initialize);

#endif
