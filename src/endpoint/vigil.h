/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches over the token of an open stream, whose client sends nothing that could be judged: the stream is
 * over when the token expires, and when an entry of the denials names it. AUTH-SES-06, -07.
 */
#ifndef MCPGATED_ENDPOINT_VIGIL_H
#define MCPGATED_ENDPOINT_VIGIL_H

#include "endpoint/guard.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "session/denials.h"

/* Embedded by the exchange that has the stream. */
struct vigil {
	struct denials_holder holder;
	struct loop *loop;
	const struct guard_place *place;
	struct access *access; /* of whoever opened the stream; borrowed */
	struct timer timer;
	/* The stream must end now: cleanly, so that its client comes back and learns what is wrong. */
	void (*on_over)(struct vigil *vigil, enum reason reason);
};

/* So that vigil_end may be called before vigil_begin. */
void vigil_init(struct vigil *vigil, void (*on_over)(struct vigil *vigil, enum reason reason));
/* The stream has begun, for a token that guard_permits has just let pass. Nothing is called before the next turn. */
void vigil_begin(struct vigil *vigil, struct loop *loop, const struct guard *guard,
		 const struct guard_place *place, struct access *access);
/* The stream has ended. */
void vigil_end(struct vigil *vigil);

#endif
