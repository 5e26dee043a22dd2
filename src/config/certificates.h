/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into the files of listen[].tls: they are there, they fit together, they are still valid. */
#ifndef MCPGATED_CONFIG_CERTIFICATES_H
#define MCPGATED_CONFIG_CERTIFICATES_H

#include "config/config.h"
#include "config/tree.h"
#include "config/types.h"

/* No file of this kind is larger. */
#define CERTIFICATES_BYTES_MAX ((size_t)256 << 10)

/* Reports to context->problems and context->warnings, with the places of `root`. Keeps nothing. */
void certificates_check(const struct types_context *context, const struct config *config,
			const struct tree *root);

#endif
