/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a server may be used, by name: its tools, prompts, resources and templates of resources. Pure: of who asks, and
 * what comes of a refusal, it knows nothing. product.md §4, SEC-50.
 */
#ifndef MCPGATED_POLICY_PERMISSIONS_H
#define MCPGATED_POLICY_PERMISSIONS_H

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"

struct buf;
struct envelope;
struct json;

enum permission_kind {
	PERMISSION_TOOL,
	PERMISSION_PROMPT,
	PERMISSION_RESOURCE, /* by its URI */
	PERMISSION_TEMPLATE, /* of resources, by its uriTemplate */
	PERMISSION_KINDS,
};

/* Patterns in which * stands for any characters. What fits `deny` is denied; else what fits `allow` is allowed. */
struct permission_rules {
	struct slices allow;
	struct slices deny;
	/* The same as names are compared; made by permissions_finish: */
	struct slices allow_folded;
	struct slices deny_folded;
};

/* All zeros: there are no rules, everything is allowed. */
struct permissions {
	struct permission_rules kinds[PERMISSION_KINDS];
	bool has_rules; /* beyond that everything is allowed */
};

/* Once the rules are there. Patterns that are no names (permission_fold) fit nothing. */
void permissions_finish(struct permissions *permissions);
/* What permissions_finish has made. */
void permissions_free(struct permissions *permissions);

/*
 * The form in which names of this kind are compared: NULL, and it has been appended to `folded`; or why it is no name, for
 * "the name ...".
 */
const char *permission_fold(enum permission_kind kind, struct slice name, struct buf *folded)
	must_check;
/*
 * Whether this may be used, however its name is spelled. What is no name may not be, where there are rules of any kind.
 * `name`: of a JSON string, decoded.
 */
bool permissions_allow(const struct permissions *permissions, enum permission_kind kind,
		       struct slice name) must_check;
/* The same for the name in a JSON value, as it is written. What is not a string is no name. */
bool permissions_allow_json(const struct permissions *permissions, enum permission_kind kind,
			    struct json name) must_check;
/*
 * What a client's message uses that it may not: "tool", "prompt", "resource", "prompt or resource" for a completion, or
 * "method" for a method that is no name; NULL: nothing. Judged are calls of tools, prompts, reads of and subscriptions to
 * resources, completions; subscriptions/listen is change_listener's. What only looks like such a method (as names of tools
 * are compared) is taken for one.
 */
const char *permissions_find_denied(const struct permissions *permissions,
				    const struct envelope *env) must_check;
/* The same for who judges each name in another way. */
typedef bool permission_judge_fn(const void *arg, enum permission_kind kind, struct json name);
const char *permissions_find_refused(permission_judge_fn *allows, const void *arg,
				     const struct envelope *env) must_check;

#endif
