/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgatectl adopt: one set of servers for all clients of a user. Of each client's own file only the values of its entries are written,
 * byte by byte what is around them stays.
 *
 * Order: the server's file first, with the entry as it was, and only when the daemon would take that file, the client's. So whatever
 * happens in between, an entry is where it was or can be put back.
 */
#include "ctl/commands.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/forms.h"
#include "config/import.h"
#include "config/variables.h"
#include "ctl/adopted.h"
#include "ctl/client_config.h"
#include "ctl/edit_file.h"
#include "ctl/entry_text.h"
#include "ctl/output.h"

#define ATTEMPTS 5 /* to write a file that others write, too */
#define LOCK_WAIT_MS 3000
#define SOCKET_UNIT "mcpgated.socket"
#define SOCKET "mcpgated.sock" /* below XDG_RUNTIME_DIR */
#define PORT_FIRST 8818
#define PORTS 100

static const struct shareable {
	const char *package;
	const char *isolation;
	const char *why;
} shareables[] = {
#define SHAREABLE(package_, isolation_, why_) { package_, isolation_, why_ },
#include "ctl/shareable.def"
#undef SHAREABLE
};

struct work {
	const struct line *line;
	char *file; /* the user's own mcpgated.yaml */
	char *token_file;
	char *origin;          /* NULL: nothing has been made yet, of a dry run */
	char *token;           /* NULL: none is asked for */
	struct config *config; /* as it was before; NULL: there was none */
	const char *path;      /* of the file that is worked on, as its client names it */
	bool has_restored,
		is_lost; /* of the last entry to be put back: it is; it is not there any more */
	struct adopted_list servers;
	struct text_table table;
	size_t changed;
	size_t failed;
};

/* Of an entry; name NULL: of none. */
static void printf_like(5, 6) tell(struct work *work, const char *client, const char *list,
				   const char *name, const char *format, ...)
{
	at_end(mem_free) char *entry =
		name != NULL ? mem_printf("%s.%s", list, name) : mem_strdup("");
	va_list args;
	at_end(mem_free) char *what = NULL;

	va_start(args, format);
	CHECK(vasprintf(&what, format, args) >= 0);
	va_end(args);
	text_table_add(&work->table, slice_str(client));
	text_table_add(&work->table, slice_str(entry));
	text_table_add(&work->table, slice_str(what));
}

/* ---- which may be shared ---- */

static int explain(bool is_json)
{
	static const struct text_table_column columns[] = { { "PACKAGE", false },
							    { "ISOLATION", false },
							    { "WHY", false } };
	at_end(text_table_fini) struct text_table table = { .count = 0 };

	text_table_init(&table, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < ARRAY_LEN(shareables); i++) {
		text_table_add(&table, slice_str(shareables[i].package));
		text_table_add(&table, slice_str(shareables[i].isolation));
		text_table_add(&table, slice_str(shareables[i].why));
	}
	if (is_json) {
		text_table_print_json(&table, "packages");
		return 0;
	}
	text_table_print(&table, stdout);
	puts("\nAny other server has a process for each session (isolation: session), which works for every server. To share\n"
	     "one that keeps nothing of its clients, write isolation: shared into its file in conf.d.");
	return 0;
}

/* Whether the argument is the package, or a version of it: mcp-server-time==1.2, @scope/name@latest. */
static bool is_package(const char *argument, const char *package)
{
	size_t n = strlen(package);

	return strncmp(argument, package, n) == 0 && strchr("@=[~<>", argument[n]) != NULL;
}

static const char *find_isolation(const struct tree *server)
{
	const struct tree *args = tree_find(server, "args");
	const struct tree *command = tree_find(server, "command");

	for (size_t i = 0; i < ARRAY_LEN(shareables); i++) {
		if (command != NULL && is_package(command->text, shareables[i].package))
			return shareables[i].isolation;
		for (size_t j = 0; args != NULL && j < args->count; j++)
			if (is_package(args->items[j]->text, shareables[i].package))
				return shareables[i].isolation;
	}
	return "session";
}

/* ---- the entries of a file ---- */

struct item {
	char *list, *name;
	size_t at, length;
	bool is_own;
	char *why; /* it is left alone; NULL: it is not */
	const char *isolation;
	struct buf definition;
	json_t *record; /* once it is written */
};

struct items {
	struct item *items;
	size_t count;
	struct work *work;
	size_t client;
	bool is_toml;
};

static void items_fini(struct items *items)
{
	for (size_t i = 0; i < items->count; i++) {
		struct item *item = &items->items[i];

		free(item->list);
		free(item->name);
		free(item->why);
		buf_wipe(&item->definition);
		json_decref(item->record);
	}
	free(items->items);
	items->items = NULL;
	items->count = 0;
}

static bool is_own(const struct work *work, const struct tree *server)
{
	const struct tree *args = tree_find(server, "args"), *url = tree_find(server, "url");
	const struct tree *command = tree_find(server, "command");

	if (url != NULL && work->origin != NULL)
		return slice_has_prefix(slice_str(url->text), slice_str(work->origin)) &&
		       url->text[strlen(work->origin)] == '/';
	return command != NULL && strcmp(basename(command->text), "mcpgatectl") == 0 &&
	       args != NULL && args->count > 0 && strcmp(args->items[0]->text, "connect") == 0;
}

