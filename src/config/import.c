/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON by jansson, duplicate members refused. jansson keeps no places, so messages name the member
 * instead of a line. Values are texts only: nothing in such a file is a {file:} reference, and nothing is put in the place
 * of ${…}. What editors allow besides JSON, comments and commas behind the last entry, is blanked before.
 */
#include "config/import.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/name.h"
#include "config/problem.h"

struct import {
	const char *file;
	struct config_problems *problems;
	struct config_problems *warnings;
	const char *list; /* the name of the object with the entries: editors differ */
	/* the entry that is converted */
	const char *name; /* as the file has it */
	json_t *json;
};

static void refuse(const struct import *import, const char *member, const char *expected)
{
	problem_add(import->problems, "%s: %s.%.60s.%s: must be %s", import->file, import->list,
		    import->name, member, expected);
}

/* Clients put something in the place of such a text. What a claim is replaced by is ours: claim.h */
static void warn_of_variable(const struct import *import, const char *member, const char *text)
{
	const char *at = strstr(text, "${");

	while (at != NULL && strncmp(at, "${claim:", 8) == 0)
		at = strstr(at + 2, "${");
	if (at != NULL)
		problem_add(import->warnings,
			    "%s: %s.%.60s.%s: '%.*s' is passed as it stands: nothing is put in its "
			    "place here",
			    import->file, import->list, import->name, member,
			    (int)strcspn(at, "}") + (strchr(at, '}') != NULL), at);
}

/* Adds the member, if it is there; jansson has refused NUL characters, so a text is all of a string. */
static void convert_text(const struct import *import, const char *member, struct tree *server)
{
	json_t *value = json_object_get(import->json, member);

	if (json_is_string(value)) {
		tree_add(server, member, tree_new_text(json_string_value(value), import->file));
		warn_of_variable(import, member, json_string_value(value));
	} else if (value != NULL && !json_is_null(value)) {
		refuse(import, member, "a string");
	}
}

static void convert_args(const struct import *import, struct tree *server)
{
	json_t *args = json_object_get(import->json, "args");
	const char *file = import->file;
	struct tree *list;
	json_t *arg;
	size_t i;

	if (args == NULL || json_is_null(args))
		return;
	if (!json_is_array(args))
		refuse(import, "args", "an array of strings");
	list = tree_add(server, "args", tree_new(TREE_LIST, file));
	json_array_foreach(args, i, arg)
	{
		if (!json_is_string(arg)) {
			refuse(import, "args", "an array of strings");
			continue;
		}
		tree_add(list, NULL, tree_new_text(json_string_value(arg), file));
		warn_of_variable(import, "args", json_string_value(arg));
	}
}

static void convert_env(const struct import *import, struct tree *server)
{
	json_t *env = json_object_get(import->json, "env");
	const char *file = import->file;
	struct tree *map;
	const char *name;
	json_t *value;

	if (env == NULL || json_is_null(env))
		return;
	if (!json_is_object(env))
		refuse(import, "env", "an object of strings");
	map = tree_add(server, "env", tree_new(TREE_MAP, file));
	json_object_foreach(env, name, value)
	{
		if (!json_is_string(value)) {
			refuse(import, "env", "an object of strings");
			continue;
		}
		tree_add(map, name, tree_new_text(json_string_value(value), file));
		warn_of_variable(import, "env", json_string_value(value));
	}
}

static void convert_disabled(const struct import *import, struct tree *server)
{
	json_t *disabled = json_object_get(import->json, "disabled");
	const char *enabled = json_is_true(disabled) ? "false" : "true";

	if (json_is_boolean(disabled))
		tree_add(server, "enabled", tree_new_text(enabled, import->file))->is_plain = true;
	if (json_is_true(disabled))
		problem_add(import->warnings, "%s: %s.%.60s: is disabled there, and not served",
			    import->file, import->list, import->name);
	else if (disabled != NULL && !json_is_boolean(disabled) && !json_is_null(disabled))
		refuse(import, "disabled", "true or false");
}

/* What is neither ours nor known to be a client's own may be misspelt. */
static void warn_of_members(const struct import *import)
{
	static const char *const known[] = {
		"command",     "args",      "env",     "cwd",          "disabled",
		"type",        "transport", "name",    "title",        "description",
		"icon",        "version",   "gallery", "timeout",      "autoApprove",
		"alwaysAllow", "tools",     "trust",   "includeTools", "excludeTools"
	};
	const char *member;
	json_t *value;

	json_object_foreach(import->json, member, value)
	{
		size_t i = 0;

		while (i < ARRAY_LEN(known) && strcmp(known[i], member) != 0)
			i++;
		if (i == ARRAY_LEN(known))
			problem_add(import->warnings,
				    "%s: %s.%.60s.%.60s: is not known, and ignored; what counts is "
				    "command, args, env, cwd and disabled",
				    import->file, import->list, import->name, member);
	}
}

static void add_server(const struct import *import, struct tree *servers, struct tree *server)
{
	char *name = name_from_text(slice_str(import->name));

	CHECK(servers->kind == TREE_MAP && server->parent == NULL);
	if (tree_find(servers, name) != NULL) {
		problem_add(import->problems,
			    "%s: %s.%.60s: another entry is already served as '%s'", import->file,
			    import->list, import->name, name);
		tree_free(&server);
	} else {
		if (strcmp(name, import->name) != 0)
			problem_add(import->warnings, "%s: %s.%.60s: is served as '%s'",
				    import->file, import->list, import->name, name);
		tree_add(servers, name, server);
	}
	free(name);
}

