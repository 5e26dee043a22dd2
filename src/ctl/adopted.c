/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comment is one line of JSON in ASCII, so that no text in it can end it. Hashes say whether a server is the same as another, and
 * whether it still is what was written.
 */
#include "ctl/adopted.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/document.h"
#include "base/mem.h"
#include "config/tree.h"
#include "ctl/line.h"

#define MARK "# adopted: "
#define HEAD "# Made by mcpgatectl adopt; mcpgatectl adopt --undo puts the entries back.\n" MARK
#define YAML ".yaml"
#define UNDONE ".undone" /* behind it: the daemon does not read it */
#define INDENT "    "

/* ---- the server as YAML ---- */

static void append_value(struct buf *out, const struct tree *value)
{
	if (value->kind == TREE_TEXT) {
		if (value->is_plain)
			buf_append_str(out, value->text);
		else
			yaml_append_text(out, value->text);
		return;
	}
	buf_append_char(out, value->kind == TREE_LIST ? '[' : '{');
	for (size_t i = 0; i < value->count; i++) {
		buf_append_str(out, i > 0 ? ", " : "");
		if (value->kind == TREE_MAP) {
			yaml_append_text(out, value->items[i]->key);
			buf_append_str(out, ": ");
		}
		append_value(out, value->items[i]);
	}
	buf_append_char(out, value->kind == TREE_LIST ? ']' : '}');
}

static int by_key(const void *left, const void *right)
{
	return strcmp((*(struct tree *const *)left)->key, (*(struct tree *const *)right)->key);
}

static void append_env(struct buf *out, const struct tree *env)
{
	size_t count = env != NULL ? env->count : 0;
	at_end(mem_free) struct tree **items = mem_zalloc((count + 1) * sizeof(struct tree *));

	if (count > 0 || getenv("PATH") != NULL)
		buf_append_str(out, INDENT "env:\n");
	for (size_t i = 0; i < count; i++)
		items[i] = env->items[i];
	qsort(items, count, sizeof(struct tree *), by_key);
	for (size_t i = 0; i < count; i++) {
		buf_append_str(out, INDENT "  ");
		yaml_append_text(out, items[i]->key);
		buf_append_str(out, ": ");
		append_value(out, items[i]);
		buf_append_char(out, '\n');
	}
}

/* In one order, and without what says nothing: clients write the same server in different ways. */
void adopted_define(const struct tree *server, struct buf *out)
{
	static const char *const keys[] = { "command", "args", "cwd", "start" };
	size_t known = 0;

	CHECK(server->kind == TREE_MAP);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct tree *member = tree_find(server, keys[i]);

		known += member != NULL;
		if (member == NULL || (member->kind == TREE_LIST && member->count == 0))
			continue;
		buf_printf(out, INDENT "%s: ", keys[i]);
		append_value(out, member);
		buf_append_char(out, '\n');
	}
	known += tree_find(server, "enabled") != NULL; /* it is: others are not adopted */
	known += tree_find(server, "env") != NULL;
	CHECK(known == server->count);
	append_env(out, tree_find(server, "env"));
}

/* A line, unless the definition has its key; value NULL: there is none to say. */
static void append_unless_there(struct buf *out, struct slice definition, const char *key,
				const char *value)
{
	at_end(mem_free) char *begin = mem_printf("\n%s: ", key);

	if (value != NULL && memmem(definition.p, definition.n, begin, strlen(begin)) == NULL) {
		buf_printf(out, "%s: ", key);
		yaml_append_text(out, value);
		buf_append_char(out, '\n');
	}
}

/* ---- the files ---- */

static const char *member(const struct adopted *server, const char *name)
{
	const char *text = document_string(server->record, name);

	return text != NULL ? text : "";
}

const char *adopted_name(const struct adopted *server)
{
	return member(server, "server");
}

json_t *adopted_entries(const struct adopted *server)
{
	return json_object_get(server->record, "entries");
}

static struct adopted *append(struct adopted_list *list)
{
	list->items = mem_resize(list->items, (list->count + 1) * sizeof(*list->items));
	list->items[list->count] = (struct adopted){ .path = NULL };
	return &list->items[list->count++];
}

/* The line may be anywhere: people write above it. n 0: there is none. */
static struct slice find_record(struct slice text)
{
	const char *at = slice_has_prefix(text, SLICE_LIT(MARK)) ?
				 text.p :
				 memmem(text.p, text.n, "\n" MARK, strlen("\n" MARK));
	struct slice rest;

