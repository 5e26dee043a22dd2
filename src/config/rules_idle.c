/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that do nothing where they stand, and entries whose time is over: told, and no reason not to start. What stands
 * under `defaults` is meant for several servers, and not told.
 */
#include <string.h>

#include "auth/jwt.h"
#include "base/clock.h"
#include "config/problem.h"
#include "config/quantity.h"
#include "config/rules.h"
#include "config/table.h"

/* value: what stands in the configuration; NULL: nothing does */
static void warn_if_idle(const struct tree *value, bool is_idle, const char *why,
			 struct config_problems *warnings)
{
	if (is_idle && value != NULL)
		problem_add_at(warnings, value, "has no effect here: %s", why);
}

/* As a printed configuration has each key. */
static bool says_default(const char *level, const struct tree *value)
{
	const struct option *option = table_find(level, value->key);

	return option != NULL && option->def != NULL && value->kind == TREE_TEXT &&
	       strcmp(value->text, option->def) == 0;
}

/* A section that does nothing; what says the default is not told. */
static void warn_of_section(const char *level, const struct tree *section, const char *why,
			    struct config_problems *warnings)
{
	for (size_t i = 0; section != NULL && section->kind == TREE_MAP && i < section->count; i++)
		warn_if_idle(section->items[i], !says_default(level, section->items[i]), why,
			     warnings);
}

/* Where headers or a file of authorities stand without an endpoint, or records are required, it is refused. */
static void warn_of_traces_and_audit(const struct config *config, const struct tree *root,
				     struct config_problems *warnings)
{
	const struct collector_conf *collector = &config->traces.collector;

	if (collector->endpoint == NULL && collector->headers.count == 0 &&
	    collector->ca_file == NULL)
		warn_of_section("traces.otlp", tree_find(tree_find(root, "traces"), "otlp"),
				"'endpoint' is not set, so no spans are sent", warnings);
	if (config->audit.to == NULL && !config->audit.is_required)
		warn_of_section("audit", tree_find(root, "audit"),
				"'to' is not set, so nothing is recorded", warnings);
}

/* Lines that config has asked for, of a level that is not logged. */
static void warn_of_log(const struct config *config, const struct tree *root,
			struct config_problems *warnings)
{
	static const char why[] = "its lines are of level info, and 'level' leaves those out";
	const struct tree *log = tree_find(root, "log");
	bool is_quiet = config->log_level < LOG_LEVEL_INFO;

	warn_if_idle(tree_find(log, "access"), is_quiet && config->http.logs_access, why, warnings);
	warn_if_idle(tree_find(log, "payloads"), is_quiet && config->log_payloads, why, warnings);
}

/* Keys of a server that are for other isolations, where they are set to something else than the default. */
static void warn_of_isolation(const struct config_server *server, const struct tree *at,
			      struct config_problems *warnings)
{
	const struct server_conf *conf = &server->conf;
	bool is_shared = conf->isolation == ISOLATION_SHARED;
	bool is_for_one = conf->isolation == ISOLATION_SESSION;
	const struct {
		const char *section; /* NULL: of the server itself */
		const char *key;
		bool is_idle;
		const char *why;
	} keys[] = {
		{ "pool", "min", !is_shared && conf->pool_min > 0, "it is for isolation shared" },
		{ "pool", "warm", is_shared && conf->warm > 0,
		  "it is for isolation session or principal" },
		{ "pool", "sleep_after", !is_for_one && conf->sleep_after_ms > 0,
		  "it is for isolation session" },
		{ "pool", "reclaim", !is_for_one && conf->reclaims == RECLAIM_NEVER,
		  "it is for isolation session" },
		{ NULL, "assume_no_server_requests", is_shared && conf->never_asks,
		  "it is for isolation principal" },
		{ NULL, "progress_while_waiting", is_shared && conf->tells_progress,
		  "it is for isolation session or principal" },
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		warn_if_idle(tree_find(keys[i].section != NULL ? tree_find(at, keys[i].section) :
								 at,
				       keys[i].key),
			     keys[i].is_idle, keys[i].why, warnings);
}

/* `at`: where a limit stands. */
static void warn_of_rate(const struct rate_rule *rule, const char *level, const struct tree *at,
			 struct config_problems *warnings)
{
	static const char *const keys[] = { "per", "burst" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct tree *value = tree_find(at, keys[i]);

		if (value != NULL && !says_default(level, value))
			warn_if_idle(value, rule->calls == 0, "it needs 'calls', which is not set",
				     warnings);
	}
}

/* Whether entries above this one are for all of its tools. */
static bool is_for_none(const struct tool_limits *limits, size_t index)
{
	const struct names *names = &limits->items[index].tools;

	for (size_t i = 0; i < names->written.count; i++) {
		size_t above = 0;

		while (above < index && !names_fit(&limits->items[above].tools, names->folded[i]))
			above++;
		if (above == index)
			return false;
	}
	return true;
}

static void warn_of_limits(const struct config_server *server, const struct tree *at,
			   struct config_problems *warnings)
{
	const struct tool_limits *limits = &server->conf.limits.tools;
	const struct tree *list = tree_find(tree_find(at, "tools"), "limits");

