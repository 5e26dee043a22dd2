/* SPDX-License-Identifier: Apache-2.0 */
/* The values of included files are moved into the tree of the first: each still knows the file it stood in. */
#include "config/include.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/file.h"
#include "config/problem.h"
#include "config/texts.h"
#include "config/yaml.h"

/* Whoever writes these files chooses what is run as the daemon's user. */
static void check_mode(const char *path, mode_t mode, struct types_context *context)
{
	if ((mode & (S_IWGRP | S_IWOTH)) != 0)
		problem_add(
			context->problems,
			"%s: not only its owner may write it; take the right from group and others: "
			"chmod go-w %s",
			path, path);
	context->is_world_readable |= (mode & S_IROTH) != 0;
}

/* `path` is kept by the tree. */
static struct tree *read_one(const char *path, struct types_context *context)
{
	struct buf content = { 0 };
	struct tree *root = NULL;
	struct error err;
	mode_t mode;

	if (file_read(path, YAML_BYTES_MAX, &content, &mode, &err) != 0) {
		problem_add(context->problems, "%s: %s", path, err.text);
		return NULL;
	}
	check_mode(path, mode, context);
	root = yaml_read(buf_slice(&content), path, &err);
	if (root == NULL)
		problem_add(context->problems, "%s:%s", path, err.text);
	buf_wipe(&content);
	return root;
}

/* ---- what is moved ---- */

static struct tree *find_same(const struct tree *list, const struct tree *item, const char *name)
{
	const struct tree *own = tree_find(item, name);

	for (size_t i = 0; own != NULL && own->kind == TREE_TEXT && i < list->count; i++) {
		struct tree *other = tree_find(list->items[i], name);

		if (other != NULL && other->kind == TREE_TEXT &&
		    strcmp(other->text, own->text) == 0)
			return other;
	}
	return NULL;
}

static void refuse_second(const struct types_context *context, const struct tree *second,
			  const struct tree *first, const char *what, const char *name)
{
	bool has_key = first->key_line > 0 && second->key_line > 0 && first->parent != NULL &&
		       first->kind == TREE_MAP;

	if (has_key)
		problem_add_at_key(context->problems, second, "%s '%.60s' is in %s:%u:%u, too",
				   what, name, first->file, first->key_line, first->key_column);
	else
		problem_add_at(context->problems, second, "%s '%.60s' is in %s:%u:%u, too", what,
			       name, first->file, first->line, first->column);
}

static void move_servers(const struct types_context *context, struct tree *from, struct tree *to)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct tree *first = tree_find(to, from->items[i]->key);

		if (first != NULL)
			refuse_second(context, from->items[i], first, "the server",
				      from->items[i]->key);
		else if (to->count >= YAML_ITEMS_MAX)
			problem_add_at_key(context->problems, from->items[i],
					   "there are more than %u servers", YAML_ITEMS_MAX);
		else
			tree_move(from, i, to);
	}
}

static void move_entries(const struct types_context *context, struct tree *from, struct tree *to,
			 const char *name, const char *what)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct tree *first = find_same(to, from->items[i], name);

		if (first != NULL)
			refuse_second(context, tree_find(from->items[i], name), first, what,
				      first->text);
		else
			tree_move(from, i, to);
	}
}

/* The member of the first file that gets what others have; made where there is none. NULL: it is of another kind. */
static struct tree *place_in(struct tree *map, const char *key, enum tree_kind kind)
{
	struct tree *place = tree_find(map, key);

	if (place != NULL && tree_is_null(place)) {
		tree_remove(map, key);
		place = NULL;
	}
	if (place == NULL)
		place = tree_add(map, key, tree_new(kind, map->file));
	return place->kind == kind ? place : NULL;
}

