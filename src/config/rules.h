/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that one value alone cannot break: forms, names, and what must fit together. */
#ifndef MCPGATED_CONFIG_RULES_H
#define MCPGATED_CONFIG_RULES_H

#include "config/config.h"
#include "config/tree.h"

/*
 * Adds whatever is wrong with `config` to `problems`. `root` is the tree it was read from and tells
 * the places. Values that could not be read have been reported before and are skipped.
 */
void rules_check(const struct config *config, const struct tree *root,
		 struct config_problems *problems);

/* Those of a server's sandbox, called by the above; `at` is the server's place. */
void rules_check_sandbox(const struct config *config, const struct config_server *server,
			 const struct tree *root, const struct tree *at,
			 struct config_problems *problems);

/* Those of a server's tools.arguments, likewise; and what of it is less than it seems. */
void rules_check_arguments(const struct config_server *server, const struct tree *at,
			   struct config_problems *problems);
void rules_check_tool_limits(const struct config_server *server, const struct tree *at,
			     struct config_problems *problems);
void rules_warn_of_arguments(const struct config_server *server, const struct tree *at,
			     struct config_problems *warnings);

/* Those of the audit, likewise. */
void rules_check_audit(const struct config *config, const struct tree *root,
		       struct config_problems *problems);

/* Those of the traces, likewise. */
void rules_check_traces(const struct config *config, const struct tree *root,
			struct config_problems *problems);

/*
 * Those of roles, and of who has them, likewise; and which of them, and of the servers' own allow and deny, have no effect.
 * The third: of one list of patterns, which stands at `at`.
 */
void rules_check_roles(const struct config *config, const struct tree *root,
		       struct config_problems *problems);
void rules_warn_of_roles(const struct config *config, const struct tree *root,
			 struct config_problems *warnings);
void rules_check_patterns(enum permission_kind kind, const struct slices *patterns,
			  const struct tree *at, struct config_problems *problems);

/* Adds what is said and does nothing, or nothing any more. */
void rules_warn(const struct config *config, const struct tree *root,
		struct config_problems *warnings);

/* Those of authorization, called by the above; and that a proxy lets everybody in. */
void rules_check_auth(const struct config *config, const struct tree *root,
		      struct config_problems *problems);
void rules_warn_of_proxy(const struct config *config, const struct tree *root,
			 struct config_problems *warnings);

#endif
