/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients are shown of a server's tools and prompts where it differs from what the server says:
 * another name, description or annotations. Pure functions. Messages of clients get the real names
 * before anything else looks at them, and lists get the shown ones last, so that no rule, pin or record knows of
 * this. mcpgated.yaml(5), SEC-50.
 */
#pragma once

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"
#include "policy/permissions.h"

struct buf;
struct envelope;

#define SHOWN_NAME_MAX 128 /* bytes of a name in the configuration */

/* By real name, each with one value. All zeros: everything is shown as it is. */
struct shown_items {
	struct slice_map names;
	struct slice_map descriptions;
	struct slice_map annotations; /* the text of a JSON object */
};
struct shown {
	struct shown_items kinds[PERMISSION_KINDS]; /* of tools and prompts */
};

/* Whether anything of this kind is shown differently. */
bool shown_differs(const struct shown *shown, enum permission_kind kind);
/*
 * Whether an item with this name of the server's own, decoded, can be reached: false if another one is
 * shown by that name, or by one that differs in case and spaces only.
 */
bool shown_is_reachable(const struct shown *shown, enum permission_kind kind, struct slice name)
	must_check;
/*
 * The real name of what clients call `name`; borrowed. False: there is none, for what the server
 * calls so is shown by another name.
 */
bool shown_find_real(const struct shown *shown, enum permission_kind kind, struct slice name,
		     struct slice *real_r) must_check;
/*
 * Appends an item of a list, JSON text, as it is shown. False, and nothing is appended: it cannot be reached.
 * An item without a name is shown as it is.
 */
bool shown_append(const struct shown *shown, enum permission_kind kind, struct slice item,
		  struct buf *out) must_check;
/*
 * Appends a client's message with the real names, or nothing if there is nothing to change. Returns NULL,
 * or what the message uses that nothing has for a name, as uses_visit does.
 */
const char *shown_take_message(const struct shown *shown, const struct envelope *env,
			       struct buf *out) must_check;
