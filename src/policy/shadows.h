/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers say of each other's tools, as far as their definitions are remembered: two tools of one name, which a model may
 * take for each other, and a description that names another server's tool, which may tell it how to use that. Both may be
 * innocent. Pure. SEC-12
 */
#ifndef MCPGATED_POLICY_SHADOWS_H
#define MCPGATED_POLICY_SHADOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/pins.h"

#define SHADOWS_MAX 256 /* that are told at a time */

/* A server. */
struct shadow_side {
	const char *server;
	const struct pins *pins;
};

struct shadow {
	const struct shadow_side *side; /* whose tool or prompt says it */
	const struct pin *pin;
	const struct shadow_side *other; /* whose tool that is about */
	const struct pin *tool;
	bool is_mention; /* in the description; else both are tools of one name */
};

typedef void shadow_fn(const struct shadow *shadow, void *arg);

/*
 * Calls on_shadow for each, and for pairs of one name once, up to SHADOWS_MAX times. A word of a description is letters, digits,
 * _, - and . of ASCII, at least 4 of them, without dots and dashes around; case makes no difference. Of a definition that is
 * not kept as text nothing is known.
 */
void shadows_find(const struct shadow_side *sides, size_t count, shadow_fn *on_shadow, void *arg);

#endif
