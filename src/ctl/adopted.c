/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comment is one line of JSON in ASCII, so that no text in it can end it. Hashes say whether a server is the same as another, and
 * whether it still is what was written.
 */
#include "ctl/adopted.h"

#include <glob.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/yaml.h"
#include "ctl/edit_file.h"
#include "ctl/line.h"

#define HEAD \
	"# Made by mcpgatectl adopt; mcpgatectl adopt --undo puts the entries back.\n# adopted: "
#define HASH_BYTES 32
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

static void append_env(struct buf *out, const struct tree *env)
{
	const char *path = getenv("PATH");

	if (env == NULL && path == NULL)
		return;
	buf_append_str(out, INDENT "env:\n");
	for (size_t i = 0; env != NULL && i < env->count; i++) {
		buf_append_str(out, INDENT "  ");
		yaml_append_text(out, env->items[i]->key);
		buf_append_str(out, ": ");
		append_value(out, env->items[i]);
		buf_append_char(out, '\n');
	}
}

void adopted_define(const struct tree *server, struct buf *out)
{
	CHECK(server->kind == TREE_MAP);
	for (size_t i = 0; i < server->count; i++) {
		const struct tree *member = server->items[i];

		if (strcmp(member->key, "env") == 0)
			continue;
		buf_append_str(out, INDENT);
		yaml_append_text(out, member->key);
		buf_append_str(out, ": ");
		append_value(out, member);
		buf_append_char(out, '\n');
	}
	append_env(out, tree_find(server, "env"));
}

/* Behind the last line, which is env's: clients start servers with the PATH of the user's shell, services have another. */
static void append_path(struct buf *out, struct slice definition)
{
	const char *path = getenv("PATH");

	if (path == NULL || memmem(definition.p, definition.n,
				   "\n" INDENT "  PATH: ", strlen("\n" INDENT "  PATH: ")))
		return;
	buf_append_str(out, INDENT "  PATH: ");
	yaml_append_text(out, path);
	buf_append_char(out, '\n');
}

/* ---- the files ---- */

static void hash(struct slice text, char hex_r[HASH_BYTES * 2 + 1])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned int count = 0;

	CHECK(EVP_Digest(text.p, text.n, bytes, &count, EVP_sha256(), NULL) == 1);
	CHECK(count == HASH_BYTES);
	text_to_hex(bytes, HASH_BYTES, hex_r);
}

static const char *member(const struct adopted *server, const char *name)
{
	const char *text = json_string_value(json_object_get(server->record, name));

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

static void read_one(struct adopted_list *list, const char *path)
{
	struct edit_file file = { .path = NULL };
	struct slice rest, line;
	struct error err;
	json_t *record = NULL;

	if (edit_file_read(path, &file, &err) == 0 &&
	    slice_has_prefix(buf_slice(&file.text), SLICE_LIT(HEAD))) {
		rest = slice_of(file.text.data + strlen(HEAD), file.text.len - strlen(HEAD));
		line = slice_cut(&rest, '\n');
		record = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
	}
	if (json_is_array(json_object_get(record, "entries")) &&
	    json_is_string(json_object_get(record, "server"))) {
		struct adopted *server = append(list);

		server->path = mem_strdup(path);
		server->record = json_incref(record);
		buf_append_slice(&server->body, rest);
	}
	json_decref(record);
	edit_file_fini(&file);
}

void adopted_read(struct adopted_list *list_r)
{
	char *pattern = line_own_file("conf.d/*.yaml");
	glob_t found;

	*list_r = (struct adopted_list){ NULL, 0 };
	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			read_one(list_r, found.gl_pathv[i]);
		globfree(&found);
	}
	free(pattern);
}

void adopted_fini(struct adopted_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].path);
		json_decref(list->items[i].record);
		buf_wipe(&list->items[i].body);
	}
	free(list->items);
	*list = (struct adopted_list){ NULL, 0 };
}

struct adopted *adopted_find(const struct adopted_list *list, struct slice definition)
{
	char hex[HASH_BYTES * 2 + 1];

	hash(definition, hex);
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
	char definition_hash[HASH_BYTES * 2 + 1], body_hash[HASH_BYTES * 2 + 1];
	char *file = mem_printf("conf.d/%s.yaml", name);

	CHECK(definition.n > 0 && name[0] != '\0');
	buf_printf(&server->body, "servers:\n  %s:\n" INDENT "isolation: %s\n", name, isolation);
	buf_append_slice(&server->body, definition);
	append_path(&server->body, definition);
	hash(definition, definition_hash);
	hash(buf_slice(&server->body), body_hash);
	server->path = line_own_file(file);
	server->record = json_pack("{s:s, s:s, s:s, s:[]}", "server", name, "definition",
				   definition_hash, "body", body_hash, "entries");
	CHECK(server->record != NULL);
	free(file);
	return server;
}

static bool is_same_text(const json_t *a, const json_t *b, const char *name)
{
	const char *left = json_string_value(json_object_get(a, name));
	const char *right = json_string_value(json_object_get(b, name));

	return left != NULL && right != NULL && strcmp(left, right) == 0;
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

int adopted_save(const struct adopted *server, bool *kept_r, struct error *err)
{
	char hex[HASH_BYTES * 2 + 1];
	struct buf text = { 0 };
	char *record;
	int result;

	CHECK(server->path != NULL && server->body.len > 0);
	hash(buf_slice(&server->body), hex);
	*kept_r = strcmp(hex, member(server, "body")) != 0;
	if (json_array_size(adopted_entries(server)) == 0 && !*kept_r)
		return unlink(server->path) == 0 || access(server->path, F_OK) != 0 ?
			       0 :
			       error_set_errno(err, "cannot be removed");
	record = json_dumps(server->record, JSON_ENSURE_ASCII | JSON_COMPACT);
	CHECK(record != NULL);
	buf_printf(&text, "%s%s\n", HEAD, record);
	buf_append_slice(&text, buf_slice(&server->body));
	result = edit_file_write(server->path, buf_slice(&text), err);
	explicit_bzero(record, strlen(record));
	free(record);
	buf_wipe(&text);
	return result;
}