static size_t name_length(const char *text, const char *end)
{
	const char *at = text;

	while (at < end && (*at == '_' || (*at >= 'A' && *at <= 'Z') ||
			    (at > text && *at >= '0' && *at <= '9')))
		at++;
	return (size_t)(at - text);
}

/* Whether there is a variable that a client with these reads in another way than import does. $PWD is where the client is. */
static bool has_other_variable(enum client_variables variables, struct slice value)
{
	bool expands = variables == CLIENT_VARIABLES_BRACES || variables == CLIENT_VARIABLES_ALL;
	const char *end = value.p + value.n;

	CHECK(value.n > 0);
	for (const char *at = value.p; (at = memchr(at, '$', (size_t)(end - at))) != NULL;) {
		bool has_brace = ++at < end && *at == '{';
		size_t n = name_length(at + has_brace, end);

		if (has_brace && variables == CLIENT_VARIABLES_NONE)
			return true;
		if (n == 0)
			continue;
		if (has_brace ? !expands || slice_is_equal(slice_of(at + 1, n), SLICE_LIT("PWD")) :
				variables == CLIENT_VARIABLES_ALL)
			return true;
	}
	return false;
}

static bool is_relative(const char *path)
{
	return strcmp(path, ".") == 0 || strcmp(path, "..") == 0 || strncmp(path, "./", 2) == 0 ||
	       strncmp(path, "../", 3) == 0;
}

/* Where it would be started makes a difference: a client starts it where that is itself. */
static bool depends_on_folder(const struct tree *server)
{
	const struct tree *args = tree_find(server, "args"),
			  *command = tree_find(server, "command");
	bool does =
		command != NULL && command->text[0] != '/' && strchr(command->text, '/') != NULL;

	if (tree_find(server, "cwd") != NULL)
		return false;
	for (size_t i = 0; args != NULL && i < args->count; i++)
		does |= is_relative(args->items[i]->text);
	return does;
}

/* Here nothing is passed on, and what --import advises is of no use. */
static char *why_not_understood(const char *warning)
{
	const char *at = strstr(warning, " " VARIABLES_AS_THEY_STAND);
	const char *why = at != NULL ? at + strlen(" " VARIABLES_AS_THEY_STAND) : "";

	return at != NULL ? mem_printf("left alone: %.*s: %.*s", (int)(at - warning), warning,
				       (int)strcspn(why, ";"), why) :
			    mem_printf("left alone: %s", warning);
}

/* The caller frees it; NULL: nothing. */
static char *why_not(const struct work *work, size_t client, const struct import_entry *entry)
{
	if (entry->server != NULL && is_own(work, entry->server))
		return mem_strdup("is served by the daemon already");
	if (entry->server != NULL && tree_find(entry->server, "url") != NULL)
		return mem_strdup("left alone: it is at a URL, and starts nothing here");
	if (entry->warnings->count > 0)
		return why_not_understood(entry->warnings->items[0]);
	if (entry->server == NULL)
		return mem_strdup("left alone: it is not understood");
	if (tree_find(entry->server, "inherit_env") != NULL)
		return mem_strdup(
			"left alone: env_vars names variables of its client; write them into env");
	if (has_other_variable(client_config_variables(client), entry->value))
		return mem_strdup("left alone: only its client knows what a $ in it means");
	if (depends_on_folder(entry->server))
		return mem_strdup(
			"left alone: it starts in the folder that its client is in, and has no cwd");
	return NULL;
}

static void on_entry(const struct import_entry *entry, void *arg)
{
	struct items *items = arg;
	struct item *item;

	if (!client_config_has_list(items->client, entry->list))
		return;
	items->items = mem_resize(items->items, (items->count + 1) * sizeof(*items->items));
	item = &items->items[items->count++];
	*item = (struct item){
		.list = mem_strdup(entry->list),
		.name = mem_strdup(entry->name),
		.at = entry->at,
		.length = entry->length,
		.is_own = entry->server != NULL && is_own(items->work, entry->server),
		.why = why_not(items->work, items->client, entry),
	};
	if (item->why == NULL) {
		item->isolation = find_isolation(entry->server);
		adopted_define(entry->server, &item->definition);
	}
}

/* The new text of the entry. -1: it cannot be written without a change to what else is in it. */
static int write_entry(struct slice original, bool is_toml, json_t *entry, struct buf *out)
{
	struct entry_member members[ENTRY_MEMBERS_MAX];
	size_t count = 0;
	const char *name;
	json_t *member;
	int result;

	json_object_foreach(entry, name, member)
	{
		CHECK(count < ENTRY_MEMBERS_MAX);
		members[count++] =
			(struct entry_member){ name, json_dumps(member, JSON_ENCODE_ANY) };
	}
	result = entry_text_write(original, is_toml, members, count, out);
	while (count > 0)
		free(members[--count].text);
	return result;
}

