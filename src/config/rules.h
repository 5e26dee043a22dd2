/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that a single value cannot break: forms, names, and what must fit together. */
#ifndef MCPGATED_CONFIG_RULES_H
#define MCPGATED_CONFIG_RULES_H

#include "config/config.h"
#include "config/tree.h"

/*
 * Adds everything that is wrong with `config` to `problems`. `root` is the tree it was read from,
 * for the places. Values that could not be read are skipped: they have been reported before.
 */
void rules_check(const struct config *config, const struct tree *root,
		 struct config_problems *problems);

/* The rules of a server's sandbox, called by rules_check; `at` is the server's place. */
void rules_check_sandbox(const struct config *config, const struct config_server *server,
			 const struct tree *root, const struct tree *at,
			 struct config_problems *problems);

/*
 * The rules of a server's tools.arguments, likewise; the last warns of checks that cover less than
 * they seem to.
 */
void rules_check_arguments(const struct config_server *server, const struct tree *at,
			   struct config_problems *problems);
void rules_check_tool_limits(const struct config_server *server, const struct tree *at,
			     struct config_problems *problems);
void rules_warn_of_arguments(const struct config_server *server, const struct tree *at,
			     struct config_problems *warnings);

/* The rules of the audit, likewise. */
void rules_check_audit(const struct config *config, const struct tree *root,
		       struct config_problems *problems);

/* The rules of traces, likewise. */
void rules_check_traces(const struct config *config, const struct tree *root,
			struct config_problems *problems);

/*
 * The rules of roles and of who has them, likewise. The second warns of roles, and of allow and
 * deny of servers, that have no effect. The third checks one list of patterns, at `at`.
 */
void rules_check_roles(const struct config *config, const struct tree *root,
		       struct config_problems *problems);
void rules_warn_of_roles(const struct config *config, const struct tree *root,
			 struct config_problems *warnings);
void rules_check_patterns(enum permission_kind kind, const struct slices *patterns,
			  const struct tree *at, struct config_problems *problems);

/* Adds what is given but has no effect, or no longer has any. */
void rules_warn(const struct config *config, const struct tree *root,
		struct config_problems *warnings);

/*
 * The rules of authorization, called by rules_check; the second warns if a proxy would let
 * everybody in.
 */
void rules_check_auth(const struct config *config, const struct tree *root,
		      struct config_problems *problems);
void rules_warn_of_proxy(const struct config *config, const struct tree *root,
			 struct config_problems *warnings);

#endif
