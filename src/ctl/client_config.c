/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row for each client: its file, and what an entry looks like there. Clients differ in the name of the list, in that of the URL, and
 * in how a text names what is kept elsewhere. One that speaks over standard input and output alone starts mcp-remote.
 */
#include "ctl/client_config.h"

#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/config.h"
#include "config/forms.h"
#include "config/variables.h"
#include "ctl/commands.h"
#include "io/address.h"

#define VARIABLE "MCPGATED_TOKEN"

enum form {
	FORM_HTTP,   /* an object with a URL and headers */
	FORM_REMOTE, /* a command, mcp-remote */
	FORM_TOML,   /* a table of Codex */
};

static const struct kind {
	const char *name;
	const char *file;
	const char *own; /* the user's own file, below his home; NULL: not one that is adopted */
	enum client_variables variables; /* of one that is adopted */
	const char *list;
	enum form form;
	const char *type; /* NULL: an entry does not name its transport */
	const char *url;
	const char *
		token; /* what the client puts the token in the place of; NULL: of nothing, it has to be written */
} kinds[] = {
	{ "claude", "claude_desktop_config.json (Settings, Developer, Edit Config)",
	  ".config/Claude/claude_desktop_config.json", CLIENT_VARIABLES_NONE, "mcpServers",
	  FORM_REMOTE, NULL, NULL, NULL },
	{ "claude-code", ".mcp.json in the project, or ~/.claude.json", ".claude.json",
	  CLIENT_VARIABLES_BRACES, "mcpServers", FORM_HTTP, "http", "url", "${" VARIABLE "}" },
	{ "cline", "cline_mcp_settings.json (MCP Servers, Configure)", NULL, 0, "mcpServers",
	  FORM_HTTP, "streamableHttp", "url", NULL },
	{ "codex", "~/.codex/config.toml", ".codex/config.toml", CLIENT_VARIABLES_NONE,
	  "mcp_servers", FORM_TOML, NULL, "url", NULL },
	{ "cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in the project", ".cursor/mcp.json",
	  CLIENT_VARIABLES_OWN, "mcpServers", FORM_HTTP, NULL, "url", "${env:" VARIABLE "}" },
	{ "gemini", "~/.gemini/settings.json", ".gemini/settings.json", CLIENT_VARIABLES_ALL,
	  "mcpServers", FORM_HTTP, NULL, "httpUrl", "${" VARIABLE "}" },
	{ "opencode", "opencode.json", NULL, 0, "mcp", FORM_HTTP, "remote", "url",
	  "{env:" VARIABLE "}" },
	{ "stdio", "the file of any client that starts its servers itself", NULL, 0, "mcpServers",
	  FORM_REMOTE, NULL, NULL, NULL },
	{ "vscode", ".vscode/mcp.json in the project, or mcp.json of the profile",
	  ".config/Code/User/mcp.json", CLIENT_VARIABLES_OWN, "servers", FORM_HTTP, "http", "url",
	  "${input:mcpgated-token}" },
	{ "windsurf", "~/.codeium/windsurf/mcp_config.json", ".codeium/windsurf/mcp_config.json",
	  CLIENT_VARIABLES_OWN, "mcpServers", FORM_HTTP, NULL, "serverUrl", "${env:" VARIABLE "}" },
	{ "zed", "~/.config/zed/settings.json", ".config/zed/settings.json", CLIENT_VARIABLES_OWN,
	  "context_servers", FORM_HTTP, NULL, "url", NULL },
};

/* Where a server is, and what it requires of its clients. */
struct client_config_server {
	const char *name;
	char *url;
	bool takes_token;        /* Authorization: Bearer */
	bool takes_login;        /* OAuth: the client asks its user */
	const char *token;       /* NULL: the entry says where the client finds it */
	const char *certificate; /* the daemon's file; NULL: none */
};

#define TO_BE_WRITTEN "TOKEN" /* stands where a person has to write it */

/* "Bearer " and what stands for the token; the caller frees it. */
static char *write_bearer(const struct client_config_server *server, const char *stands)
{
	if (server->token != NULL)
		stands = server->token;
	return mem_printf("Bearer %s", stands != NULL ? stands : TO_BE_WRITTEN);
}

static json_t *make_entry(const struct client_config_server *server, const struct kind *kind)
{
	json_t *entry = json_object();

	if (kind->type != NULL)
		json_object_set_new(entry, "type", json_string(kind->type));
	json_object_set_new(entry, kind->url, json_string(server->url));
	if (server->takes_token) {
		at_end(mem_free) char *bearer = write_bearer(server, kind->token);

		json_object_set_new(entry, kind->form == FORM_TOML ? "http_headers" : "headers",
				    json_pack("{s:s}", "Authorization", bearer));
	}
	return entry;
}

