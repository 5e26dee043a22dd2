/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the records (servers, roles) and lets the table fill them: first the defaults of the
 * table, then `defaults:`, then what the record itself says. What follows from the options is
 * made of them as they are, good or not: the rules, which judge them, see both. Texts that
 * others point to stay where the options put them. Frees all of it as well.
 */
#include "config/load.h"

#include <errno.h>
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/listed_path.h"
#include "config/table.h"
#include "config/variables.h"
#include "config/tree.h"
#include "endpoint/origin.h"
#include "io/peer.h"

/*
 * ---- include ----
 *
 * The values of included files are moved into the tree of the first: each still knows the file
 * it stood in.
 */

/* Of the first file and all that it includes. */
struct reading {
	struct types_context *context;
	struct slices *paths;
	struct tree *root; /* NULL: the first file is being read */
	uid_t owner;       /* of the first file, which whoever has started the daemon has named */
	size_t bytes;      /* read so far */
};

void include_check_mode(const char *path, mode_t mode, struct types_context *context)
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
	at_end(mem_free) char *directory =
		slash == NULL ? mem_strdup(".") :
		slash == path ? mem_strdup("/") :
				mem_dup_slice(slice_between(path, slash));
	struct statvfs system;
	struct stat status;

	if (stat(directory, &status) < 0)
		status = (struct stat){ .st_uid = geteuid() }; /* it has gone, and nobody can */
	if (is_trusted(reading, status.st_uid) &&
	    ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (status.st_mode & S_ISVTX) != 0)) {
		return;
	}
	/* Where nobody can write at all: as containers have their configuration. */
	if (statvfs(directory, &system) < 0 || (system.f_flag & ST_RDONLY) == 0)
		problem_add(
			reading->context->problems,
			"%s: its directory may be writable only by root, user %u and the owner of "
			"the configuration; use chown, or: chmod go-w %s",
			path, geteuid(), directory);
}

/* The first file was named by whoever has started the daemon; these were found. */
static void check_found(const struct reading *reading, const char *path, const struct stat *status)
{
	at_end(mem_free) char *real = realpath(path, NULL);

	if (!is_trusted(reading, status->st_uid))
		problem_add(
			reading->context->problems,
			"%s: belongs to user %u, but must belong to root, user %u or the owner of "
			"the configuration; use chown",
			path, status->st_uid, geteuid());
	check_directory(reading, path);
	if (real != NULL && strcmp(real, path) != 0)
		check_directory(reading, real);
}

/* `path` is kept by the tree. */
static struct tree *read_one(const char *path, struct reading *reading)
{
	struct types_context *context = reading->context;
	at_end(buf_wipe) struct buf content = { 0 };
	struct tree *root = NULL;
	struct error err;
	struct stat status;

	if (file_read(path, &context->writers, INCLUDE_FILE_BYTES_MAX, &content, &status, &err) !=
	    0) {
		problem_add(context->problems, "%s: %s", path, err.text);
		return NULL;
	}
	reading->bytes += content.len;
	include_check_mode(path, status.st_mode, context);
	if (reading->root == NULL)
		reading->owner = status.st_uid;
	else
		check_found(reading, path, &status);
	root = yaml_read(buf_slice(&content), path, &err);
	if (root == NULL)
		problem_add(context->problems, "%s:%s", path, err.text);
	return root;
}

/* ---- what is moved ---- */

/* NULL: it has none. */
static const char *name_of(const struct tree *item, const char *key)
{
	const struct tree *name = tree_find(item, key);

	return name != NULL && name->kind == TREE_TEXT ? name->text : NULL;
}

/* The one of the list that has the same name as this; NULL: none. */
static const struct tree *find_same(const struct tree *list, const struct tree *item,
				    const char *key)
{
	const char *name = name_of(item, key), *other;

	for (size_t i = 0; name != NULL && i < list->count; i++)
		if ((other = name_of(list->items[i], key)) != NULL && strcmp(other, name) == 0)
			return tree_find(list->items[i], key);
	return NULL;
}

/*
 * To the servers or endpoints of the first file, or, with a key that says their names, to its list of tokens or issuers. `what` is one of
 * them.
 */
