/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of options that hold several of something: maps of lists, and lists of records whose own
 * options the table describes. See types.h.
 */
#ifndef MCPGATED_CONFIG_RECORDS_H
#define MCPGATED_CONFIG_RECORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "config/options.h"
#include "config/tree.h"
#include "config/types.h"

/* A text that is there; else it is reported. */
bool types_require_text(const struct types_context *context, const struct tree *value);
/* Replaces the texts by those of the list; a value that is none is reported. */
void types_load_texts(const struct types_context *context, const struct tree *value,
		      struct config_texts *texts);
void types_print_texts(const struct config_texts *texts, struct buf *out);
void types_free_texts(struct config_texts *texts);

/* {NAME: [text, …]} into a struct config_lists. A name that is there already gets the new list. */
void lists_load(const struct types_context *context, const struct option *option,
		const struct tree *value, void *base);
bool lists_print(const struct option *option, const void *base, struct buf *out);
void lists_fini(const struct option *option, void *base);

/* [{key: value, …}, …] into a struct of a pointer to option->record_size bytes each, and their number. */
void records_load(const struct types_context *context, const struct option *option,
		  const struct tree *value, void *base);
bool records_print(const struct option *option, const void *base, struct buf *out);
void records_fini(const struct option *option, void *base);

#endif
