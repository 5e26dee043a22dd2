/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use which tools, prompts, resources and resource templates of a server, by name. Pure
 * functions; they do not know what a refusal leads to. mcpgated.yaml(5), SEC-50, SEC-56.
 */
#pragma once

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"
#include "policy/rights.h"
#include "policy/rule.h"

struct buf;
struct envelope;
struct json;

enum permission_kind {
	PERMISSION_TOOL,
	PERMISSION_PROMPT,
	PERMISSION_RESOURCE, /* by its URI */
	PERMISSION_TEMPLATE, /* a resource template, by its uriTemplate */
	PERMISSION_KINDS,
};

/* ---- which operation ---- */

/* What a message asks for, as far as policies depend on it. AUTH-SCP-12, SEC-50. */

enum operation {
	OPERATION_OTHER,
	OPERATION_TOOL,   /* tools/call */
	OPERATION_PROMPT, /* prompts/get */
};

/*
 * Our own routing recognizes a method only by its exact spelling. Here a look-alike counts as the
 * method it resembles; a method that cannot be compared (name_fold) counts as a tool call.
 */
enum operation operation_of(const struct envelope *env);

/* ---- which names ---- */

/* Which tool, prompt or resource of its server a client's message uses. SEC-50. */

/* Called with a name as written in JSON. Returns false to stop. */
typedef bool uses_visit_fn(enum permission_kind kind, struct json name, void *arg);

/*
 * Visits the names in tool calls, prompts, resource reads and subscriptions, and completions:
 * everything in the message that a server could take for a name. A method that only looks like one
 * of these (compared as tool names are) is treated as one.
 *
 * Returns NULL; or, if a visit returned false or the params are not an object, what the message
 * uses: "tool", "prompt", "resource", "prompt or resource" for a completion, or "method" for a method
 * that is not a valid name. Where a name is missing, visits get JSON_ABSENT; but a completion without
 * `ref`, or with one that names nothing, uses nothing, and there is no visit.
 */
const char *uses_visit(const struct envelope *env, uses_visit_fn *visit, void *arg) must_check;

/* ---- permissions ---- */

/*
 * Patterns in which * matches any characters. A name that matches `deny` is denied; otherwise one
 * that matches `allow` is allowed.
 */
struct permission_rules {
	struct slices allow;
	struct slices deny;
	/*
	 * The folded patterns, computed by permissions_finish; empty: invalid name, matches
	 * nothing.
	 */
	struct slices allow_folded;
	struct slices deny_folded;
};

/* What one role says about the server. */
struct permission_role {
	size_t number; /* of the role */
	struct slice name;
	bool is_of_token; /* the role is the private one of entry `token` of auth.tokens */
	size_t token;
	struct slice server; /* as in the role: the name, or `*` */
	struct permission_rules kinds[PERMISSION_KINDS];
};

/* All zeros: no rules, everything is allowed. */
struct permissions {
	/* the server's own rules, for all callers */
	struct permission_rules kinds[PERMISSION_KINDS];
	/* for callers with these roles; from roles.h */
	struct permission_role *roles;
	size_t role_count;
	bool has_rules; /* some rule applies to all callers; without one everything is allowed */
};

/* Computes the derived members, once the rules are set. */
void permissions_finish(struct permissions *permissions);
/* Frees the roles and what permissions_finish has allocated. */
void permissions_free(struct permissions *permissions);

/*
 * Appends to `folded` the form in which names of this kind are compared, and returns NULL; or
 * returns why it is not a valid name, to follow "the name ...".
 */
const char *permission_fold(enum permission_kind kind, struct slice name, struct buf *folded)
	must_check;
/* Like permission_fold, without copying a name that is already folded; see name_read_form. */
const char *permission_read_form(enum permission_kind kind, struct slice name, struct buf *room,
				 struct slice *form_r) must_check;
/*
 * Whether the folded name matches such a pattern in any way in which the server may interpret it.
 */
bool permission_fits_deny(enum permission_kind kind, struct slice folded, struct slice pattern)
	must_check;

enum permission_ground {
	PERMISSION_FREE,        /* no rules apply */
	PERMISSION_ALLOWED,     /* matches a pattern of `allow` */
	PERMISSION_DENIED,      /* matches a pattern of `deny` */
	PERMISSION_NOT_ALLOWED, /* matches no pattern of the server's `allow` */
	PERMISSION_NO_ROLE,     /* matches no `allow` of the caller's roles */
	PERMISSION_NO_NAME,
};

