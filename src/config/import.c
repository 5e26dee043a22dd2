/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are read member by member, in the order of the file, so that each has its place (jsonc.h). Values are texts only:
 * nothing in such a file is a {file:} reference. A name twice in one object has been refused; two objects may have the same.
 */
#include "config/import.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/url.h"
#include "base/check.h"
#include "base/mem.h"
#include "config/forms.h"
#include "config/jsonc.h"
#include "config/variables.h"
#include "jsonrpc/scan.h"

/*
 * ---- names of servers ----
 *
 * Guesses only; whoever wants another name says --name or writes a file.
 */

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
static const char options_with_value[] =
	"-p --package -c --call --from --with --python --spec --index-url";

static bool is_word_of(const char *words, const char *word)
{
	return slice_has_part(slice_str(words), ' ', slice_str(word));
}

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
		else if (!slice_is_name(slice_of(&c, 1), "_"))
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

char *name_from_command(char *const *command)
{
	struct slice program;
	char *const *args;

	CHECK(command[0] != NULL);
	program = last_part(slice_str(command[0]));
	args = runner_args(command, program);
	while (args != NULL && *args != NULL && (*args)[0] == '-')
		args += is_word_of(options_with_value, *args) && args[1] != NULL ? 2 : 1;
	if (args != NULL && *args != NULL)
		return name_from_text(package_name(slice_str(*args)));
	return name_from_text(program);
}

/* Of servers, variables and arguments: no file of a client has so many. */
#define MANY 4096

struct import {
	const char *file;
	struct config_problems *problems;
	struct config_problems *warnings;
	struct jsonc json;
	struct tree *servers;
	size_t lists;
	/* the object with the entries that are converted */
	const char *list;
	const char *directory;    /* NULL: not one that belongs to a directory */
	struct json disabled;     /* an array of names, or absent */
	struct json allowed;      /* the same: if there is one, all others are disabled */
	const struct json *entry; /* and the one that is converted */
	const char *name;         /* as the file has it */
	const char *member;       /* of it */
	struct tree *server;      /* NULL: it cannot be served, which has been told */
	/* Of import_entries; else NULL. */
	import_entry_fn *on_entry;
	void *arg;
	const char *begin; /* of the file */
};

/* ---- messages and places ---- */

/* With FILE:LINE:COLUMN and the way to the member, or to the entry if member is NULL, in front. */
static void tell(struct import *import, struct config_problems *problems, const char *at,
		 const char *format, ...) printf_like(4, 5);
static void tell(struct import *import, struct config_problems *problems, const char *at,
		 const char *format, ...)
{
	unsigned line, column;
	at_end(mem_free) char *text = NULL;
	va_list args;

	va_start(args, format);
	CHECK(vasprintf(&text, format, args) >= 0);
	va_end(args);
	jsonc_place(&import->json, at, &line, &column);
	problem_add(problems, "%s:%u:%u: %.220s.%.60s%s%.60s: %s", import->file, line, column,
		    import->list, import->name, import->member != NULL ? "." : "",
		    import->member != NULL ? import->member : "", text);
}

/* The entry that is converted: one that is not as its client would start it is not started. */
static void leave_out(struct import *import, const char *at, const char *why)
{
	if (import->server != NULL)
		tell(import, import->warnings, at, "%s; the entry is left out", why);
	tree_free(&import->server);
}

/* Whether there is no room for one more, which has been told. */
static bool is_full(struct import *import, const struct tree *container, const char *at)
{
	if (container->count < MANY)
		return false;
	tell(import, import->problems, at, "is one too many: at most %d are allowed", MANY);
	return true;
}

static struct tree *at_place(struct import *import, struct tree *value, const char *at)
{
	jsonc_place(&import->json, at, &value->line, &value->column);
	return value;
}

static void add_with_key(struct import *import, struct tree *map, const char *key, const char *at,
			 struct tree *child)
{
	unsigned line, column;

	CHECK(tree_find(map, key) == NULL);
	jsonc_place(&import->json, at, &line, &column);
	tree_add(map, key, child);
	child->key_line = line;
	child->key_column = column;
}

/* ---- values ---- */

