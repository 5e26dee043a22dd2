/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a configuration comes from: a YAML file, an imported JSON file, or the command line, which may
 * name a file of tokens besides. Each becomes a tree, and one loader (load.c) makes the configuration
 * from it. Certificates are read here and judged by the rules of their use (io/tls.h), so that each of
 * their files has a place in a message; nothing of them is kept. threats.md DEF-25.
 */
#include "config/config.h"

#include <fnmatch.h>
#include <openssl/sha.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/import.h"
#include "config/listed_path.h"
#include "config/load.h"
#include "config/self_signed.h"
#include "config/tree.h"
#include "config/table.h"
#include "io/pem.h"

#define DAYS_TO_WARN 14
/* Fewer characters than this are no secret: 128 bits need 22 of base64url. */
#define TOKEN_CHARACTERS_MIN 22

/* ---- where the values are ---- */

static struct tree *read_import(const char *path, struct types_context *context)
{
	size_t before = context->problems->count;
	at_end(buf_wipe) struct buf content = { 0 };
	struct tree *root;
	struct error err;
	struct stat status;

	if (file_read(path, &context->writers, IMPORT_BYTES_MAX, &content, &status, &err) != 0) {
		problem_add(context->problems, "%s: %s", path, err.text);
		return NULL;
	}
	include_check_mode(path, status.st_mode, context);
	root = import_read(buf_slice(&content), path, context->problems, context->warnings);
	if (context->problems->count > before && fnmatch("*.y*ml", path, 0) == 0)
		problem_add(context->problems, "%s: a configuration of mcpgated is read with -c",
			    path);
	return root;
}

/* ---- the command line ---- */

/* NAME=VALUE, or NAME alone, which is the reference {env: NAME}. */
static void add_variable(struct tree *env, const char *text, struct config_problems *problems)
{
	static const char option[] = "--env";
	const char *equals = strchr(text, '=');
	at_end(mem_free) char *name =
		equals != NULL ? mem_dup_slice(slice_between(text, equals)) : mem_strdup(text);

	if (tree_find(env, name) != NULL)
		problem_add(problems, "%s: %.60s is given twice", option, name);
	else if (equals != NULL)
		tree_add(env, name, tree_new_text(equals + 1, option));
	else
		tree_add(tree_add(env, name, tree_new(TREE_MAP, option)), "env",
			 tree_new_text(name, option));
}

/*
 * One server at /mcp with the name, variables and isolation of the request; everything else has its default.
 */
static struct tree *read_command(const struct config_request *request,
				 struct config_problems *problems)
{
	static const char place[] = "command line";
	at_end(mem_free) char *name = request->name != NULL ? mem_strdup(request->name) :
							      name_from_command(request->command);
	struct tree *root = tree_new(TREE_MAP, place);
	struct tree *servers = tree_add(root, "servers", tree_new(TREE_MAP, place));
	struct tree *server = tree_add(servers, name, tree_new(TREE_MAP, place));
	struct tree *args, *env;

	CHECK(request->command[0] != NULL);
	tree_add(server, "command", tree_new_text(request->command[0], place));
	args = tree_add(server, "args", tree_new(TREE_LIST, place));
	for (char *const *arg = request->command + 1; *arg != NULL; arg++)
		tree_add(args, NULL, tree_new_text(*arg, place));
	env = tree_add(server, "env", tree_new(TREE_MAP, place));
	for (size_t i = 0; i < request->env_count; i++)
		add_variable(env, request->env[i], problems);
	tree_add(server, "path", tree_new_text("/mcp", place));
	if (request->isolation != NULL)
		tree_add(server, "isolation", tree_new_text(request->isolation, "--isolation"));
	return root;
}

/* The paths are those of whoever types them, and read again later. */
static void add_path(struct tree *tls, const char *key, struct slice path)
{
	static const char file[] = "--tls";
	at_end(mem_free) char *directory = path.n > 0 && path.p[0] != '/' ? getcwd(NULL, 0) : NULL;
	at_end(mem_free) char *whole = directory != NULL ?
					       mem_printf("%s/%.*s", directory, SLICE_ARG(path)) :
					       mem_dup_slice(path);

	tree_add(tls, key, tree_new_text(whole, file));
}

