/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses only; whoever wants another name says --name or writes a file. */
#include "config/name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

#define SERVER_NAME_MAX 64

/* Programs that fetch a package and run it, with the words that make them do so. */
static const char *const runners[][3] = {
	{ "npx" },         { "bunx" },
	{ "pnpx" },        { "uvx" },
	{ "pipx", "run" }, { "npm", "exec" },
	{ "bun", "x" },    { "pnpm", "dlx" },
	{ "yarn", "dlx" }, { "uv", "tool", "run" },
};

/* Their options whose value is the next argument. */
static const char *const options_with_value[] = {
	"-p", "--package", "-c", "--call", "--from", "--with", "--python", "--spec", "--index-url",
};

static struct slice last_part(struct slice path)
{
	const char *slash;

	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	slash = memrchr(path.p, '/', path.n);
	return slash != NULL ? slice_between(slash + 1, path.p + path.n) : path;
}

char *name_from_text(struct slice text)
{
	char *name = mem_zalloc(SERVER_NAME_MAX + 1);
	size_t length = 0;

	for (size_t i = 0; i < text.n && length < SERVER_NAME_MAX; i++) {
		char c = text.p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		else if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			c = '-';
		if (length > 0 || (c != '-' && c != '_'))
			name[length++] = c;
	}
	while (length > 0 && name[length - 1] == '-')
		name[--length] = '\0';
	if (length == 0)
		strcpy(name, "server");
	CHECK(length <= SERVER_NAME_MAX && name[0] != '\0');
	return name;
}

char *name_numbered(const char *name, size_t n)
{
	char number[24];
	int length = snprintf(number, sizeof(number), "-%zu", n);

	CHECK(name[0] != '\0' && length < SERVER_NAME_MAX);
	return mem_printf("%.*s%s", SERVER_NAME_MAX - length, name, number);
}

/* `@scope/server-git@1.2`, `mcp-server-git[cli]==1.2` -> `git`. */
static struct slice package_name(struct slice package)
{
	static const struct slice prefixes[] = { SLICE("mcp-server-"), SLICE("server-") };
	struct slice name = last_part(package);
	size_t end = 1;

	while (end < name.n && strchr("@=<>~![", name.p[end]) == NULL)
		end++;
	if (end < name.n)
		name.n = end;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (slice_has_prefix(name, prefixes[i]) && name.n > prefixes[i].n)
			return slice_of(name.p + prefixes[i].n, name.n - prefixes[i].n);
	return name;
}

/* The arguments after a runner's own words; NULL if it is none. */
static char *const *runner_args(char *const *command, struct slice program)
{
	for (size_t i = 0; i < ARRAY_LEN(runners); i++) {
		char *const *args = command + 1;
		bool is_match = slice_is_equal(program, slice_str(runners[i][0]));

		for (size_t word = 1; is_match && word < 3 && runners[i][word] != NULL; word++) {
			is_match = *args != NULL && strcmp(*args, runners[i][word]) == 0;
			args += is_match;
		}
		if (is_match)
			return args;
	}
	return NULL;
}

static bool takes_value(const char *option)
{
	for (size_t i = 0; i < ARRAY_LEN(options_with_value); i++)
		if (strcmp(option, options_with_value[i]) == 0)
			return true;
	return false;
}

char *name_from_command(char *const *command)
{
	struct slice program;
	char *const *args;

	CHECK(command[0] != NULL);
	program = last_part(slice_str(command[0]));
	args = runner_args(command, program);
	while (args != NULL && *args != NULL && (*args)[0] == '-')
		args += takes_value(*args) && args[1] != NULL ? 2 : 1;
	if (args != NULL && *args != NULL)
		return name_from_text(package_name(slice_str(*args)));
	return name_from_text(program);
}
