/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that are stored elsewhere ({file:}, {env:}, {credential:}), and what counts as a secret.
 */
#ifndef MCPGATED_CONFIG_SECRET_H
#define MCPGATED_CONFIG_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/error.h"

#define SECRET_BYTES_MAX ((size_t)64 << 10)
/* Replaces a secret wherever a configuration is shown. */
#define SECRET_MASK "***"

struct listed_writers;

/*
 * Resolves a reference. `kind` is one of the known kinds; `writers` as in file_open (listed_path.h). The caller
 * frees the value with secret_free; err gives the cause and never contains part of the value.
 */
typedef int secret_resolve_fn(const char *kind, const char *name,
			      const struct listed_writers *writers, char **value_r,
			      struct error *err);

/*
 * file        the content of the file `name`, at most SECRET_BYTES_MAX bytes, without one
 *             trailing line break
 * env         the variable `name` of the daemon's own environment
 * credential  the file `name` in systemd's credentials directory
 */
int secret_resolve(const char *kind, const char *name, const struct listed_writers *writers,
		   char **value_r, struct error *err) must_check;
/*
 * The file that such a reference means, for a later secret_resolve of `file`; the caller frees it.
 * NULL: none, or one that cannot be read twice.
 */
char *secret_find_file(const char *kind, const char *name);
/* Whether it is a file that everybody on this machine can read. */
bool secret_is_open(const char *kind, const char *name);
/* Whether `kind` is one of the three above. */
bool secret_is_kind(const char *kind);
/*
 * Whether a variable with this name is usually secret: it ends in TOKEN, KEY, SECRET or PASSWORD.
 */
bool secret_is_name(const char *variable);
/* Overwrites, frees, sets to NULL. Accepts NULL. */
void secret_free(char **text);

#endif
