/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `${…}` in the files of clients. Expands what means the same everywhere: environment variables,
 * here the daemon's own. What only an editor knows is left as written and reported, with what to
 * write instead.
 */
#ifndef MCPGATED_CONFIG_VARIABLES_H
#define MCPGATED_CONFIG_VARIABLES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/*
 * `${SOURCE:NAME:-FALLBACK}`; only NAME is required. Missing parts have n == 0, a missing fallback
 * has p == NULL. Borrowed.
 */
struct variable {
	struct slice written; /* the whole expression */
	struct slice source;
	struct slice name;
	struct slice fallback;
};

/*
 * Parses the expression at the beginning of `text`, which starts with `${`. False: it has no end;
 * `written` is then all of the text.
 */
bool variable_parse(struct slice text, struct variable *variable_r);

/*
 * A value that would make the text longer than this is not substituted: the kernel does not accept
 * longer arguments or variables.
 */
#define VARIABLES_BYTES_MAX ((size_t)128 << 10)

/*
 * Called with the expression, `${…}` or `$NAME`, and the rest of a sentence about it: "is passed as
 * it stands: …".
 */
typedef void variables_tell_fn(struct slice written, const char *text, void *arg);

/*
 * Appends `text` to out with ${NAME}, ${env:NAME}, ${NAME:-DEFAULT}, ${userHome}, ${pathSeparator}
 * and ${/} replaced. ${claim:NAME}, which is ours (claim.h), is not reported.
 *
 * is_open  the result becomes part of a command line, which everybody on the machine can read:
 *          secrets in it are reported
 *
 * Returns whether the result contains a value from the environment, which may be secret.
 */
bool variables_expand(struct slice text, bool is_open, struct buf *out, variables_tell_fn *tell,
		      void *arg);

#endif