static int by_place(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	return a->at < b->at ? -1 : a->at > b->at;
}

/* What can be read, but could not be written again or put back. */
static void judge_text(struct item *item, const struct edit_file *file, bool is_toml)
{
	struct slice original = slice_of(file->text.data + item->at, item->length);
	at_end(buf_wipe) struct buf text = { 0 };
	json_auto_t *none = NULL;

	if (item->why != NULL)
		return;
	none = json_object();
	if (!text_is_utf8(original))
		item->why = mem_strdup("left alone: it has a text that is not UTF-8");
	else if (write_entry(original, is_toml, none, &text) < 0)
		item->why = mem_strdup(
			is_toml ? "left alone: what belongs to it stands in several places" :
				  "left alone: a name in it is written with a backslash");
}

static int read_items(struct work *work, size_t client, const struct edit_file *file,
		      struct items *items_r, struct error *err)
{
	*items_r = (struct items){
		.work = work,
		.client = client,
		.is_toml = import_is_toml(buf_slice(&file->text), work->path),
	};
	if (import_entries(buf_slice(&file->text), work->path, on_entry, items_r, err) < 0)
		return -1;
	if (items_r->count > 1)
		qsort(items_r->items, items_r->count, sizeof(*items_r->items), by_place);
	for (size_t i = 0; i < items_r->count; i++)
		judge_text(&items_r->items[i], file, items_r->is_toml);
	return 0;
}

/* ---- the user's own configuration ---- */

static uint16_t find_port(void)
{
	for (uint16_t port = PORT_FIRST; port < PORT_FIRST + PORTS; port++) {
		const struct sockaddr_in address = { .sin_family = AF_INET,
						     .sin_port = htons(port),
						     .sin_addr = { htonl(INADDR_LOOPBACK) } };
		at_end(file_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int on = 1;
		int result = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ?
				     -1 :
				     bind(fd, (const struct sockaddr *)&address, sizeof(address));

		if (result == 0)
			return port;
	}
	return PORT_FIRST;
}

#define MADE "# Made by mcpgatectl adopt"

/* Replaces what adopt has made itself, and nothing else. */
static int write_own(const char *path, struct slice text, struct error *err)
{
	at_end(edit_file_fini) struct edit_file file = { .path = NULL };
	int result = edit_file_read(path, &file, err);

	if (result == 1)
		result = edit_file_create(path, text, err);
	else if (result == 0 && slice_has_prefix(buf_slice(&file.text), SLICE_LIT(MADE)))
		result = edit_file_replace(&file, text, err);
	else if (result == 0)
		result = error_set(err, ERROR_INVALID, "%s is there already", path);
	return result == 1 ? error_set(err, ERROR_INVALID, "%s was changed meanwhile", path) :
			     result;
}

/* systemd listens for the daemon; its socket has the first port. */
static int tell_systemd(uint16_t port, struct error *err)
{
	at_end(mem_free) char *path =
		line_home_file(".config/systemd/user/mcpgated.socket.d/adopt.conf");
	at_end(mem_free) char *text = NULL;

	/* One from before may have another port. */
	if (port == PORT_FIRST && access(path, F_OK) != 0)
		return 0;
	text = mem_printf(MADE "\n[Socket]\nListenStream=\nListenStream=127.0.0.1:%u\n"
			       "ListenStream=%%t/" SOCKET "\n",
			  port);
	return write_own(path, slice_str(text), err);
}

/* The token that is there, or a new one, which nobody else on this machine can read. */
static int take_token(const struct work *work, struct line_token *token_r, struct error *err)
{
	at_end(secret_free) char *text = NULL;

	if (access(work->token_file, F_OK) == 0) {
		text = line_read_token(work->token_file, err);
		if (text == NULL)
			return -1;
		line_hash(slice_str(text), token_r->hash);
		return 0;
	}
	line_make_token(token_r);
	text = mem_printf("%s\n", token_r->text);
	return edit_file_create(work->token_file, slice_str(text), err);
}

/* For connect. In a folder of this user's that nobody else may enter, if the session has one. */
static char *socket_line(void)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	struct stat status;

	if (folder == NULL || folder[0] != '/' || strpbrk(folder, "'\n") != NULL ||
	    strlen(folder) > 80 || stat(folder, &status) < 0 || status.st_uid != geteuid() ||
	    (status.st_mode & 077) != 0)
		return mem_strdup("");
	return mem_printf("  - address: 'unix:%s/" SOCKET "'\n", folder);
}

static int make_configuration(const struct work *work, struct error *err)
{
	struct line_token token;
	uint16_t port = find_port();
	int result = take_token(work, &token, err);
	at_end(mem_free) char *text = NULL, *socket = NULL;

	if (result < 0)
		return -1;
	socket = socket_line();
	if (socket[0] == '\0')
		fputs("mcpgatectl: no unix socket is set up, as XDG_RUNTIME_DIR names no folder that is yours alone: connect goes by the port\n",
		      stderr);
	text = mem_printf(
		MADE
		": the daemon of this user. All keys: mcpgated.yaml(5).\n"
		"listen:\n"
		"  - address: 127.0.0.1:%u    # mcpgated.socket of systemctl --user has the same\n"
		"%s"
		"auth:\n"
		"  mode: token\n"
		"  tokens:\n"
		"    - {name: clients, sha256: %s}    # of the file token\n"
		"include: [conf.d/*.yaml]           # the servers\n"
		"servers: {}                        # and none besides\n",
		port, socket, token.hash);
	result = tell_systemd(port, err);
	if (result == 0)
		result = edit_file_create(work->file, slice_str(text), err);
	explicit_bzero(&token, sizeof(token));
	return result;
}