/* What a name means; the caller frees it. Names have no quotes, and no NUL: jsonc_read. */
static char *decode_name(struct slice name)
{
	struct json string = {
		.type = JSON_STRING,
		.has_escape = true,
		.text = slice_of(name.p - 1, name.n + 2),
	};
	at_end(buf_fini) struct buf decoded = { 0 };

	if (scan_decode_string(string, &decoded) != 0)
		decoded.len = 0;
	return mem_dup_slice(buf_slice(&decoded));
}

struct told {
	struct import *import;
	const char *at;
};

static void tell_of_variable(struct slice written, const char *text, void *arg)
{
	struct told *told = arg;

	tell(told->import, told->import->warnings, told->at, "'%.*s' %s",
	     (int)(written.n < 100 ? written.n : 100), written.p, text);
}

/* Of a string; a number or a boolean is taken as it is written. NULL: it is neither. */
static struct tree *new_text(struct import *import, struct json value, bool is_open)
{
	struct told told = { .import = import, .at = value.text.p };
	at_end(buf_wipe) struct buf decoded = { 0 }, expanded = { 0 };
	struct tree *text = NULL;

	if (value.type == JSON_NUMBER || value.type == JSON_TRUE || value.type == JSON_FALSE) {
		tell(import, import->warnings, value.text.p,
		     "a value that is not a string is passed on as it is written");
		buf_append_slice(&decoded, value.text);
	}
	if (decoded.len > 0 || scan_decode_string(value, &decoded) == 0) {
		bool is_secret = variables_expand(buf_slice(&decoded), is_open, &expanded,
						  tell_of_variable, &told);

		text = tree_new_text(buf_terminate(&expanded), import->file);
		text->is_secret = is_secret;
		at_place(import, text, value.text.p);
	}
	return text;
}

/* A member of our entry, which takes `child`. */
static void set_member(struct import *import, const char *key, struct json value,
		       struct tree *child)
{
	CHECK(import->server != NULL);
	if (tree_find(import->server, key) == NULL) {
		add_with_key(import, import->server, key, value.text.p, child);
		return;
	}
	tree_free(&child);
	leave_out(import, value.text.p, "sets the same thing as another member");
}

static void convert_text(struct import *import, struct json value, const char *key)
{
	bool is_open = strcmp(key, "command") == 0 || strcmp(key, "url") == 0;
	struct tree *text = value.type == JSON_STRING ? new_text(import, value, is_open) : NULL;

	if (text != NULL && text->text[0] != '\0') {
		set_member(import, key, value, text);
		return;
	}
	leave_out(import, value.text.p, text != NULL ? "must not be empty" : "must be a string");
	tree_free(&text);
}

struct container {
	struct import *import;
	struct tree *tree;
	bool is_open;
};

static int on_element(struct slice element, void *arg)
{
	struct container *list = arg;
	struct json value = scan_value(element);
	struct tree *text = new_text(list->import, value, list->is_open);

	if (text != NULL)
		tree_add(list->tree, NULL, text);
	return text != NULL ? 0 : -1;
}

static void convert_list(struct import *import, struct json value, const char *key)
{
	struct container list = { .import = import, .is_open = strcmp(key, "args") == 0 };
	struct error err = { ERROR_NONE, "" };

	list.tree = at_place(import, tree_new(TREE_LIST, import->file), value.text.p);
	if (scan_array(value.text, MANY, on_element, &list, &err) >= 0) {
		set_member(import, key, value, list.tree);
		return;
	}
	leave_out(import, value.text.p,
		  err.kind == ERROR_LIMIT ? "must be an array of fewer strings" :
					    "must be an array of strings");
	tree_free(&list.tree);
}

/* PHP writes an empty object as an empty array. */
static bool is_object(struct json value)
{
	return value.type == JSON_OBJECT ||
	       (value.type == JSON_ARRAY &&
		slice_trim(slice_of(value.text.p + 1, value.text.n - 2)).n == 0);
}

static void convert_env(struct import *import, struct json value, const char *key)
{
	struct tree *variables;

	if (!is_object(value)) {
		leave_out(import, value.text.p, "must be an object of strings");
		return;
	}
	variables = at_place(import, tree_new(TREE_MAP, import->file), value.text.p);
	SCAN_MEMBERS(variable, value.text) {
		const char *at = variable.name.p - 1;
		at_end(mem_free) char *name = decode_name(variable.name);
		struct tree *text = NULL;

		if (variables->count == MANY) {
			leave_out(import, at, "has one variable too many");
			break;
		}
		if (name[0] == '\0' || strchr(name, '=') != NULL)
			tell(import, import->warnings, at,
			     "'%.60s' cannot be the name of a variable, and is ignored", name);
		else if ((text = new_text(import, variable.value, false)) != NULL)
			add_with_key(import, variables, name, at, text);
		else
			tell(import, import->warnings, variable.value.text.p,
			     "'%.60s' is not a text, and is ignored", name);
	}
	if (import->server != NULL)
		set_member(import, key, value, variables);
	else
		tree_free(&variables);
}