/* The header's value stands in a variable: arguments are seen by everybody, and some clients break them at spaces. */
static json_t *make_remote(const struct client_config_server *server)
{
	json_t *args = json_pack("[s, s, s]", "-y", "mcp-remote", server->url);
	json_t *entry = json_object();

	if (strncmp(server->url, "http://", 7) == 0)
		json_array_append_new(args, json_string("--allow-http"));
	json_object_set_new(entry, "command", json_string("npx"));
	json_object_set_new(entry, "args", args);
	if (server->takes_token) {
		at_end(mem_free) char *bearer = write_bearer(server, NULL);

		json_array_append_new(args, json_string("--header"));
		json_array_append_new(args, json_string("Authorization:${AUTHORIZATION}"));
		json_object_set_new(entry, "env", json_pack("{s:s}", "AUTHORIZATION", bearer));
	}
	return entry;
}

/* VS Code asks its user for the token, and keeps it. */
static void add_input(json_t *root, const struct client_config_server *server)
{
	if (server->takes_token && server->token == NULL)
		json_object_set_new(root, "inputs",
				    json_pack("[{s:s, s:s, s:s, s:b}]", "type", "promptString",
					      "id", "mcpgated-token", "description",
					      "Token for mcpgated", "password", 1));
}

/* Names, URLs and tokens have no character that JSON and TOML would write in different ways. */
static void print_toml(const struct client_config_server *server, const char *list, bool is_first)
{
	json_auto_t *url = json_string(server->url);
	at_end(mem_free) char *text = json_dumps(url, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	printf("%s[%s.%s]\nurl = %s\n", is_first ? "" : "\n", list, server->name, text);
	if (server->takes_token && server->token == NULL)
		printf("bearer_token_env_var = \"" VARIABLE "\"\n");
	else if (server->takes_token)
		printf("http_headers = { Authorization = \"Bearer %s\" }\n", server->token);
}

static void print_json(const struct client_config_server *servers, size_t count,
		       const struct kind *kind)
{
	json_auto_t *root = json_object();
	json_t *list = json_object();

	for (size_t i = 0; i < count; i++)
		json_object_set_new(list, servers[i].name,
				    kind->form == FORM_REMOTE ? make_remote(&servers[i]) :
								make_entry(&servers[i], kind));
	if (strcmp(kind->name, "vscode") == 0)
		add_input(root, &servers[0]);
	json_object_set_new(root, kind->list, list);
	tools_print_json(root);
}

/* To people, so that stdout has the entry alone. */
static void explain(const struct client_config_server *server, size_t count,
		    const struct kind *kind)
{
	fprintf(stderr, "mcpgatectl: for %s; if there is a \"%s\" already, add %s to it\n",
		kind->file, kind->list, count == 1 ? "the entry" : "the entries");
	/* Claude Code takes an entry on its command line as well. */
	for (size_t i = 0; i < count && strcmp(kind->name, "claude-code") == 0; i++)
		fprintf(stderr, "mcpgatectl: or%s: claude mcp add --transport http %s %s%s\n",
			server[i].takes_token ? ", with the token in " VARIABLE : "",
			server[i].name, server[i].url,
			server->takes_token ? " --header \"Authorization: Bearer $" VARIABLE "\"" :
					      "");
	if (server->certificate != NULL && strncmp(server->url, "https:", 6) == 0)
		fprintf(stderr,
			"mcpgatectl: the certificate is in %s; if --tls self made it, the client "
			"has to trust it: on Node.js, by NODE_EXTRA_CA_CERTS=FILE in its env\n",
			server->certificate);
	if (server->takes_login && server->token == NULL)
		fputs("mcpgatectl: no token is needed: the client lets its user log in\n", stderr);
	if (!server->takes_token || server->token != NULL)
		return;
	if (strcmp(kind->name, "vscode") == 0)
		fputs("mcpgatectl: the editor asks for the token", stderr);
	else if (kind->token == NULL && kind->form != FORM_TOML)
		fputs("mcpgatectl: write the token in place of " TO_BE_WRITTEN, stderr);
	else
		fputs("mcpgatectl: set the variable " VARIABLE " to the token for the client",
		      stderr);
	fputs("; to make one, use: mcpgatectl token new\n", stderr);
}

const char *client_config_own_file(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i].own : NULL;
}

enum client_variables client_config_variables(size_t i)
{
	CHECK(i < ARRAY_LEN(kinds) && kinds[i].own != NULL);
	return kinds[i].variables;
}