static bool is_self_signed(const struct config_request *request)
{
	return request->tls != NULL && strcmp(request->tls, "self") == 0;
}

/* The two files of --tls; what stands for `self` has the name that clients use first. */
static void add_tls(const struct config_request *request, const struct slices *hosts,
		    struct tree *item, struct config_problems *problems)
{
	struct slice key = slice_str(request->tls);
	struct slice certificate = slice_cut(&key, ',');
	at_end(mem_free) char *own_certificate = NULL, *own_key = NULL;
	struct tree *tls;
	struct error err;

	if (is_self_signed(request)) {
		if (self_signed_paths(hosts->items[0].p, &own_certificate, &own_key, &err) < 0) {
			problem_add(problems, "%s", err.text);
			return;
		}
		certificate = slice_str(own_certificate);
		key = slice_str(own_key);
	}
	if (certificate.n == 0 || key.n == 0) {
		problem_add(problems,
			    "--tls: must be the two files CERTIFICATE,KEY, or self, not '%.200s'",
			    request->tls);
	} else {
		tls = tree_add(item, "tls", tree_new(TREE_MAP, "--tls"));
		add_path(tls, "certificate", certificate);
		add_path(tls, "key", key);
	}
}

static void add_listener(const struct config_request *request, const struct slices *hosts,
			 const char *address, struct tree *list, struct config_problems *problems)
{
	struct tree *item = tree_add(list, NULL, tree_new(TREE_MAP, list->file));

	CHECK(list->kind == TREE_LIST);
	if (address != NULL)
		tree_add(item, "address", tree_new_text(address, list->file));
	if (request->tls != NULL)
		add_tls(request, hosts, item, problems);
	if (request->plaintext)
		tree_add(item, "plaintext", tree_new_text("true", "--plaintext"))->is_plain = true;
}

/* Each --listen, with --tls and --plaintext, stands for all that the file says about listeners. */
static void replace_listen(const struct config_request *request, const struct slices *hosts,
			   struct tree *root, struct config_problems *problems)
{
	static const char file[] = "--listen";
	struct tree *list;
	size_t i = 0;

	if (root->kind != TREE_MAP)
		return;
	tree_remove(root, "listen");
	list = tree_add(root, "listen", tree_new(TREE_LIST, file));
	do
		add_listener(request, hosts, request->listen[i], list, problems);
	while (request->listen[i] != NULL && request->listen[++i] != NULL);
}

/* What --host says; without it, whoever makes a certificate is called as its machine. */
static void find_hosts(const struct config_request *request, struct slices *hosts)
{
	for (size_t i = 0; i < request->host_count; i++)
		texts_add(hosts, slice_str(request->hosts[i]));
	if (hosts->count > 0 || !is_self_signed(request))
		return;
	self_signed_add_names(hosts);
	if (hosts->count == 0)
		texts_add(hosts, SLICE_LIT("localhost"));
}

static void add_hosts(const struct slices *hosts, struct tree *root)
{
	static const char file[] = "--host";
	struct tree *list;

	if (hosts->count == 0 || root->kind != TREE_MAP)
		return;
	CHECK(tree_find(root, "hosts") == NULL); /* it is from no file that could have them */
	list = tree_add(root, "hosts", tree_new(TREE_LIST, file));
	for (size_t i = 0; i < hosts->count; i++)
		tree_add(list, NULL, tree_new_text(hosts->items[i].p, file));
}

static void add_log_level(const struct config_request *request, struct tree *root)
{
	static const char file[] = "--log-level";

	if (request->log_level == NULL || root->kind != TREE_MAP)
		return;
	CHECK(tree_find(root, "log") == NULL); /* it is from no file that could have it */
	tree_add(tree_add(root, "log", tree_new(TREE_MAP, file)), "level",
		 tree_new_text(request->log_level, file));
}

/* ---- a file of tokens in clear text, one a line; the configuration gets their hashes. AUTH-TOK-01 ---- */

static bool is_token(struct slice text)
{
	size_t n = text.n;

	while (text.n > 0 && text.p[text.n - 1] == '=')
		text.n--;
	return slice_is_name(text, "-._~+/") && n >= TOKEN_CHARACTERS_MIN;
}