/* `key` is what true means. Of several switches, one that is off counts. */
static void convert_switch(struct import *import, struct json value, const char *key)
{
	bool is_enabled = (value.type == JSON_TRUE) == (strcmp(key, "enabled") == 0);
	struct tree *text;

	CHECK(import->server != NULL);
	if (value.type != JSON_TRUE && value.type != JSON_FALSE) {
		leave_out(import, value.text.p, "must be true or false");
		return;
	}
	if (!is_enabled)
		tell(import, import->warnings, value.text.p,
		     "is disabled in that file, so it is not served");
	if (!is_enabled)
		tree_remove(import->server, "enabled");
	else if (tree_find(import->server, "enabled") != NULL)
		return;
	text = tree_new_text(is_enabled ? "true" : "false", import->file);
	text->is_plain = true;
	add_with_key(import, import->server, "enabled", value.text.p,
		     at_place(import, text, value.text.p));
}

/* ---- members of an entry ---- */

struct member {
	const char *name;
	void (*convert)(struct import *, struct json value, const char *key);
	const char *key;    /* of ours */
	const char *advice; /* what to do, where it matters and is not taken over */
};

#define TIMEOUT "in a configuration file, use request_timeout and start.timeout of the server"
#define TOOLS "in a configuration file, use tools.allow and tools.deny of the server"
#define SANDBOX "in a configuration file, use sandbox of the server"

static void convert_command(struct import *import, struct json value, const char *key);

/* A client's own, of no matter here; and of an entry with a URL what is for one with a command. */
static const char ignored[] =
	"type transport source name title description icon version gallery dev "
	"required trust autoApprove alwaysAllow baseUrl provider providerUrl "
	"logoUrl tags longRunning supports_parallel_tool_calls default_tools_approval_mode";
static const char ignored_with_url[] = "command args env cwd envFile";

static const struct member entry_members[] = {
	{ "command", convert_command, "command", NULL },
	{ "args", convert_list, "args", NULL },
	{ "env", convert_env, "env", NULL },
	{ "env_vars", convert_list, "inherit_env", NULL },
	{ "cwd", convert_text, "cwd", NULL },
	{ "disabled", convert_switch, "disabled", NULL },
	{ "enabled", convert_switch, "enabled", NULL },
	{ "isActive", convert_switch, "enabled", NULL },
	{ "envFile", NULL, NULL, "the file is not read; put its variables into env" },
	{ "timeout", NULL, NULL, TIMEOUT },
	{ "startup_timeout_sec", NULL, NULL, TIMEOUT },
	{ "startup_timeout_ms", NULL, NULL, TIMEOUT },
	{ "tool_timeout_sec", NULL, NULL, TIMEOUT },
	{ "includeTools", NULL, NULL, TOOLS },
	{ "excludeTools", NULL, NULL, TOOLS },
	{ "disabledTools", NULL, NULL, TOOLS },
	{ "enabled_tools", NULL, NULL, TOOLS },
	{ "disabled_tools", NULL, NULL, TOOLS },
	{ "tools", NULL, NULL, TOOLS },
	{ "sandbox", NULL, NULL, SANDBOX },
	{ "sandboxEnabled", NULL, NULL, SANDBOX },
	{ "settings", NULL, NULL,
	  "an editor extension turns it into arguments; write those into args" },
	{ .name = NULL },
};

/* Where `command` is an object, as older versions of Zed have it. */
static const struct member command_members[] = {
	{ "path", convert_text, "command", NULL },
	{ "args", convert_list, "args", NULL },
	{ "env", convert_env, "env", NULL },
	{ .name = NULL },
};

#define SIGN_IN "the gateway signs in nowhere; put a token into headers"