bool client_config_has_list(size_t i, const char *list)
{
	CHECK(i < ARRAY_LEN(kinds));
	return strcmp(list, kinds[i].list) == 0 ||
	       (strcmp(kinds[i].name, "claude-code") == 0 && strncmp(list, "projects.", 9) == 0);
}

json_t *client_config_entry(size_t i, const char *name, char *url, const char *token, bool is_open)
{
	const struct client_config_server server = {
		.name = name,
		.url = url,
		.takes_token = token != NULL,
		.token = token,
	};
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	CHECK(i < ARRAY_LEN(kinds));
	if (kinds[i].form != FORM_REMOTE && !(is_open && token != NULL))
		return make_entry(&server, &kinds[i]);
	program[n > 0 ? n : 0] = '\0';
	return json_pack("{s:s, s:[s, s]}", "command", n > 0 ? program : "mcpgatectl", "args",
			 "connect", name);
}

const char *client_config_client(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i].name : NULL;
}

/*
 * Prints the entries for the client of this name (NULL: claude-code) on stdout, as JSON, or as TOML
 * if the client's file is TOML; prints on stderr which file they belong in and where the token comes
 * from. There is at least one server, and all take the same token. -1: there is no such client, and
 * err lists the known ones.
 */
static int client_config_print(const struct client_config_server *servers, size_t count,
			       const char *client, struct error *err)
{
	at_end(buf_fini) struct buf names = { 0 };

	CHECK(count > 0);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].name, client != NULL ? client : "claude-code") == 0) {
			for (size_t s = 0; s < count && kinds[i].form == FORM_TOML; s++)
				print_toml(&servers[s], kinds[i].list, s == 0);
			if (kinds[i].form != FORM_TOML)
				print_json(servers, count, &kinds[i]);
			fflush(stdout);
			explain(servers, count, &kinds[i]);
			return 0;
		}
		buf_printf(&names, "%s%s", i > 0 ? ", " : "", kinds[i].name);
	}
	return error_set(err, ERROR_INVALID, "--client takes one of %s", buf_terminate(&names));
}

/* ---- where the servers are ---- */

void server_place_fini(struct server_place *place)
{
	free(place->url);
	free(place->auth);
	free(place->socket);
	free(place->certificate);
	*place = (struct server_place){ .url = NULL };
}

/* What there is to know of them, from the daemon or the configuration. */
struct found {
	struct server_place place; /* without its url */
	char *origin;              /* NULL: there is none */
	size_t count;
	struct client_config_server servers[SERVERS_MAX]; /* which own their names and URLs */
};

/* The one that is wanted, or any where none is named. */
static void add_found(struct found *found, const struct line *line, const char *name,
		      const char *path)
{
	if (path == NULL || name == NULL || found->count == SERVERS_MAX ||
	    (line->count > 1 && strcmp(name, line->words[1]) != 0))
		return;
	found->servers[found->count++] = (struct client_config_server){
		.name = mem_strdup(name),
		.url = mem_printf("%s%s", found->origin != NULL ? found->origin : "", path),
	};
}

static void found_free(struct found *found)
{
	for (size_t i = 0; i < found->count; i++) {
		free((char *)(uintptr_t)found->servers[i].name);
		free(found->servers[i].url);
	}
	server_place_fini(&found->place);
	free(found->origin);
	free(found);
}

/* Only who may enter its directory can be there: a port is whoever's who is first. The caller frees it. */
static char *find_socket(const struct config *config)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct config_listen *listen = &config->listen[i];

		if (strncmp(listen->address, "unix:", 5) == 0 && listen->tls_count == 0 &&
		    !listen->proxy_protocol)
			return mem_strdup(listen->address + 5);
	}
	return NULL;
}

/* The file of the first certificate. The caller frees it. */
static char *find_certificate(const struct config *config)
{
	for (size_t i = 0; i < config->listen_count; i++)
		if (config->listen[i].tls_count > 0)
			return mem_strdup(config->listen[i].tls[0].certificate);
	return NULL;
}

static int find_in_file(const struct line *line, struct found *found)
{
	const struct config_request request = { .file = line->file };
	at_end(config_free) struct config *config = line_load(&request);

	if (config == NULL)
		return EXIT_USAGE;
	found->origin = origin_find(config, NULL);
	found->place.auth = mem_strdup(origin_auth_mode(config));
	found->place.socket = find_socket(config);
	found->place.certificate = find_certificate(config);
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].enabled || line->count > 1)
			add_found(found, line, config->servers[i].conf.name,
				  config->servers[i].endpoint.path.p);
	return 0;
}

