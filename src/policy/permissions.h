/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a server may be used, by name and by whom: its tools, prompts, resources and templates of resources. Pure: what
 * comes of a refusal, it does not know. product.md §4, SEC-50, SEC-56.
 */
#ifndef MCPGATED_POLICY_PERMISSIONS_H
#define MCPGATED_POLICY_PERMISSIONS_H

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"
#include "policy/rule.h"

struct buf;
struct envelope;
struct json;
struct rights;

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
	/* The same as names are compared, one for each; empty: it is no name, and fits nothing. Made by permissions_finish: */
	struct slices allow_folded;
	struct slices deny_folded;
};

/* What one role says of the server. */
struct permission_role {
	size_t number; /* of the role */
	struct slice name;
	bool is_of_token; /* it is what the entry `token` of auth.tokens has for itself */
	size_t token;
	struct slice server; /* as the role names it: by name, or `*` */
	struct permission_rules kinds[PERMISSION_KINDS];
};

/* All zeros: there are no rules, everything is allowed. */
struct permissions {
	struct permission_rules kinds[PERMISSION_KINDS]; /* for everybody */
	struct permission_role *roles;                   /* for those who have them; of roles.h */
	size_t role_count;
	bool has_rules; /* for everybody, beyond that everything is allowed */
};

/* Once the rules are there. */
void permissions_finish(struct permissions *permissions);
/* What permissions_finish has made, and the roles. */
void permissions_free(struct permissions *permissions);

/*
 * The form in which names of this kind are compared: NULL, and it has been appended to `folded`; or why it is no name, for
 * "the name ...".
 */
const char *permission_fold(enum permission_kind kind, struct slice name, struct buf *folded)
	must_check;
/* The same without a copy of what has that form already, as name_read_form has it. */
const char *permission_read_form(enum permission_kind kind, struct slice name, struct buf *room,
				 struct slice *form_r) must_check;
/*
 * The form of a pattern that takes something away: of the letters of URIs it is not known whether the server tells them by
 * case, nor whether it looks at what follows a `?`. The caller frees it; empty: it is no name.
 */
struct slice permission_fold_deny(enum permission_kind kind, struct slice pattern) must_check;
/* Whether the name, folded, fits such a pattern in any way that the server may take it. */
bool permission_fits_deny(enum permission_kind kind, struct slice folded, struct slice pattern)
	must_check;

enum permission_ground {
	PERMISSION_FREE,        /* there are no rules for it */
	PERMISSION_ALLOWED,     /* a pattern of `allow` fits */
	PERMISSION_DENIED,      /* a pattern of `deny` fits */
	PERMISSION_NOT_ALLOWED, /* no pattern of the server's `allow` fits */
	PERMISSION_NO_ROLE,     /* none of the `allow` of his roles fits */
	PERMISSION_NO_NAME,
};

/* Whether it may be used, and what has decided that. */
struct permission_verdict {
	enum permission_ground ground;
	const struct permission_role *
		role; /* whose pattern; NULL: the server's own, or of PERMISSION_NO_ROLE: of several roles */
	size_t pattern; /* PERMISSION_ALLOWED, PERMISSION_DENIED: its place in the list */
};

/*
 * The one place that decides whether somebody may use this, however its name is spelled. What is no name may not be used,
 * where there are rules of any kind. What the server's own rules do not allow, no role does; what one role denies, no other
 * allows. `name`: of a JSON string, decoded.
 */
struct permission_verdict permissions_judge(const struct permissions *permissions,
					    const struct rights *rights, enum permission_kind kind,
					    struct slice name) must_check;
/* The rule that has decided; of what is not allowed, where it could be. None, where there are no rules. */
struct rule permission_rule(enum permission_kind kind, const struct permission_verdict *verdict);
bool permissions_allow(const struct permissions *permissions, const struct rights *rights,
		       enum permission_kind kind, struct slice name) must_check;
/* The same for the name in a JSON value, as it is written. What is not a string is no name. */
bool permissions_allow_json(const struct permissions *permissions, const struct rights *rights,
			    enum permission_kind kind, struct json name) must_check;
/* Whether any of his roles, or the lack of them, allows anything of the server. */
bool permissions_allow_any(const struct permissions *permissions, const struct rights *rights)
	must_check;
/*
 * What a client's message uses that it may not: "tool", "prompt", "resource", "prompt or resource" for a completion, or
 * "method" for a method that is no name; NULL: nothing. Judged is what uses.h finds; subscriptions/listen is
 * change_listener's. *rule_r: the rule; none for a method.
 */
const char *permissions_find_denied(const struct permissions *permissions,
				    const struct rights *rights, const struct envelope *env,
				    struct rule *rule_r) must_check;

#endif
