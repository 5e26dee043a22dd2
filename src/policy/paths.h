/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether an untrusted text is a path, and whether it stays inside the allowed roots. Only
 * the text is examined, not the file system: a symlink inside a root may lead out of it, which the
 * server's sandbox has to prevent.
 *
 * Servers interpret paths differently: they decode percent-encoding once or twice, normalize
 * compatibility forms, treat backslashes as slashes, or drop invisible characters, and quotes and
 * spaces of any kind around the text or a part of it. A path is inside only if it is in all of these
 * readings. SEC-55.
 */
#pragma once

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"

struct path_rules {
	struct slices roots; /* each satisfies path_is_absolute */
	struct slice base; /* what relative paths start from; empty: unknown, so they are outside */
};

enum path_verdict { PATH_NONE, PATH_INSIDE, PATH_OUTSIDE };

/*
 * text    valid UTF-8
 * is_one  the text is always treated as a path. Otherwise it is one if, in some reading, it
 *         begins with `/`, `./`, `../`, `~` as a shell reads it, `file:` or a drive letter,
 *         or has a component `..`; if not: PATH_NONE
 *
 * Takes linear time. A path must never leave a root, not even to return to it; a path with several
 * readings must contain no `..`.
 */
enum path_verdict path_judge(const struct path_rules *rules, struct slice text, bool is_one)
	must_check;

/*
 * Whether some reader takes a part of a path, decoded and between two slashes, for `..`: with spaces
 * or quotes around it, or with something behind it that is cut off.
 */
bool path_is_parent(struct slice part);

/*
 * Whether it can be a root: begins with a slash and has no component `..` and no control
 * characters.
 */
bool path_is_absolute(struct slice path);