static void move_all(const struct types_context *context, struct tree *from, struct tree *to,
		     const char *key, const char *what)
{
	for (size_t i = 0; i < from->count; i++) {
		struct tree *item = from->items[i];
		const struct tree *first =
			key == NULL ? tree_find(to, item->key) : find_same(to, item, key);

		if (first != NULL && key == NULL)
			problem_add_at_key(context->problems, item,
					   "the %s '%.60s' is already defined in %s:%u:%u", what,
					   item->key, first->file, first->key_line,
					   first->key_column);
		else if (first != NULL)
			problem_add_at(context->problems, tree_find(item, key),
				       "the %s '%.60s' is already defined in %s:%u:%u", what,
				       first->text, first->file, first->line, first->column);
		else if (to->count < YAML_ITEMS_MAX)
			tree_move(from, i, to);
		else if (key == NULL)
			problem_add_at_key(context->problems, item, "there are more than %u %ss",
					   YAML_ITEMS_MAX, what);
		else {
			problem_add_at(context->problems, item,
				       "the %s is one too many: the list may have at most %u", what,
				       YAML_ITEMS_MAX);
			break;
		}
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
			move_all(context, member, place, is_tokens ? "name" : "issuer",
				 is_tokens ? "token" : "issuer");
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
			move_all(context, member, servers, NULL,
				 is_endpoints ? "endpoint" : "server");
	}
}

/* ---- which files ---- */

static void include_file(struct reading *reading, const char *path)
{
	at_end(tree_free) struct tree *from = NULL;

	texts_add(reading->paths, slice_str(path));
	from = read_one(reading->paths->items[reading->paths->count - 1].p, reading);
	if (from != NULL)
		merge(reading->context, from, reading->root);
}

