/* SPDX-License-Identifier: Apache-2.0 */
#include "config/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/name.h"
#include "config/problem.h"

static const char place[] = "command line";

/* NAME=VALUE, or NAME alone, which is the reference {env: NAME}. */
static void add_variable(struct tree *env, const char *text, struct config_problems *problems)
{
	static const char option[] = "--env";
	const char *equals = strchr(text, '=');
	char *name = equals != NULL ? mem_dup_slice(slice_between(text, equals)) : mem_strdup(text);

	if (tree_find(env, name) != NULL)
		problem_add(problems, "%s: %.60s is given twice", option, name);
	else if (equals != NULL)
		tree_add(env, name, tree_new_text(equals + 1, option));
	else
		tree_add(tree_add(env, name, tree_new(TREE_MAP, option)), "env",
			 tree_new_text(name, option));
	free(name);
}

struct tree *command_read(const struct config_request *request, struct config_problems *problems)
{
	char *name = request->name != NULL ? mem_strdup(request->name) :
					     name_from_command(request->command);
	struct tree *root = tree_new(TREE_MAP, place);
	struct tree *servers = tree_add(root, "servers", tree_new(TREE_MAP, place));
	struct tree *server = tree_add(servers, name, tree_new(TREE_MAP, place));
	struct tree *args, *env, *start;

	CHECK(request->command[0] != NULL);
	tree_add(server, "command", tree_new_text(request->command[0], place));
	args = tree_add(server, "args", tree_new(TREE_LIST, place));
	for (char *const *arg = request->command + 1; *arg != NULL; arg++)
		tree_add(args, NULL, tree_new_text(*arg, place));
	env = tree_add(server, "env", tree_new(TREE_MAP, place));
	for (size_t i = 0; i < request->env_count; i++)
		add_variable(env, request->env[i], problems);
	start = tree_add(server, "start", tree_new(TREE_MAP, place));
	tree_add(start, "try", tree_new_text("true", place))->is_plain = true;
	tree_add(server, "path", tree_new_text("/mcp", place));
	if (request->isolation != NULL)
		tree_add(server, "isolation", tree_new_text(request->isolation, "--isolation"));
	free(name);
	return root;
}
