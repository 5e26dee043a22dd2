/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over many bytes say here that they could be interrupted. Whether and how that happens is up to io/aside.
 */
#pragma once

#include <stdbool.h>

extern bool pause_is_allowed;
/* What is called while it is. */
extern void (*pause_consider)(void);

/* Called for each small piece of a walk. */
static inline void pause_point(void)
{
	if (__builtin_expect(pause_is_allowed, 0))
		pause_consider();
}
