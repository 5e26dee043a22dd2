/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a text of a stranger is a path, and leads only to where it may. Its letters alone are looked at, and no file: a
 * link inside a root may lead out of it, which is for the server's sandbox to prevent.
 *
 * Servers read paths in ways of their own: percent-encoding decoded once or again, compatible forms of letters taken for
 * each other, backslashes for slashes, quotes and spaces around the text and what is not seen left out. A path is inside
 * only if it is in all of these readings. SEC-55.
 */
#ifndef MCPGATED_POLICY_PATHS_H
#define MCPGATED_POLICY_PATHS_H

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"

struct path_rules {
	struct slices roots; /* path_is_absolute */
	struct slice
		base; /* where relative ones begin; empty: nobody knows, and they are outside */
};

enum path_verdict { PATH_NONE, PATH_INSIDE, PATH_OUTSIDE };

/*
 * text    valid UTF-8
 * is_one  it is a path whatever it looks like. Else it is one if, in some reading, it begins with `/`, `./`, `../`, `~` as a
 *         shell reads it, `file:` or a drive letter, or has a part `..`; if not: PATH_NONE
 *
 * Linear. A path never leaves a root, not even to come back; in one that has several readings no `..` is allowed.
 */
enum path_verdict path_judge(const struct path_rules *rules, struct slice text, bool is_one)
	must_check;

/* Whether it can be a root: begins with a slash, without a part `..` and control characters. */
bool path_is_absolute(struct slice path);

#endif
