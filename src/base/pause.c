/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pause.h"

#include <stddef.h>

bool pause_is_allowed;
void (*pause_consider)(void);
