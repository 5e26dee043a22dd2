/* SPDX-License-Identifier: Apache-2.0 */
/* One function per rule. threats.md DEF-01, DEF-02, DEF-04; mcpgated(1). */
#include "config/rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/address.h"
#include "config/claim.h"
#include "config/problem.h"
#include "endpoint/origin.h"
#include "io/peer.h"

#define SERVER_NAME_MAX 64

static const struct tree *server_place(const struct tree *root, const struct config_server *server)
{
	return tree_below(tree_below(root, "servers"), server->conf.name);
}

/* An entry of a top-level list. */
static const struct tree *item_place(const struct tree *root, const char *key, size_t index)
{
	return tree_item(tree_below(root, key), index);
}

/* A listener that other machines reach says twice that this is meant. What to write is what there is to change. */
static void check_exposure(const struct config *config, const struct config_listen *listen,
			   const struct tree *at, struct config_problems *problems)
{
	bool is_plain = !listen->plaintext && listen->tls_count == 0;
	bool is_open = config->frontend.authorization.mode == AUTHORIZATION_NONE;

	if (is_plain && at->line > 0)
		problem_add_at(
			problems, at,
			"other machines may reach %s, and it has no TLS. In the configuration "
			"file, add to this entry of listen the line 'tls: {certificate: FILE, "
			"key: FILE}'; or, if a proxy in front has TLS, the line 'plaintext: true'",
			listen->address);
	else if (is_plain)
		problem_add_at(problems, at,
			       "other machines may reach %s, and it has no TLS; add --tls "
			       "CERTIFICATE,KEY; or, if a proxy in front has TLS, --plaintext",
			       listen->address);
	if (is_open && config->is_from_file)
		problem_add_at(
			problems, at,
			"other machines may reach %s, and no token is required. In the "
			"configuration file, add at the top level the line 'auth: {mode: token, "
			"tokens: [{name: NAME, sha256: HASH}]}'; or, if everybody who can connect "
			"may use the servers, the line 'auth: {mode: anonymous}'",
			listen->address);
	else if (is_open)
		problem_add_at(
			problems, at,
			"other machines may reach %s, and no token is required; add --token-file "
			"FILE (openssl rand -hex 32 makes a token)",
			listen->address);
}

static void check_tls(const struct config_listen *listen, const struct tree *item,
		      struct config_problems *problems)
{
	for (size_t i = 0; i < listen->tls_count; i++) {
		const struct tree *at = tree_item(tree_find(item, "tls"), i);
		const struct config_tls *tls = &listen->tls[i];

		if (tls->certificate == NULL && tree_find(at, "certificate") == NULL)
			problem_add_at(problems, at, "the key 'certificate' is missing");
		if (tls->key == NULL && tree_find(at, "key") == NULL)
			problem_add_at(problems, at, "the key 'key' is missing");
		if (i > 0 && (tls->client_ca != NULL || tree_find(at, "min_version") != NULL))
			problem_add_at(
				problems, at,
				"client_ca and min_version apply to the whole address: set them in "
				"the first entry of tls");
	}
	if (listen->tls_count > 0 && listen->plaintext)
		problem_add_at(
			problems, tree_below(item, "plaintext"),
			"an address cannot have both tls and plaintext; remove one of the two");
}

static void check_listen(const struct config *config, const struct tree *root,
			 struct config_problems *problems)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct config_listen *listen = &config->listen[i];
		const struct tree *item = item_place(root, "listen", i);
		const struct tree *at = tree_below(item, "address");
		const char *port = strrchr(listen->address, ':');
		struct address address;
		struct error err;

		if (address_parse(listen->address, &address, &err) != 0)
			problem_add_at(problems, at, "%s", err.text);
		else if (!address.is_local)
			check_exposure(config, listen, at, problems);
		check_tls(listen, item, problems);
		/* A port that the kernel chooses is another one each time. */
		for (size_t j = 0; j < i && (port == NULL || strcmp(port, ":0") != 0); j++)
			if (strcmp(config->listen[j].address, listen->address) == 0)
				problem_add_at(problems, at, "the address %s is listed twice",
					       listen->address);
	}
}

/* The admin socket has no password: who may open the file is the operator. threats.md SEC-17 */
static void check_admin(const struct config *config, const struct tree *root,
			struct config_problems *problems)
{
	const struct tree *admin = tree_below(root, "admin");
	const struct tree *address_at = tree_below(admin, "address");
	const struct tree *metrics_at = tree_below(admin, "metrics");
	const char *text = config->admin_address;
	bool is_word = strcmp(text, "auto") == 0 || strcmp(text, "off") == 0;
	struct address address;
	struct error err;

