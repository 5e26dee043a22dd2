/* SPDX-License-Identifier: Apache-2.0 */
/* The values of included files are moved into the tree of the first: each still knows the file it stood in. */
#include "config/include.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/listed_path.h"
#include "config/problem.h"
#include "config/yaml.h"

/* Of the first file and all that it includes. */
struct reading {
	struct types_context *context;
	struct slices *paths;
	struct tree *root; /* NULL: the first file is being read */
	uid_t owner;       /* of the first file, which whoever has started the daemon has named */
	size_t bytes;      /* read so far */
};

/* Whoever writes these files chooses what is run as the daemon's user. */
static void check_mode(const char *path, mode_t mode, struct types_context *context)
{
	if ((mode & (S_IWGRP | S_IWOTH)) != 0)
		problem_add(
			context->problems,
			"%s: is writable by group or others, but only its owner may write to it: "
			"chmod go-w %s",
			path, path);
	context->is_world_readable |= (mode & S_IROTH) != 0;
}

static bool is_trusted(const struct reading *reading, uid_t owner)
{
	return owner == 0 || owner == geteuid() || owner == reading->owner;
}

/* Who may put files into the directory may put others in their place. */
static void check_directory(const struct reading *reading, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash == NULL ? mem_strdup(".") :
			  slash == path ? mem_strdup("/") :
					  mem_dup_slice(slice_between(path, slash));
	struct statvfs system;
	struct stat status;

	if (stat(directory, &status) < 0)
		status = (struct stat){ .st_uid = geteuid() }; /* it has gone, and nobody can */
	if (is_trusted(reading, status.st_uid) &&
	    ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (status.st_mode & S_ISVTX) != 0)) {
		free(directory);
		return;
	}
	/* Where nobody can write at all: as containers have their configuration. */
	if (statvfs(directory, &system) < 0 || (system.f_flag & ST_RDONLY) == 0)
		problem_add(
			reading->context->problems,
			"%s: its directory may be writable only by root, user %u and the owner of "
			"the configuration; use chown, or: chmod go-w %s",
			path, geteuid(), directory);
	free(directory);
}

/* The first file was named by whoever has started the daemon; these were found. */
static void check_found(const struct reading *reading, const char *path, const struct stat *status)
{
	char *real = realpath(path, NULL);

	if (!is_trusted(reading, status->st_uid))
		problem_add(
			reading->context->problems,
			"%s: belongs to user %u, but must belong to root, user %u or the owner of "
			"the configuration; use chown",
			path, status->st_uid, geteuid());
	check_directory(reading, path);
	if (real != NULL && strcmp(real, path) != 0)
		check_directory(reading, real);
	free(real);
}

/* `path` is kept by the tree. */
static struct tree *read_one(const char *path, struct reading *reading)
{
	struct types_context *context = reading->context;
	struct buf content = { 0 };
	struct tree *root = NULL;
	struct error err;
	struct stat status;

	if (file_read(path, &context->writers, INCLUDE_FILE_BYTES_MAX, &content, &status, &err) !=
	    0) {
		problem_add(context->problems, "%s: %s", path, err.text);
		return NULL;
	}
	reading->bytes += content.len;
	check_mode(path, status.st_mode, context);
	if (reading->root == NULL)
		reading->owner = status.st_uid;
	else
		check_found(reading, path, &status);
	root = yaml_read(buf_slice(&content), path, &err);
	if (root == NULL)
		problem_add(context->problems, "%s:%s", path, err.text);
	buf_wipe(&content);
	return root;
}

/* ---- what is moved ---- */

static const char *name_of(const struct tree *item, const char *key)
{
	const struct tree *name = tree_find(item, key);

	return name != NULL && name->kind == TREE_TEXT ? name->text : NULL;
}

static uint64_t hash_of(const char *name)
{
	return text_hash(0, slice_str(name));
}

/* An item of a list is in no map of its parent, so that it can be in this one. */
static void note_name(struct map *by_name, struct tree *item, const char *key)
{
	const char *name = name_of(item, key);

	if (name != NULL)
		map_insert_link(by_name, hash_of(name), &item->link);
}

static const struct tree *find_same(const struct map *by_name, const struct tree *item,
				    const char *key)
{
	const char *name = name_of(item, key);
	struct map_link *link = name != NULL ? map_find_link(by_name, hash_of(name)) : NULL;

	for (; link != NULL; link = link->next) {
		const struct tree *other = container_of(link, struct tree, link);

		if (strcmp(name_of(other, key), name) == 0)
			return tree_find(other, key);
	}
	return NULL;
}

static void refuse_second(const struct types_context *context, const struct tree *second,
			  const struct tree *first, const char *what, const char *name)
{
	bool has_key = first->key_line > 0 && second->key_line > 0 && first->parent != NULL &&
		       first->kind == TREE_MAP;

	if (has_key)
		problem_add_at_key(context->problems, second,
				   "%s '%.60s' is already defined in %s:%u:%u", what, name,
				   first->file, first->key_line, first->key_column);
	else
		problem_add_at(context->problems, second,
			       "%s '%.60s' is already defined in %s:%u:%u", what, name, first->file,
			       first->line, first->column);
}

