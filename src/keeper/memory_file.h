/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous files that processes of the daemon pass to each other. */
#ifndef MCPGATED_KEEPER_MEMORY_FILE_H
#define MCPGATED_KEEPER_MEMORY_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

struct config;

/* A sealed, immutable file with this content. Returns a descriptor (close-on-exec), or -1. */
int memory_file_sealed(const char *name, struct slice content, struct error *err) must_check;
/* Likewise, with what `print` writes about the configuration, which may be secret. */
int memory_file_printed(const char *name, void (*print)(const struct config *config, FILE *out),
			const struct config *config, struct error *err) must_check;
/* Likewise, with `size` random bytes, at most MEMORY_FILE_RANDOM_MAX. */
#define MEMORY_FILE_RANDOM_MAX 64
int memory_file_random(const char *name, size_t size, struct error *err) must_check;
/*
 * `size` zero bytes, to be mapped and written by its holders; the size is fixed. Returns as above.
 */
int memory_file_shared(const char *name, size_t size, struct error *err) must_check;

#endif
