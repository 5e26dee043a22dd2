/* SPDX-License-Identifier: Apache-2.0 */
/* What several types of options are made of: one text, a list of texts, lists by name. See types.h. */
#ifndef MCPGATED_CONFIG_LISTS_H
#define MCPGATED_CONFIG_LISTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "config/options.h"
#include "config/tree.h"
#include "config/types.h"

/* Whether it is a text that is there; what is wrong is reported. */
bool texts_require_one(const struct types_context *context, const struct tree *value);
/* Replaces the texts by those of the list; a value that is none is reported. */
void texts_load(const struct types_context *context, const struct tree *value,
		struct config_texts *texts);
void texts_print(const struct config_texts *texts, struct buf *out);
void texts_free(struct config_texts *texts);

/* {NAME: [text, …]} into a struct config_lists. A name that is there already gets the new list. */
void lists_load(const struct types_context *context, const struct option *option,
		const struct tree *value, void *base);
bool lists_print(const struct option *option, const void *base, struct buf *out);
void lists_fini(const struct option *option, void *base);

#endif