static void convert_entry(const struct import *import, struct tree *servers)
{
	struct tree *server;

	if (!json_is_object(import->json)) {
		problem_add(import->problems, "%s: %s.%.60s: must be an object", import->file,
			    import->list, import->name);
		return;
	}
	/* An entry without a command is a server elsewhere. */
	if (json_object_get(import->json, "command") == NULL) {
		problem_add(import->warnings,
			    "%s: %s.%.60s: left out: %s; only servers that are started "
			    "here, by a command, can be served",
			    import->file, import->list, import->name,
			    json_object_get(import->json, "url") != NULL ?
				    "it is reached by a url" :
				    "it has no command");
		return;
	}
	server = tree_new(TREE_MAP, import->file);
	convert_text(import, "command", server);
	convert_args(import, server);
	convert_env(import, server);
	convert_text(import, "cwd", server);
	convert_disabled(import, server);
	warn_of_members(import);
	add_server(import, servers, server);
}

static struct tree *convert(struct import *import, json_t *json)
{
	bool is_editors = json_object_get(json, "mcpServers") == NULL &&
			  json_object_get(json, "servers") != NULL;
	json_t *entries;
	size_t before = import->problems->count;
	struct tree *root, *servers;

	import->list = is_editors ? "servers" : "mcpServers"; /* VS Code has the first */
	entries = json_object_get(json, import->list);
	if (!json_is_object(entries)) {
		problem_add(import->problems,
			    "%s: there is no object \"mcpServers\" in it; expected is "
			    "{\"mcpServers\": {\"NAME\": {\"command\": …, \"args\": […]}}}",
			    import->file);
		return NULL;
	}
	root = tree_new(TREE_MAP, import->file);
	servers = tree_add(root, "servers", tree_new(TREE_MAP, import->file));
	json_object_foreach(entries, import->name, import->json) convert_entry(import, servers);
	if (servers->count == 0 && import->problems->count == before)
		problem_add(import->problems,
			    "%s: %s: no entry can be served; one at least must have a "
			    "command, which is started here",
			    import->file, import->list);
	return root;
}

/* Variables and arguments may be secrets; jansson frees strings as they are. */
static void wipe(json_t *json)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_string(json))
		explicit_bzero((char *)(uintptr_t)json_string_value(json),
			       json_string_length(json));
	json_array_foreach(json, i, value) wipe(value);
	json_object_foreach(json, key, value) wipe(value);
}

/* The end of a comment that begins at p; p if none does. One that does not end is left for the parser to refuse. */
static char *skip_comment(char *p, char *end)
{
	char *close = NULL;

	if (end - p < 2 || p[0] != '/')
		return p;
	if (p[1] == '/') {
		close = memchr(p, '\n', (size_t)(end - p));
		return close != NULL ? close : end;
	}
	if (p[1] == '*')
		close = memmem(p + 2, (size_t)(end - p) - 2, "*/", 2);
	return close != NULL ? close + 2 : p;
}

/* Line ends stay, so that places are those of the file. */
static void blank(char *from, const char *to)
{
	for (; from < to; from++)
		if (*from != '\n')
			*from = ' ';
}

/* Behind the text that begins at p, or the end. */
static char *skip_text(char *p, char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\' && p + 1 < end)
			p++;
	return p < end ? p + 1 : end;
}

static void blank_what_is_no_json(char *p, char *end)
{
	char *comma = NULL; /* with nothing but space behind it so far */

	while (p < end) {
		char *next = skip_comment(p, end);

		if (next > p) {
			blank(p, next);
			p = next;
			continue;
		}
		if (comma != NULL && (*p == '}' || *p == ']'))
			*comma = ' ';
		if (*p == ',')
			comma = p;
		else if (strchr(" \t\r\n", *p) == NULL || *p == '\0')
			comma = NULL;
		p = *p == '"' ? skip_text(p, end) : p + 1;
	}
}

struct tree *import_read(struct slice text, const char *file, struct config_problems *problems,
			 struct config_problems *warnings)
{
	struct import import = { .file = file, .problems = problems, .warnings = warnings };
	size_t before = problems->count;
	struct buf plain = { 0 };
	struct tree *root;
	json_error_t error;
	json_t *json;

	CHECK(text.n <= IMPORT_BYTES_MAX);
	/* Editors of Windows put a byte order mark there. YAML's reader leaves it out, too. */
	if (slice_has_prefix(text, SLICE_LIT("\xEF\xBB\xBF")))
		text = slice_of(text.p + 3, text.n - 3);
	buf_append_slice(&plain, text);
	if (plain.len > 0)
		blank_what_is_no_json(plain.data, plain.data + plain.len);
	json = json_loadb(buf_terminate(&plain), plain.len, JSON_REJECT_DUPLICATES, &error);
	buf_wipe(&plain);
	if (json == NULL) {
		char *quotation = strstr(error.text, " near ");

		/* Of what jansson says, the text at which it stopped may be a secret. */
		if (quotation != NULL)
			*quotation = '\0';
		problem_add(problems, "%s:%d:%d: not valid JSON: %s", file, error.line,
			    error.column,
			    json_error_code(&error) == json_error_null_character ?
				    "a text holds a NUL character" :
				    error.text);
		return NULL;
	}
	root = convert(&import, json);
	wipe(json);
	json_decref(json);
	if (problems->count > before)
		tree_free(&root);
	return root;
}
