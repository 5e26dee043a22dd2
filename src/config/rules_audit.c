/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the section `audit`. */
#include <sys/un.h>

#include "config/problem.h"
#include "config/rules.h"

static bool is_place(struct slice to)
{
	static const struct slice lead = SLICE("unix:");
	const struct sockaddr_un *address;

	if (slice_has_prefix(to, lead))
		return to.n > lead.n && to.p[lead.n] == '/' &&
		       to.n - lead.n < sizeof(address->sun_path);
	return to.p[0] == '/' || slice_is_equal(to, SLICE_LIT("journal"));
}

void rules_check_audit(const struct config *config, const struct tree *root,
		       struct config_problems *problems)
{
	const struct tree *at = tree_below(root, "audit");
	const struct audit_conf *audit = &config->audit;

	if (audit->to != NULL && !is_place(slice_str(audit->to)))
		problem_add_at(
			problems, tree_below(at, "to"),
			"must be the absolute path of a file, journal, or unix:PATH with the "
			"absolute path of a socket, not '%.100s'",
			audit->to);
	if (audit->is_required && tree_find(at, "to") == NULL)
		problem_add_at(problems, tree_below(at, "required"),
			       "needs audit.to: without it nothing is recorded");
	if (audit->is_required && audit->is_refused_only)
		problem_add_at(problems, tree_below(at, "required"),
			       "needs audit.calls: all, because it is about calls");
}
