/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes from the kernel's generator. Aborts if the kernel has none to give. */
#pragma once

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *out, size_t size);
/* Uniform in 0 … limit - 1; limit > 0. */
uint64_t random_below(uint64_t limit);
