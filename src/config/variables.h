/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `${…}` in the files of clients. Put in is what means the same everywhere: variables of the environment, here the
 * daemon's own. What only an editor knows stays as it is written, and is told with what to write instead.
 */
#ifndef MCPGATED_CONFIG_VARIABLES_H
#define MCPGATED_CONFIG_VARIABLES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/* `${SOURCE:NAME:-FALLBACK}`, of which NAME alone must be there; what is not has n == 0, a missing fallback p == NULL. Borrowed. */
struct variable {
	struct slice written; /* all of it */
	struct slice source;
	struct slice name;
	struct slice fallback;
};

/* Takes apart what `text` begins with, which is `${`. False: it has no end, and `written` is all that is left. */
bool variable_parse(struct slice text, struct variable *variable_r);

/* No value is put in where the text would become longer than this; the kernel takes no longer argument or variable. */
#define VARIABLES_BYTES_MAX ((size_t)128 << 10)

/* Called with what stands there, `${…}` or `$NAME`, and a text that goes on from it: "is passed as it stands: …". */
typedef void variables_tell_fn(struct slice written, const char *text, void *arg);

/*
 * Appends `text` to out with ${NAME}, ${env:NAME}, ${NAME:-DEFAULT}, ${userHome}, ${pathSeparator} and ${/} replaced; of
 * ${claim:NAME}, which is ours (claim.h), nothing is told.
 *
 * is_open  the result stands in a command line, which everybody on the machine can read: secrets there are told
 *
 * Returns whether a value of the environment is in it, which may be a secret.
 */
bool variables_expand(struct slice text, bool is_open, struct buf *out, variables_tell_fn *tell,
		      void *arg);

#endif
