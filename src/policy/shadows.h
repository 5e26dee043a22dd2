/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what servers say about each other's tools, as far as their definitions are remembered: two
 * tools with the same name, which a model may confuse, and descriptions that mention another
 * server's tool, which may instruct the model how to use it. Both may be innocent. Pure functions.
 * SEC-12
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/pins.h"

#define SHADOWS_MAX 256 /* maximum number reported at a time */

/* A server. */
struct shadow_side {
	const char *server;
	const struct pins *pins;
};

struct shadow {
	const struct shadow_side *side; /* the server whose tool or prompt it is */
	const struct pin *pin;
	const struct shadow_side *other; /* the server whose tool is concerned */
	const struct pin *tool;
	bool is_mention; /* in a description; otherwise two tools have the same name */
};

typedef void shadow_fn(const struct shadow *shadow, void *arg);

/*
 * Calls on_shadow for each finding, once per pair of equal names, up to SHADOWS_MAX times. A word
 * of a description consists of at least 4 ASCII letters, digits, _, - and ., without leading or
 * trailing dots and dashes; case is ignored. Definitions that are not kept as text are not
 * searched.
 */
void shadows_find(const struct shadow_side *sides, size_t count, shadow_fn *on_shadow, void *arg);