/* What is most likely wrong with what is no token. */
static const char *why_no_token(struct slice text)
{
	if (slice_is_equal_nocase(text, SLICE_LIT("Bearer")))
		return "leave out the word before the token";
	if (memchr(text.p, '"', text.n) != NULL || memchr(text.p, '\'', text.n) != NULL)
		return "leave out the quotes";
	if (memchr(text.p, '=', text.n) != NULL)
		return "leave out what stands before the token, and the = behind it";
	return "to make one: mcpgatectl token new";
}

static void add_at(struct tree *entry, const char *key, const char *text, unsigned int line)
{
	tree_add(entry, key, tree_new_text(text, entry->file))->line = line;
}

/* Who has it is named on the line, or by the token itself: other lines may come and go. */
static void add_token(struct slice text, struct slice name, unsigned int line, struct tree *tokens)
{
	struct tree *entry = tree_add(tokens, NULL, tree_new(TREE_MAP, tokens->file));
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char digits[2 * sizeof(hash) + 1];
	at_end(mem_free) char *whole = NULL;

	SHA256((const unsigned char *)text.p, text.n, hash);
	text_to_hex(hash, sizeof(hash), digits);
	whole = name.n > 0 ? mem_dup_slice(name) :
			     mem_printf("token-%.*s", TOKEN_NAME_DIGITS, digits);
	add_at(entry, "name", whole, line);
	add_at(entry, "sha256", digits, line);
}

static void add_lines(const struct types_context *context, struct slice text, const char *path,
		      struct tree *tokens)
{
	struct slice one, name;
	unsigned int line = 0;
	bool is_empty = true;

	while (secret_cut_token(&text, &one, &name, &line)) {
		is_empty = false;
		if (is_token(one) && is_token(name))
			problem_add(
				context->problems,
				"%s:%u: a name that could be a token: the token comes first, and "
				"the name after it is shorter than %d characters",
				path, line, TOKEN_CHARACTERS_MIN);
		else if (is_token(one))
			add_token(one, name, line, tokens);
		else
			problem_add(context->problems,
				    "%s:%u: a token must have at least %d characters, and only "
				    "letters, digits and -._~+/, at its end also =; %s",
				    path, line, TOKEN_CHARACTERS_MIN, why_no_token(one));
	}
	if (is_empty)
		problem_add(context->problems,
			    "%s: contains no token; to make one: mcpgatectl token new", path);
}

/*
 * Makes `root` say auth.mode token, with an entry for each token of the file, which is its owner's alone as far as that can be
 * changed here. DEF-25
 */
static void replace_auth(const struct types_context *context, struct tree *root, const char *path)
{
	struct buf content = { 0 };
	struct tree *auth, *tokens;
	struct stat status = { .st_mode = 0 };
	struct error err;
	mode_t mode;

	tree_remove(root, "auth");
	auth = tree_add(root, "auth", tree_new(TREE_MAP, path));
	tree_add(auth, "mode", tree_new_text("token", path));
	tokens = tree_add(auth, "tokens", tree_new(TREE_LIST, path));
	if (file_read(path, &context->writers, SECRET_BYTES_MAX, &content, &status, &err) != 0) {
		problem_add(context->problems, "%s: %s", path, err.text);
		return;
	}
	mode = status.st_mode;
	if ((mode & (S_IWGRP | S_IWOTH)) != 0 ||
	    ((mode & (S_IRWXG | S_IRWXO)) != 0 && file_is_changeable(path)))
		problem_add(context->problems,
			    "%s: group or others may read or write these tokens; remove that "
			    "permission: chmod 600 %s",
			    path, path);
	else
		add_lines(context, buf_slice(&content), path, tokens);
	/* sshd goes by the owner of its keys, too. Who mounts secrets for a container says who may read them. */
	if (tokens->count > 0 && (mode & (S_IRWXG | S_IRWXO)) != 0)
		problem_add(
			context->warnings,
			"%s: group or others may read these tokens; if the file is mounted, as a "
			"secret of a container, mount it with mode 0400",
			path);
	buf_wipe(&content); /* as soon as the hashes are known */
}

/* ---- the files of listen[].tls ---- */

static bool read_pem(const struct types_context *context, const char *path, const struct tree *at,
		     struct buf *text_r)
{
	struct error err;
	struct stat status;