/* Relative to the directory of the file that names it, which is no pattern, whatever is in its name. */
static char *absolute(const char *pattern, const char *file)
{
	const char *slash = strrchr(file, '/');
	at_end(buf_fini) struct buf text = { 0 };

	if (pattern[0] == '/' || slash == NULL)
		return mem_strdup(pattern);
	for (; file <= slash; file++) {
		buf_append_str(&text, strchr("*?[\\", *file) != NULL ? "\\" : "");
		buf_append_char(&text, *file);
	}
	buf_append_str(&text, pattern);
	return mem_dup_slice(buf_slice(&text));
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
	at_end(mem_free) char *pattern = NULL;
	glob_t found;
	int result;

	if (item->kind != TREE_TEXT || item->text[0] == '\0') {
		problem_add_at(problems, item, "must be the path of a file, or a pattern");
		return;
	}
	pattern = absolute(item->text, item->file);
	result = glob(pattern, 0, is_fatal, &found);
	if (result == GLOB_NOMATCH && strpbrk(item->text, "*?[") == NULL)
		problem_add_at(problems, item, "%s: there is no such file", pattern);
	else if (result != 0 && result != GLOB_NOMATCH)
		problem_add_at(problems, item, "%s: the directory cannot be read", pattern);
	for (size_t i = 0; result == 0 && i < found.gl_pathc && has_room(reading, item); i++)
		include_file(reading, found.gl_pathv[i]);
	if (result == 0)
		globfree(&found);
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

/* ---- places ---- */

/* No line of a printed configuration is like it: texts in it have no line ends. */
#define BEGIN "\n# Where the rules stand:\n"

/* A value on the way to what a key of the table names. */
struct visit {
	struct rule_places *places;
	struct buf key; /* of the value */
	unsigned int below;
};

/* The value, and what stands so far below it. */
static void note(struct visit *visit, const struct tree *value, unsigned int below)
{
	size_t length = visit->key.len;

	rule_places_add(visit->places, buf_slice(&visit->key), slice_str(value->file),
			value->key_line > 0 ? value->key_line : value->line);
	for (size_t i = 0; below > 0 && i < value->count; i++) {
		const struct tree *item = value->items[i];

		if (item->key != NULL)
			buf_printf(&visit->key, ".%s", item->key);
		else
			buf_printf(&visit->key, "[%zu]", i);
		note(visit, item, below - 1);
		visit->key.len = length;
	}
}

static void look(struct visit *visit, const struct tree *value, struct slice rest);

/* All entries of a list. */
static void look_at_entries(struct visit *visit, const struct tree *list, struct slice rest)
{
	size_t length = visit->key.len;

	for (size_t i = 0; list->kind == TREE_LIST && i < list->count; i++) {
		buf_printf(&visit->key, "[%zu]", i);
		look(visit, list->items[i], rest);
		visit->key.len = length;
	}
}

/* The member of this name, or any. */
static void look_at_members(struct visit *visit, const struct tree *map, struct slice name,
			    struct slice rest)
{
	bool is_any = slice_is_equal(name, SLICE_LIT("NAME"));
	size_t length = visit->key.len;

	for (size_t i = 0; map->kind == TREE_MAP && i < map->count; i++) {
		const struct tree *member = map->items[i];

		if (!is_any && !slice_is_equal(name, slice_str(member->key)))
			continue;
		buf_printf(&visit->key, "%s%s", length > 0 ? "." : "", member->key);
		look(visit, member, rest);
		visit->key.len = length;
	}
}

/* `rest`: the way from the value to what the key names, like tools.deny, or [].tools. */
static void look(struct visit *visit, const struct tree *value, struct slice rest)
{
	size_t n = 0;

	if (slice_has_prefix(rest, SLICE_LIT(".")))
		rest = slice_of(rest.p + 1, rest.n - 1);
	while (n < rest.n && rest.p[n] != '.' && rest.p[n] != '[')
		n++;
	if (rest.n == 0)
		note(visit, value, visit->below);
	else if (n == 0)
		look_at_entries(visit, value, slice_of(rest.p + 2, rest.n - 2));
	else
		look_at_members(visit, value, slice_of(rest.p, n),
				slice_of(rest.p + n, rest.n - n));
}

/* What is opened when the configuration is used, and may fail then. */
static const char *const opened[] = { "log.target",    "audit.to",      "listen[].address",
				      "admin.address", "admin.metrics", "admin.page" };

/* Collects the places in the tree; none from a command line, which has no lines. */
static void places_collect(const struct tree *root, struct rule_places *places)
{
	static const struct slice of_server = SLICE("servers.NAME.");
	const struct tree *defaults = tree_find(root, "defaults");

	for (size_t i = 0; i < ARRAY_LEN(opened); i++) {
		struct visit visit = { .places = places };

		look(&visit, root, slice_str(opened[i]));
		buf_fini(&visit.key);
	}
	for (enum rule_key key = RULE_NONE + 1; key < RULE_KEY_COUNT; key++) {
		struct slice text = slice_str(rule_key_text(key));
		struct visit visit = { .places = places, .below = rule_key_below(key) };

		look(&visit, root, text);
		if (defaults != NULL && slice_has_prefix(text, of_server)) {
			buf_append_str(&visit.key, "defaults");
			look(&visit, defaults,
			     slice_of(text.p + of_server.n, text.n - of_server.n));
		}
		buf_fini(&visit.key);
	}
	rule_places_finish(places);
}

int places_tell(const struct rule_places *places, const char *key, struct error *err)
{
	const struct error what = *err;
	at_end(buf_fini) struct buf place = { 0 };

	if (rule_places_append_key(places, slice_str(key), &place))
		error_set(err, what.kind, "%s: %s: %s", buf_terminate(&place), key, what.text);
	return -1;
}

void places_print(const struct rule_places *places, FILE *out)
{
	at_end(buf_fini) struct buf text = { 0 };

	rule_places_write(places, &text);
	if (text.len > 0)
		fprintf(out, "%s%s", &BEGIN[1], buf_terminate(&text));
}

struct slice places_cut(struct slice *text)
{
	static const struct slice begin = SLICE(BEGIN);
	const char *at = memmem(text->p, text->n, begin.p, begin.n);
	const char *end = text->p + text->n;

	if (at == NULL)
		return slice_of(end, 0);
	*text = slice_between(text->p, at + 1);
	return slice_between(at + begin.n, end);
}

#define CA_BYTES_MAX ((size_t)1 << 20)
#define STALL_MS (30 * 1000)
#define ENDPOINT_TIMEOUT_MS ((uint64_t)7 * 24 * 3600 * 1000) /* its servers have shorter ones */

/* ---- records ---- */

/* The map of this section; NULL: it is not there, or is no map. */
static const struct tree *find_map(const struct types_context *context, const struct tree *root,
				   const char *section)
{
	const struct tree *map = tree_find(root, section);

	if (map == NULL || map->kind == TREE_MAP)
		return map;
	if (!tree_is_null(map))
		problem_add_at(context->problems, map, "must be a map of names and %s", section);
	return NULL;
}

/* What does not follow from the options: it is no process, and its servers wait and fail themselves. */
static void load_endpoint(const struct types_context *context, const struct tree *value,
			  struct config_server *server)
{
	struct server_conf *conf = &server->conf;

	table_set_defaults(OPTIONS_SERVER, server);
	table_set_defaults(OPTIONS_ENDPOINT, server);
	server->is_endpoint = true;
	table_load(context, OPTIONS_ENDPOINT, value, server);
	conf->era = ERA_LEGACY;
	conf->reclaims = RECLAIM_NEVER;
	conf->pool_max = UINT32_MAX;
	conf->sleep_after_ms = 0;
	conf->request_timeout_ms = conf->request_timeout_max_ms = ENDPOINT_TIMEOUT_MS;
}

static void load_server(const struct types_context *context, const struct tree *value,
			const struct tree *defaults, struct config_server *server)
{
	const struct tree *usual;
	struct tree room;

	table_set_defaults(OPTIONS_SERVER, server);
	usual = table_defaults_of(value, defaults, &room);
	if (usual != NULL)
		table_load(context, OPTIONS_SERVER, usual, server);
	table_defaults_end(&room);
	table_load(context, OPTIONS_SERVER, value, server);
}

static void load_servers(const struct types_context *context, const struct tree *root,
			 struct config *config)
{
	const struct tree *maps[] = { find_map(context, root, "servers"),
				      find_map(context, root, "endpoints") };
	const struct tree *defaults = tree_find(root, "defaults");
	struct config_server unused = { 0 };
	size_t count = 0;

	/* Wrong defaults are wrong even where no server uses them. */
	if (defaults != NULL)
		table_load(context, OPTIONS_SERVER, defaults, &unused);
	table_free(OPTIONS_SERVER, &unused);
	for (size_t m = 0; m < ARRAY_LEN(maps); m++)
		count += maps[m] != NULL ? maps[m]->count : 0;
	config->servers = mem_zalloc((count + 1) * sizeof(*config->servers));
	for (size_t m = 0; m < ARRAY_LEN(maps); m++) {
		for (size_t i = 0; maps[m] != NULL && i < maps[m]->count; i++) {
			struct config_server *server = &config->servers[config->server_count++];
			const struct tree *value = maps[m]->items[i];

			CHECK(value->key != NULL && server->conf.name == NULL);
			if (m == 0)
				load_server(context, value, defaults, server);
			else
				load_endpoint(context, value, server);
			server->conf.name = mem_strdup(value->key);
		}
	}
}

static void load_roles(const struct types_context *context, const struct tree *root,
		       struct roles *roles)
{
	const struct tree *map = find_map(context, root, "roles");

	for (size_t i = 0; map != NULL && i < map->count; i++) {
		struct role role = { .name = slice_str(mem_strdup(map->items[i]->key)) };

		table_set_defaults(OPTIONS_ROLE, &role);
		table_load(context, OPTIONS_ROLE, map->items[i], &role);
		roles_add(roles, &role);
	}
}

/* The file of authorities that `ca` of a section names, which may be none. */
static void load_authority(const struct types_context *context, const struct tree *section,
			   const char *path, struct slice *ca_r)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct error err;

	CHECK(ca_r->n == 0);
	if (path == NULL)
		return;
	if (file_read(path, &context->writers, CA_BYTES_MAX, &text, NULL, &err) != 0)
		problem_add_at(context->problems, tree_below(section, "ca"), "%s: %s", path,
			       err.text);
	else
		*ca_r = slice_of(mem_dup_slice(buf_slice(&text)), text.len);
}

