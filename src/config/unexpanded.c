/* SPDX-License-Identifier: Apache-2.0 */
#include "config/unexpanded.h"

#include <string.h>

#include "base/slice.h"
#include "config/problem.h"
#include "config/variables.h"

#define NAME_SHOWN 60

static bool is_called(const struct tree *value, const char *key)
{
	return value != NULL && value->key != NULL && strcmp(value->key, key) == 0;
}

/* By whatever path. */
static bool is_shell(const struct tree *command)
{
	static const char *const shells[] = { "sh",   "ash", "bash", "csh",  "dash",
					      "fish", "ksh", "mksh", "tcsh", "zsh" };
	const char *text = command != NULL && command->kind == TREE_TEXT ? command->text : "";
	const char *slash = strrchr(text, '/');

	text = slash != NULL ? slash + 1 : text;
	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (strcmp(text, shells[i]) == 0)
			return true;
	return false;
}

static bool is_exempt(const struct tree *value)
{
	return is_called(value, "redact") || is_called(value, "deny_patterns") ||
	       (is_called(value, "args") && is_shell(tree_find(value->parent, "command")));
}

/* The name in what begins with "${" at `text`; empty: it is no variable, or a claim. */
static struct slice name_at(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	static const struct slice sources[] = { SLICE("env"), SLICE("input"), SLICE("secret") };
	struct variable variable;
	struct slice name;
	size_t length = 0;

	if (!variable_parse(slice_str(text), &variable) ||
	    slice_is_equal(variable.source, SLICE_LIT("claim")))
		return slice_of(NULL, 0);
	name = variable.source.n == 0 || slices_has((struct slices){ sources, ARRAY_LEN(sources) },
						    variable.source) ?
		       variable.name :
		       variable.source;
	while (length < name.n && strchr(letters, name.p[length]) != NULL)
		length++;
	/* A shell's ${NAME-DEFAULT} has no colon. */
	return slice_of(name.p,
			length == name.n || strchr(":-", name.p[length]) != NULL ? length : 0);
}

static void refuse(const struct tree *value, struct slice name, struct config_problems *problems)
{
	int n = name.n < NAME_SHOWN ? (int)name.n : NAME_SHOWN;

	if (is_called(value->parent, "env") || is_called(value, "client_secret"))
		problem_add_at(
			problems, value,
			"${%.*s} is not expanded; to use a variable of the daemon, write {env: "
			"%.*s}; to use a file, {file: PATH}",
			n, name.p, n, name.p);
	else if (is_called(value->parent, "args"))
		problem_add_at(
			problems, value,
			"${%.*s} is not expanded; pass the variable to the server, env: {%.*s: "
			"{env: %.*s}}, and if it must be an argument let a shell expand it: "
			"command: sh, args: [-c, 'exec COMMAND \"$%.*s\"']",
			n, name.p, n, name.p, n, name.p, n, name.p);
	else
		problem_add_at(
			problems, value,
			"${%.*s} is not expanded; write the value itself: {env: %.*s} works only "
			"in env and for secrets",
			n, name.p, n, name.p);
}

void unexpanded_check(const struct tree *root, struct config_problems *problems)
{
	if (is_exempt(root))
		return;
	for (size_t i = 0; root->kind != TREE_TEXT && i < root->count; i++)
		unexpanded_check(root->items[i], problems);
	if (root->kind != TREE_TEXT)
		return;
	for (const char *at = strstr(root->text, "${"); at != NULL; at = strstr(at + 2, "${")) {
		struct slice name = name_at(at);

		if (name.n > 0) {
			refuse(root, name, problems);
			return;
		}
	}
}