static struct config *load(const struct work *work, struct error *err)
{
	const struct config_request request = { .file = work->file };
	at_end(config_problems_fini) struct config_problems problems = { NULL, 0 },
							    warnings = { NULL, 0 };
	struct config *config = config_load(&request, &problems, &warnings);

	if (config == NULL)
		error_set(err, ERROR_INVALID, "%s",
			  problems.count > 0 ? problems.items[0] : "cannot be read");
	return config;
}

/* A token that is not the daemon's, or not only the user's, must not get into the clients' files. */
static int read_token(struct work *work, const struct config *config, struct error *err)
{
	struct stat status;

	work->token = line_read_token(work->token_file, err);
	if (work->token == NULL)
		return error_set(err, ERROR_INVALID,
				 "%s: write one of the tokens of auth.tokens into this file",
				 work->token_file);
	if (static_token_find(&config->frontend.authorization.tokens, slice_str(work->token)) ==
	    NULL)
		return error_set(err, ERROR_INVALID, "%s: has none of the tokens of %s",
				 work->token_file, work->file);
	if (stat(work->token_file, &status) < 0 || (status.st_mode & 077) != 0)
		return error_set(err, ERROR_INVALID, "%s: others can read it: chmod 600",
				 work->token_file);
	return 0;
}

/* Learns what the user's own configuration says; without one, there is nothing to learn yet. */
static int prepare(struct work *work, struct error *err)
{
	struct stat status;
	struct config *config;
	int result = 0;

	if (lstat(work->file, &status) < 0)
		return 0;
	config = load(work, err);
	if (config == NULL)
		return -1;
	work->origin = origin_find(config, NULL);
	if (work->origin == NULL)
		result = error_set(err, ERROR_INVALID, "%s: there is no address for clients",
				   work->file);
	else if (strcmp(origin_auth_mode(config), "token") == 0)
		result = read_token(work, config, err);
	work->config = config;
	return result;
}

/* ---- adopting ---- */

static bool is_taken(const struct work *work, const char *name)
{
	const struct config *config = work->config;
	at_end(mem_free) char *file = mem_printf("conf.d/%s.yaml", name);
	at_end(mem_free) char *path = line_own_file(file);

	return adopted_has_name(&work->servers, name) || access(path, F_OK) == 0 ||
	       (config != NULL && config_find_server(config, name) < config->server_count);
}

/* The server that the entry is, or will be; of a dry run without a file. */
static struct adopted *server_for(struct work *work, const struct item *item)
{
	struct adopted *server = adopted_find(&work->servers, buf_slice(&item->definition));
	char *base, *name;

	if (server != NULL)
		return server;
	base = name_from_text(slice_str(item->name));
	name = mem_strdup(base);
	for (size_t n = 2; is_taken(work, name); n++) {
		free(name);
		name = name_numbered(base, n);
	}
	server = adopted_add(&work->servers, name, buf_slice(&item->definition), item->isolation);
	free(base);
	free(name);
	return server;
}

/* has_been_there: somebody may have read it in the client's file already. */
static void forget(struct adopted *server, const json_t *record, bool has_been_there)
{
	bool kept;

	for (size_t i = json_array_size(adopted_entries(server)); i > 0; i--) {
		if (json_array_get(adopted_entries(server), i - 1) != record)
			continue;
		if (has_been_there)
			adopted_set_undone(server, i - 1);
		else
			adopted_forget(server, i - 1);
	}
	(void)!adopted_save(server, &kept, NULL);
}

/* Writes the server's file; it stays only if the daemon takes it. */
static int serve(struct work *work, struct adopted *server, const json_t *record, struct error *err)
{
	struct config *config;
	bool kept, is_there = false;

	if (adopted_save(server, &kept, err) < 0)
		return -1;
	config = load(work, err);
	if (config != NULL) {
		is_there = config_find_server(config, adopted_name(server)) < config->server_count;
		if (!is_there)
			error_set(
				err, ERROR_INVALID,
				"%s lacks the line: include: [conf.d/*.yaml], or %s the server %s",
				work->file, server->path, adopted_name(server));
		config_free(&config);
	}
	if (is_there)
		return 0;
	forget(server, record, false);
	return -1;
}