/* While files can be read. */
static void load_authorities(const struct types_context *context, const struct tree *root,
			     struct config *config)
{
	const struct verifier_conf *issuers = &config->frontend.authorization.issuers;
	const struct tree *list = tree_below(tree_below(root, "auth"), "issuers");
	struct collector_conf *collector = &config->traces.collector;

	for (size_t i = 0; i < issuers->count; i++)
		load_authority(context, tree_item(list, i), issuers->items[i].ca_file,
			       &issuers->items[i].ca);
	load_authority(context, tree_below(tree_below(root, "traces"), "otlp"), collector->ca_file,
		       &collector->ca);
	load_authority(context, tree_below(root, "cluster"), config->cluster.ca_file,
		       &config->cluster.ca);
	for (size_t i = 0; i < config->server_count; i++) {
		struct config_server *server = &config->servers[i];
		const struct tree *at =
			tree_below(tree_below(root, config_section_of(server)), server->conf.name);

		load_authority(context, tree_below(at, "auth"), server->credential.at.ca_file,
			       &server->credential.at.ca);
	}
}

/* ---- what follows from the options ---- */

/* "/a/mcp" -> "/a/LAST"; a path that ends otherwise gets one part more. mcpgated(1) */
static struct slice beside(struct slice path, const char *last)
{
	if (path.n >= 4 && memcmp(path.p + path.n - 4, "/mcp", 4) == 0)
		path.n -= 4;
	else if (path.n >= 1 && path.p[path.n - 1] == '/')
		path.n--;
	return slice_str(mem_printf("%.*s/%s", SLICE_ARG(path), last));
}

