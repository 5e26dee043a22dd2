/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the operator what servers say of each other's tools (policy/shadows), each once. SEC-12 */
#ifndef MCPGATED_PROCESS_PIN_SHADOWS_H
#define MCPGATED_PROCESS_PIN_SHADOWS_H

#include "policy/shadows.h"
#include "process/server.h"

/* What was told. All zeros at first. */
struct pin_shadows {
	struct map told;
};

/* The servers' pins have changed: logs and counts what was not told before, up to SHADOWS_MAX in all. */
void pin_shadows_look(struct pin_shadows *shadows, const struct server *servers, size_t count);
void pin_shadows_fini(struct pin_shadows *shadows);
/* All that there are now, told before or not. */
void pin_shadows_find(const struct server *servers, size_t count, shadow_fn *on_shadow, void *arg);

#endif