/* Of an entry without a command; what is not here is as with one. */
static const struct member url_members[] = {
	{ "url", convert_text, "url", NULL },
	{ "httpUrl", convert_text, "url", NULL },
	{ "serverUrl", convert_text, "url", NULL },
	{ "baseUrl", convert_text, "url", NULL },
	{ "uri", convert_text, "url", NULL },
	{ "headers", convert_env, "headers", NULL },
	{ "http_headers", convert_env, "headers", NULL },
	{ "env_http_headers", NULL, NULL, "in a configuration file, use headers of the server" },
	{ "bearer_token_env_var", NULL, NULL, SIGN_IN },
	{ "oauth", NULL, NULL, SIGN_IN },
	{ "auth", NULL, NULL, SIGN_IN },
	{ "authProviderType", NULL, NULL, SIGN_IN },
	{ .name = NULL },
};

/* The row, or the end of the table. */
static const struct member *find_member(const struct member *table, const char *name)
{
	while (table->name != NULL && strcmp(table->name, name) != 0)
		table++;
	return table;
}

/* What the client itself goes by: where only the server is moved, it stays in its entry. */
static bool is_of_client(const struct member *row)
{
	return strcmp(row->advice, TIMEOUT) == 0 || strcmp(row->advice, TOOLS) == 0;
}

static bool is_empty_object(struct json value)
{
	struct scan_cursor first = scan_open(value.text);

	return value.type == JSON_OBJECT && !scan_next_member(&first);
}

static void convert_member(struct import *import, const struct member *table, const char *at,
			   struct json value)
{
	bool is_ignored = table == url_members && is_word_of(ignored_with_url, import->member);

	table = find_member(table, import->member);
	if (table->name == NULL && (is_ignored || is_word_of(ignored, import->member)))
		return;
	if (strcmp(import->member, "settings") == 0 && is_empty_object(value))
		return;
	if (table->name == NULL)
		table = find_member(entry_members, import->member);
	if (table->name == NULL)
		tell(import, import->warnings, at,
		     "is unknown and ignored; the known ones are command, args, env, cwd, disabled "
		     "and enabled");
	else if (table->convert != NULL && value.type != JSON_NULL)
		table->convert(import, value, table->key);
	else if (table->advice != NULL && value.type != JSON_NULL &&
		 !(import->on_entry != NULL && is_of_client(table)))
		tell(import, import->warnings, at, "is not imported: %s", table->advice);
}

static void convert_members(struct import *import, const struct member *table, struct slice object)
{
	const char *around = import->member;

	SCAN_MEMBERS(member, object) {
		at_end(mem_free) char *name = decode_name(member.name);

		import->member = name;
		convert_member(import, table, member.name.p - 1, member.value);
		import->member = around;
		if (import->server == NULL)
			return;
	}
}

static void convert_command(struct import *import, struct json value, const char *key)
{
	if (value.type == JSON_OBJECT)
		convert_members(import, command_members, value.text);
	else
		convert_text(import, value, key);
}

/* ---- entries ---- */

/* Stops at the name of the entry. */
static int on_listed_name(struct slice element, void *arg)
{
	struct import *import = arg;
	struct json value = scan_value(element);
	at_end(buf_fini) struct buf name = { 0 };
	bool is_it = scan_decode_string(value, &name) == 0 &&
		     slice_is_equal(buf_slice(&name), slice_str(import->name));

	return is_it ? -1 : 0;
}

static bool is_listed(struct import *import, struct json list)
{
	return list.type == JSON_ARRAY &&
	       scan_array(list.text, list.text.n, on_listed_name, import, NULL) < 0;
}

static void convert_surroundings(struct import *import)
{
	struct json value = { .type = JSON_TRUE, .text = import->disabled.text };

	if (is_listed(import, import->disabled) && tree_find(import->server, "enabled") == NULL)
		convert_switch(import, value, "disabled");
	value.text = import->allowed.text;
	if (import->allowed.type == JSON_ARRAY && !is_listed(import, import->allowed))
		convert_switch(import, value, "disabled");
	if (import->directory != NULL && tree_find(import->server, "cwd") == NULL &&
	    tree_find(import->server, "url") == NULL)
		tree_add(import->server, "cwd", tree_new_text(import->directory, import->file));
}

/*
 * The key's place is the entry's. Different names may become the same; what several directories have under one name is one
 * server.
 */
