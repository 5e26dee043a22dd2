/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name, for what processes of the daemon hand to each other. */
#ifndef MCPGATED_KEEPER_MEMORY_FILE_H
#define MCPGATED_KEEPER_MEMORY_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

struct config;

/* With this content, which nobody can change any more. Returns a descriptor (close-on-exec), or -1. */
int memory_file_sealed(const char *name, struct slice content, struct error *err) must_check;
/* Likewise, with what `print` writes of the configuration, which may be secret. */
int memory_file_printed(const char *name, void (*print)(const struct config *config, FILE *out),
			const struct config *config, struct error *err) must_check;
/* Likewise, with so many random bytes: at most MEMORY_FILE_RANDOM_MAX. */
#define MEMORY_FILE_RANDOM_MAX 64
int memory_file_random(const char *name, size_t size, struct error *err) must_check;
/* `size` zeros, to be mapped and written by whoever has it; nobody can change its size. Returns as above. */
int memory_file_shared(const char *name, size_t size, struct error *err) must_check;

#endif