/* what: "server" or "endpoint" */
static void move_servers(const struct types_context *context, struct tree *from, struct tree *to,
			 const char *what)
{
	struct buf the = { 0 };

	buf_printf(&the, "the %s", what);
	for (size_t i = 0; i < from->count; i++) {
		const struct tree *first = tree_find(to, from->items[i]->key);

		if (first != NULL)
			refuse_second(context, from->items[i], first, buf_terminate(&the),
				      from->items[i]->key);
		else if (to->count >= YAML_ITEMS_MAX)
			problem_add_at_key(context->problems, from->items[i],
					   "there are more than %u %ss", YAML_ITEMS_MAX, what);
		else
			tree_move(from, i, to);
	}
	buf_fini(&the);
}

static void move_entries(const struct types_context *context, struct tree *from, struct tree *to,
			 const char *name, const char *what)
{
	struct map by_name = { 0 };

	for (size_t i = 0; i < to->count; i++)
		note_name(&by_name, to->items[i], name);
	for (size_t i = 0; i < from->count; i++) {
		struct tree *item = from->items[i];
		const struct tree *first = find_same(&by_name, item, name);

		if (first != NULL) {
			refuse_second(context, tree_find(item, name), first, what, first->text);
		} else if (to->count >= YAML_ITEMS_MAX) {
			problem_add_at(context->problems, item,
				       "%s is one too many: the list may have at most %u", what,
				       YAML_ITEMS_MAX);
			break;
		} else {
			tree_move(from, i, to);
			note_name(&by_name, item, name);
		}
	}
	map_fini(&by_name);
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
			problem_add_at_key(
				context->problems, member,
				"in an included file, auth may have only tokens and issuers");
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
		bool is_endpoints = strcmp(member->key, "endpoints") == 0;
		bool is_servers = is_endpoints || strcmp(member->key, "servers") == 0;
		struct tree *servers;

		if (!is_servers && strcmp(member->key, "auth") != 0) {
			problem_add_at_key(
				context->problems, member,
				"an included file may have only servers, endpoints, auth.tokens "
				"and auth.issuers");
			continue;
		}
		if (tree_is_null(member))
			continue;
		if (member->kind != TREE_MAP)
			problem_add_at(context->problems, member, "must be a map");
		else if (!is_servers)
			move_auth(context, member, root);
		else if ((servers = place_in(root, member->key, TREE_MAP)) != NULL)
			move_servers(context, member, servers,
				     is_endpoints ? "endpoint" : "server");
	}
}

/* ---- which files ---- */

static void include_file(struct reading *reading, const char *path)
{
	struct tree *from;

	texts_add(reading->paths, slice_str(path));
	from = read_one(reading->paths->items[reading->paths->count - 1].p, reading);
	if (from != NULL)
		merge(reading->context, from, reading->root);
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

/* What is too much to be of use is not read, as the daemon does nothing else meanwhile. */
static bool has_room(const struct reading *reading, const struct tree *item)
{
	bool has_files = reading->paths->count < INCLUDE_FILES_MAX;

	if (!has_files)
		problem_add_at(reading->context->problems, item, "there are more than %d files",
			       INCLUDE_FILES_MAX);
	else if (reading->bytes >= INCLUDE_BYTES_MAX)
		problem_add_at(reading->context->problems, item,
			       "the files up to this one are larger than %zu KiB in total",
			       INCLUDE_BYTES_MAX / 1024);
	return has_files && reading->bytes < INCLUDE_BYTES_MAX;
}

/* A pattern may fit no file; a name must. */
static void include_pattern(struct reading *reading, const struct tree *item)
{
	struct config_problems *problems = reading->context->problems;
	char *pattern;
	glob_t found;
	int result;

	if (item->kind != TREE_TEXT || item->text[0] == '\0') {
		problem_add_at(problems, item, "must be the path of a file, or a pattern");
		return;
	}
	pattern = absolute(item->text, item->file);
	result = glob(pattern, 0, is_fatal, &found);
	if (result == GLOB_NOMATCH && strpbrk(pattern, "*?[") == NULL)
		problem_add_at(problems, item, "%s: there is no such file", pattern);
	else if (result != 0 && result != GLOB_NOMATCH)
		problem_add_at(problems, item, "%s: the directory cannot be read", pattern);
	for (size_t i = 0; result == 0 && i < found.gl_pathc && has_room(reading, item); i++)
		include_file(reading, found.gl_pathv[i]);
	if (result == 0)
		globfree(&found);
	free(pattern);
}

struct tree *include_read(const char *path, struct types_context *context, struct slices *paths)
{
	struct reading reading = { .context = context, .paths = paths };
	struct tree *root = read_one(path, &reading);
	const struct tree *list = tree_find(root, "include");

	if (list == NULL || tree_is_null(list))
		return root;
	reading.root = root;
	if (list->kind != TREE_LIST)
		problem_add_at(context->problems, list,
			       "must be a list of files, like [conf.d/*.yaml]");
	for (size_t i = 0; list->kind == TREE_LIST && i < list->count; i++)
		include_pattern(&reading, list->items[i]);
	tree_remove(root, "include"); /* what is in them stands here now */
	return root;
}