/* The names of the claims that its values of env need, each once. */
static void collect_claims(struct config_server *server)
{
	struct slices *claims = &server->conf.claims;

	CHECK(claims->count == 0);
	for (size_t i = 0; i < server->env_count; i++) {
		struct slice rest = slice_str(server->env[i].value);
		struct slice before, name;

		while (server->env[i].has_claims && claim_cut(&rest, &before, &name) > 0)
			if (!slices_has(*claims, name))
				texts_add(claims, name);
	}
}

/* Numbered as the fetcher has them, which knows no others. A query, which may hold a key, and a fragment are nothing that a token can be for. */
static void finish_credential(const struct config *config, struct config_server *server)
{
	struct credential_conf *credential = &server->credential;
	struct server_conf *conf = &server->conf;

	/* The callers of an endpoint are those of its servers. */
	for (size_t i = 0; i < conf->legs.count; i++) {
		size_t leg = config_find_server(config, conf->legs.items[i].server.p);

		server->endpoint.place.keeps_token |=
			leg < config->server_count &&
			config->servers[leg].credential.grant == CREDENTIAL_EXCHANGE;
	}
	if (credential->grant == CREDENTIAL_NONE)
		return;
	conf->credential = 1;
	for (const struct config_server *other = config->servers; other < server; other++)
		conf->credential += other->credential.grant != CREDENTIAL_NONE;
	conf->for_caller = credential->grant != CREDENTIAL_CLIENT;
	/* The gateway does not know the url. */
	conf->in_meta = credential->grant == CREDENTIAL_ASSERTION && server->command != NULL;
	if (conf->for_caller)
		conf->is_tried = false; /* there is no caller yet */
	server->endpoint.place.keeps_token = credential->grant == CREDENTIAL_EXCHANGE;
	server->endpoint.place.asserts_caller = credential->grant == CREDENTIAL_ASSERTION;
	if (credential->resource == NULL && credential->audience == NULL && server->url != NULL &&
	    !slice_has_prefix(slice_str(server->url), SLICE_LIT(URL_OF_SOCKET)))
		*(credential->grant == CREDENTIAL_ASSERTION ? &credential->audience :
							      &credential->resource) =
			mem_printf("%.*s", (int)strcspn(server->url, "?#"), server->url);
	credential->assertion = (struct assertion_conf){
		.issuer = config->frontend.authorization.public_url,
		.audience = credential->audience,
		.key = config->assertion_key,
	};
}

static void finish_server(struct config *config, struct config_server *server)
{
	struct server_conf *conf = &server->conf;
	struct endpoint *endpoint = &server->endpoint;

	CHECK(conf->name != NULL && endpoint->server == NULL && conf->redact.count == 0);
	conf->server = (uint32_t)(server - config->servers);
	conf->line_max = config->response_bytes;
	conf->queue_max = config->http.body_bytes * 2;
	conf->stall_ms = STALL_MS;
	collect_claims(server);
	finish_credential(config, server);
	/* A pattern that is none is left out here; the rules refuse it. */
	for (size_t i = 0; i < server->redact.count; i++)
		(void)!redact_add(&conf->redact, server->redact.items[i], NULL);
	/* Principals keep the claims that some server is told, and no others. */
	for (size_t i = 0; i < conf->claims.count; i++)
		if (!slices_has(config->claim_names, conf->claims.items[i]))
			texts_add(&config->claim_names, conf->claims.items[i]);
	if (endpoint->path.n > 1 && endpoint->path.p[endpoint->path.n - 1] == '/')
		texts_shorten(&endpoint->path, endpoint->path.n - 1);
	if (endpoint->path.n == 0)
		endpoint->path = slice_str(mem_printf("/%s/mcp", conf->name));
	endpoint->sse_path = beside(endpoint->path, "sse");
	endpoint->message_path = beside(endpoint->path, "message");
	endpoint->place.server = slice_str(conf->name);
	if (server->cwd != NULL && path_is_absolute(slice_str(server->cwd)))
		endpoint->arguments.paths.base = slice_str(server->cwd);
	argument_rules_prepare(&endpoint->arguments);
}

