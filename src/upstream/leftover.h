/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server may still work on although nobody waits for it: linked into the upstream's
 * leftovers until the server has answered the request after all, or its process is gone.
 */
#ifndef MCPGATED_UPSTREAM_LEFTOVER_H
#define MCPGATED_UPSTREAM_LEFTOVER_H

#include <stdint.h>

#include "base/list.h"

/* Embedded by whoever wants to know. */
struct upstream_leftover {
	struct list link;
	uint64_t id; /* of the request; 0: of none */
	/* It is over; called once. */
	void (*on_over)(struct upstream_leftover *leftover);
};

#endif
