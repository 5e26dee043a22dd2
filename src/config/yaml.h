/* SPDX-License-Identifier: Apache-2.0 */
/* Reads YAML text into a tree, and writes texts for it. */
#ifndef MCPGATED_CONFIG_YAML_H
#define MCPGATED_CONFIG_YAML_H

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/tree.h"

#define YAML_BYTES_MAX ((size_t)16 << 20)
#define YAML_DEPTH_MAX 32u
#define YAML_ITEMS_MAX 4096u /* per list or map */
#define YAML_KEY_MAX 200u    /* bytes */

/*
 * Reads one document.
 *
 * text   at most YAML_BYTES_MAX bytes; borrowed for the call
 * file   its name in messages; borrowed as long as the tree lives
 * err    on failure: `LINE:COLUMN: reason`
 *
 * Rejects duplicate keys, anchors, aliases, tags, merge keys, keys that are not texts, NUL in a
 * text, a second document, and anything above the limits. An empty text is an empty map. Returns
 * the root (free with tree_free), or NULL.
 */
struct tree *yaml_read(struct slice text, const char *file, struct error *err) must_check;

/*
 * Appends `text` so that YAML reads exactly that text back, in double quotes unless it is obviously safe without them. Invalid UTF-8 becomes
 * U+FFFD, since YAML cannot express it.
 */
void yaml_append_text(struct buf *out, const char *text);

#endif