/* Whose text is new; appends it to out. -1: it is left alone, and item->why says why. */
static int adopt_item(struct work *work, const struct items *items, const struct edit_file *file,
		      struct item *item, struct buf *out)
{
	struct adopted *server = server_for(work, item);
	size_t client = items->client;
	const char *original = file->text.data + item->at;
	at_end(mem_free) char *url = mem_printf("%s/%s/mcp", work->origin, adopted_name(server));
	json_auto_t *entry = client_config_entry(client, adopted_name(server), url, work->token,
						 (file->status.st_mode & (S_IRGRP | S_IROTH)) != 0);
	at_end(buf_wipe) struct buf text = { 0 };
	struct error err;

	if (write_entry(slice_of(original, item->length), items->is_toml, entry, &text) < 0)
		item->why = mem_strdup("left alone: it cannot be written");
	item->record = json_pack("{s:s, s:s, s:s, s:s, s:s%, s:s%}", "client",
				 client_config_client(client), "file", work->path, "list",
				 item->list, "name", item->name, "was", original, item->length,
				 "is", text.data, text.len);
	CHECK(item->record != NULL); /* all of it is UTF-8: judge_text, check_home */
	if (item->why == NULL) {
		adopted_remember(server, item->record);
		if (serve(work, server, item->record, &err) < 0)
			item->why = mem_printf("left alone: %s", err.text);
		work->failed += item->why != NULL;
	}
	if (item->why == NULL)
		buf_append_slice(out, buf_slice(&text));
	return item->why == NULL ? 0 : -1;
}

static void forget_all(struct work *work, const struct items *items)
{
	for (size_t i = 0; i < items->count; i++) {
		struct adopted *server =
			items->items[i].record == NULL ?
				NULL :
				adopted_find(&work->servers,
					     buf_slice(&items->items[i].definition));

		if (server != NULL)
			forget(server, items->items[i].record, true);
	}
}

/* What its isolation is, only its file says, if that was there before. */
static void tell_served(struct work *work, const char *client, const struct item *item)
{
	const struct adopted *server = server_for(work, item);
	bool is_new = server->is_new;

	tell(work, client, item->list, item->name, "%s %s%s%s%s",
	     work->line->is_dry_run ? "would be" : "is now", adopted_name(server),
	     is_new ? " (isolation: " : "", is_new ? item->isolation : "", is_new ? ")" : "");
}

static void report(struct work *work, size_t client, const struct items *items)
{
	for (size_t i = 0; i < items->count; i++) {
		const struct item *item = &items->items[i];
		const char *name = client_config_client(client);

		if (item->why != NULL)
			tell(work, name, item->list, item->name, "%s", item->why);
		else
			tell_served(work, name, item);
		work->changed += item->why == NULL;
	}
}

/* Returns 0; 1: it was changed meanwhile; -1. */
static int adopt_text(struct work *work, size_t client, const struct edit_file *file,
		      struct error *err)
{
	struct items items;
	at_end(buf_wipe) struct buf text = { 0 };
	size_t copied = 0, count = 0;
	int result = read_items(work, client, file, &items, err);

	for (size_t i = 0; result == 0 && i < items.count && !work->line->is_dry_run; i++) {
		struct item *item = &items.items[i];

		if (item->why != NULL)
			continue;
		/* The first one: before, there is nothing to be made. */
		if (work->origin == NULL &&
		    (make_configuration(work, err) < 0 || prepare(work, err) < 0)) {
			result = -1;
			break;
		}
		CHECK(item->at >= copied && item->at + item->length <= file->text.len);
		buf_append(&text, file->text.data + copied, item->at - copied);
		copied = item->at;
		if (adopt_item(work, &items, file, item, &text) == 0) {
			copied += item->length;
			count++;
		}
	}
	if (result == 0 && count > 0) {
		buf_append(&text, file->text.data + copied, file->text.len - copied);
		result = edit_file_replace(file, buf_slice(&text), err);
		if (result != 0)
			forget_all(work, &items);
	}
	if (result == 0)
		report(work, client, &items);
	items_fini(&items);
	return result;
}

/* ---- putting back ---- */

struct wanted {
	const char *list, *name;
	size_t at, length;
	bool is_found;
};

static void on_wanted(const struct import_entry *entry, void *arg)
{
	struct wanted *wanted = arg;

	if (strcmp(entry->list, wanted->list) != 0 || strcmp(entry->name, wanted->name) != 0)
		return;
	wanted->at = entry->at;
	wanted->length = entry->length;
	wanted->is_found = true;
}

static struct slice text_of(const json_t *entry, const char *name)
{
	const json_t *text = json_object_get(entry, name);

	return json_is_string(text) ? slice_of(json_string_value(text), json_string_length(text)) :
				      slice_of("", 0);
}

static bool finds(struct slice text, const char *path, struct wanted *wanted)
{
	return import_entries(text, path, on_wanted, wanted, NULL) == 0 && wanted->is_found;
}

/* Whether it is an entry of JSON, and nothing else: in its place the file can be read as before. */
static bool is_value(struct slice was)
{
	struct wanted wanted = { .list = "mcpServers", .name = "a" };
	at_end(buf_wipe) struct buf text = { 0 };

	buf_append_str(&text, "{\"mcpServers\":{\"a\":");
	buf_append_slice(&text, was);
	buf_append_str(&text, "}}");
	return finds(buf_slice(&text), "a.json", &wanted) && wanted.length == was.n;
}

