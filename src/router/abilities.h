/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has said that it can do. bridging.md §1.3, UTIL-LIST-01. */
#ifndef MCPGATED_ROUTER_ABILITIES_H
#define MCPGATED_ROUTER_ABILITIES_H

#include "base/slice.h"

struct abilities {
	unsigned int offers; /* enum offer */
	unsigned int tells;  /* enum offer: of the lists whose changes it tells */
};

/* `result` of its answer to initialize, JSON text. */
void abilities_read(struct abilities *abilities, struct slice result);

#endif
