/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads TOML into what JSON is read into, so that whoever reads clients' files knows one form. Strict: what TOML 1.1 forbids is refused,
 * with the rules about tables that are defined twice or in two ways.
 */
#ifndef MCPGATED_CONFIG_TOML_H
#define MCPGATED_CONFIG_TOML_H

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/jsonc.h"

#define TOML_BYTES_MAX ((size_t)1 << 20)
#define TOML_DEPTH_MAX 64
#define TOML_NAMES_MAX 4096 /* of one table */

/*
 * Reads `text`, which is borrowed until jsonc_fini. json->text is the same as JSON, in the order in which the file names things first:
 * strings, true and false, and numbers in decimal as such. What JSON lacks (dates, inf, numbers in other bases) is an array
 * with its text, since nobody expects one there. jsonc_span tells where in the file each value is.
 *
 * Returns -1 on failure, with `LINE:COLUMN: reason` in err, which quotes nothing of the text. Failures: it is not valid, not UTF-8, larger
 * than what stands above, or has a text with a NUL character.
 */
int toml_read(struct jsonc *json, struct slice text, struct error *err) must_check;
/* Appends a JSON value, which is valid, as TOML on one line. There is no null in it. */
void toml_append(struct buf *out, struct slice value);

#endif