static void add_server(struct import *import, const char *at)
{
	at_end(mem_free) char *name = name_from_text(slice_str(import->name));

	if (tree_find(import->servers, name) != NULL && import->directory != NULL) {
		tell(import, import->warnings, at,
		     "left out: another entry is already served as '%s'", name);
		tree_free(&import->server);
	} else {
		char *key = mem_strdup(name);

		for (size_t n = 2; tree_find(import->servers, key) != NULL; n++) {
			free(key);
			key = name_numbered(name, n);
		}
		if (strcmp(key, import->name) != 0)
			tell(import, import->warnings, at, "is served as '%s'", key);
		add_with_key(import, import->servers, key, at, import->server);
		free(key);
	}
}

/* Which members count; NULL: it has neither a command nor a URL. */
static const struct member *table_of(struct slice entry)
{
	struct json command = scan_member(entry, SLICE_LIT("command"));

	if (command.type != JSON_ABSENT && command.type != JSON_NULL &&
	    !slice_is_equal(command.text, SLICE_LIT("\"\"")))
		return entry_members;
	for (size_t i = 0; url_members[i].name != NULL; i++)
		if (url_members[i].key != NULL && strcmp(url_members[i].key, "url") == 0 &&
		    scan_member(entry, slice_str(url_members[i].name)).type == JSON_STRING)
			return url_members;
	return NULL;
}

/* What would stop the daemon is a reason to do without this one entry. */
static void judge_url(struct import *import, const char *at)
{
	const struct tree *text = tree_find(import->server, "url");
	struct error err = { ERROR_NONE, "" };
	struct url url;

	if (text == NULL)
		return;
	if (form_server_url(slice_str(text->text), &err) < 0)
		leave_out(import, at, err.text);
	else if (url_parse(slice_str(text->text), &url) == 0 && url_is_exposed(&url))
		leave_out(import, at, "goes to another machine without TLS");
}

static void convert_entry(struct import *import, struct json entry, const char *at)
{
	const struct member *table;
	bool is_extension = false;

	if (entry.type != JSON_OBJECT) {
		tell(import, import->warnings, at, "left out: it is not an object");
		return;
	}
	table = table_of(entry.text);
	if (table == NULL) {
		is_extension = scan_member(entry.text, SLICE_LIT("settings")).type != JSON_ABSENT;
		tell(import, import->warnings, at,
		     "left out: %s; only servers with a command or a URL can be served",
		     is_extension ? "an editor extension starts it" : "it has neither of them");
		return;
	}
	import->server = at_place(import, tree_new(TREE_MAP, import->file), entry.text.p);
	convert_members(import, table, entry.text);
	if (import->server != NULL)
		judge_url(import, at);
	if (import->server != NULL)
		convert_surroundings(import);
}

static void hand_over(struct import *import, struct json value)
{
	/* A byte order mark is no part of the text. */
	size_t skipped =
		import->begin != NULL ? (size_t)(import->json.original.p - import->begin) : 0;
	struct jsonc_span span = jsonc_span(&import->json, value.text);
	struct slice original = import->json.original;
	bool is_braced = span.value < original.n && original.p[span.value] == '{';
	size_t at = is_braced ? span.value : span.from;
	const struct import_entry entry = {
		.list = import->list,
		.name = import->name,
		.at = at + skipped,
		.length = span.to - at,
		.value = value.text,
		.server = import->server,
		.warnings = import->warnings,
	};

	CHECK(at <= span.to && span.to <= original.n);
	import->on_entry(&entry, import->arg);
	config_problems_fini(import->warnings);
	tree_free(&import->server);
}

static void convert_list_of(struct import *import, struct slice object, const char *member,
			    const char *list)
{
	struct json entries = scan_member(object, slice_str(member));

	if (entries.type != JSON_OBJECT)
		return;
	import->list = list;
	import->lists++;
	SCAN_MEMBERS(entry, entries.text) {
		const char *at = entry.name.p - 1;
		at_end(mem_free) char *name = decode_name(entry.name);
		bool is_over;

		import->name = name;
		is_over = is_full(import, import->servers, at);
		if (!is_over)
			convert_entry(import, entry.value, at);
		if (import->on_entry != NULL && !is_over)
			hand_over(import, entry.value);
		else if (import->server != NULL)
			add_server(import, at);
		import->server = NULL;
		import->name = NULL;
		if (is_over)
			return;
	}
}