	if (at == NULL)
		return slice_of("", 0);
	at += strlen(MARK) + (*at == '\n');
	rest = slice_between(at, text.p + text.n);
	return slice_cut(&rest, '\n');
}

static void read_one(struct adopted_list *list, const char *path)
{
	at_end(edit_file_fini) struct edit_file file = { .path = NULL };
	struct error err = { ERROR_INVALID, "its line \"# adopted:\" is broken" };
	int result = edit_file_read(path, &file, &err);
	struct slice text = buf_slice(&file.text);
	struct slice line = text.n > 0 ? find_record(text) : slice_of("", 0);
	json_auto_t *record = NULL;

	if (result == 0 && line.n > 0)
		record = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_array(json_object_get(record, "entries")) &&
	    json_is_string(json_object_get(record, "server"))) {
		struct adopted *server = append(list);
		const char *end = text.p + text.n;

		server->path = mem_strdup(path);
		server->record = json_incref(record);
		buf_append_slice(&server->head, slice_between(text.p, line.p));
		if (line.p + line.n < end)
			buf_append_slice(&server->body, slice_between(line.p + line.n + 1, end));
		server->file = file;
		file = (struct edit_file){ .path = NULL };
	} else if (line.n > 0 || (result < 0 && text.n == 0)) {
		problem_add(&list->broken, "%s is left alone: %s", path, err.text);
	}
}

static bool has_end(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

static int is_ours(const struct dirent *entry)
{
	return entry->d_name[0] != '.' &&
	       (has_end(entry->d_name, YAML) || has_end(entry->d_name, YAML UNDONE));
}

void adopted_read(struct adopted_list *list_r)
{
	at_end(mem_free) char *folder = line_own_file("conf.d");
	at_end(mem_free) struct dirent **found = NULL;
	int count = scandir(folder, &found, is_ours, alphasort);

	*list_r = (struct adopted_list){ .count = 0 };
	if (count < 0 && errno != ENOENT)
		problem_add(&list_r->broken, "%s cannot be read: %s", folder, strerror(errno));
	for (int i = 0; i < count; i++) {
		at_end(mem_free) char *path = mem_printf("%s/%s", folder, found[i]->d_name);

		read_one(list_r, path);
		free(found[i]);
	}
}

void adopted_fini(struct adopted_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].path);
		json_decref(list->items[i].record);
		buf_fini(&list->items[i].head);
		buf_wipe(&list->items[i].body);
		edit_file_fini(&list->items[i].file);
	}
	free(list->items);
	config_problems_fini(&list->broken);
	*list = (struct adopted_list){ .count = 0 };
}

struct adopted *adopted_find(const struct adopted_list *list, struct slice definition)
{
	char hex[LINE_HASH_BYTES];

	line_hash(definition, hex);
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(member(&list->items[i], "definition"), hex) == 0)
			return &list->items[i];
	return NULL;
}

bool adopted_has_name(const struct adopted_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(adopted_name(&list->items[i]), name) == 0)
			return true;
	return false;
}

struct adopted *adopted_add(struct adopted_list *list, const char *name, struct slice definition,
			    const char *isolation)
{
	struct adopted *server = append(list);
	char definition_hash[LINE_HASH_BYTES], body_hash[LINE_HASH_BYTES];
	at_end(mem_free) char *file = mem_printf("conf.d/%s.yaml", name);

	CHECK(definition.n > 0 && name[0] != '\0' && getenv("HOME") != NULL);
	buf_printf(&server->body, "servers:\n  %s:\n" INDENT "isolation: %s\n", name, isolation);
	/* Wherever the daemon is started: clients start servers in a folder of their own. */
	append_unless_there(&server->body, definition, INDENT "cwd", getenv("HOME"));
	buf_append_str(&server->head, HEAD);
	buf_append_slice(&server->body, definition);
	/* Behind the last line, which is env's: clients start servers with the PATH of the user's shell, services have another. */
	append_unless_there(&server->body, definition, INDENT "  PATH", getenv("PATH"));
	line_hash(definition, definition_hash);
	line_hash(buf_slice(&server->body), body_hash);
	server->path = line_own_file(file);
	server->is_new = true;
	server->record = json_pack("{s:s, s:s, s:s, s:[]}", "server", name, "definition",
				   definition_hash, "body", body_hash, "entries");
	CHECK(server->record != NULL);
	return server;
}