	if (path == NULL) /* the rules have said so */
		return false;
	/* The files are read again later, and a service is started somewhere else than -t. */
	if (path[0] != '/') {
		problem_add_at(context->problems, at, "must be an absolute path, not '%.100s'",
			       path);
		return false;
	}
	if (file_read(path, &context->writers, CERTIFICATES_BYTES_MAX, text_r, &status, &err) !=
	    0) {
		problem_add_at(context->problems, at, "%s: %s", path, err.text);
		return false;
	}
	if ((status.st_mode & S_IROTH) != 0 && at->key != NULL && strcmp(at->key, "key") == 0)
		problem_add_at(
			context->warnings, at,
			"everybody can read this private key; remove that permission: chmod o-r %s",
			path);
	return true;
}

/* who: those to whom it is shown. */
static bool check_certificate(const struct types_context *context, struct slice text,
			      const char *path, const char *who, const struct tree *at)
{
	bool is_valid_yet;
	int days_left;
	struct error err;

	if (pem_check_certificate(text, &days_left, &is_valid_yet, &err) < 0) {
		problem_add_at(context->problems, at, "%s: %s", path, err.text);
		return false;
	}
	if (!is_valid_yet)
		problem_add_at(context->warnings, at, "%s is not valid yet", path);
	if (days_left < 0)
		problem_add_at(context->warnings, at, "%s has expired; %s will refuse it", path,
			       who);
	else if (days_left < DAYS_TO_WARN)
		problem_add_at(context->warnings, at, "%s expires in %d days", path, days_left);
	return true;
}

/* The certificate and its key are there, they fit together, it is still valid. */
static void check_pair(const struct types_context *context, const char *certificate_file,
		       const char *key_file, const char *who, const struct tree *at)
{
	const struct tree *certificate_at = tree_below(at, "certificate");
	const struct tree *key_at = tree_below(at, "key");
	at_end(buf_wipe) struct buf certificate = { 0 }, key = { 0 };
	bool has_certificate = read_pem(context, certificate_file, certificate_at, &certificate);
	bool has_key = read_pem(context, key_file, key_at, &key);
	struct error err;

	if (has_certificate)
		has_certificate = check_certificate(context, buf_slice(&certificate),
						    certificate_file, who, certificate_at);
	if (has_certificate && has_key &&
	    pem_check_key(buf_slice(&certificate), buf_slice(&key), &err) < 0)
		problem_add_at(context->problems, key_at, "%s: %s", key_file, err.text);
}

static void check_authorities(const struct types_context *context, const char *file,
			      const struct tree *at)
{
	at_end(buf_wipe) struct buf authorities = { 0 };
	struct error err;

	if (read_pem(context, file, at, &authorities) &&
	    pem_check_authorities(buf_slice(&authorities), &err) < 0)
		problem_add_at(context->problems, at, "%s: %s", file, err.text);
}

static void check_tls(const struct types_context *context, const struct config_tls *tls,
		      const struct tree *at)
{
	check_pair(context, tls->certificate, tls->key, "clients", at);
	if (tls->client_ca != NULL)
		check_authorities(context, tls->client_ca, tree_below(at, "client_ca"));
}

/* Of a server behind a URL: nobody but that server's clients miss what is not there, and it may come later. */
static void check_server_tls(const struct types_context *context,
			     const struct config_server *server, const struct tree *at)
{
	struct types_context warned = *context;

	warned.problems = context->warnings;
	if (!server->enabled || server->url == NULL)
		return;
	if (server->certificate_file != NULL && server->key_file != NULL)
		check_pair(&warned, server->certificate_file, server->key_file, "the server", at);
	if (server->ca_file != NULL)
		check_authorities(&warned, server->ca_file, tree_below(at, "ca"));
}

static void check_all_tls(const struct types_context *context, const struct config *config,
			  const struct tree *root)
{
	const struct tree *list = tree_find(root, "listen");

	for (size_t i = 0; i < config->listen_count; i++) {
		const struct config_listen *listen = &config->listen[i];

		CHECK(listen->tls_count == 0 || (list != NULL && i < list->count));
		for (size_t j = 0; j < listen->tls_count; j++)
			check_tls(context, &listen->tls[j],
				  tree_item(tree_below(tree_item(list, i), "tls"), j));
	}
}

