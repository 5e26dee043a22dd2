/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `${…}`. In the files of clients, what means the same everywhere is expanded: environment variables,
 * here the daemon's own; what only an editor knows is left as written and reported, with what to
 * write instead. In our own files nothing is expanded but `${claim:NAME}` in values of env: it is
 * replaced, for each process, with the claim in its caller's token. AUTH-DWN-02
 */
#ifndef MCPGATED_CONFIG_VARIABLES_H
#define MCPGATED_CONFIG_VARIABLES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/tree.h"

/* ---- claims ---- */

#define CLAIM_NAME_MAX 64
#define CLAIMS_MAX 8 /* per server */

/*
 * Removes from *text everything up to and including its first claim; sets *before_r to the text
 * before the claim, and *name_r to its name. Returns 1; 0 if there is no claim (*before_r is the
 * whole text); -1 if the claim is malformed.
 */
int claim_cut(struct slice *text, struct slice *before_r, struct slice *name_r) must_check;
/* Whether the text contains the beginning of a claim. */
bool claim_is_in(const char *text);
/* Whether the text consists of claims only. */
bool claim_is_alone(const char *text);

/* ---- the files of clients ---- */

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
 * and ${/} replaced. ${claim:NAME}, which is ours, is not reported.
 *
 * is_open  the result becomes part of a command line, which everybody on the machine can read:
 *          secrets in it are reported
 *
 * Returns whether the result contains a value from the environment, which may be secret.
 */
bool variables_expand(struct slice text, bool is_open, struct buf *out, variables_tell_fn *tell,
		      void *arg);

/* ---- our own files ---- */

/*
 * Adds a problem for each text of the tree that contains `${NAME}`, which other programs expand, with
 * what to write instead; except in patterns (redact, deny_patterns) and in the args of a shell, which
 * has its own variables. Messages show only the name.
 */
void unexpanded_check(const struct tree *root, struct config_problems *problems);

#endif
