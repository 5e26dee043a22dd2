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
/* Why not: no pattern of allow fits, or one of deny does. */
enum permission_verdict { PERMISSION_ALLOWED, PERMISSION_UNLISTED, PERMISSION_DENIED };
/* Of this name, however it is spelled, as permissions_allow says. */
enum permission_verdict permissions_judge(const struct permissions *permissions,
					  enum permission_kind kind, struct slice name) must_check;
/*
 * Whether this may be used, however its name is spelled. What is no name may not be, where there are rules of any kind.
 * `name`: of a JSON string, decoded.
 */
bool permissions_allow(const struct permissions *permissions, enum permission_kind kind,
		       struct slice name) must_check;
/* The same for the name in a JSON value, as it is written. What is not a string is no name. */
enum permission_verdict permissions_judge_json(const struct permissions *permissions,
					       enum permission_kind kind, struct json name)
	must_check;
bool permissions_allow_json(const struct permissions *permissions, enum permission_kind kind,
			    struct json name) must_check;
/*
 * What a client's message uses that it may not: "tool", "prompt", "resource", "prompt or resource" for a completion, or
 * "method" for a method that is no name; NULL: nothing. Judged are calls of tools, prompts, reads of and subscriptions to
 * resources, completions; subscriptions/listen is change_listener's. What only looks like such a method (as names of tools
 * are compared) is taken for one. *rule_r: the key of the rule, like servers.NAME.tools.deny; "" for a method.
 */
const char *permissions_find_denied(const struct permissions *permissions,
				    const struct envelope *env, const char **rule_r) must_check;

#endif