static int restore_wanted(struct work *work, const struct edit_file *file, const json_t *entry,
			  const struct wanted *wanted, struct error *err)
{
	struct slice original = slice_of(file->text.data + wanted->at, wanted->length);
	struct slice was = text_of(entry, "was"), is = text_of(entry, "is");
	struct wanted again = { .list = wanted->list, .name = wanted->name };
	bool is_toml = import_is_toml(buf_slice(&file->text), work->path);
	at_end(buf_wipe) struct buf text = { 0 };
	int result;

	CHECK(wanted->at + wanted->length <= file->text.len);
	if (was.n == 0 || is.n == 0)
		return error_set(err, ERROR_INVALID, "its record is broken");
	if (slice_is_equal(original, was))
		return 0;
	buf_append(&text, file->text.data, wanted->at);
	if (slice_is_equal(original, is))
		buf_append_slice(&text, was);
	else if (entry_text_restore(original, is_toml, was, is, &text) < 0)
		return error_set(err, ERROR_INVALID, "the entry has been changed since");
	buf_append(&text, original.p + original.n, file->text.len - wanted->at - wanted->length);
	if (is_toml ? !finds(buf_slice(&text), work->path, &again) : !is_value(was))
		return error_set(err, ERROR_INVALID, "its record is broken");
	result = work->line->is_dry_run ? 0 : edit_file_replace(file, buf_slice(&text), err);
	work->has_restored = result == 0;
	return result;
}

static int lose(struct work *work, const char *what, struct error *err)
{
	work->is_lost = true;
	return error_set(err, ERROR_INVALID, "the %s is not there any more", what);
}

/* Returns 0: it is as it was; 1: the file was changed meanwhile; -1: err says why it is left alone. */
static int restore_text(struct work *work, const struct edit_file *file, const json_t *entry,
			struct error *err)
{
	struct wanted wanted = { .list = text_of(entry, "list").p,
				 .name = text_of(entry, "name").p };
	int result;

	if (import_entries(buf_slice(&file->text), work->path, on_wanted, &wanted, err) < 0)
		result = -1;
	else if (!wanted.is_found)
		result = lose(work, "entry", err);
	else
		result = restore_wanted(work, file, entry, &wanted, err);
	return result;
}

/* ---- a file, until it has held still ---- */

static int edit(struct work *work, const char *path, size_t client, const json_t *entry,
		struct error *err)
{
	int result = 1;

	work->path = path;
	for (int i = 0; i < ATTEMPTS && result == 1; i++) {
		at_end(edit_file_fini) struct edit_file file = { .path = NULL };

		result = edit_file_read(path, &file, err);
		if (result == 1)
			return entry != NULL ? lose(work, "file", err) : 0;
		if (result == 0 && (file.status.st_mode & S_IWUSR) == 0)
			result = error_set(err, ERROR_INVALID, "is read-only");
		if (result == 0)
			result = entry != NULL ? restore_text(work, &file, entry, err) :
						 adopt_text(work, client, &file, err);
	}
	return result == 1 ?
		       error_set(
			       err, ERROR_INVALID,
			       "another program keeps changing the file: close it, and try again") :
		       result;
}

static bool is_asked_for(const struct line *line, size_t client)
{
	return client_config_own_file(client) != NULL &&
	       (line->count < 2 || strcmp(line->words[1], client_config_client(client)) == 0);
}

static void adopt_clients(struct work *work)
{
	struct error err;

	for (size_t i = 0; client_config_client(i) != NULL; i++) {
		at_end(mem_free) char *path = NULL;

		if (!is_asked_for(work->line, i))
			continue;
		path = line_home_file(client_config_own_file(i));
		if (edit(work, path, i, NULL, &err) < 0) {
			tell(work, client_config_client(i), "", NULL, "%s is left alone: %s", path,
			     err.text);
			work->failed++;
		}
	}
}

/* Also one with nothing to put back: a run that was killed may not have given it its name. */
static void settle(struct work *work, struct adopted *server, bool has_changed)
{
	struct error err;
	bool kept;

	if (adopted_save(server, &kept, &err) < 0) {
		work->failed++;
		tell(work, "", "", NULL, "%s", err.text);
	} else if (has_changed && kept && !adopted_is_used(server)) {
		tell(work, "", "", NULL,
		     "%s has been changed since, and stays: remove it if nobody needs the server",
		     server->path);
	}
}

/* Of one that has been put back, the record says what was there, and not what is. */
static bool has_record(const struct work *work, const struct item *item)
{
	for (size_t i = 0; i < work->servers.count; i++) {
		const json_t *entries = adopted_entries(&work->servers.items[i]);

		for (size_t j = 0; j < json_array_size(entries); j++) {
			const json_t *entry = json_array_get(entries, j);

			if (!adopted_is_undone(&work->servers.items[i], j) &&
			    slice_is_equal(text_of(entry, "file"), slice_str(work->path)) &&
			    slice_is_equal(text_of(entry, "list"), slice_str(item->list)) &&
			    slice_is_equal(text_of(entry, "name"), slice_str(item->name)))
				return true;
		}
	}
	return false;
}