/* An entry that is no network is left out here; the rules refuse it. */
static void finish_trust(struct config *config)
{
	size_t count = config->trusted_proxies.count;
	struct peer_net *nets = mem_zalloc((count + 1) * sizeof(*nets));
	struct http_trust *trust = &config->http.trust;

	CHECK(trust->nets == NULL && trust->count == 0);
	trust->nets = nets;
	for (size_t i = 0; i < count; i++)
		if (peer_net_parse(config->trusted_proxies.items[i], &nets[trust->count]))
			trust->count++;
}

static void add_host(struct slices *hosts, struct slice authority)
{
	struct slice host = origin_host_of(authority);

	if (host.n > 0)
		texts_add(hosts, host);
}

/* Who we are: ourselves on this machine, the configured names, the addresses listened on. DEF-05 */
static void finish_hosts(struct config *config, struct slice public_url)
{
	struct slices *hosts = &config->frontend.hosts;
	const char *scheme_end = public_url.n > 0 ? strstr(public_url.p, "://") : NULL;

	CHECK(hosts->count == 0);
	add_host(hosts, SLICE_LIT("localhost"));
	add_host(hosts, SLICE_LIT("127.0.0.1"));
	add_host(hosts, SLICE_LIT("[::1]"));
	for (size_t i = 0; i < config->hosts.count; i++)
		add_host(hosts, config->hosts.items[i]);
	for (size_t i = 0; i < config->listen_count; i++) {
		struct slice address = slice_str(config->listen[i].address);

		if (!slice_has_prefix(address, SLICE_LIT("unix:")) &&
		    !slice_has_prefix(address, SLICE_LIT("systemd:")))
			add_host(hosts, address);
	}
	if (scheme_end != NULL) {
		struct slice rest = slice_str(scheme_end + 3);

		add_host(hosts, slice_cut(&rest, '/'));
	}
}

static void add_scopes(struct scope_table *table, struct slices names, struct scope_set *set)
{
	for (size_t i = 0; i < names.count; i++)
		scope_table_add(table, names.items[i], set);
}

/* All scopes that are named get their numbers first: only then is known what a token holds of them. */
static void finish_scopes(struct config *config, struct authorization_conf *authorization)
{
	const struct slice_map *hierarchy = &authorization->scope_hierarchy;
	struct scope_table *table = &config->scopes;
	struct scope_set all = { { 0 } };

	CHECK(authorization->scopes == NULL);
	add_scopes(table, config->scope_names, &all);
	for (size_t i = 0; i < config->server_count; i++) {
		struct protected_resource *place = &config->servers[i].endpoint.place;

		add_scopes(table, place->scopes, &place->base);
		needs_finish(&config->servers[i].conf.needs, table);
	}
	add_scopes(table, authorization->initial_scopes, &authorization->initial);
	for (size_t i = 0; i < hierarchy->count; i++) {
		const struct named_slices *list = &hierarchy->items[i];

		scope_table_add(table, list->name, &all);
		for (size_t j = 0; j < list->values.count; j++)
			scope_table_imply(table, list->name, list->values.items[j]);
	}
	authorization->scopes = table;
}

static void finish_token(const struct scope_table *table, struct static_token *token)
{
	for (size_t i = 0; i < token->scopes.count; i++)
		scope_table_find(table, token->scopes.items[i], &token->rights.scopes);
	token->rights.needs_scopes = true;
	/* One that is no hash, the rules refuse. */
	if (token->sha256 != NULL &&
	    text_from_hex(slice_str(token->sha256), token->hash, sizeof(token->hash)) < 0)
		memset(token->hash, 0, sizeof(token->hash));
}

static void give_role(struct rights *rights, size_t number)
{
	if (number < ROLES_MAX)
		role_set_add(&rights->roles, number);
}

static void give_endpoint(const struct roles *roles, struct server_conf *conf)
{
	at_end(mem_free) struct slice *servers =
		mem_zalloc((conf->legs.count + 1) * sizeof(*servers));

	for (size_t i = 0; i < conf->legs.count; i++)
		servers[i] = conf->legs.items[i].server;
	if (server_is_endpoint(conf))
		roles_give_endpoint(roles, slice_str(conf->name), servers, conf->legs.count,
				    &conf->permissions);
}

