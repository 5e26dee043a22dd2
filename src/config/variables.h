/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that come from elsewhere: references to files and variables, which may be secrets, and
 * ${...} in texts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/tree.h"

/*
 * ---- secret ----
 *
 * Values that are stored elsewhere ({file:}, {env:}, {credential:}), and what counts as a
 * secret.
 */

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
/*
 * Cuts the next line of a file of tokens that is neither empty nor a comment: a token, and perhaps the
 * name of who has it, of which nothing is checked. *number, from 0, becomes the line's. False: there
 * are no more.
 */
bool secret_cut_token(struct slice *text, struct slice *token_r, struct slice *name_r,
		      unsigned int *number);
/* Overwrites, frees, sets to NULL. Accepts NULL. */
void secret_free(char **text);

/*
 * ---- variables ----
 *
 * `${…}`. In the files of clients, what means the same everywhere is expanded: environment
 * variables, here the daemon's own; what only an editor knows is left as written and reported,
 * with what to write instead. In our own files nothing is expanded but `${claim:NAME}` in values
 * of env: it is replaced, for each process, with the claim in its caller's token. AUTH-DWN-02
 */

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
/* How a message begins that says why a ${...} is no variable here. */
#define VARIABLES_AS_THEY_STAND "is passed on unchanged: "

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
