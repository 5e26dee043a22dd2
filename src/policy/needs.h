/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which scopes the use of a tool, a prompt or a resource of one server needs, by its name. Pure: whether a caller has them,
 * others ask. AUTH-SCP-02, -12, SEC-57, SEC-58.
 */
#ifndef MCPGATED_POLICY_NEEDS_H
#define MCPGATED_POLICY_NEEDS_H

#include <stdbool.h>

#include "base/slice.h"
#include "policy/permissions.h"
#include "policy/rights.h"
#include "policy/scopes.h"

/* What follows from one pattern. */
struct name_needs {
	struct slice folded; /* the pattern: see permission_fold_deny */
	struct scope_set scopes;
};

/* All zeros: nothing needs any. */
struct needs {
	struct slice_map
		by_name[PERMISSION_KINDS]; /* scopes by pattern; templates of resources have none */
	bool hides;                        /* lists show what the caller's scopes are enough for */
	/* What follows from that, one for each pattern: */
	struct name_needs *names[PERMISSION_KINDS];
};

/* Gives the scopes that are named their numbers. A pattern that is no name fits nothing. */
void needs_finish(struct needs *needs, struct scope_table *table);
void needs_free(struct needs *needs);
bool needs_any(const struct needs *needs);

/* Adds what the use of this name needs. Returns NULL, or why it is no name; then it may need anything. `name`: decoded. */
const char *needs_add_of_name(const struct needs *needs, enum permission_kind kind,
			      struct slice name, struct scope_set *needed) must_check;

/* Why a message is to be refused whatever its caller holds: "the name of the WHAT WHY". */
struct needs_flaw {
	const char *what; /* NULL: it is not */
	const char *why;
};

/*
 * Adds what this message needs beyond the base scopes, read from the very text that is forwarded, as the server will read
 * it. A name that is no text, or cannot be decoded, may mean any. AUTH-SCP-02, -06, -12
 */
struct needs_flaw needs_add_of_message(const struct needs *needs, const struct envelope *env,
				       struct scope_set *needed) must_check;

/* Whether lists show him what has this name in JSON: not what needs scopes that he lacks, if such is hidden. SEC-58 */
bool needs_show(const struct needs *needs, const struct rights *rights, enum permission_kind kind,
		struct json name) must_check;

#endif