	if (!is_word && strncmp(text, "unix:", 5) != 0)
		problem_add_at(
			problems, address_at,
			"must be unix:PATH, auto or off, not '%.100s'; to give Prometheus an "
			"address of its own, use admin.metrics",
			text);
	else if (!is_word && address_parse(text, &address, &err) != 0)
		problem_add_at(problems, address_at, "%s", err.text);
	if (config->admin_metrics == NULL)
		return;
	if (address_parse(config->admin_metrics, &address, &err) != 0)
		problem_add_at(problems, metrics_at, "%s", err.text);
	else if (!address.is_local)
		problem_add_at(
			problems, metrics_at,
			"must be an address that only this machine can reach, like 127.0.0.1:9464 or "
			"unix:PATH, not '%.100s'",
			config->admin_metrics);
}

/* Who reads it there is not asked who he is, so only this machine may. SEC-17 */
static void check_page(const struct config *config, const struct tree *root,
		       struct config_problems *problems)
{
	const struct tree *admin = tree_below(root, "admin");
	const struct tree *page_at = tree_below(admin, "page");
	const struct tree *token_at = tree_below(admin, "page_token");
	const char *token = config->admin_page_token;
	unsigned char hash[AUTHORIZATION_HASH_BYTES];
	struct address address;
	struct error err;

	if (token != NULL && text_from_hex(slice_str(token), hash, sizeof(hash)) < 0)
		problem_add_at(
			problems, token_at,
			"must be 64 hexadecimal digits, the output of: printf %%s TOKEN | sha256sum");
	if (config->admin_page == NULL) {
		if (token != NULL)
			problem_add_at(problems, token_at,
				       "is for the page at admin.page, which is not set");
		return;
	}
	if (address_parse(config->admin_page, &address, &err) != 0)
		problem_add_at(problems, page_at, "%s", err.text);
	else if (!address.is_local || address.kind != ADDRESS_TCP)
		problem_add_at(
			problems, page_at,
			"must be a loopback address, like 127.0.0.1:9090, not '%.100s'; the admin "
			"socket serves the page without this key",
			config->admin_page);
}

/*
 * `SCHEME://HOST`, with a port or without, and nothing behind. Extensions and applications have schemes
 * of their own. RFC 3986 §3.1
 */
static bool is_origin(const char *text)
{
	static const char others[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
	const char *rest = text + strspn(text, others);

	return isalpha((unsigned char)text[0]) && strncmp(rest, "://", 3) == 0 && rest[3] != '\0' &&
	       strpbrk(rest + 3, "/?#@*\" ") == NULL;
}

/* An origin, and perhaps a path without a slash at its end: what a proxy has in front of ours. */
static bool is_public_url(const char *text)
{
	struct slice url = slice_str(text);
	char *origin = mem_dup_slice(origin_of(url));
	bool is_web = slice_has_prefix(url, SLICE_LIT("https://")) ||
		      slice_has_prefix(url, SLICE_LIT("http://"));
	bool is_good = is_web && is_origin(origin) && strpbrk(text, "?#*\" ") == NULL &&
		       strstr(text + strlen(origin), "//") == NULL && text[url.n - 1] != '/';

	free(origin);
	return is_good;
}

/* The names by which others call us. */
static void check_names(const struct config *config, const struct tree *root,
			struct config_problems *problems)
{
	const char *public_url = config->frontend.authorization.public_url.p;

	if (public_url != NULL && !is_public_url(public_url))
		problem_add_at(
			problems, tree_below(root, "public_url"),
			"must be like https://mcp.example.com or https://example.com/mcp, without "
			"a slash at the end, not '%.100s'",
			public_url);
	for (size_t i = 0; i < config->frontend.origins.count; i++) {
		const char *origin = config->frontend.origins.items[i].p;

		if (!is_origin(origin))
			problem_add_at(problems, item_place(root, "origins", i),
				       "must be an origin like https://app.example.com, without "
				       "a path or '*', not '%.100s'",
				       origin);
	}
	for (size_t i = 0; i < config->hosts.count; i++) {
		struct slice host = config->hosts.items[i];
		bool is_v6 = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

		/* Host headers are compared without their port. */
		if (host.n == 0 || strpbrk(host.p, is_v6 ? "/?#@*\" " : "/?#@*\" :[]") != NULL)
			problem_add_at(problems, item_place(root, "hosts", i),
				       "must be a name or an address without a port, IPv6 in "
				       "brackets, not '%.100s'",
				       host.p);
	}
}

static bool check_name(const struct config_server *server, const struct tree *at,
		       struct config_problems *problems)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
	const char *name = server->conf.name;
	size_t length = strlen(name);

	bool is_good = length > 0 && length <= SERVER_NAME_MAX && strspn(name, letters) == length &&
		       name[0] != '_' && name[0] != '-';

	if (!is_good)
		problem_add_at_key(
			problems, at,
			"the server name '%.60s' must have 1 to 64 lowercase letters, digits, '-' "
			"and '_', and begin with a letter or digit",
			name);
	return is_good;
}