	warn_of_rate(&server->conf.limits.all.rate, OPTIONS_SERVER ".rate", tree_find(at, "rate"),
		     warnings);
	for (size_t i = 0; list != NULL && i < limits->count; i++) {
		warn_of_rate(&limits->items[i].limit.rate, OPTIONS_TOOL_LIMIT, tree_item(list, i),
			     warnings);
		warn_if_idle(tree_item(list, i), is_for_none(limits, i),
			     "entries above it already match all of its tools, and the first match "
			     "counts",
			     warnings);
	}
}

static void warn_of_hide(const struct config_server *server, const struct tree *at,
			 struct config_problems *warnings)
{
	const struct needs *needs = &server->conf.needs;
	bool has_any = false;

	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++)
		has_any |= needs->by_name[kind].count > 0;
	warn_if_idle(tree_find(at, "hide"), needs->hides && !has_any,
		     "it is about scopes of tools, prompts and resources, and none are set",
		     warnings);
}

/* What one caller's process shows would be withheld from another. */
static void warn_of_pin(const struct config_server *server, const struct tree *at,
			struct config_problems *warnings)
{
	bool has_claims = false;

	for (size_t i = 0; i < server->env_count; i++)
		has_claims |= server->env[i].has_claims;
	if (has_claims && server->conf.pin == PIN_ENFORCE)
		problem_add_at(
			warnings, tree_below(at, "pin"),
			"env has claims: if the definitions differ between callers, those of the "
			"first are approved and the others' are withheld");
}

/* A token in env that says when it ends: who is shown it would refuse the server. */
static void warn_of_expired(const struct config_server *server, const struct tree *at,
			    struct config_problems *warnings)
{
	uint64_t now_s = clock_wall_ms() / 1000;

	for (size_t i = 0; i < server->env_count; i++) {
		const struct config_pair *pair = &server->env[i];
		char text[QUANTITY_TEXT_MAX];
		struct verdict verdict;
		struct jwt jwt;
		json_int_t end_s;

		if (jwt_parse(slice_str(pair->value), &jwt, &verdict) < 0)
			continue;
		end_s = json_integer_value(json_object_get(jwt.claims, "exp"));
		jwt_fini(&jwt);
		if (end_s <= 0 || (uint64_t)end_s > now_s)
			continue;
		quantity_format_date((uint64_t)end_s * 1000, text);
		problem_add_at(warnings, tree_below(tree_below(at, "env"), pair->name),
			       "is a token (JWT) that expired on %s", text);
	}
}

/* As a package installs it, and nothing to stop for: the first server comes with a reload. */
static void warn_of_no_server(const struct config *config, const struct tree *root,
			      struct config_problems *warnings)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].enabled)
			return;
	problem_add_at(warnings, tree_below(root, "servers"),
		       "there is no server yet; add one under 'servers' and reload");
}

void rules_warn(const struct config *config, const struct tree *root,
		struct config_problems *warnings)
{
	const struct static_tokens *tokens = &config->frontend.authorization.tokens;
	const struct tree *list = tree_find(tree_find(root, "auth"), "tokens");

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];
		const struct tree *servers = tree_below(root, "servers");
		const struct tree *at = tree_find(servers, server->conf.name);

		warn_of_isolation(server, at, warnings);
		warn_of_limits(server, at, warnings);
		warn_of_hide(server, at, warnings);
		warn_of_pin(server, tree_below(servers, server->conf.name), warnings);
		warn_of_expired(server, tree_below(servers, server->conf.name), warnings);
		rules_warn_of_arguments(server, tree_below(servers, server->conf.name), warnings);
	}
	warn_of_no_server(config, root, warnings);
	warn_of_traces_and_audit(config, root, warnings);
	warn_of_log(config, root, warnings);
	rules_warn_of_roles(config, root, warnings);
	rules_warn_of_proxy(config, root, warnings);
	for (size_t i = 0; list != NULL && i < tokens->count; i++) {
		uint64_t ends_at_ms = tokens->items[i].ends_at_ms;

		if (ends_at_ms > 0 && ends_at_ms <= clock_wall_ms())
			problem_add_at(warnings, tree_below(tree_item(list, i), "expires"),
				       "is in the past: this token can no longer be used");
	}
}