static bool is_same_text(const json_t *a, const json_t *b, const char *name)
{
	return slice_is_equal(document_text(a, name), document_text(b, name));
}

void adopted_remember(struct adopted *server, json_t *entry)
{
	json_t *entries = adopted_entries(server);

	CHECK(json_is_array(entries) && json_is_object(entry));
	for (size_t i = 0; i < json_array_size(entries); i++) {
		const json_t *known = json_array_get(entries, i);

		if (is_same_text(known, entry, "file") && is_same_text(known, entry, "list") &&
		    is_same_text(known, entry, "name"))
			json_array_remove(entries, i--);
	}
	json_array_append(entries, entry);
}

void adopted_forget(struct adopted *server, size_t i)
{
	CHECK(i < json_array_size(adopted_entries(server)));
	json_array_remove(adopted_entries(server), i);
}

void adopted_set_undone(struct adopted *server, size_t i)
{
	json_t *entry = json_array_get(adopted_entries(server), i);

	CHECK(json_is_object(entry));
	json_object_set_new(entry, "undone", json_true());
}

bool adopted_is_undone(const struct adopted *server, size_t i)
{
	return json_is_true(json_object_get(json_array_get(adopted_entries(server), i), "undone"));
}

bool adopted_is_used(const struct adopted *server)
{
	for (size_t i = 0; i < json_array_size(adopted_entries(server)); i++)
		if (!adopted_is_undone(server, i))
			return true;
	return false;
}

/* The name says whether the daemon reads it. */
static int rename_for(struct adopted *server, bool is_served, struct error *err)
{
	bool is_undone = has_end(server->path, UNDONE);
	int length = (int)(strlen(server->path) - (is_undone ? strlen(UNDONE) : 0));
	char *path = mem_printf("%.*s%s", length, server->path, is_served ? "" : UNDONE);

	CHECK(has_end(path, is_served ? YAML : UNDONE));
	if (is_undone != is_served) {
		free(path);
		return 0;
	}
	if (edit_file_rename(server->path, path, err) < 0) {
		free(path);
		return -1;
	}
	free(server->path);
	server->path = path;
	return 0;
}

static int write_file(struct adopted *server, struct slice text, bool is_served, struct error *err)
{
	struct error why;
	int result = 0;

	CHECK(find_record(text).n > 0);
	if (server->file.path == NULL)
		result = edit_file_create(server->path, text, err);
	else if (!slice_is_equal(text, buf_slice(&server->file.text)))
		result = edit_file_replace(&server->file, text, &why);
	if (server->file.path != NULL && result != 0)
		error_set(err, ERROR_INVALID, "%s: %s", server->path,
			  result == 1 ? "was changed meanwhile" : why.text);
	if (result != 0 || rename_for(server, is_served, err) < 0)
		return -1;
	edit_file_fini(&server->file);
	result = edit_file_read(server->path, &server->file, err);
	return result == 1 ? error_set(err, ERROR_INVALID, "%s has gone", server->path) : result;
}

int adopted_save(struct adopted *server, bool *kept_r, struct error *err)
{
	char hex[LINE_HASH_BYTES];
	at_end(buf_wipe) struct buf text = { 0 };
	at_end(mem_free) char *record = NULL;
	int result;

	CHECK(server->path != NULL && server->body.len > 0);
	line_hash(buf_slice(&server->body), hex);
	*kept_r = strcmp(hex, member(server, "body")) != 0;
	if (server->is_new && json_array_size(adopted_entries(server)) == 0) {
		edit_file_fini(&server->file);
		return unlink(server->path) == 0 || access(server->path, F_OK) != 0 ?
			       0 :
			       error_set_errno(err, "%s cannot be removed", server->path);
	}
	record = json_dumps(server->record, JSON_ENSURE_ASCII | JSON_COMPACT);
	CHECK(record != NULL);
	buf_append_slice(&text, buf_slice(&server->head));
	buf_printf(&text, "%s\n", record);
	buf_append_slice(&text, buf_slice(&server->body));
	result = write_file(server, buf_slice(&text), *kept_r || adopted_is_used(server), err);
	explicit_bzero(record, strlen(record));
	return result;
}
