/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which scopes the use of a tool, prompt or resource of a server requires, by name. Pure functions;
 * whether a caller holds them is checked elsewhere. AUTH-SCP-02, -12, SEC-57, SEC-58.
 */
#ifndef MCPGATED_POLICY_NEEDS_H
#define MCPGATED_POLICY_NEEDS_H

#include <stdbool.h>

#include "base/slice.h"
#include "policy/permissions.h"
#include "policy/rights.h"
#include "policy/scopes.h"

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
bool needs_any(const struct needs *needs);

/*
 * Adds the scopes that the use of this name requires. Returns NULL, or why it is not a valid name;
 * it may then require anything. `name` is decoded.
 */
const char *needs_add_of_name(const struct needs *needs, enum permission_kind kind,
			      struct slice name, struct scope_set *needed) must_check;

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

#endif