static void check_all_server_tls(const struct types_context *context, const struct config *config,
				 const struct tree *root)
{
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		check_server_tls(context, server,
				 tree_below(tree_below(root, "servers"), server->conf.name));
	}
}

/* --tls self has a certificate for every name that is served. */
static void make_certificate(const struct config *config, struct config_problems *problems,
			     struct config_problems *warnings)
{
	enum self_signed done = SELF_SIGNED_KEPT;
	struct error err;

	if (self_signed_keep(config->hosts.items[0].p, config->frontend.hosts, &done, &err) < 0)
		problem_add(problems, "%s", err.text);
	else if (done == SELF_SIGNED_MADE_AGAIN || done == SELF_SIGNED_EXTENDED)
		problem_add(warnings,
			    "--tls self: the certificate was made again, because it %s: clients "
			    "need the new one, %s",
			    done == SELF_SIGNED_EXTENDED ?
				    "lacked a name (it keeps those that it had)" :
				    "was about to expire, or its key could not be used",
			    config->listen[0].tls[0].certificate);
}

struct config *config_load(const struct config_request *request, struct config_problems *problems,
			   struct config_problems *warnings)
{
	struct types_context context = {
		.problems = problems,
		.warnings = warnings,
		.resolve = secret_resolve,
		.writers = { .running = request->running },
		.is_yaml = request->file != NULL,
	};
	struct config *config = NULL, *survey = NULL;
	at_end(texts_free) struct slices paths = { NULL, 0 }, hosts = { NULL, 0 };
	at_end(tree_free) struct tree *root = NULL;

	find_hosts(request, &hosts);
	if (request->file != NULL)
		root = include_read(request->file, &context, &paths);
	else if (request->import_file != NULL)
		root = read_import(request->import_file, &context);
	else if (request->command != NULL && request->command[0] != NULL)
		root = read_command(request, problems);
	else
		problem_add(problems, "command line: neither a file nor a command is given");
	CHECK(root != NULL || problems->count > 0);
	if (root != NULL &&
	    (request->listen[0] != NULL || request->tls != NULL || request->plaintext))
		replace_listen(request, &hosts, root, problems);
	if (root != NULL) {
		add_hosts(&hosts, root);
		add_log_level(request, root);
	}
	if (root != NULL && request->token_file != NULL)
		replace_auth(&context, root, request->token_file);
	if (root != NULL) {
		context.writers.next = survey = load_survey(root);
		config = load_draft(&context, root, NULL);
		config->is_command = request->command != NULL;
		check_all_server_tls(&context, config, root);
		if (!is_self_signed(request))
			check_all_tls(&context, config, root);
		else if (request->makes_certificate && problems->count == 0)
			make_certificate(config, problems, warnings);
	}
	if (root != NULL && request->check != NULL)
		request->check(request, config, root, problems, warnings);
	problems_sort(problems, request->file);
	problems_sort(warnings, request->file);
	if (problems->count > 0)
		config_free(&config);
	config_free(&survey);
	CHECK((config != NULL) == (problems->count == 0));
	return config;
}

struct config *config_read_next(struct slice text, const struct config *before, struct error *err)
{
	at_end(config_problems_fini) struct config_problems problems = { 0 }, warnings = { 0 };
	struct types_context context = {
		.problems = &problems,
		.warnings = &warnings,
		.resolve = secret_resolve,
		.is_checked = true,
	};
	struct slice places = places_cut(&text);
	struct config *config = NULL;
	at_end(tree_free) struct tree *root = yaml_read(text, "memory file", err);

	if (root != NULL)
		config = load_draft(&context, root, before);
	if (problems.count > 0)
		config_free(&config);
	if (config != NULL)
		rule_places_read(&config->rule_places, places);
	if (root != NULL && config == NULL)
		error_set(err, ERROR_INVALID, "%.200s", problems.items[0]);
	if (config != NULL && before != NULL &&
	    (config->scopes.lacks_some || config->roles.lacks_some ||
	     config->roles.count > ROLES_MAX)) {
		error_set(err, ERROR_INVALID,
			  "too many roles and scopes have been named since the start; restart "
			  "the daemon");
		config_free(&config);
	}
	return config;
}

struct config *config_read_checked(struct slice text, struct error *err)
{
	return config_read_next(text, NULL, err);
}