static void move_auth(const struct types_context *context, struct tree *from, struct tree *root)
{
	struct tree *auth = place_in(root, "auth", TREE_MAP);

	for (size_t i = 0; auth != NULL && i < from->count; i++) {
		struct tree *member = from->items[i];
		bool is_tokens = strcmp(member->key, "tokens") == 0;
		struct tree *place;

		if (!is_tokens && strcmp(member->key, "issuers") != 0) {
			problem_add_at_key(context->problems, member,
					   "auth has tokens and issuers in an included file, and "
					   "nothing else");
			continue;
		}
		if (tree_is_null(member))
			continue;
		place = place_in(auth, member->key, TREE_LIST);
		if (member->kind != TREE_LIST)
			problem_add_at(context->problems, member, "must be a list");
		else if (place != NULL)
			move_entries(context, member, place, is_tokens ? "name" : "issuer",
				     is_tokens ? "the token" : "the issuer");
	}
}

static void merge(const struct types_context *context, struct tree *from, struct tree *root)
{
	if (from->kind != TREE_MAP) {
		problem_add_at(context->problems, from, "%s: must be a map of keys", from->file);
		return;
	}
	for (size_t i = 0; i < from->count; i++) {
		struct tree *member = from->items[i];
		bool is_servers = strcmp(member->key, "servers") == 0;
		struct tree *servers;

		if (!is_servers && strcmp(member->key, "auth") != 0) {
			problem_add_at_key(context->problems, member,
					   "an included file has servers, auth.tokens and "
					   "auth.issuers, and nothing else");
			continue;
		}
		if (tree_is_null(member))
			continue;
		if (member->kind != TREE_MAP)
			problem_add_at(context->problems, member, "must be a map");
		else if (!is_servers)
			move_auth(context, member, root);
		else if ((servers = place_in(root, "servers", TREE_MAP)) != NULL)
			move_servers(context, member, servers);
	}
}

/* ---- which files ---- */

static void include_file(struct types_context *context, const char *path, struct tree *root,
			 struct slices *paths)
{
	struct tree *from;

	texts_add(paths, slice_str(path));
	from = read_one(paths->items[paths->count - 1].p, context);
	if (from != NULL)
		merge(context, from, root);
	tree_free(&from);
}

/* Relative to the directory of the file that names it. */
static char *absolute(const char *pattern, const char *file)
{
	const char *slash = strrchr(file, '/');

	if (pattern[0] == '/' || slash == NULL)
		return mem_strdup(pattern);
	return mem_printf("%.*s/%s", (int)(slash - file), file, pattern);
}

/* A directory that is not there has no files. */
static int is_fatal(const char *path, int error)
{
	CHECK(path != NULL);
	return error != ENOENT;
}

/* A pattern may fit no file; a name must. */
static void include_pattern(struct types_context *context, const struct tree *item,
			    struct tree *root, struct slices *paths)
{
	char *pattern;
	glob_t found;
	int result;

	if (item->kind != TREE_TEXT || item->text[0] == '\0') {
		problem_add_at(context->problems, item, "must be the path of a file, or a pattern");
		return;
	}
	pattern = absolute(item->text, item->file);
	result = glob(pattern, 0, is_fatal, &found);
	if (result == GLOB_NOMATCH && strpbrk(pattern, "*?[") == NULL)
		problem_add_at(context->problems, item, "%s: there is no such file", pattern);
	else if (result != 0 && result != GLOB_NOMATCH)
		problem_add_at(context->problems, item, "%s: the directory cannot be read",
			       pattern);
	for (size_t i = 0; result == 0 && i < found.gl_pathc; i++) {
		if (paths->count < INCLUDE_FILES_MAX)
			include_file(context, found.gl_pathv[i], root, paths);
		else if (i + 1 == found.gl_pathc)
			problem_add_at(context->problems, item, "there are more than %d files",
				       INCLUDE_FILES_MAX);
	}
	if (result == 0)
		globfree(&found);
	free(pattern);
}

struct tree *include_read(const char *path, struct types_context *context, struct slices *paths)
{
	struct tree *root = read_one(path, context);
	const struct tree *list = tree_find(root, "include");

	if (list == NULL || tree_is_null(list))
		return root;
	if (list->kind != TREE_LIST)
		problem_add_at(context->problems, list,
			       "must be a list of files, like [conf.d/*.yaml]");
	for (size_t i = 0; list->kind == TREE_LIST && i < list->count; i++)
		include_pattern(context, list->items[i], root, paths);
	tree_remove(root, "include"); /* what is in them stands here now */
	return root;
}