static void check_path(const struct config_server *server, const struct tree *at,
		       struct config_problems *problems)
{
	/* What the daemon itself answers; the last three are what clients of OAuth try. AUTH-FAC-06 */
	static const char *const reserved[] = { "/healthz",   "/readyz", "/.well-known",
						"/authorize", "/token",  "/register" };
	const char *path = server->endpoint.path.p;
	bool is_reserved = strncmp(path, "/.well-known/", 13) == 0;
	size_t length = 0;

	CHECK(path != NULL);
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		is_reserved |= strcmp(path, reserved[i]) == 0;
	while (path[length] > ' ' && path[length] < 0x7f && strchr("?#%\"\\", path[length]) == NULL)
		length++;
	if (path[0] != '/' || path[length] != '\0')
		problem_add_at(problems, at,
			       "the path '%.100s' must begin with '/' and have only visible ASCII "
			       "characters other than ? # %% \" and backslash",
			       path);
	else if (is_reserved)
		problem_add_at(problems, at, "the path '%.100s' is reserved for the daemon itself",
			       path);
}

struct path_taken {
	struct map_link link; /* by the hash of the path */
	struct slice path;
	const struct config_server *by;
};

static const struct config_server *find_path(const struct map *taken, struct slice path)
{
	for (struct map_link *link = map_find_link(taken, text_hash(0, path)); link != NULL;
	     link = link->next)
		if (slice_is_equal(container_of(link, struct path_taken, link)->path, path))
			return container_of(link, struct path_taken, link)->by;
	return NULL;
}

/* AUTH-AUD-03, AUTH-CFG-01 */
static void check_paths_are_unique(const struct config *config, const struct tree *root,
				   struct config_problems *problems)
{
	struct path_taken *entries = mem_zalloc((config->server_count * 3 + 1) * sizeof(*entries));
	struct path_taken *next = entries;
	struct map taken = { 0 };

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i], *other = NULL;
		const struct endpoint *own = &server->endpoint;
		struct slice paths[] = { own->path, own->sse_path, own->message_path };

		for (size_t p = 0; p < ARRAY_LEN(paths) && server->enabled && other == NULL; p++) {
			other = find_path(&taken, paths[p]);
			if (other != NULL)
				problem_add_at(
					problems, tree_below(server_place(root, server), "path"),
					"the path '%.100s' is already used by the server '%s'",
					paths[p].p, other->conf.name);
		}
		for (size_t p = 0; p < ARRAY_LEN(paths) && server->enabled; p++, next++) {
			*next = (struct path_taken){ .path = paths[p], .by = server };
			map_insert_link(&taken, text_hash(0, paths[p]), &next->link);
		}
	}
	map_fini(&taken);
	free(entries);
}

static void check_timeouts(const struct config_server *server, const struct tree *at,
			   struct config_problems *problems)
{
	const struct tool_timeouts *timeouts = &server->conf.tool_timeouts;
	uint64_t max_ms = server->conf.request_timeout_max_ms;

	if (server->conf.request_timeout_ms > max_ms)
		problem_add_at(problems, problem_place(at, "request_timeout"),
			       "request_timeout must not be longer than request_timeout_max");
	for (size_t i = 0; i < timeouts->count; i++)
		if (timeouts->items[i].timeout_ms > max_ms)
			problem_add_at(problems, problem_place(at, "tool_timeout"),
				       "the timeout of the tool '%.60s' must not be longer than "
				       "request_timeout_max",
				       timeouts->items[i].tool.p);
}

/* A process that many share, or callers who show no token, have no one whose claims these could be. AUTH-DWN-02 */
static void check_claims(const struct config *config, const struct config_server *server,
			 const struct tree *root, struct config_problems *problems)
{
	const struct tree *at = problem_place(server_place(root, server), "env");
	enum authorization_mode mode = config->frontend.authorization.mode;
	const struct slices *claims = &server->conf.claims;

	if (claims->count == 0)
		return;
	if (claims->count > CLAIMS_MAX)
		problem_add_at(problems, at, "there are more than %d different claims", CLAIMS_MAX);
	if (server->conf.isolation == ISOLATION_SHARED)
		problem_add_at(problems, at,
			       "claims of the caller (${claim:%.60s}) need isolation session or "
			       "principal: with shared, one process serves everybody",
			       claims->items[0].p);
	if (mode < AUTHORIZATION_TOKEN)
		problem_add_at(
			problems, at,
			"claims of the caller (${claim:%.60s}) need callers with a token: %s",
			claims->items[0].p,
			config->is_from_file ? "set auth.mode" : "add --token-file FILE");
	for (size_t i = 0; mode == AUTHORIZATION_TOKEN && i < claims->count; i++)
		if (!slice_is_equal(claims->items[i], SLICE_LIT("sub")))
			problem_add_at(
				problems, at,
				"a static token has only the claim sub, which is its name; it has "
				"no '%.60s'",
				claims->items[i].p);
}