/*
 * Whether there are entries in the file that lead to the daemon, and no record says what they were: somebody has written or renamed them,
 * or removed the record. A file that cannot be read, and a daemon that is not known, may have some; they are not told.
 */
static bool find_strays(struct work *work, size_t client, const char *path, bool tells)
{
	at_end(edit_file_fini) struct edit_file file = { .path = NULL };
	at_end(items_fini) struct items items = { .count = 0 };
	int result = edit_file_read(path, &file, NULL);
	bool has_some = false;

	work->path = path;
	if (result == 1)
		return false;
	if (result < 0 || client_config_client(client) == NULL || work->origin == NULL ||
	    read_items(work, client, &file, &items, NULL) < 0)
		return true;
	for (size_t i = 0; i < items.count; i++) {
		const struct item *item = &items.items[i];

		if (!item->is_own || has_record(work, item))
			continue;
		has_some = true;
		if (tells)
			tell(work, client_config_client(client), item->list, item->name,
			     "stays: it leads to the daemon, and nothing that can be read in conf.d says what it was");
	}
	return has_some;
}

/* The client's number; one that no client has: it is not known. */
static size_t find_client(const char *name)
{
	size_t i = 0;

	while (client_config_client(i) != NULL && strcmp(client_config_client(i), name) != 0)
		i++;
	return i;
}

/*
 * One that has been put back before is put back once more if the client has written it again, and is not named otherwise. With one that
 * is lost there is nothing to be done, unless it may only have got another name.
 */
static void undo_entry(struct work *work, struct adopted *server, size_t i)
{
	json_t *entry = json_array_get(adopted_entries(server), i);
	const char *path = text_of(entry, "file").p, *client = text_of(entry, "client").p;
	const char *list = text_of(entry, "list").p, *name = text_of(entry, "name").p;
	bool is_undone = adopted_is_undone(server, i), is_settled;
	struct error err;
	int result;

	if (work->line->count > 1 && strcmp(client, work->line->words[1]) != 0)
		return;
	work->has_restored = work->is_lost = false;
	result = edit(work, path, 0, entry, &err);
	if (is_undone && !work->has_restored)
		return;
	is_settled = result == 0 ||
		     (work->is_lost && !find_strays(work, find_client(client), path, false));
	if (result == 0)
		tell(work, client, list, name,
		     work->line->is_dry_run ? "would be put back" : "is as it was");
	else if (is_settled)
		tell(work, client, list, name, "nothing to put back: %s", err.text);
	else
		tell(work, client, list, name, "left alone: %s; %s %s what it was", err.text,
		     server->path, text_of(entry, "was").n > 0 ? "has" : "lacks");
	work->failed += !is_settled;
	if (is_settled && !work->line->is_dry_run) {
		work->changed++;
		adopted_set_undone(server, i);
	}
}

static void undo(struct work *work)
{
	struct config *config = load(work, NULL);

	work->origin = config != NULL ? origin_find(config, NULL) : NULL;
	config_free(&config);
	for (size_t i = 0; i < work->servers.count; i++) {
		struct adopted *server = &work->servers.items[i];
		size_t before = work->changed, count = json_array_size(adopted_entries(server));

		for (size_t j = count; j > 0; j--)
			undo_entry(work, server, j - 1);
		if (count > 0 && !work->line->is_dry_run)
			settle(work, server, work->changed > before);
	}
	for (size_t i = 0; client_config_client(i) != NULL; i++) {
		at_end(mem_free) char *path = NULL;

		if (!is_asked_for(work->line, i))
			continue;
		path = line_home_file(client_config_own_file(i));
		(void)find_strays(work, i, path, true);
	}
}

/* ---- the command ---- */

/* What a run that was killed has left beside a file, or in a folder, with its secrets. */
static void tell_left(struct work *work, const char *path)
{
	at_end(mem_free) char *left = work->line->is_dry_run ? NULL : edit_file_find_left(path);

	if (left != NULL)
		tell(work, "", "", NULL,
		     "%s is left of a run that was killed, and may have secrets: remove it when %.*s is as it should be",
		     left, (int)(strlen(left) - EDIT_LEFT_LENGTH), left);
}

static void tell_all_left(struct work *work)
{
	static const char *const folders[] = { "", "conf.d/" };

	for (size_t i = 0; client_config_client(i) != NULL; i++) {
		at_end(mem_free) char *path = NULL;

		if (!is_asked_for(work->line, i))
			continue;
		path = line_home_file(client_config_own_file(i));
		tell_left(work, path);
	}
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		at_end(mem_free) char *path = line_own_file(folders[i]);

		tell_left(work, path);
	}
}

/* Then the user's units are for it. */
static bool is_made_here(const struct work *work)
{
	at_end(edit_file_fini) struct edit_file file = { .path = NULL };

	return edit_file_read(work->file, &file, NULL) == 0 &&
	       slice_has_prefix(buf_slice(&file.text), SLICE_LIT(MADE));
}