/* A role that is not there, and one that there is no room for, are left out: the rules refuse both. */
static void finish_roles(struct config *config, struct authorization_conf *authorization)
{
	struct roles *roles = &config->roles;
	struct static_tokens *tokens = &authorization->tokens;

	authorization->has_roles = roles->named > 0;
	authorization->roles = roles;
	for (size_t i = 0; i < authorization->issuers.count; i++)
		authorization->issuers.items[i].roles = roles;
	for (size_t i = 0; i < tokens->count; i++) {
		struct static_token *token = &tokens->items[i];
		bool is_own = token->tools.count > 0;

		token->rights.needs_roles = is_own || authorization->has_roles;
		if (is_own)
			give_role(&token->rights,
				  roles_add_of_token(roles, i, token->name, token->tools));
		for (size_t j = 0; j < token->roles.count; j++)
			give_role(&token->rights, roles_find(roles, token->roles.items[j]));
	}
	for (size_t i = 0; i < config->server_count; i++) {
		struct server_conf *conf = &config->servers[i].conf;

		if (config->servers[i].is_endpoint)
			give_endpoint(roles, conf);
		else
			roles_give(roles, slice_str(conf->name), &conf->permissions);
		permissions_finish(&conf->permissions);
		config->servers[i].endpoint.place.permissions = &conf->permissions;
	}
}

/* The names by which issuers know it. AUTH-PRM-01, -03, AUTH-AUD-02 */
static void finish_names(const struct authorization_conf *authorization, struct endpoint *endpoint)
{
	struct protected_resource *place = &endpoint->place;
	const char *public_url = authorization->public_url.p;
	struct slice *accepted = mem_zalloc((place->audience.count + 1) * sizeof(*accepted));

	CHECK(authorization->public_url.n > 0 && place->accepted.count == 0);
	place->resource = slice_str(mem_printf("%s%s", public_url, endpoint->path.p));
	place->metadata = slice_str(mem_printf("%s/.well-known/oauth-protected-resource%s",
					       public_url, endpoint->path.p));
	accepted[0] = place->resource;
	for (size_t i = 0; i < place->audience.count; i++)
		accepted[i + 1] = place->audience.items[i];
	place->accepted = (struct slices){ accepted, place->audience.count + 1 };
}

static void finish_resources(struct config *config)
{
	struct metadata_resource *resources =
		mem_zalloc((config->server_count + 1) * sizeof(*resources));
	const struct authorization_conf *authorization = &config->frontend.authorization;
	struct metadata_conf *metadata = &config->frontend.metadata;

	CHECK(metadata->resources == NULL && metadata->resource_count == 0);
	metadata->resources = resources;
	for (size_t i = 0; i < config->server_count; i++) {
		struct endpoint *endpoint = &config->servers[i].endpoint;
		struct scope_set first = endpoint->place.base;
		struct buf text = { 0 };

		if (!config->servers[i].enabled)
			continue;
		finish_names(authorization, endpoint);
		/* What a client asks for at first, separated by spaces. */
		scope_set_join(&first, &authorization->initial);
		scope_table_append(authorization->scopes, &first, &text);
		buf_terminate(&text);
		resources[metadata->resource_count++] = (struct metadata_resource){
			.path = endpoint->path,
			.resource = endpoint->place.resource,
			.scopes = slice_of(text.data, text.len),
		};
	}
}

static void finish(struct config *config)
{
	struct authorization_conf *authorization = &config->frontend.authorization;

	config->http.stall_timeout_ms = STALL_MS;
	config->frontend.metadata.own_key = slice_or_empty(config->assertion_key);
	finish_trust(config);
	finish_hosts(config, authorization->public_url);
	for (size_t i = 0; i < config->server_count; i++) {
		finish_server(config, &config->servers[i]);
		call_limits_finish(&config->servers[i].conf.limits,
				   slice_str(config->servers[i].conf.name));
	}
	finish_roles(config, authorization);
	finish_scopes(config, authorization);
	for (size_t i = 0; i < authorization->tokens.count; i++)
		finish_token(&config->scopes, &authorization->tokens.items[i]);
	if (authorization->mode == AUTHORIZATION_OAUTH && authorization->public_url.n > 0)
		finish_resources(config);
}

/* ---- all of it ---- */

static void finish_free(struct config *config)
{
	at_end(mem_free) struct metadata_resource *resources =
		(struct metadata_resource *)(uintptr_t)config->frontend.metadata.resources;

	for (size_t i = 0; i < config->server_count; i++) {
		struct endpoint *endpoint = &config->servers[i].endpoint;

		texts_free(&config->servers[i].conf.claims);
		texts_free_one(&config->servers[i].credential.at.ca);
		permissions_free(&config->servers[i].conf.permissions);
		call_limits_free(&config->servers[i].conf.limits);
		needs_free(&config->servers[i].conf.needs);
		redact_free(&config->servers[i].conf.redact);
		texts_free_one(&endpoint->sse_path);
		texts_free_one(&endpoint->message_path);
		texts_free_one(&endpoint->place.resource);
		texts_free_one(&endpoint->place.metadata);
		free((void *)(uintptr_t)endpoint->place.accepted.items);
		argument_rules_fini(&endpoint->arguments);
	}
	for (size_t i = 0; i < config->frontend.metadata.resource_count; i++)
		texts_free_one(&resources[i].scopes);
	texts_free(&config->claim_names);
	texts_free(&config->frontend.hosts);
	free((void *)(uintptr_t)config->http.trust.nets);
}