static void refuse_claims(const char *text, const struct tree *at, struct config_problems *problems)
{
	if (text != NULL && claim_is_in(text))
		problem_add_at(problems, at,
			       "claims of the caller (${claim:…}) can only be in env");
}

static void check_redact(const struct config_server *server, const struct tree *list,
			 struct config_problems *problems)
{
	for (size_t i = 0; i < server->redact.count; i++) {
		struct redact_rules rules = { NULL, 0 };
		struct error err;

		if (redact_add(&rules, server->redact.items[i], &err) < 0)
			problem_add_at(problems, tree_item(list, i), "is not a usable pattern: %s",
				       err.text);
		redact_free(&rules);
	}
}

/* What can be seen without asking the machine; of the sandbox the rest is kernel_features_check's. */
static void check_server(const struct config_server *server, const struct tree *at,
			 struct config_problems *problems)
{
	const struct server_conf *conf = &server->conf;
	const char *mask = server->umask != NULL ? server->umask : "0";
	size_t digits = strspn(mask, "01234567");

	/* The name is part of the usual path. */
	if (check_name(server, at, problems) || tree_find(at, "path") != NULL)
		check_path(server, tree_below(at, "path"), problems);
	check_timeouts(server, at, problems);
	check_redact(server, problem_place(at, "redact"), problems);
	rules_check_arguments(server, at, problems);
	rules_check_tool_limits(server, at, problems);
	if (conf->pool_min > conf->pool_max)
		problem_add_at(problems, problem_place(at, "pool"),
			       "pool.min must not be more than pool.max");
	if (conf->warm > conf->pool_max)
		problem_add_at(problems, problem_place(at, "pool"),
			       "pool.warm must not be more than pool.max");
	if (mask[digits] != '\0' || digits < 1 || digits > 4 || (digits == 4 && mask[0] != '0'))
		problem_add_at(problems, problem_place(at, "umask"),
			       "must be up to four octal digits like \"0077\", not '%.60s'", mask);
	for (size_t i = 0; i < server->args.count; i++)
		refuse_claims(server->args.items[i].p, problem_place(at, "args"), problems);
	refuse_claims(server->command, problem_place(at, "command"), problems);
	refuse_claims(server->cwd, problem_place(at, "cwd"), problems);
	/* One that is there but wrong has been reported. */
	if (server->command == NULL && (at->kind == TREE_MAP || tree_is_null(at)) &&
	    tree_find(at, "command") == NULL)
		problem_add_at(problems, at, "the key 'command' is missing");
}

void rules_check(const struct config *config, const struct tree *root,
		 struct config_problems *problems)
{
	const char *log = config->log_target;
	struct peer_net ignored;

	/* What follows from the options is judged as well. */
	CHECK(config->frontend.authorization.scopes == &config->scopes);
	check_listen(config, root, problems);
	check_admin(config, root, problems);
	check_page(config, root, problems);
	check_names(config, root, problems);
	rules_check_auth(config, root, problems);
	rules_check_audit(config, root, problems);
	rules_check_traces(config, root, problems);
	for (size_t i = 0; i < config->trusted_proxies.count; i++)
		if (!peer_net_parse(config->trusted_proxies.items[i], &ignored))
			problem_add_at(
				problems, item_place(root, "trusted_proxies", i),
				"must be an address, a network like 10.0.0.0/8, or unix, not "
				"'%.100s'",
				config->trusted_proxies.items[i].p);
	if (strcmp(log, "stderr") != 0 && strcmp(log, "journal") != 0 && log[0] != '/')
		problem_add_at(
			problems, tree_below(tree_below(root, "log"), "target"),
			"must be stderr, journal, or the absolute path of a file, not '%.100s'",
			log);
	for (size_t i = 0; i < config->server_count; i++) {
		check_server(&config->servers[i], server_place(root, &config->servers[i]),
			     problems);
		check_claims(config, &config->servers[i], root, problems);
		rules_check_sandbox(config, &config->servers[i], root,
				    server_place(root, &config->servers[i]), problems);
	}
	check_paths_are_unique(config, root, problems);
}