/* Of the user's manager of services, where packages and users put it. */
static bool has_unit(void)
{
	at_end(mem_free) char *own = line_home_file(".config/systemd/user/" SOCKET_UNIT);

	return access(own, F_OK) == 0 || access("/usr/lib/systemd/user/" SOCKET_UNIT, F_OK) == 0 ||
	       access("/usr/local/lib/systemd/user/" SOCKET_UNIT, F_OK) == 0 ||
	       access("/etc/systemd/user/" SOCKET_UNIT, F_OK) == 0;
}

static void print_next(const struct work *work)
{
	bool is_running = access(work->line->socket, F_OK) == 0 && !work->line->is_another;

	if (work->line->is_dry_run || work->changed == 0)
		return;
	if (work->line->undoes && !is_running)
		fputs("mcpgatectl: next: start the clients again\n", stderr);
	else if (is_running)
		fputs("mcpgatectl: next: mcpgatectl reload; then start the clients again\n",
		      stderr);
	else if (!is_made_here(work))
		fprintf(stderr,
			"mcpgatectl: next: start the daemon that has %s; then start the clients again\n",
			work->file);
	else
		fprintf(stderr,
			"mcpgatectl: next: %smcpgated -c %s; then start the clients again\n",
			has_unit() ? "systemctl --user enable --now " SOCKET_UNIT ", or by hand " :
				     "",
			work->file);
	if (work->line->undoes && is_made_here(work))
		fprintf(stderr,
			"mcpgatectl: if no client needs the daemon any more: %send what was started by hand\n",
			has_unit() ? "systemctl --user disable --now " SOCKET_UNIT
				     " mcpgated.service, or " :
				     "");
	if (work->line->undoes)
		fputs("mcpgatectl: a client that was open meanwhile may write its file as it was before: then adopt --undo "
		      "once more; for that, and until you remove them, conf.d/*.yaml.undone have the servers\n",
		      stderr);
}

/* 0: there is one that is asked for; else the status. */
static int check_client(const struct line *line)
{
	at_end(buf_fini) struct buf text = { 0 };
	const char *before = "adopt takes ";

	for (size_t i = 0; client_config_client(i) != NULL; i++) {
		if (is_asked_for(line, i))
			return 0;
		if (client_config_own_file(i) != NULL) {
			buf_printf(&text, "%s%s", before, client_config_client(i));
			before = ", ";
		}
	}
	return line_refuse_usage(buf_terminate(&text));
}

/* As root with another one's home, what is made would be root's: that user could not read his own folder any more. */
static int check_home(struct error *err)
{
	const char *home = getenv("HOME");
	at_end(mem_free) char *folder = line_home_file(".config/.");
	struct stat status;
	int result = 0;

	if (home == NULL || home[0] != '/' || !text_is_utf8(slice_str(home)) ||
	    !text_is_utf8(slice_str(folder)))
		result = error_set(
			err, ERROR_INVALID,
			"HOME and XDG_CONFIG_HOME must be paths that begin with /, in UTF-8");
	else if (stat(home, &status) == 0 && status.st_uid != geteuid())
		result =
			error_set(err, ERROR_INVALID,
				  "%s belongs to another user: run this as that user, without sudo",
				  home);
	return result;
}

/* Nothing of the user's configuration is read before. */
static int lock(const struct line *line, struct error *err)
{
	at_end(mem_free) char *path = line_own_file("adopt.lock");

	return line->is_dry_run ? 0 : edit_file_lock(path, LOCK_WAIT_MS, err);
}

int adopt_run(const struct line *line)
{
	static const struct text_table_column columns[] = { { "CLIENT", false },
							    { "ENTRY", false },
							    { "RESULT", false } };
	struct work work = { .line = line };
	struct error err;
	int status = 0;

	if (line->wants_explanation)
		return explain(line->is_json);
	status = check_client(line);
	if (status != 0)
		return status;
	if (check_home(&err) < 0 || lock(line, &err) < 0)
		return line_fail(err.text);
	work.file = line_own_file("mcpgated.yaml");
	work.token_file = line_own_file("token");
	text_table_init(&work.table, columns, ARRAY_LEN(columns));
	adopted_read(&work.servers);
	for (size_t i = 0; i < work.servers.broken.count; i++)
		tell(&work, "", "", NULL, "%s", work.servers.broken.items[i]);
	work.failed += work.servers.broken.count;
	tell_all_left(&work);
	if (line->undoes)
		undo(&work);
	else if (prepare(&work, &err) < 0)
		status = line_fail(err.text);
	else
		adopt_clients(&work);
	if (line->is_json)
		text_table_print_json(&work.table, "entries");
	else if (work.table.count > 0)
		text_table_print(&work.table, stdout);
	else if (status == 0)
		fputs("mcpgatectl: no entry was found\n", stderr);
	print_next(&work);
	text_table_fini(&work.table);
	adopted_fini(&work.servers);
	secret_free(&work.token);
	config_free(&work.config);
	free(work.origin);
	free(work.file);
	free(work.token_file);
	return status != 0 || work.failed > 0 ? EXIT_FAILED : 0;
}
