/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of tools.arguments and tools.limits: names, expressions and roots that mean something. SEC-54, SEC-55.
 */
#include "config/problem.h"
#include "config/rules.h"
#include "policy/name.h"
#include "policy/pattern.h"

static void check_name(struct slice name, const struct tree *at, const char *what,
		       struct config_problems *problems)
{
	struct buf folded = { 0 };
	const char *why = name_fold(name, &folded);

	if (why != NULL)
		problem_add_at(problems, at, "the name of the %s %s", what, why);
	buf_fini(&folded);
}

static void check_members(const struct slices *names, const struct tree *at,
			  struct config_problems *problems)
{
	for (size_t i = 0; i < names->count; i++)
		check_name(names->items[i], tree_item(at, i), "member", problems);
}

static void check_patterns(const struct slice_map *lists, const struct tree *at,
			   struct config_problems *problems)
{
	for (size_t i = 0; i < lists->count; i++) {
		const struct named_slices *list = &lists->items[i];
		const struct tree *list_at = tree_below(at, list->name.p);

		check_name(list->name, list_at, "tool", problems);
		for (size_t j = 0; j < list->values.count; j++) {
			struct error err;
			struct pattern *pattern = pattern_new(list->values.items[j], &err);

			if (pattern == NULL)
				problem_add_at(problems, tree_item(list_at, j),
					       "is not a usable regular expression: %s", err.text);
			pattern_free(&pattern);
		}
	}
}

static void check_paths(const struct argument_rules *rules, const struct tree *at,
			struct config_problems *problems)
{
	const struct slices *roots = &rules->paths.roots;
	const struct tree *paths = problem_place(at, "tools.arguments.paths");

	for (size_t i = 0; i < roots->count; i++)
		if (!path_is_absolute(roots->items[i]))
			problem_add_at(problems,
				       tree_item(problem_place(at, "tools.arguments.paths.roots"),
						 i),
				       "must be an absolute path without '..', not '%.100s'",
				       roots->items[i].p);
	if (roots->count == 0 && tree_find(paths, "roots") == NULL &&
	    rules->path_members.written.count + rules->paths_ignored.written.count > 0)
		problem_add_at(
			problems, paths,
			"has no effect without 'roots', the directories that paths must stay in");
	check_members(&rules->path_members.written,
		      problem_place(at, "tools.arguments.paths.members"), problems);
	check_members(&rules->paths_ignored.written,
		      problem_place(at, "tools.arguments.paths.ignore"), problems);
}

void rules_check_arguments(const struct config_server *server, const struct tree *at,
			   struct config_problems *problems)
{
	const struct argument_rules *rules = &server->endpoint.arguments;

	check_patterns(&rules->deny_patterns, problem_place(at, "tools.arguments.deny_patterns"),
		       problems);
	check_members(&rules->forbidden_keys.written,
		      problem_place(at, "tools.arguments.forbidden_keys"), problems);
	check_paths(rules, at, problems);
}

void rules_check_tool_limits(const struct config_server *server, const struct tree *at,
			     struct config_problems *problems)
{
	const struct tool_limits *limits = &server->conf.limits.tools;
	const struct tree *list = problem_place(at, "tools.limits");

	for (size_t i = 0; i < limits->count; i++) {
		const struct tool_limit *entry = &limits->items[i];
		const struct tree *entry_at = tree_item(list, i);
		const struct slices *names = &entry->tools.written;

		if (names->count == 0)
			problem_add_at(problems, entry_at,
				       "must have 'tools', the tools that it limits");
		if (entry->limit.rate.calls == 0 && entry->limit.concurrency == 0)
			problem_add_at(problems, entry_at,
				       "limits nothing: it has neither 'calls' nor 'concurrency'");
		for (size_t j = 0; j < names->count; j++)
			check_name(names->items[j], tree_item(tree_below(entry_at, "tools"), j),
				   "tool", problems);
	}
}

/* Who names roots wants them to be kept, and only a sandbox keeps links from leading out of them. */
void rules_warn_of_arguments(const struct config_server *server, const struct tree *at,
			     struct config_problems *warnings)
{
	if (server->endpoint.arguments.paths.roots.count > 0 &&
	    server->sandbox == CONFIG_SANDBOX_OFF)
		problem_add_at(
			warnings, problem_place(at, "tools.arguments.paths"),
			"paths are checked only by name, and links may lead out of the roots: to "
			"keep the server inside, use a sandbox (sandbox.mode)");
}