void config_free(struct config **config)
{
	struct config *c = *config;

	*config = NULL;
	if (c == NULL)
		return;
	finish_free(c);
	rule_places_free(&c->rule_places);
	for (size_t i = 0; i < c->server_count; i++) {
		table_free(OPTIONS_SERVER, &c->servers[i]);
		table_free(OPTIONS_ENDPOINT, &c->servers[i]);
		free((char *)(uintptr_t)c->servers[i].conf.name);
	}
	for (size_t i = 0; i < c->frontend.authorization.issuers.count; i++)
		texts_free_one(&c->frontend.authorization.issuers.items[i].ca);
	texts_free_one(&c->traces.collector.ca);
	texts_free_one(&c->cluster.ca);
	for (size_t i = 0; i < c->roles.count; i++) {
		if (c->roles.items[i].is_of_token)
			continue; /* the token's own */
		table_free(OPTIONS_ROLE, &c->roles.items[i]);
		texts_free_one(&c->roles.items[i].name);
	}
	free(c->roles.items);
	texts_free(&c->scope_names);
	table_free(OPTIONS_TOP, c);
	free(c->servers);
	free(c);
}

/* A file that an editor has not written to its end yet must not end what runs. */
static void check_whole(const struct types_context *context, const struct tree *root)
{
	const struct config *running = context->writers.running;

	if (running != NULL && running->server_count > 0 && tree_find(root, "servers") == NULL)
		problem_add_at(context->problems, root,
			       "the key 'servers' is missing: to remove all servers, write "
			       "'servers: {}'");
}

struct config *load_draft(const struct types_context *context, const struct tree *root,
			  const struct config *before)
{
	struct config *config = mem_zalloc(sizeof(*config));

	CHECK(context->problems != NULL && context->warnings != NULL && context->resolve != NULL);
	config->is_from_file = context->is_yaml;
	table_set_defaults(OPTIONS_TOP, config);
	table_load(context, OPTIONS_TOP, root, config);
	load_servers(context, root, config);
	/* What had a number before keeps it. */
	if (before != NULL)
		roles_keep_numbers(&config->roles, &before->roles);
	for (size_t i = 0; before != NULL && i < before->scopes.count; i++)
		texts_add(&config->scope_names, before->scopes.names[i]);
	load_roles(context, root, &config->roles);
	load_authorities(context, root, config);
	finish(config);
	config->roles.before = NULL;
	if (context->is_yaml)
		unexpanded_check(root, context->problems);
	if (!context->is_checked) {
		places_collect(root, &config->rule_places);
		check_whole(context, root);
		rules_check(config, root, context->problems, context->warnings);
	}
	return config;
}

static int resolve_nothing(const char *kind, const char *name,
			   not_used const struct listed_writers *writers, not_used char **value_r,
			   struct error *err)
{
	return error_set(err, ERROR_INVALID, "%s of %s is not read", name, kind);
}

/* Whether any server may write anywhere by what is said of its sandbox. */
static bool names_sandbox(const struct tree *root)
{
	const struct tree *map = tree_find(root, "servers");

	if (tree_find(root, "defaults") != NULL)
		return true;
	for (size_t i = 0; map != NULL && map->kind == TREE_MAP && i < map->count; i++)
		if (tree_find(map->items[i], "sandbox") != NULL)
			return true;
	return false;
}

struct config *load_survey(const struct tree *root)
{
	at_end(config_problems_fini) struct config_problems problems = { NULL, 0 },
							    warnings = { NULL, 0 };
	const struct types_context context = { .problems = &problems,
					       .warnings = &warnings,
					       .resolve = resolve_nothing,
					       .is_checked = true };
	struct config *config = mem_zalloc(sizeof(*config));

	if (names_sandbox(root))
		load_servers(&context, root, config);
	return config;
}

struct config *load_tree(const struct types_context *context, const struct tree *root)
{
	struct config *config = load_draft(context, root, NULL);

	if (context->problems->count > 0)
		config_free(&config);
	return config;
}