/* Whether the name may be used, and which rule decided. */
struct permission_verdict {
	enum permission_ground ground;
	/* whose pattern; NULL: the server's own, or for PERMISSION_NO_ROLE that of several roles */
	const struct permission_role *role;
	size_t pattern; /* index of the pattern, for PERMISSION_ALLOWED and PERMISSION_DENIED */
};

/*
 * The one place that decides whether a caller may use something, however its name is spelled. An
 * invalid name may not be used if there are rules of any kind. A role cannot allow what the
 * server's own rules do not; what one role denies, no other role allows. `name` is the decoded JSON
 * string.
 */
struct permission_verdict permissions_judge(const struct permissions *permissions,
					    const struct rights *rights, enum permission_kind kind,
					    struct slice name) must_check;
/*
 * The rule that decided; for a name that is not allowed, the one that could have allowed it. None
 * if there are no rules.
 */
struct rule permission_rule(enum permission_kind kind, const struct permission_verdict *verdict);
/*
 * The entries that deny something of this kind at the server by its name, one by one: its own, then
 * those of roles. Entry `index` as the verdict that it leads to, with its pattern, folded; false:
 * there are no more.
 */
bool permissions_deny_at(const struct permissions *permissions, enum permission_kind kind,
			 size_t index, struct permission_verdict *verdict_r,
			 struct slice *pattern_r) must_check;
bool permissions_allow(const struct permissions *permissions, const struct rights *rights,
		       enum permission_kind kind, struct slice name) must_check;
/*
 * Like permissions_allow, for the name as a JSON value. Anything but a string is not a valid name.
 */
bool permissions_allow_json(const struct permissions *permissions, const struct rights *rights,
			    enum permission_kind kind, struct json name) must_check;
/* Whether the caller's roles, or having none, allow anything of the server. */
bool permissions_allow_any(const struct permissions *permissions, const struct rights *rights)
	must_check;
/*
 * What the client's message uses without permission: "tool", "prompt", "resource", "prompt or
 * resource" for a completion, or "method" for a method that is not a valid name; NULL: nothing. It
 * judges the names that uses.h finds; subscriptions/listen is left to change_listener. *rule_r: the
 * rule; none for a method.
 */
const char *permissions_find_denied(const struct permissions *permissions,
				    const struct rights *rights, const struct envelope *env,
				    struct rule *rule_r) must_check;

/* ---- needed scopes ---- */

/*
 * Which scopes the use of a tool, prompt or resource of a server requires, by name. Pure functions;
 * whether a caller holds them is checked elsewhere. AUTH-SCP-02, -12, SEC-57, SEC-58.
 */

/* Derived from one pattern. */
struct name_needs {
	struct slice folded; /* the pattern: see permission_fold_deny */
	struct scope_set scopes;
};

/* All zeros: nothing requires scopes. */
struct needs {
	struct slice_map
		by_name[PERMISSION_KINDS]; /* scopes by pattern; templates of resources have none */
	/* lists contain only what the caller's scopes suffice for */
	bool hides;
	/* Derived, one for each pattern: */
	struct name_needs *names[PERMISSION_KINDS];
};

/*
 * Computes the derived members; adds the named scopes to the table. A pattern that is not a valid
 * name matches nothing.
 */
void needs_finish(struct needs *needs, struct scope_table *table);
void needs_free(struct needs *needs);

/* Why a message must be refused whatever its caller holds: "the name of the WHAT WHY". */
struct needs_flaw {
	const char *what; /* NULL: it need not be */
	const char *why;
};

/*
 * Adds the scopes that this message requires beyond the base scopes. They are determined from the
 * text that is forwarded, as the server will read it. A name that is not a string or cannot be
 * decoded may mean any. AUTH-SCP-02, -06, -12
 */
struct needs_flaw needs_add_of_message(const struct needs *needs, const struct envelope *env,
				       struct scope_set *needed) must_check;

/*
 * Whether lists show the item with this name, given as JSON, to the caller. False if `hides` is set
 * and it requires scopes that the caller lacks. SEC-58
 */
bool needs_show(const struct needs *needs, const struct rights *rights, enum permission_kind kind,
		struct json name) must_check;
