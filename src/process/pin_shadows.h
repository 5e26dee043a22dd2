/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to the operator, once each, what servers say about each other's tools (policy/shadows).
 * SEC-12
 */
#ifndef MCPGATED_PROCESS_PIN_SHADOWS_H
#define MCPGATED_PROCESS_PIN_SHADOWS_H

#include "policy/shadows.h"
#include "process/server.h"

/* What was reported. All zeros initially. */
struct pin_shadows {
	struct map told;
};

/*
 * The servers' pins have changed: logs and counts what was not reported before, up to SHADOWS_MAX
 * in total.
 */
void pin_shadows_look(struct pin_shadows *shadows, const struct server *servers, size_t count);
void pin_shadows_fini(struct pin_shadows *shadows);
/* Reports all current ones, reported before or not. */
void pin_shadows_find(const struct server *servers, size_t count, shadow_fn *on_shadow, void *arg);

#endif
