/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may be asked: what it declared at the beginning, in the way that it declared. UTIL-ROOT-01, -02. */
#ifndef MCPGATED_ROUTER_ASKING_H
#define MCPGATED_ROUTER_ASKING_H

#include <stdbool.h>

#include "base/slice.h"
#include "mcp/method.h"

/* `capabilities` are those of the client, JSON text. Whether it can answer requests of this method at all. */
bool asking_is_declared(struct slice capabilities, const struct method *method);
/* Whether it can answer in the way that these params want: by form or URL, with tools. */
bool asking_is_possible(struct slice capabilities, const struct method *method,
			struct slice params);

/* Whether it can be asked to open a URL. */
bool asking_can_open_urls(struct slice capabilities);

#endif