/* Of Claude Code: what belongs to a directory. */
static void convert_projects(struct import *import, struct slice projects)
{
	SCAN_MEMBERS(project, projects) {
		at_end(mem_free) char *directory = decode_name(project.name);
		at_end(mem_free) char *list = mem_printf("projects.%s.mcpServers", directory);
		struct slice text = project.value.text;

		import->directory = directory[0] == '/' ? directory : NULL;
		import->disabled = scan_member(text, SLICE_LIT("disabledMcpServers"));
		convert_list_of(import, text, "mcpServers", list);
		import->directory = NULL;
		import->disabled = (struct json){ .type = JSON_ABSENT };
	}
}

static struct json first_of(struct json a, struct json b)
{
	return a.type != JSON_ABSENT ? a : b;
}

static struct tree *convert(struct import *import)
{
	static const char *const lists[] = { "mcpServers", "servers", "context_servers",
					     "mcp_servers" };
	struct slice text = buf_slice(&import->json.text);
	struct slice mcp = scan_member(text, SLICE_LIT("mcp")).text;
	size_t before = import->problems->count;
	struct tree *root = tree_new(TREE_MAP, import->file);

	import->servers = tree_add(root, "servers", tree_new(TREE_MAP, import->file));
	import->disabled = first_of(scan_member(mcp, SLICE_LIT("excluded")),
				    scan_member(text, SLICE_LIT("excludeMCPServers")));
	import->allowed = first_of(scan_member(mcp, SLICE_LIT("allowed")),
				   scan_member(text, SLICE_LIT("allowMCPServers")));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		convert_list_of(import, text, lists[i], lists[i]);
	import->disabled = import->allowed = (struct json){ .type = JSON_ABSENT };
	convert_list_of(import, mcp, "servers", "mcp.servers");
	convert_projects(import, scan_member(text, SLICE_LIT("projects")).text);
	if (import->lists == 0)
		problem_add(
			import->problems,
			"%s: contains no object \"mcpServers\", nor one with the name that another "
			"client uses; expected: {\"mcpServers\": {\"NAME\": {\"command\": …, "
			"\"args\": […]}}}",
			import->file);
	else if (import->servers->count == 0 && import->problems->count == before)
		problem_add(import->problems,
			    "%s: no entry can be served; at least one must have a command or a "
			    "URL",
			    import->file);
	return root;
}

bool import_is_toml(struct slice text, const char *file)
{
	struct slice name = slice_str(file);
	bool is_named =
		name.n > 5 && slice_is_equal(slice_of(name.p + name.n - 5, 5), SLICE_LIT(".toml"));

	return is_named || slice_has_prefix(text, SLICE_LIT("[mcp_servers"));
}

static int read_text(struct import *import, struct slice text, struct error *err)
{
	return import_is_toml(text, import->file) ? toml_read(&import->json, text, err) :
						    jsonc_read(&import->json, text, err);
}

struct tree *import_read(struct slice text, const char *file, struct config_problems *problems,
			 struct config_problems *warnings)
{
	struct import import = { .file = file, .problems = problems, .warnings = warnings };
	size_t before = problems->count;
	struct tree *root = NULL;
	struct error err;

	CHECK(text.n <= IMPORT_BYTES_MAX);
	if (read_text(&import, text, &err) != 0)
		problem_add(problems, "%s:%s", file, err.text);
	else
		root = convert(&import);
	jsonc_fini(&import.json);
	if (problems->count > before)
		tree_free(&root);
	return root;
}

static bool is_blank(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (memchr(" \t\r\n", text.p[i], 4) == NULL)
			return false;
	return true;
}

int import_entries(struct slice text, const char *file, import_entry_fn *take_entry, void *arg,
		   struct error *err)
{
	at_end(config_problems_fini) struct config_problems problems = { NULL, 0 },
							    warnings = { NULL, 0 };
	struct import import = {
		.file = file,
		.problems = &problems,
		.warnings = &warnings,
		.on_entry = take_entry,
		.arg = arg,
		.begin = text.p,
	};
	at_end(tree_free) struct tree *root = NULL;
	int result = 0;

	if (text.n > IMPORT_BYTES_MAX)
		result = error_set(err, ERROR_LIMIT, "the file is too large");
	else if (!is_blank(text)) /* an editor may leave it like that */
		result = read_text(&import, text, err);
	if (result == 0 && import.json.text.len > 0)
		root = convert(&import);
	jsonc_fini(&import.json);
	return result;
}