static char *copy_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text != NULL ? mem_strdup(text) : NULL;
}

static int find_in_daemon(const struct line *line, struct found *found)
{
	struct line quiet = *line;
	const json_t *servers;
	json_auto_t *report = NULL;

	quiet.is_json = false;
	report = line_ask(&quiet, "GET", mem_strdup("/servers"), line_no_body);
	if (report == NULL)
		line_fail("without a daemon: -c FILE reads its configuration");
	servers = json_object_get(report, "servers");
	found->origin = copy_text(report, "origin");
	found->place.auth = copy_text(report, "auth");
	found->place.certificate = copy_text(report, "certificate");
	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *server = json_array_get(servers, i);

		add_found(found, line, json_string_value(json_object_get(server, "name")),
			  json_string_value(json_object_get(server, "path")));
	}
	return report != NULL ? 0 : EXIT_FAILED;
}

/* Where no daemon has ever made its socket, one that has a configuration will. */
static bool is_before_its_daemon(const struct line *line)
{
	if (access(line->socket, F_OK) == 0 || access(line->file, R_OK) != 0)
		return false;
	fprintf(stderr, "mcpgatectl: no daemon runs; this is from %s\n", line->file);
	return true;
}

static int is_beside(const struct dirent *entry)
{
	return strncmp(entry->d_name, "admin-", strlen("admin-")) == 0;
}

/* Which daemon was asked: there may be several. */
static int fail_none_in_daemon(const struct line *line)
{
	at_end(mem_free) char *folder = mem_strdup(line->socket);
	at_end(buf_fini) struct buf text = { 0 };
	at_end(mem_free) struct dirent **found = NULL;
	int count = scandir(dirname(folder), &found, is_beside, alphasort);

	buf_printf(
		&text,
		"there is no such server at the daemon of %s (pid %d); mcpgatectl servers lists them",
		line->socket, (int)address_owner(line->socket));
	for (int i = 0; i < count; i++) {
		buf_printf(&text, "%s %s/%s", i == 0 ? "; other daemons, for --socket:" : "",
			   folder, found[i]->d_name);
		free(found[i]);
	}
	return line_fail(buf_terminate(&text));
}

/* From the daemon, or from the configuration if that is given, or all there is; at least one server, and where it is. */
static int find(const struct line *line, struct found *found)
{
	bool is_of_file = line->has_file || is_before_its_daemon(line);
	int status = is_of_file ? find_in_file(line, found) : find_in_daemon(line, found);

	if (status != 0)
		return status;
	if (found->count == 0 && is_of_file)
		return line_fail("there is no such server in the configuration");
	if (found->count == 0)
		return fail_none_in_daemon(line);
	if (found->origin == NULL)
		return line_fail(
			"there is no address for clients: set public_url, or a listen address with "
			"a fixed port");
	return 0;
}

int server_place_find(const struct line *line, struct server_place *place_r)
{
	struct found *found = mem_zalloc(sizeof(*found));
	int status = find(line, found);

	*place_r = (struct server_place){ .url = NULL };
	if (status == 0) {
		CHECK(found->count > 0 && found->origin != NULL);
		*place_r = found->place;
		place_r->url = mem_strdup(found->servers[0].url);
		found->place = (struct server_place){ .url = NULL };
	}
	found_free(found);
	return status;
}

static int print_found(const struct line *line, struct found *found, const char *token)
{
	struct slice auth = slice_or_empty(found->place.auth);
	struct error err;

	CHECK(found->count > 0);
	for (size_t i = 0; i < found->count; i++) {
		struct client_config_server *server = &found->servers[i];

		server->takes_token = token != NULL || slice_is_equal(auth, SLICE_LIT("token"));
		server->takes_login = slice_is_equal(auth, SLICE_LIT("oauth"));
		server->token = token;
		server->certificate = found->place.certificate;
	}
	return client_config_print(found->servers, found->count, line->client, &err) == 0 ?
		       0 :
		       line_refuse_usage(err.text);
}

int client_config_run(const struct line *line)
{
	struct found *found;
	struct error err = { ERROR_NONE, "" };
	at_end(secret_free) char *token = NULL;
	int status;

	if ((line->count == 2) == line->all)
		return line_refuse_usage("usage: mcpgatectl client-config SERVER|--all");
	if (line->token_file != NULL && (token = line_read_token(line->token_file, &err)) == NULL)
		return line_refuse_usage(err.text);
	found = mem_zalloc(sizeof(*found));
	status = find(line, found);
	if (status == 0)
		status = print_found(line, found, token);
	found_free(found);
	return status;
}
