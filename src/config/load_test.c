/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From YAML text to a configuration: the defaults, every type of option, and each refusal with its
 * exact place and words. No file is read; references to secrets are answered by a stub.
 */
#include "config/load.h"

#include "base/mem.h"
#include "base/unit_test.h"
#include "config/tree.h"
#include "obs/log.h"

struct outcome {
	struct config *config;
	struct config_problems problems;
	struct config_problems warnings;
};

static int resolve(const char *kind, const char *name, const struct listed_writers *writers,
		   char **value_r, struct error *err)
{
	if (strcmp(name, "gone") == 0)
		return error_set(err, ERROR_INVALID, "the stub has no %s", name);
	*value_r = mem_printf("%s of %s", name, kind);
	return 0;
}

static struct outcome load_readable(const char *yaml, bool is_world_readable)
{
	struct outcome outcome = { 0 };
	struct types_context context = {
		.problems = &outcome.problems,
		.warnings = &outcome.warnings,
		.resolve = resolve,
		.is_yaml = true,
		.is_world_readable = is_world_readable,
	};
	struct error err = { .text = "" };
	struct tree *root = yaml_read(slice_str(yaml), "F", &err);

	if (root == NULL)
		fail_msg("no YAML: %s", err.text);
	outcome.config = load_tree(&context, root);
	tree_free(&root);
	return outcome;
}

static void end(struct outcome *outcome)
{
	config_free(&outcome->config);
	config_problems_fini(&outcome->problems);
	config_problems_fini(&outcome->warnings);
}

static struct outcome load_good(const char *yaml)
{
	struct outcome outcome = load_readable(yaml, false);

	if (outcome.config == NULL)
		fail_msg("refused: %s", outcome.problems.items[0]);
	return outcome;
}

static void assert_problems(const char *yaml, const char *const *expected)
{
	struct outcome outcome = load_readable(yaml, false);
	size_t count = 0;

	while (expected[count] != NULL)
		count++;
	assert_null(outcome.config);
	for (size_t i = 0; i < outcome.problems.count && i < count; i++)
		assert_string_equal(outcome.problems.items[i], expected[i]);
	assert_int_equal(outcome.problems.count, count);
	end(&outcome);
}

#define ASSERT_PROBLEMS(yaml, ...) assert_problems(yaml, (const char *const[]){ __VA_ARGS__, NULL })

/* The smallest good file; what a test wants follows. */
#define SERVER "servers: {a: {command: x}}\n"

/* DEF-01, DEF-08, DEF-09 and the numbers of mcpgated.yaml(5) */
static void test_defaults_of_the_daemon(void **state)
{
	struct outcome outcome = load_good(SERVER);
	const struct config *c = outcome.config;

	assert_int_equal(c->listen_count, 1);
	assert_string_equal(c->listen[0].address, "127.0.0.1:8808");
	assert_false(c->listen[0].plaintext);
	assert_null(c->frontend.authorization.public_url.p);
	assert_int_equal(c->hosts.count, 0);
	assert_int_equal(c->frontend.origins.count, 0);
	assert_int_equal(c->frontend.authorization.mode, AUTHORIZATION_NONE);
	assert_int_equal(c->http.max_connections, 10000);
	assert_int_equal(c->sessions.max_sessions, 10000);
	assert_int_equal(c->http.header_bytes, 16 << 10);
	assert_int_equal(c->http.body_bytes, 4 << 20);
	assert_int_equal(c->response_bytes, 16 << 20);
	assert_int_equal(c->json_depth, 128);
	assert_int_equal(c->http.header_timeout_ms, 10000);
	assert_int_equal(c->http.body_timeout_ms, 30000);
	assert_int_equal(c->http.idle_timeout_ms, 120000);
	assert_int_equal(c->sessions.idle_ms, 3600000);
	assert_int_equal(c->sessions.max_age_ms, 86400000);
	assert_int_equal(c->frontend.reconnect_ms, 60000);
	assert_int_equal(c->frontend.keepalive_ms, 15000);
	assert_int_equal(c->sessions.store.stream.max_bytes, 1 << 20);
	assert_int_equal(c->frontend.grace_ms, 1000);
	assert_int_equal(c->frontend.response, FRONTEND_RESPONSE_AUTO);
	assert_int_equal(c->drain_timeout_ms, 30000);
	assert_int_equal(c->log_level, LOG_LEVEL_INFO);
	assert_int_equal(c->log_format, LOG_FORMAT_TEXT);
	assert_string_equal(c->log_target, "stderr");
	assert_int_equal(outcome.warnings.count, 0);
	end(&outcome);
}

static void test_defaults_of_a_server(void **state)
{
	static const char *const inherited[] = { "PATH",
						 "HOME",
						 "LANG",
						 "TZ",
						 "HTTP_PROXY",
						 "HTTPS_PROXY",
						 "NO_PROXY",
						 "ALL_PROXY",
						 "http_proxy",
						 "https_proxy",
						 "no_proxy",
						 "all_proxy",
						 "SSL_CERT_FILE",
						 "SSL_CERT_DIR",
						 "NODE_EXTRA_CA_CERTS",
						 "REQUESTS_CA_BUNDLE",
						 "CURL_CA_BUNDLE" };
	struct outcome outcome = load_good(SERVER);
	const struct config_server *s = outcome.config->servers;

	assert_int_equal(outcome.config->server_count, 1);
	assert_string_equal(s->conf.name, "a");
	assert_string_equal(s->endpoint.path.p, "/a/mcp");
	assert_string_equal(s->command, "x");
	assert_int_equal(s->args.count, 0);
	assert_int_equal(s->env_count, 0);
	assert_int_equal(s->inherit_env.count, ARRAY_LEN(inherited));
	for (size_t i = 0; i < ARRAY_LEN(inherited); i++)
		assert_string_equal(s->inherit_env.items[i].p, inherited[i]);
	assert_null(s->cwd);
	assert_null(s->user);
	assert_null(s->umask);
	assert_int_equal(s->memory_bytes, 0);
	assert_int_equal(s->processes, 0);
	assert_int_equal(s->cpu_percent, 0);
	assert_int_equal(s->open_files, 0);
	assert_int_equal(s->sandbox, CONFIG_SANDBOX_OFF);
	assert_int_equal(s->sandbox_read.count, 0);
	assert_false(s->sandbox_connect.is_any);
	assert_int_equal(s->sandbox_connect.count, 0);
	assert_true(s->enabled);
	assert_int_equal(s->conf.isolation, ISOLATION_SESSION);
	assert_int_equal(s->conf.pool_max, 64);
	assert_int_equal(s->conf.start_timeout_ms, 60000);
	assert_int_equal(s->conf.backoff_min_ms, 1000);
	assert_int_equal(s->conf.backoff_max_ms, 60000);
	assert_int_equal(s->conf.give_up_after, 5);
	assert_int_equal(s->conf.request_timeout_ms, 300000);
	assert_int_equal(s->conf.request_timeout_max_ms, 3600000);
	assert_int_equal(s->conf.tool_timeouts.count, 0);
	assert_int_equal(s->conf.stop_grace_ms, 5000);
	assert_int_equal(s->conf.stop_term_ms, 5000);
	assert_int_equal(s->conf.line_max, 16 << 20);
	end(&outcome);
}

static void test_values_of_every_type(void **state)
{
	struct outcome outcome = load_good(
		"listen:\n  - {address: 0.0.0.0:80, plaintext: true}\n  - address: unix:/run/x\n"
		"auth: {mode: anonymous}\nlimits: {connections: 5, response: 2MiB}\n"
		"drain_timeout: 0\nlog: {level: debug, target: /var/log/x}\norigins: ['http://x:1']\n"
		"servers:\n  a:\n    command: x\n    args: [-y, '', 8080, true]\n"
		"    start: {backoff: 2s..2s}\n    tool_timeout: {deploy: 10m}\n    enabled: false\n");
	const struct config *c = outcome.config;
	const struct config_server *s = c->servers;

	assert_int_equal(c->listen_count, 2);
	assert_true(c->listen[0].plaintext);
	assert_string_equal(c->listen[1].address, "unix:/run/x");
	assert_int_equal(c->frontend.authorization.mode, AUTHORIZATION_ANONYMOUS);
	assert_int_equal(c->http.max_connections, 5);
	assert_int_equal(c->drain_timeout_ms, 0);
	assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
	assert_string_equal(c->frontend.origins.items[0].p, "http://x:1");
	assert_int_equal(s->conf.line_max, 2 << 20);
	assert_int_equal(s->args.count, 4);
	assert_string_equal(s->args.items[1].p, "");
	assert_string_equal(s->args.items[2].p, "8080");
	assert_string_equal(s->args.items[3].p, "true");
	assert_int_equal(s->conf.backoff_min_ms, 2000);
	assert_int_equal(s->conf.backoff_max_ms, 2000);
	assert_string_equal(s->conf.tool_timeouts.items[0].tool.p, "deploy");
	assert_int_equal(s->conf.tool_timeouts.items[0].timeout_ms, 600000);
	assert_false(s->enabled);
	end(&outcome);
}

static void test_confinement_of_a_server(void **state)
{
	struct outcome outcome =
		load_good("servers:\n  a:\n    command: x\n    user: u\n    umask: 0077\n"
			  "    resources: {open_files: 64, memory: 1MiB, processes: 7, cpu: 150%}\n"
			  "    sandbox: {mode: landlock, read: [/a, /b], write: [/c], "
			  "connect: [443, 1], bind: any}\n");
	const struct config_server *s = outcome.config->servers;

	assert_string_equal(s->user, "u");
	assert_string_equal(s->umask, "0077");
	assert_int_equal(s->open_files, 64);
	assert_int_equal(s->memory_bytes, 1 << 20);
	assert_int_equal(s->processes, 7);
	assert_int_equal(s->cpu_percent, 150);
	assert_int_equal(s->sandbox, CONFIG_SANDBOX_LANDLOCK);
	assert_string_equal(s->sandbox_read.items[1].p, "/b");
	assert_string_equal(s->sandbox_write.items[0].p, "/c");
	assert_int_equal(s->sandbox_connect.count, 2);
	assert_int_equal(s->sandbox_connect.items[0], 443);
	assert_true(s->sandbox_bind.is_any);
	end(&outcome);
	ASSERT_PROBLEMS("servers: {a: {command: x, umask: '088'}}\n",
			"F:1:34: servers.a.umask: must be up to four octal digits like \"0077\", "
			"not '088'");
	ASSERT_PROBLEMS("servers: {a: {command: x, sandbox: {read: [b], mode: landlock}}}\n",
			"F:1:44: servers.a.sandbox.read[0]: must be an absolute path, not 'b'");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, sandbox: {connect: 443, mode: landlock}}}\n",
		"F:1:46: servers.a.sandbox.connect: must be a list of ports, like [443], or "
		"the word any");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, sandbox: {bind: [65536, 0, x], mode: landlock}}}\n",
		"F:1:44: servers.a.sandbox.bind[0]: must be a port, 1 to 65535, not '65536'",
		"F:1:51: servers.a.sandbox.bind[1]: must be a port, 1 to 65535, not '0'",
		"F:1:54: servers.a.sandbox.bind[2]: must be a port, 1 to 65535, not 'x'");
	ASSERT_PROBLEMS("servers: {a: {command: x, idle_timeout: 5m}}\n",
			"F:1:27: unknown key 'idle_timeout'; did you mean 'pool.idle_timeout'?");
	/* SEC-62: nobody is left to believe in a sandbox that is none. */
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, sandbox: {read: [/b]}}}\n",
		"F:1:36: servers.a.sandbox: without 'mode' there is no sandbox, and nothing is "
		"refused: add 'mode: landlock', or 'mode: off' if you want none");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x}}\ndefaults: {sandbox: {udp: none}}\n",
		"F:2:21: defaults.sandbox: without 'mode' there is no sandbox, and nothing is "
		"refused: add 'mode: landlock', or 'mode: off' if you want none");
	outcome = load_good("servers: {a: {command: x, sandbox: {mode: off, read: [/b]}}}\n");
	end(&outcome);
	outcome = load_good("servers: {a: {command: x, sandbox: {read: [/b]}}}\n"
			    "defaults: {sandbox: {mode: landlock}}\n");
	end(&outcome);
	ASSERT_PROBLEMS("servers: {a: {command: x, resources: {cpu: 1}}}\n",
			"F:1:44: servers.a.resources.cpu: must be a percentage such as 10%, "
			"not '1'");
	ASSERT_PROBLEMS("servers: {a: {command: x, resources: {cpu: 0%}}}\n",
			"F:1:44: servers.a.resources.cpu: must be at least 1%, not '0%'");
	ASSERT_PROBLEMS("servers: {a: {command: x, resources: {open_files: 1}}}\n",
			"F:1:51: servers.a.resources.open_files: must be at least 16, not '1'");
}

#define SERVER_A(rest) "servers: {a: {command: x, " rest "}}\n"
#define NEED_TOKENS                                                                          \
	"servers.a.env: claims of the caller (${claim:sub}) need callers with a token: set " \
	"auth.mode"

/* AUTH-DWN-02, -03: the names are noted once; where nobody could be meant, claims are refused. */
static void test_claims(void **state)
{
	static const char tokens[] =
		"auth: {mode: token, tokens: [{name: n, sha256: "
		"0123456789012345678901234567890123456789012345678901234567890123}]}\n"
		"servers: {a: {command: x, env: {U: 'u-${claim:sub}-${claim:sub}', V: '$${x', "
		"A_TOKEN: '${claim:sub}', B_TOKEN: 's3cret-${claim:sub}', C_TOKEN: '${claim:sub}s3cret'}}}\n";
	struct outcome outcome = load_good(tokens);
	const struct config_server *server = &outcome.config->servers[0];

	assert_int_equal(server->conf.claims.count, 1);
	assert_string_equal(server->conf.claims.items[0].p, "sub");
	assert_true(server->env[0].has_claims);
	assert_string_equal(server->env[0].value, "u-${claim:sub}-${claim:sub}");
	assert_false(server->env[1].has_claims);
	/* What stands beside a claim may be a secret. */
	assert_false(server->env[2].is_secret);
	assert_true(server->env[3].is_secret);
	assert_true(server->env[4].is_secret);
	end(&outcome);
	ASSERT_PROBLEMS(SERVER_A("env: {U: '${claim:sub}'}"), "F:1:32: " NEED_TOKENS);
	ASSERT_PROBLEMS(
		SERVER_A("isolation: shared, env: {U: '${claim:sub}'}"),
		"F:1:51: servers.a.env: claims of the caller (${claim:sub}) need isolation session "
		"or principal: with shared, one process serves everybody",
		"F:1:51: " NEED_TOKENS);
	ASSERT_PROBLEMS(
		SERVER_A("env: {U: '${claim:sub'}"),
		"F:1:36: servers.a.env.U: a claim must be written like ${claim:sub}, with a name "
		"of 1 to 64 visible ASCII characters");
	ASSERT_PROBLEMS(
		SERVER_A("env: {U: '${claim:}'}"),
		"F:1:36: servers.a.env.U: a claim must be written like ${claim:sub}, with a name "
		"of 1 to 64 visible ASCII characters");
	ASSERT_PROBLEMS(
		SERVER_A("args: ['${claim:sub}']"),
		"F:1:34: servers.a.args[0]: claims of the caller (${claim:…}) can only be in env and headers");
}

/* Own values win, lists are replaced, maps are joined; empty sections are no error. */
static void test_defaults_section(void **state)
{
	struct outcome outcome =
		load_good("limits:\ndefaults:\n  command: d\n  args: [1, 2]\n  env: {A: 1, B: 1}\n"
			  "  tool_timeout: {t: 1s, u: 1s}\n  pool: {max: 3}\n  stop:\n"
			  "servers:\n  a:\n  b: {command: x, args: [3], env: {B: 2, C: 2}, "
			  "tool_timeout: {u: 2s}, pool: }\n");
	const struct config_server *a = &outcome.config->servers[0], *b = a + 1;

	assert_string_equal(a->command, "d");
	assert_int_equal(a->args.count, 2);
	assert_int_equal(a->conf.pool_max, 3);
	assert_string_equal(b->command, "x");
	assert_int_equal(b->args.count, 1);
	assert_int_equal(b->conf.pool_max, 3);
	assert_int_equal(b->env_count, 3);
	assert_string_equal(b->env[1].name, "B");
	assert_string_equal(b->env[1].value, "2");
	assert_int_equal(b->conf.tool_timeouts.count, 2);
	assert_int_equal(b->conf.tool_timeouts.items[0].timeout_ms, 1000);
	assert_int_equal(b->conf.tool_timeouts.items[1].timeout_ms, 2000);
	end(&outcome);
}

static void test_environment_and_references(void **state)
{
	struct outcome outcome = load_good(
		"servers:\n  a:\n    command: x\n    env: {MODE: fast, API_KEY: k, F: {file: /p}, "
		"E: {env: V}, C: {credential: n}}\n");
	const struct config_pair *env = outcome.config->servers[0].env;

	assert_int_equal(outcome.config->servers[0].env_count, 5);
	assert_string_equal(env[0].value, "fast");
	assert_false(env[0].is_secret);
	assert_string_equal(env[1].value, "k");
	assert_true(env[1].is_secret);
	assert_string_equal(env[2].value, "/p of file");
	assert_true(env[2].is_secret);
	assert_string_equal(env[3].value, "V of env");
	assert_string_equal(env[4].value, "n of credential");
	assert_true(env[4].is_secret);
	end(&outcome);
}

static void test_unknown_keys_name_the_nearest(void **state)
{
	ASSERT_PROBLEMS("servers:\n  a:\n    command: x\n    pol: {max: 1}\n",
			"F:4:5: unknown key 'pol'; did you mean 'pool'?");
	ASSERT_PROBLEMS(
		SERVER "limits:\n  conections: 5\n  xyz: 1\n",
		"F:3:3: unknown key 'conections'; did you mean 'connections'?",
		"F:4:3: unknown key 'xyz'; the keys here are: "
		"connections, sessions, sessions_per_principal, processes, header_bytes, message, response, json_depth, "
		"header_timeout, body_timeout, idle_timeout");
	ASSERT_PROBLEMS("{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\n",
			"F:1:2: unknown key 'mcpServers': this is the file of a client; to serve "
			"what it has, use --import");
	ASSERT_PROBLEMS(SERVER "listen: [{adress: x, backlog: 5}]\n",
			"F:2:11: unknown key 'adress'; did you mean 'address'?",
			"F:2:22: unknown key 'backlog'; the keys here are: address, "
			"tls, plaintext, proxy_protocol");
	ASSERT_PROBLEMS(SERVER "sessions:\n  isolaton: x\n",
			"F:3:3: unknown key 'isolaton'; the keys here are: "
			"idle_timeout, max_age, persist, reconnect_timeout");
	ASSERT_PROBLEMS(
		SERVER "defaults: {quux: shared}\n",
		"F:2:12: unknown key 'quux'; the keys here are: "
		"command, args, url, headers, auth, ca, certificate, key, proxy, allow_private, env, inherit_env, cwd, user, umask, path, card, enabled, "
		"isolation, era, assume_no_server_requests, progress_while_waiting, pool, "
		"start, request_timeout, request_timeout_max, audience, clients, algorithms, scopes, hide, tools, prompts, "
		"templates, rate, concurrency, pin, sanitize, redact, tool_timeout, stop, "
		"resources, sandbox");
	ASSERT_PROBLEMS(SERVER "\"lis\\nten\": 1\n",
			"F:2:1: unknown key 'lis?ten'; did you mean 'listen'?");
}

/* SEC-52, SEC-53 */
static void test_what_servers_write(void **state)
{
	struct outcome outcome = load_good(
		"servers:\n  a: {command: x, sanitize: {controls: strip, invisible: mark}, redact: ['sk-[a-z]+', b]}\n"
		"  b: {command: x}\n");
	const struct server_conf *a = &outcome.config->servers[0].conf;
	const struct server_conf *b = &outcome.config->servers[1].conf;

	assert_int_equal(a->sanitize.controls, SANITIZE_STRIP);
	assert_int_equal(a->sanitize.invisible, SANITIZE_MARK);
	assert_int_equal(a->redact.count, 2);
	assert_int_equal(b->sanitize.controls, SANITIZE_KEEP);
	assert_int_equal(b->sanitize.invisible, SANITIZE_KEEP);
	assert_int_equal(b->redact.count, 0);
	end(&outcome);
	ASSERT_PROBLEMS(
		SERVER_A("sanitize: {controls: drop}"),
		"F:1:48: servers.a.sanitize.controls: must be one of keep, strip, mark, not "
		"'drop'");
	ASSERT_PROBLEMS(
		SERVER_A("redact: [ok, 'a(', 'b*']"),
		"F:1:40: servers.a.redact[1]: is not a usable pattern: missing closing "
		"parenthesis, at byte 2",
		"F:1:46: servers.a.redact[2]: is not a usable pattern: it matches the empty text, "
		"and so every text, at byte 0");
}

/* REL-46 */
static void test_tool_limits(void **state)
{
	struct outcome outcome = load_good(
		"defaults: {tools: {limits: [{tools: [d], calls: 1}]}}\nservers:\n"
		"  a: {command: x, tools: {limits: [{tools: ['Create_*', b], calls: 10, per: 2m, burst: 3},"
		" {tools: [c], concurrency: 1}]}}\n  b: {command: x}\n");
	const struct tool_limits *a = &outcome.config->servers[0].conf.limits.tools;
	const struct tool_limits *b = &outcome.config->servers[1].conf.limits.tools;

	assert_int_equal(a->count, 2);
	assert_string_equal(a->items[0].tools.folded[0].p, "create_*");
	assert_int_equal(a->items[0].limit.rate.calls, 10);
	assert_int_equal(a->items[0].limit.rate.per_ms, 120000);
	assert_int_equal(a->items[0].limit.rate.burst, 3);
	assert_int_equal(a->items[0].limit.concurrency, 0);
	assert_int_equal(a->items[1].limit.rate.calls, 0);
	assert_int_equal(a->items[1].limit.concurrency, 1);
	assert_int_equal(b->count, 1);
	assert_string_equal(b->items[0].tools.folded[0].p, "d");
	end(&outcome);
	ASSERT_PROBLEMS(
		SERVER_A(
			"tools: {limits: [{calls: 1}, {tools: [t], per: 1m}, {tools: [\"\\u200b\"], calls: 1}]}"),
		"F:1:88: servers.a.tools.limits[2].tools[0]: the name of the tool has an invisible "
		"or unassigned character",
		"F:1:44: servers.a.tools.limits[0]: the key 'tools' is missing",
		"F:1:56: servers.a.tools.limits[1]: limits nothing: it has neither 'calls' nor "
		"'concurrency'");
	ASSERT_PROBLEMS(SERVER_A("tools: {limits: [{tools: [], calls: 1}]}"),
			"F:1:52: servers.a.tools.limits[0].tools: must not be empty");
}

static void test_shown(void **state)
{
	struct outcome outcome = load_good(SERVER_A(
		"tools: {rename: {'x y': b.C-1_}, describe: {'x y': \"Say \\\"a\\\".\"}, annotations: {'x y': {title: A, destructiveHint: false}}}"));
	const struct shown_items *items = &outcome.config->servers[0].conf.shown.kinds[0];

	assert_true(slice_is_equal(items->names.items[0].values.items[0], SLICE_LIT("b.C-1_")));
	assert_true(slice_is_equal(items->descriptions.items[0].values.items[0],
				   SLICE_LIT("Say \"a\".")));
	assert_true(slice_is_equal(items->annotations.items[0].values.items[0],
				   SLICE_LIT("{\"destructiveHint\":false,\"title\":\"A\"}")));
	end(&outcome);
	ASSERT_PROBLEMS(
		SERVER_A("tools: {rename: {'a*': b, c: 'd e', f: [g]}}"),
		"F:1:50: servers.a.tools.rename.a*: must be one name: no * stands for others here",
		"F:1:56: servers.a.tools.rename.c: must be 1 to 128 letters (a to z), digits, '_', '-' and '.'",
		"F:1:66: servers.a.tools.rename.f: must be a text, not a list");
	ASSERT_PROBLEMS(SERVER_A("prompts: {rename: {a: x, b: y, c: x}}"),
			"F:1:45: servers.a.prompts.rename: 'a' and 'c' must not have one name");
	ASSERT_PROBLEMS(
		SERVER_A(
			"tools: {annotations: {a: {readOnly: true, idempotentHint: maybe, title: [x]}, b: 1}}"),
		"F:1:63: servers.a.tools.annotations.a.readOnly: must be one of title, readOnlyHint, "
		"destructiveHint, idempotentHint, openWorldHint, not 'readOnly'",
		"F:1:85: servers.a.tools.annotations.a.idempotentHint: must be true or false, not 'maybe'",
		"F:1:99: servers.a.tools.annotations.a.title: must be a text, not a list",
		"F:1:108: servers.a.tools.annotations.b: must be a map, like {delete_repo: {destructiveHint: true}}");
}

/* SEC-63 */
static void test_audit(void **state)
{
	struct outcome outcome = load_good(
		SERVER "audit: {to: /var/log/audit.jsonl, required: true, arguments: true}\n");

	assert_string_equal(outcome.config->audit.to, "/var/log/audit.jsonl");
	assert_true(outcome.config->audit.is_required);
	assert_true(outcome.config->audit.shows_arguments);
	assert_false(outcome.config->audit.is_refused_only);
	end(&outcome);
	outcome = load_good(SERVER "audit: {to: \"unix:/run/a\", calls: refused}\n");
	assert_true(outcome.config->audit.is_refused_only);
	end(&outcome);
	outcome = load_good(SERVER "audit: {to: journal}\n");
	end(&outcome);
	outcome = load_good(SERVER);
	assert_null(outcome.config->audit.to);
	end(&outcome);
	ASSERT_PROBLEMS(
		SERVER "audit: {to: audit.log}\n",
		"F:2:13: audit.to: must be the absolute path of a file, journal, or unix:PATH with "
		"the absolute path of a socket, not 'audit.log'");
	ASSERT_PROBLEMS(SERVER "audit: {to: \"unix:a\"}\n",
			"F:2:13: audit.to: must be the absolute path of a file, journal, or "
			"unix:PATH with the absolute path of a socket, not 'unix:a'");
	ASSERT_PROBLEMS(SERVER "audit: {required: true}\n",
			"F:2:19: audit.required: needs audit.to, like "
			"/var/log/mcpgated/audit.jsonl: without it nothing is recorded");
	ASSERT_PROBLEMS(SERVER "audit: {to: journal, required: true, calls: refused}\n",
			"F:2:32: audit.required: needs 'audit.calls: all': it is about calls");
	ASSERT_PROBLEMS(SERVER "audit: {too: a}\n", "F:2:9: unknown key 'too'; did you mean 'to'?");
}

static void test_wrong_types(void **state)
{
	ASSERT_PROBLEMS("- a\n", "F:1:1: must be a map of keys and values");
	ASSERT_PROBLEMS(SERVER "limits: 5\n", "F:2:9: limits: must be a map of keys and values");
	ASSERT_PROBLEMS(SERVER "limits: {connections: many}\n",
			"F:2:23: limits.connections: must be a whole number, not 'many'");
	ASSERT_PROBLEMS(SERVER "limits: {connections: '5'}\n",
			"F:2:23: limits.connections: must be a whole number, not '5'");
	ASSERT_PROBLEMS(SERVER "limits: {connections: [5]}\n",
			"F:2:23: limits.connections: must be a whole number, not '[…]'");
	ASSERT_PROBLEMS(
		SERVER "limits: {message: 4MB}\n",
		"F:2:19: limits.message: must be a size like 512KiB, 4MiB or 1GiB, not '4MB'");
	ASSERT_PROBLEMS(SERVER "drain_timeout: 30\n",
			"F:2:16: drain_timeout: must be a time like 500ms, 30s, 5m, 2h or 1d, not "
			"'30'");
	ASSERT_PROBLEMS(SERVER "listen: [{plaintext: yes}]\n",
			"F:2:22: listen[0].plaintext: must be true or false, not 'yes'");
	ASSERT_PROBLEMS(
		SERVER "listen: [{plaintext: 'true'}]\n",
		"F:2:22: listen[0].plaintext: must be true or false without quotes, not 'true'");
	ASSERT_PROBLEMS(
		SERVER "auth: {mode: basic}\n",
		"F:2:14: auth.mode: must be one of none, token, oauth, anonymous, not 'basic'");
	ASSERT_PROBLEMS(SERVER "hosts: example.com\n", "F:2:8: hosts: must be a list, like [a, b]");
	ASSERT_PROBLEMS(SERVER "hosts: [{a: b}]\n", "F:2:9: hosts[0]: must be a text, not a map");
	ASSERT_PROBLEMS(SERVER "public_url:\n", "F:2:12: public_url: has no value");
	ASSERT_PROBLEMS("servers: {a: {command: ''}}\n",
			"F:1:24: servers.a.command: must not be empty");
	ASSERT_PROBLEMS("servers: {a: {command: [x]}}\n",
			"F:1:24: servers.a.command: must be a text, not a list");
	ASSERT_PROBLEMS("servers: {a: x}\n", "F:1:14: servers.a: must be a map of keys and values");
	ASSERT_PROBLEMS(SERVER "listen: 127.0.0.1:80\n",
			"F:2:9: listen: must be a list of maps, like [{address: 127.0.0.1:8808}]");
	ASSERT_PROBLEMS(SERVER "listen: []\n",
			"F:2:9: listen: must be a list of maps, like [{address: 127.0.0.1:8808}]");
	ASSERT_PROBLEMS("servers: [a]\n", "F:1:10: servers: must be a map of names and servers");
}

static void test_impossible_values(void **state)
{
	ASSERT_PROBLEMS(SERVER "streams: {keepalive: 56s}\n",
			"F:2:22: streams.keepalive: must be at most 55s, not '56s'");
	ASSERT_PROBLEMS(SERVER "limits: {json_depth: 1025, sessions: 0}\n",
			"F:2:22: limits.json_depth: must be at most 1024, not '1025'",
			"F:2:38: limits.sessions: must be at least 1, not '0'");
	ASSERT_PROBLEMS(SERVER "limits: {header_bytes: 1}\n",
			"F:2:24: limits.header_bytes: must be at least 1KiB, not '1'");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, start: {backoff: 2s..1s}}}\n",
		"F:1:44: servers.a.start.backoff: the first time must not be longer than the "
		"second");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, start: {backoff: 2s}}}\n",
		"F:1:44: servers.a.start.backoff: must be two times like 1s..60s, not '2s'");
	ASSERT_PROBLEMS("servers: {a: {command: x, tool_timeout: {t: 0}}}\n",
			"F:1:45: servers.a.tool_timeout.t: must be at least 1ms, not '0'");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, request_timeout: 2m, request_timeout_max: 1m,\n"
		"  tool_timeout: {t: 61s}}}\n",
		"F:1:44: servers.a.request_timeout: request_timeout must not be longer than "
		"request_timeout_max",
		"F:2:17: servers.a.tool_timeout: the timeout of the tool 't' must not be longer "
		"than request_timeout_max");
	ASSERT_PROBLEMS(
		SERVER "log: {target: stdout}\n",
		"F:2:15: log.target: must be stderr, journal, or the absolute path of a file, "
		"not 'stdout'");
	ASSERT_PROBLEMS(SERVER "public_url: https://x/y/\n",
			"F:2:13: public_url: must be like https://mcp.example.com or "
			"https://example.com/mcp, without a slash at the end, not 'https://x/y/'");
	ASSERT_PROBLEMS(
		SERVER "origins: [https://a, '*']\nhosts: [http://x]\n",
		"F:2:22: origins[1]: must be an origin like https://app.example.com, without a "
		"path or '*', not '*'",
		"F:3:9: hosts[0]: must be a name or an address without a port, IPv6 in brackets, "
		"not 'http://x'");
	ASSERT_PROBLEMS(
		SERVER "origins: ['chrome-extension://abc', 'tauri://localhost', 'app://-', "
		       "'vscode-file://vscode-app', '://a', '1a://b', 'app://']\n",
		"F:2:97: origins[4]: must be an origin like https://app.example.com, without a "
		"path or '*', not '://a'",
		"F:2:105: origins[5]: must be an origin like https://app.example.com, without a "
		"path or '*', not '1a://b'",
		"F:2:115: origins[6]: must be an origin like https://app.example.com, without a "
		"path or '*', not 'app://'");
	ASSERT_PROBLEMS(SERVER "public_url: app://x\n",
			"F:2:13: public_url: must be like https://mcp.example.com or "
			"https://example.com/mcp, without a slash at the end, not 'app://x'");
	ASSERT_PROBLEMS(SERVER "hosts: ['', 'a:1', '[::1]', '[', '::1']\n",
			"F:2:9: hosts[0]: must be a name or an address without a port, IPv6 in "
			"brackets, not ''",
			"F:2:13: hosts[1]: must be a name or an address without a port, IPv6 in "
			"brackets, not 'a:1'",
			"F:2:29: hosts[3]: must be a name or an address without a port, IPv6 in "
			"brackets, not '['",
			"F:2:34: hosts[4]: must be a name or an address without a port, IPv6 in "
			"brackets, not '::1'");
}

/* One certificate or several; what is wrong with an entry, and what belongs to the first alone. */
static void test_tls(void **state)
{
	struct outcome outcome;
	const struct config_listen *listen;

	outcome = load_good(SERVER
			    "listen: [{tls: {certificate: c, key: k, min_version: '1.3'}},\n"
			    "  {address: '[::1]:0', tls: [{certificate: a, key: b, client_ca: d},\n"
			    "    {certificate: e, key: f}]}]\n");
	listen = outcome.config->listen;
	assert_int_equal(listen[0].tls_count, 1);
	assert_true(listen[0].tls[0].is_only_13);
	assert_null(listen[0].tls[0].client_ca);
	assert_int_equal(listen[1].tls_count, 2);
	assert_string_equal(listen[1].tls[0].client_ca, "d");
	assert_false(listen[1].tls[0].is_only_13);
	assert_string_equal(listen[1].tls[1].key, "f");
	end(&outcome);
	ASSERT_PROBLEMS(SERVER "listen: [{tls: {key: k}}]\n",
			"F:2:16: listen[0].tls: the key 'certificate' is missing");
	ASSERT_PROBLEMS(
		SERVER "listen: [{tls: x}]\n",
		"F:2:16: listen[0].tls: must be a map like {certificate: "
		"/etc/mcpgated/tls.crt, key: /etc/mcpgated/tls.key}, or a list of such maps");
	ASSERT_PROBLEMS(SERVER "listen: [{tls: {certificate: c, key: k, cert: x}}]\n",
			"F:2:41: unknown key 'cert'; did you mean 'certificate'?");
	ASSERT_PROBLEMS(
		SERVER "listen: [{tls: [{certificate: c, key: k},\n"
		       "  {certificate: c, key: k, client_ca: x}]}]\n",
		"F:3:3: listen[0].tls[1]: client_ca and min_version apply to the whole address: "
		"set them in the first entry of tls");
	ASSERT_PROBLEMS(
		SERVER "listen: [{plaintext: true, tls: {certificate: c, key: k}}]\n",
		"F:2:22: listen[0].plaintext: cannot stand beside tls; remove one of the two");
}

#define NO_TLS(place, address)                                                                       \
	place ": listen[0].address: other machines may reach " address                               \
	      ", and it has no TLS. In the configuration file, add to "                              \
	      "this entry of listen the line 'tls: {certificate: FILE, key: FILE}'; or, if a proxy " \
	      "in front has TLS, the line 'plaintext: true'"
#define NO_TOKENS(place, address)                                                                \
	place ": listen[0].address: other machines may reach " address                           \
	      ", and no token is required. In the configuration file, add at the top level the " \
	      "line 'auth: {mode: token, tokens: [{name: NAME, sha256: HASH}]}'; or, if "        \
	      "everybody who can connect may use the servers, the line 'auth: {mode: anonymous}'"

/* DEF-01, DEF-02, DEF-04: the text says what to write, and only what is missing. */
static void test_reachable_listener_needs_two_lines(void **state)
{
	static const char *const good[] = {
		SERVER "auth: {mode: anonymous}\nlisten: [{address: '[::]:1', plaintext: true}]\n",
		SERVER "listen: [{address: 127.0.0.1:0}, {address: 127.0.0.1:0}]\n",
		SERVER
		"auth: {mode: anonymous}\n"
		"listen: [{address: systemd:a, plaintext: true}, {address: systemd:a, plaintext: true}]\n",
		SERVER "listen: [{address: 'unix:/run/x', plaintext: true}]\n",
		SERVER
		"auth: {mode: anonymous}\nlisten: [{address: '[::]:1', tls: {certificate: c, key: k}}]\n",
	};

	ASSERT_PROBLEMS(SERVER "listen: [{address: 0.0.0.0:80}]\n", NO_TLS("F:2:20", "0.0.0.0:80"),
			NO_TOKENS("F:2:20", "0.0.0.0:80"));
	ASSERT_PROBLEMS(SERVER "auth: {mode: anonymous}\nlisten: [{address: '[::]:80'}]\n",
			NO_TLS("F:3:20", "[::]:80"));
	ASSERT_PROBLEMS(SERVER "listen: [{address: 10.0.0.1:80, plaintext: true}]\n",
			NO_TOKENS("F:2:20", "10.0.0.1:80"));
	ASSERT_PROBLEMS(SERVER "listen: [{address: 10.0.0.1:80, tls: {certificate: c, key: k}}]\n",
			NO_TOKENS("F:2:20", "10.0.0.1:80"));
	ASSERT_PROBLEMS(
		SERVER "listen: [{address: x}, {address: '127.0.0.1:1'},\n"
		       "  {address: '127.0.0.1:1'}]\n",
		"F:2:20: listen[0].address: must end in ':' and a port from 0 to 65535, like "
		"127.0.0.1:8808",
		"F:3:13: listen[2].address: the address 127.0.0.1:1 is listed twice");
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct outcome outcome = load_good(good[i]);

		end(&outcome);
	}
}

/* SEC-17 */
static void test_admin_is_for_this_machine(void **state)
{
	struct outcome outcome = load_good(SERVER);

	assert_string_equal(outcome.config->admin_address, "auto");
	assert_null(outcome.config->admin_metrics);
	end(&outcome);
	outcome = load_good(SERVER "admin: {address: 'unix:/a/b', metrics: '127.0.0.1:9464'}\n");
	assert_string_equal(outcome.config->admin_address, "unix:/a/b");
	assert_string_equal(outcome.config->admin_metrics, "127.0.0.1:9464");
	end(&outcome);
	ASSERT_PROBLEMS(
		SERVER "admin: {address: '127.0.0.1:1'}\n",
		"F:2:18: admin.address: must be unix:PATH, auto or off, not '127.0.0.1:1'; to give "
		"Prometheus an address of its own, use admin.metrics");
	ASSERT_PROBLEMS(
		SERVER "admin: {metrics: '0.0.0.0:1'}\n",
		"F:2:18: admin.metrics: must be an address that only this machine can reach, "
		"like 127.0.0.1:9464 or unix:PATH, not '0.0.0.0:1'");
}

#define HASH "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

/* SEC-17 */
static void test_the_page_is_for_this_machine(void **state)
{
	struct outcome outcome =
		load_good(SERVER "admin: {page: '[::1]:9090', page_token: " HASH "}\n");

	assert_string_equal(outcome.config->admin_page, "[::1]:9090");
	assert_string_equal(outcome.config->admin_page_token, HASH);
	end(&outcome);
	ASSERT_PROBLEMS(SERVER "admin: {page: '0.0.0.0:1'}\n",
			"F:2:15: admin.page: must be a loopback address, like 127.0.0.1:9090, not "
			"'0.0.0.0:1'; the admin socket serves the page without this key");
	ASSERT_PROBLEMS(SERVER "admin: {page: 'unix:/a'}\n",
			"F:2:15: admin.page: must be a loopback address, like 127.0.0.1:9090, not "
			"'unix:/a'; the admin socket serves the page without this key");
	ASSERT_PROBLEMS(
		SERVER "admin: {page_token: abc}\n",
		"F:2:21: admin.page_token: must be 64 hexadecimal digits, the output of: "
		"printf %s TOKEN | sha256sum",
		"F:2:21: admin.page_token: needs admin.page, like 127.0.0.1:9090: it is for that "
		"page");
}

/* DEF-05: the own names, those of the configuration, where clients connect; without ports. */
static void test_hosts_that_are_ours(void **state)
{
	static const char *const expected[] = { "localhost", "127.0.0.1", "[::1]",
						"a.example", "127.0.0.2", "p.example" };
	struct outcome outcome =
		load_good(SERVER "hosts: [a.example]\npublic_url: 'https://p.example:444'\n"
				 "listen: [{address: '127.0.0.2:1'}, {address: 'unix:/run/x'}]\n");
	const struct slices *hosts = &outcome.config->frontend.hosts;

	assert_int_equal(hosts->count, ARRAY_LEN(expected));
	for (size_t i = 0; i < hosts->count; i++)
		assert_string_equal(hosts->items[i].p, expected[i]);
	end(&outcome);
}

static void test_names_and_paths(void **state)
{
	struct outcome outcome;

	ASSERT_PROBLEMS("servers: {a: {}}\n",
			"F:1:14: servers.a: the key 'command' or 'url' is missing");
	ASSERT_PROBLEMS("servers:\n  a:\n",
			"F:2:5: servers.a: the key 'command' or 'url' is missing");
	ASSERT_PROBLEMS(
		"servers: {Ab: {command: x, path: /x}}\n",
		"F:1:11: the server name 'Ab' must have 1 to 64 lowercase letters, digits, '-' and "
		"'_', and begin with a letter or digit");
	ASSERT_PROBLEMS(
		"servers: {-a: {command: x, path: /x}}\n",
		"F:1:11: the server name '-a' must have 1 to 64 lowercase letters, digits, '-' and "
		"'_', and begin with a letter or digit");
	ASSERT_PROBLEMS("servers: {a: {command: x, path: mcp}}\n",
			"F:1:33: servers.a.path: the path 'mcp' must begin with '/' and have only "
			"visible ASCII characters other than ? # % \" and backslash");
	ASSERT_PROBLEMS("servers: {a: {command: x, path: '/a?b'}}\n",
			"F:1:33: servers.a.path: the path '/a?b' must begin with '/' and have only "
			"visible ASCII characters other than ? # % \" and backslash");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, path: /healthz}}\n",
		"F:1:33: servers.a.path: the path '/healthz' is reserved for the daemon itself");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, path: /register}}\n",
		"F:1:33: servers.a.path: the path '/register' is reserved for the daemon itself");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, path: /.well-known/x}}\n",
		"F:1:33: servers.a.path: the path '/.well-known/x' is reserved for the daemon "
		"itself");
	ASSERT_PROBLEMS("servers:\n  a: {command: x, path: /b/mcp}\n  b: {command: x}\n",
			"F:3:6: servers.b: the path '/b/mcp' is already used by the server 'a'");
	/* AUTH-AUD-03, AUTH-CFG-01: a slash at the end makes no other path, so no other resource. */
	ASSERT_PROBLEMS(
		"servers:\n  a: {command: x}\n  b: {command: x, path: /a/mcp/}\n",
		"F:3:25: servers.b.path: the path '/a/mcp' is already used by the server 'a'");
	outcome = load_good("servers:\n  a: {command: x, path: /a/}\n  b: {command: x, path: /}\n");
	assert_string_equal(outcome.config->servers[0].endpoint.path.p, "/a");
	assert_string_equal(outcome.config->servers[0].endpoint.sse_path.p, "/a/sse");
	assert_string_equal(outcome.config->servers[1].endpoint.path.p, "/");
	end(&outcome);
	outcome = load_good("servers:\n  a: {command: x, path: /m, enabled: false}\n"
			    "  b: {command: x, path: /m}\n");
	end(&outcome);
}

static void test_environment_problems(void **state)
{
	ASSERT_PROBLEMS("servers: {a: {command: x, env: [A]}}\n",
			"F:1:32: servers.a.env: must be a map, like {NAME: value}");
	ASSERT_PROBLEMS("servers: {a: {command: x, env: {A=B: 1, '': 2, C: }}}\n",
			"F:1:33: 'A=B' cannot be the name of a variable",
			"F:1:41: '' cannot be the name of a variable",
			"F:1:51: servers.a.env.C: has no value");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, env: {A: {file: gone}, B: {vault: x}, C: [1]}}}\n",
		"F:1:43: servers.a.env.A.file: the stub has no gone",
		"F:1:53: servers.a.env.B: must be a text, {file: PATH}, {env: NAME} or "
		"{credential: NAME}",
		"F:1:68: servers.a.env.C: must be a text, not a list");
}

/* What others write so is told the way; claims, shells and patterns mean something by it. */
static void test_variables_are_not_replaced(void **state)
{
	struct outcome outcome = load_good(
		"servers: {a: {command: /bin/bash, args: [-c, 'echo ${HOME}'], redact: ['a${b}']}, b: {"
		"command: x, args: ['$A', '${', '${}', '${a b}', '${1', '$x{a}'], env: {P: 'p${s'}}}\n");

	end(&outcome);
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, env: {T: '${GITHUB_TOKEN}', U: 'x${env:V}', W: "
		"'${X:-secret}'}}}\n",
		"F:1:36: servers.a.env.T: ${GITHUB_TOKEN} is not expanded; to use a variable of "
		"the daemon, write {env: GITHUB_TOKEN}; to use a file, {file: PATH}",
		"F:1:58: servers.a.env.U: ${V} is not expanded; to use a variable of the daemon, "
		"write {env: V}; to use a file, {file: PATH}",
		"F:1:74: servers.a.env.W: ${X} is not expanded; to use a variable of the daemon, "
		"write {env: X}; to use a file, {file: PATH}");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, args: [a, '--key=${KEY}'], cwd: '${HOME}/x'}}\n",
		"F:1:37: servers.a.args[1]: ${KEY} is not expanded; pass the variable to the "
		"server, env: {KEY: {env: KEY}}, and if it must be an argument let a shell expand "
		"it: command: sh, args: [-c, 'exec COMMAND \"$KEY\"']",
		"F:1:59: servers.a.cwd: ${HOME} is not expanded; write the value itself: {env: "
		"HOME} works only in env and for secrets");
}

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* CLU-CONN-01, CLU-ID-01: a node has a name and a store, which is reached with TLS elsewhere. */
static void test_node_of_a_cluster(void **state)
{
	static const char name[] = "F:2:17: cluster.node: must be one to eight lower-case letters "
				   "and digits, not ",
			  form[] = "F:2:27: cluster.store: must be valkey://HOST:PORT, "
				   "valkeys://HOST:PORT (with TLS), redis:// or rediss:// "
				   "likewise, or unix:///PATH";
	static const struct {
		const char *cluster;
		const char *problem; /* NULL: none */
		const char *text;    /* at its end */
	} rows[] = {
		{ "{node: a, store: 'valkey://127.0.0.1'}", NULL, NULL },
		{ "{node: a1b2c3d4, store: 'REDIS://localhost:7000/'}", NULL, NULL },
		{ "{node: a, store: 'valkey://[::1]:6379'}", NULL, NULL },
		{ "{node: a, store: 'unix:///run/valkey.sock'}", NULL, NULL },
		{ "{node: a, store: 'rediss://store.example:6380', prefix: 'x:y'}", NULL, NULL },
		{ "{node: a, store: 'valkey://store.example', plaintext: true}", NULL, NULL },
		{ "{node: a, store: 'valkey://store.example'}",
		  "F:2:27: cluster.store: goes to another machine without TLS: use valkeys, or set "
		  "'plaintext: true'",
		  "" },
		{ "{store: 'valkey://127.0.0.1'}", "F:2:10: cluster: the key 'node' is missing",
		  "" },
		{ "{node: a}", "F:2:10: cluster: the key 'store' is missing", "" },
		{ "{node: A, store: 'valkey://127.0.0.1'}", name, "'A'" },
		{ "{node: a12345678, store: 'valkey://127.0.0.1'}", name, "'a12345678'" },
		{ "{node: a, store: 'http://127.0.0.1'}", form, "" },
		{ "{node: a, store: 'valkeys://" A64 A64 A64 A64 "'}",
		  "F:2:27: cluster.store: has a name that is too long", "" },
		{ "{node: a, store: 'unix:///" A64 A64 "'}",
		  "F:2:27: cluster.store: has a path that is too long", "" },
		{ "{node: a, store: 'valkey://127.0.0.1/2'}", form, "" },
		{ "{node: a, store: 'valkey://127.0.0.1', prefix: 'a*'}",
		  "F:2:57: cluster.prefix: must be at most 64 letters, digits and -_.:, not ",
		  "'a*'" },
		{ "{node: a, store: 'valkey://127.0.0.1', seal_key: "
		  "0123456789012345678901234567890}",
		  "F:2:59: cluster.seal_key: must be at least 32 characters, the output of: openssl "
		  "rand -base64 32",
		  "" },
		{ "{node: a, store: 'valkey://127.0.0.1', seal_key: "
		  "01234567890123456789012345678901}",
		  NULL, NULL },
		{ "{node: a, store: 'valkey://127.0.0.1', username: u}",
		  "F:2:10: cluster: the key 'password' is missing", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		at_end(mem_free) char *text = mem_printf(SERVER "cluster: %s\n", rows[i].cluster);

		if (rows[i].problem != NULL) {
			at_end(mem_free) char *problem =
				mem_printf("%s%s", rows[i].problem, rows[i].text);

			ASSERT_PROBLEMS(text, problem);
		} else {
			struct outcome outcome = load_good(text);

			end(&outcome);
		}
	}
	ASSERT_PROBLEMS(SERVER
			"cluster: {node: a, store: 'unix:///s'}\nsessions: {persist: false}\n",
			"F:2:27: cluster.store: needs 'persist: true' in sessions: what it has is "
			"what is kept");
}

/* A daemon is installed before its first server is known. */
static void test_no_server(void **state)
{
	const char *const without[] = { "listen:\n", "servers:\n", "servers: {}\n",
					"servers: {a: {command: x, enabled: false}}\n" };

	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		struct outcome outcome = load_good(without[i]);

		assert_int_equal(outcome.warnings.count, 1);
		assert_non_null(strstr(outcome.warnings.items[0], "there is no server yet"));
		end(&outcome);
	}
}

/* A wrong default is reported where it stands, once, however many servers take it. */
static void test_problem_of_defaults_is_reported_once(void **state)
{
	ASSERT_PROBLEMS("defaults: {pool: {max: 0}}\nservers: {a: {command: x}, b: {command: x}}\n",
			"F:1:24: defaults.pool.max: must be at least 1, not '0'");
	ASSERT_PROBLEMS("defaults: {pool: {max: 0}}\n",
			"F:1:24: defaults.pool.max: must be at least 1, not '0'");
}

/* DEF-25: a warning, as it cannot be known whether the text is a secret. */
static void test_literal_secret_in_a_readable_file(void **state)
{
	static const char yaml[] = "servers: {a: {command: x, env: {A: 1, A_TOKEN: t, B_KEY: {env: "
				   "V}}}}\n";
	struct outcome outcome = load_readable(yaml, true);

	assert_non_null(outcome.config);
	assert_int_equal(outcome.warnings.count, 1);
	assert_string_equal(
		outcome.warnings.items[0],
		"F:1:48: servers.a.env.A_TOKEN: a secret in a file that everybody can read; remove "
		"that permission (chmod o-r) or put the secret into a file of its own: {file: "
		"PATH}");
	end(&outcome);
	outcome = load_readable(yaml, false);
	assert_int_equal(outcome.warnings.count, 0);
	end(&outcome);
}

/* What an operator finds out from the service behind it otherwise. */
static void test_token_in_env_whose_time_is_over(void **state)
{
	struct outcome outcome = load_good(
		"servers: {a: {command: x, env: {OLD: eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE2MDAwMDAwMDB9.c2ln, NEW: eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjMyNTAwMDAwMDAwfQ.c2ln, "
		"NONE: a.b.c}}}\n");

	assert_int_equal(outcome.warnings.count, 1);
	assert_string_equal(
		outcome.warnings.items[0],
		"F:1:38: servers.a.env.OLD: is a token (JWT) that expired on 2020-09-13T12:26:40Z");
	end(&outcome);
}

static void test_many_problems_end_somewhere(void **state)
{
	struct buf yaml = { 0 };
	struct outcome outcome;

	for (int i = 0; i < 300; i++)
		buf_printf(&yaml, "x%d: 1\n", i);
	outcome = load_readable(buf_terminate(&yaml), false);
	assert_int_equal(outcome.problems.count, 101);
	assert_string_equal(outcome.problems.items[100], "there are more problems than these");
	end(&outcome);
	buf_fini(&yaml);
}

#define OTHER_HASH "ff86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

/* AUTH-TOK-01, AUTH-TOK-03, AUTH-SCP-04 */
static void test_tokens_and_scopes(void **state)
{
	struct outcome outcome = load_good(
		"servers: {a: {command: x, scopes: [s], tools: {scopes: {'d*': [t, u]}}}}\n"
		"auth:\n  mode: token\n  challenge_held: false\n"
		"  tokens:\n    - {name: n, sha256: " HASH ", scopes: [s, t], servers: [a],\n"
		"       expires: 2027-01-31}\n    - {name: m, sha256: " OTHER_HASH "}\n"
		"  scope_hierarchy: {t: [u], u: [v]}\n");
	const struct authorization_conf *auth = &outcome.config->frontend.authorization;
	const struct protected_resource *place = &outcome.config->servers[0].endpoint.place;
	const struct needs *needs = &outcome.config->servers[0].conf.needs;

	assert_int_equal(auth->mode, AUTHORIZATION_TOKEN);
	assert_false(auth->names_held);
	assert_int_equal(auth->tokens.count, 2);
	assert_string_equal(auth->tokens.items[0].name.p, "n");
	assert_string_equal(auth->tokens.items[0].sha256, HASH);
	assert_int_equal(auth->tokens.items[0].scopes.count, 2);
	assert_string_equal(auth->tokens.items[0].servers.items[0].p, "a");
	assert_int_equal(auth->tokens.items[0].ends_at_ms, 1801353600000);
	assert_int_equal(auth->tokens.items[1].ends_at_ms, 0);
	assert_int_equal(auth->tokens.items[1].servers.count, 0);
	assert_int_equal(auth->scope_hierarchy.count, 2);
	assert_string_equal(auth->scope_hierarchy.items[1].name.p, "u");
	assert_string_equal(place->scopes.items[0].p, "s");
	assert_string_equal(needs->by_name[PERMISSION_TOOL].items[0].name.p, "d*");
	assert_int_equal(needs->by_name[PERMISSION_TOOL].items[0].values.count, 2);
	assert_string_equal(needs->names[PERMISSION_TOOL][0].folded.p, "d*");
	end(&outcome);
}

#define TOKEN_MODE "auth: {mode: token, tokens: [{name: n, sha256: " HASH "}]"

/* AUTH-CFG-01 */
static void test_tokens_and_scopes_that_cannot_be(void **state)
{
	ASSERT_PROBLEMS(SERVER "auth: {mode: token}\n",
			"F:2:14: auth.mode: token needs auth.tokens, like [{name: ci, sha256: HEX, "
			"expires: 2027-01-31}]");
	ASSERT_PROBLEMS(SERVER "auth: {mode: token, tokens: [{sha256: abc, servers: [b]}]}\n",
			"F:2:39: auth.tokens[0].sha256: must be 64 hexadecimal digits, the output "
			"of: printf %s TOKEN | sha256sum",
			"F:2:30: auth.tokens[0]: the key 'name' is missing",
			"F:2:54: auth.tokens[0].servers[0]: there is no server 'b'");
	ASSERT_PROBLEMS(
		SERVER "auth: {tokens: [{name: n, sha256: " HASH "}]}\n",
		"F:2:16: auth.tokens: needs 'auth.mode: token' or 'auth.mode: oauth': tokens are "
		"not checked otherwise");
	ASSERT_PROBLEMS(SERVER "auth: {mode: token, tokens: [{name: n, sha256: " HASH
			       "}, {name: m, sha256: " HASH "}]}\n",
			"F:2:133: auth.tokens[1].sha256: this token is listed twice");
	ASSERT_PROBLEMS(SERVER TOKEN_MODE ", scope_hierarchy: {a: [b], b: [c], c: [b]}}\n",
			"F:2:145: auth.scope_hierarchy.b: the scope 'b' would include itself",
			"F:2:153: auth.scope_hierarchy.c: the scope 'c' would include itself");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, scopes: [openid, 'a b']}}\n" TOKEN_MODE "}\n",
		"F:1:36: servers.a.scopes[0]: the scope 'openid' says nothing about what a token "
		"may do here; remove it",
		"F:1:44: servers.a.scopes[1]: the scope 'a b' must have only visible ASCII "
		"characters other than \" and backslash");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, scopes: [a]}}\n",
		"F:1:35: servers.a.scopes: needs 'auth.mode: token' or 'auth.mode: oauth': no "
		"token is required here");
	ASSERT_PROBLEMS(
		SERVER "auth: {mode: token, tokens: {name: n}}\n",
		"F:2:29: auth.tokens: must be a list of maps, like [{name: ci, sha256: HEX, "
		"expires: 2027-01-31}]");
}

#define TOOLS_AT "servers.a.tools.scopes."
#define NOT_SEEN "the name of the tool has an invisible or unassigned character"
#define TOOL(name) "servers: {a: {command: x, tools: {scopes: {" name ": [s]}}}}\n" TOKEN_MODE "}\n"

/* AUTH-SCP-12 */
static void test_names_of_tools_are_folded(void **state)
{
	struct outcome outcome = load_good(TOOL("'\uff24elete _*': [t], 'stra\u00dfe'"));
	const struct needs *needs = &outcome.config->servers[0].conf.needs;

	assert_string_equal(needs->by_name[PERMISSION_TOOL].items[0].name.p, "\uff24elete _*");
	assert_string_equal(needs->names[PERMISSION_TOOL][0].folded.p, "delete_*");
	assert_string_equal(needs->names[PERMISSION_TOOL][1].folded.p, "strasse");
	end(&outcome);
}

/* AUTH-SCP-12 */
static void test_names_of_tools_that_cannot_be(void **state)
{
	char text[200] = "", yaml[1024], problem[1024];

	ASSERT_PROBLEMS(TOOL("'d\u200be'"), "F:1:51: " TOOLS_AT "d???e: " NOT_SEEN);
	ASSERT_PROBLEMS(TOOL("\"d\\u202Ee\""), "F:1:56: " TOOLS_AT "d???e: " NOT_SEEN);
	ASSERT_PROBLEMS(TOOL("\"d\\te\""), "F:1:52: " TOOLS_AT "d?e: " NOT_SEEN);
	ASSERT_PROBLEMS(TOOL("\"d\\U000E0041\""), "F:1:59: " TOOLS_AT "d????: " NOT_SEEN);
	ASSERT_PROBLEMS(TOOL("' '"), "F:1:49: " TOOLS_AT " : the name of the tool is empty");
	for (size_t i = 0; i < 60; i++)
		strcat(text, "\ufdfa"); /* of 18 characters, folded */
	snprintf(yaml, sizeof(yaml), TOOL("%s"), text);
	snprintf(problem, sizeof(problem),
		 "F:1:106: " TOOLS_AT "%s: the name of the tool is too long", text);
	ASSERT_PROBLEMS(yaml, problem);
}

/* SEC-50 */
static void test_rules_of_names(void **state)
{
	struct outcome outcome =
		load_good("servers: {a: {command: x, tools: {allow: ['READ_*'], deny: []},"
			  " resources: {deny: ['FILE:///x/%2e%2e/Y']}}, b: {command: x}}\n");
	const struct permissions *permissions = &outcome.config->servers[0].conf.permissions;

	assert_true(permissions->has_rules);
	assert_string_equal(permissions->kinds[PERMISSION_TOOL].allow_folded.items[0].p, "read_*");
	assert_string_equal(permissions->kinds[PERMISSION_PROMPT].allow_folded.items[0].p, "*");
	assert_string_equal(permissions->kinds[PERMISSION_RESOURCE].deny_folded.items[0].p,
			    "file:/y");
	assert_false(outcome.config->servers[1].conf.permissions.has_rules);
	end(&outcome);
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, tools: {deny: [a, 'd\u200be']}}}\n",
		"F:1:45: servers.a.tools.deny[1]: the name of the tool has an invisible or unassigned "
		"character");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, resources: {allow: ['file://h/x']}}}\n",
		"F:1:47: servers.a.resources.allow[0]: the name of the resource refers to a file on another "
		"machine");
}

#define ROLES(text) SERVER TOKEN_MODE "}\nroles: {" text "}\n"

/* SEC-56 */
static void test_roles(void **state)
{
	struct outcome outcome = load_good(
		"servers: {a: {command: x, tools: {deny: [z]}}, b: {command: x}}\n"
		"public_url: https://mcp.example\n"
		"auth: {mode: oauth, issuers: [{issuer: 'https://i.example'}], tokens: [{name: n, sha256: " HASH
		", roles: [ops]},\n"
		"  {name: m, sha256: '" OTHER_HASH "', tools: {a: ['Get_*']}}]}\n"
		"roles: {dev: {when: {groups: [x, y]}, allow: {a: ['*']}, deny: {'*': [d]},"
		" resources: {allow: {b: ['res:*']}}}, ops: {allow: {'*': [o]}}}\n");
	const struct config *c = outcome.config;
	const struct static_token *tokens = c->frontend.authorization.tokens.items;
	const struct permissions *a = &c->servers[0].conf.permissions;

	assert_int_equal(outcome.warnings.count, 0);
	assert_int_equal(c->roles.named, 2);
	assert_int_equal(c->roles.count, 3);
	assert_true(c->frontend.authorization.has_roles);
	assert_ptr_equal(c->frontend.authorization.issuers.items[0].roles, &c->roles);
	assert_true(tokens[0].rights.needs_roles && tokens[1].rights.needs_roles);
	assert_true(role_set_has(&tokens[0].rights.roles, 1));
	assert_true(role_set_has(&tokens[1].rights.roles, 2));
	assert_false(permissions_allow(a, &tokens[0].rights, PERMISSION_TOOL, SLICE_LIT("get_a")));
	assert_true(permissions_allow(a, &tokens[0].rights, PERMISSION_TOOL, SLICE_LIT("O")));
	assert_true(permissions_allow(a, &tokens[1].rights, PERMISSION_TOOL, SLICE_LIT("get_a")));
	assert_false(permissions_allow_any(&c->servers[1].conf.permissions, &tokens[1].rights));
	end(&outcome);
	outcome = load_good(SERVER TOKEN_MODE "}\n");
	assert_false(outcome.config->frontend.authorization.tokens.items[0].rights.needs_roles);
	end(&outcome);
}

static void test_roles_that_cannot_be(void **state)
{
	ASSERT_PROBLEMS(
		SERVER "roles: {r: {allow: {a: ['*']}}}\n",
		"F:2:8: roles: needs 'auth.mode: token' or 'auth.mode: oauth': roles are given to "
		"tokens");
	ASSERT_PROBLEMS(
		ROLES("r: {allow: {b: [x]}, prompts: {deny: {a: ['x\u200b']}}}"),
		"F:3:51: roles.r.prompts.deny.a[0]: the name of the prompt has an invisible or "
		"unassigned character",
		"F:3:24: roles.r.allow.b: there is no server 'b'");
	ASSERT_PROBLEMS(
		ROLES("'a b': {allow: {a: [x]}}"),
		"F:3:9: the name of a role may have only letters, digits, '-' and '_', at most 64 "
		"of them");
	ASSERT_PROBLEMS(SERVER TOKEN_MODE "}\nroles: [x]\n",
			"F:3:8: roles: must be a map of names and roles");
	ASSERT_PROBLEMS(
		SERVER "auth: {mode: token, tokens: [{name: n, sha256: " HASH
		       ", roles: [r], tools: {b: ['*'], a: ['*']}}]}\n",
		"F:2:133: auth.tokens[0].tools: cannot stand beside roles: only one of the two may "
		"say what the token may be used for; remove one of the two",
		"F:2:137: auth.tokens[0].tools.b: there is no server 'b'",
		"F:2:122: auth.tokens[0].roles[0]: there is no role 'r'");
}

static void assert_only_warning(const char *yaml, const char *warning)
{
	struct outcome outcome = load_good(yaml);

	if ((warning == NULL) != (outcome.warnings.count == 0) ||
	    (warning != NULL && strstr(outcome.warnings.items[0], warning) == NULL))
		fail_msg("%s: %s", yaml,
			 outcome.warnings.count > 0 ? outcome.warnings.items[0] : "-");
	end(&outcome);
}

static void test_limits_in_vain(void **state)
{
	static const struct {
		const char *server;
		const char *warning; /* the first; NULL: none */
	} rows[] = {
		{ "rate: {per: 10s}",
		  "F:1:39: servers.a.rate.per: has no effect here: it needs 'rate.calls', which is "
		  "not set" },
		{ "rate: {burst: 2}", "servers.a.rate.burst: has no effect here" },
		{ "rate: {calls: 1, per: 10s, burst: 2}", NULL },
		{ "rate: {per: 1m}", NULL }, /* as a printed configuration has it */
		{ "tools: {limits: [{tools: [a], concurrency: 1, burst: 2}]}",
		  "servers.a.tools.limits[0].burst: has no effect here" },
		{ "tools: {limits: [{tools: ['a*', c], calls: 1}, {tools: ['A*b', C], calls: 1}]}",
		  "servers.a.tools.limits[1]: has no effect here: entries above it already match" },
		{ "tools: {limits: [{tools: [a], calls: 1}, {tools: [b], calls: 1}, "
		  "{tools: [b, a], calls: 1}]}",
		  "servers.a.tools.limits[2]: has no effect here" },
		{ "tools: {limits: [{tools: [a], calls: 1}, {tools: [a, b], calls: 1}]}", NULL },
		{ "tools: {limits: [{tools: ['a*b'], calls: 1}, {tools: ['a*'], calls: 1}]}",
		  NULL },
		{ "hide: true", "servers.a.hide: has no effect here: it is about scopes" },
		{ "hide: true, scopes: [a]", "servers.a.hide: has no effect here" },
		{ "hide: true, prompts: {scopes: {x: [a]}}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char yaml[1024];

		snprintf(yaml, sizeof(yaml),
			 "servers: {a: {command: x, %s}}\nauth: {mode: token, tokens: "
			 "[{name: n, sha256: " HASH "}]}\n",
			 rows[i].server);
		assert_only_warning(yaml, rows[i].warning);
	}
}

/* What a printed configuration says is the default is not told. */
static void test_sections_in_vain(void **state)
{
	static const struct {
		const char *lines;
		const char *warning; /* NULL: none */
	} rows[] = {
		{ "traces: {otlp: {sample: 10%}}",
		  "F:2:25: traces.otlp.sample: has no effect here: it needs 'traces.otlp.endpoint', "
		  "which is not set" },
		{ "traces: {otlp: {service_name: x}}", "traces.otlp.service_name: has no effect" },
		{ "traces: {otlp: {sample: 100%, interval: 5s, plaintext: false}}", NULL },
		{ "traces: {otlp: {endpoint: 'http://127.0.0.1/v1/traces', sample: 10%}}", NULL },
		{ "traces: {otlp: ~}", NULL },
		{ "audit: {calls: refused}",
		  "F:2:16: audit.calls: has no effect here: it needs 'audit.to', which is "
		  "not set" },
		{ "audit: {arguments: true}", "audit.arguments: has no effect here" },
		{ "audit: {calls: all, arguments: false, required: false}", NULL },
		{ "audit: {to: journal, arguments: true}", NULL },
		{ "log: {level: warn, access: true}",
		  "F:2:28: log.access: has no effect here: its lines are of level info" },
		{ "log: {level: error, payloads: true}", "log.payloads: has no effect here" },
		{ "log: {level: warn, access: false, payloads: false}", NULL },
		{ "log: {level: info, access: true, payloads: true}", NULL },
		{ "trusted_proxies: []", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char yaml[256];

		snprintf(yaml, sizeof(yaml), SERVER "%s\n", rows[i].lines);
		assert_only_warning(yaml, rows[i].warning);
	}
}

/* What the table says of options and others: where it is said, and that it is said once. */
static void test_relations(void **state)
{
	/* Of what `defaults` say, a need is told, once. */
	ASSERT_PROBLEMS(
		"defaults: {clients: [c]}\nservers: {a: {command: x}, b: {command: x}}\n",
		"F:1:21: defaults.clients: needs 'auth.mode: oauth': it is about tokens from "
		"issuers");
	ASSERT_PROBLEMS("defaults: {request_timeout_max: 1m}\nservers: {a: {command: x}}\n",
			"F:2:14: servers.a: request_timeout must not be longer than "
			"request_timeout_max");
	ASSERT_PROBLEMS("servers: {a: {command: x, pool: {max: 2, warm: 3}}}\n",
			"F:1:48: servers.a.pool.warm: pool.warm must not be more than pool.max");
	/* What is empty is not there; what could not be read is, and is told alone. */
	ASSERT_PROBLEMS(SERVER "auth: {mode: anonymous, tokens: [], x_api_key: true}\n",
			"F:2:48: auth.x_api_key: needs auth.tokens, like [{name: ci, sha256: HEX, "
			"expires: 2027-01-31}]: X-API-Key is for static tokens");
	ASSERT_PROBLEMS(SERVER "audit: {to: [x], required: true}\n",
			"F:2:13: audit.to: must be a text, not a list");
	ASSERT_PROBLEMS(SERVER "traces: {otlp: {headers: {a: b}, ca: /x, sample: 1%}}\n",
			"F:2:38: traces.otlp.ca: /x: cannot be opened: No such file or directory",
			"F:2:16: traces.otlp: the key 'endpoint' is missing");
	assert_only_warning("defaults: {pool: {min: 1}}\n" SERVER, NULL);
	assert_only_warning(SERVER_A("pool: {min: 0, reclaim: idle}"), NULL);
	assert_only_warning(SERVER_A("pool: {min: 1}"), "has no effect here: it is for isolation "
							"shared");
	assert_only_warning(SERVER_A("isolation: shared, pool: {warm: 1}"),
			    "servers.a.pool.warm: has no effect here: it is for isolation session "
			    "or principal");
}

/* SEC-56 */
static void test_roles_in_vain(void **state)
{
	static const struct {
		const char *roles;
		const char *warning; /* the first; NULL: none */
	} rows[] = {
		{ "n: {allow: {a: [x]}}, r: {allow: {a: [x]}}",
		  "roles.r: nobody can have this role: there is no 'when', and no static" },
		{ "n: {allow: {a: [get_a]}, deny: {a: ['get_*']}}",
		  "roles.n.allow.a[0]: has no effect: deny denies all that it allows" },
		{ "n: {allow: {a: ['get_*']}, deny: {a: ['Get_*']}}",
		  "roles.n.allow.a[0]: has no effect: deny" },
		{ "n: {allow: {a: ['a*b*c']}, deny: {a: ['a*c']}}",
		  "roles.n.allow.a[0]: has no effect: deny" },
		{ "n: {allow: {a: ['a*']}, deny: {a: ['a*c']}}", NULL },
		{ "n: {allow: {a: ['*']}, deny: {a: ['?']}}", NULL },
		{ "n: {allow: {a: [x, y]}, deny: {'*': ['*']}}",
		  "roles.n.allow.a[0]: has no effect: deny of all servers denies" },
		{ "n: {allow: {a: [no_a]}}",
		  "roles.n.allow.a[0]: has no effect: the server denies" },
		{ "n: {allow: {a: [x, y, X]}}", "roles.n.allow.a[2]: is listed twice" },
		{ "n: {resources: {allow: {a: ['res://P/x']}, deny: {a: ['res://p/*']}}}",
		  "roles.n.resources.allow.a[0]: has no effect: deny" },
		{ "n: {when: {groups: []}, allow: {a: [x]}}", NULL },
		{ "n: {allow: {a: [x]}}, w: {when: {g: [x]}, allow: {a: [x]}}",
		  "roles.w: nobody can have this role: 'when' is about tokens of issuers" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char yaml[1024];

		snprintf(
			yaml, sizeof(yaml),
			"servers: {a: {command: x, tools: {deny: ['no_*']}}}\nauth: {mode: token, tokens: "
			"[{name: n, sha256: " HASH ", roles: [n]}]}\nroles: {%s}\n",
			rows[i].roles);
		assert_only_warning(yaml, rows[i].warning);
	}
}

#define ARGUMENTS(text) "servers: {a: {command: x, tools: {arguments: {" text "}}}}\n"
#define ARGUMENTS_AT "servers.a.tools.arguments."

/* SEC-54, SEC-55 */
static void test_rules_of_arguments(void **state)
{
	struct outcome outcome = load_good(
		"defaults: {tools: {arguments: {forbidden_keys: [d], deny_patterns: {'*': ['a+']}}}}\n"
		"servers: {a: {command: x, cwd: /srv/data, sandbox: {mode: landlock},\n"
		"  tools: {arguments: {max_bytes: 2KiB, deny_patterns: {'Read_*': ['b', '\\d']},\n"
		"    forbidden_keys: [__Proto__], paths: {roots: [/srv/data], members: [path], "
		"ignore: [content]}}}},\n"
		"  b: {command: x, cwd: here, tools: {arguments: {paths: {roots: [/srv]}}}}}\n");
	const struct argument_rules *a = &outcome.config->servers[0].endpoint.arguments;
	const struct argument_rules *b = &outcome.config->servers[1].endpoint.arguments;

	assert_int_equal(a->max_bytes, 2048);
	assert_int_equal(a->deny_patterns.count, 2);
	assert_int_equal(a->patterns[0].count, 1);
	assert_string_equal(a->patterns[1].folded.p, "read_*");
	assert_int_equal(a->patterns[1].count, 2);
	assert_int_equal(a->forbidden_keys.written.count, 1);
	assert_string_equal(a->forbidden_keys.folded[0].p, "__proto__");
	assert_string_equal(a->paths.roots.items[0].p, "/srv/data");
	assert_string_equal(a->paths.base.p, "/srv/data");
	assert_string_equal(a->path_members.written.items[0].p, "path");
	assert_string_equal(a->paths_ignored.written.items[0].p, "content");
	assert_int_equal(b->max_bytes, 0);
	assert_string_equal(b->forbidden_keys.folded[0].p, "d");
	assert_int_equal(b->paths.base.n, 0);
	assert_int_equal(outcome.warnings.count, 1);
	assert_string_equal(
		outcome.warnings.items[0],
		"F:5:57: servers.b.tools.arguments.paths: paths are checked only by name, and "
		"links may lead out of the roots: to keep the server inside, use a sandbox "
		"(sandbox.mode)");
	end(&outcome);
}

/* SEC-59 */
static void test_schemas_of_arguments(void **state)
{
	struct outcome outcome = load_good(
		"servers: {a: {command: x, tools: {arguments: {schema: check}}}, b: {command: x}}\n");

	assert_true(outcome.config->servers[0].conf.checks_schemas);
	assert_false(outcome.config->servers[1].conf.checks_schemas);
	end(&outcome);
	ASSERT_PROBLEMS(ARGUMENTS("schema: maybe"),
			"F:1:55: " ARGUMENTS_AT "schema: must be one of off, check, not 'maybe'");
}

/* SEC-54, SEC-55 */
static void test_pins_and_claims(void **state)
{
	struct outcome outcome = load_good(
		"auth: {mode: token, tokens: [{name: t, sha256: " HASH "}]}\n"
		"defaults: {command: x, env: {USER: '${claim:sub}'}}\n"
		"servers: {a: {pin: warn}, b: {pin: enforce}, c: {pin: enforce, env: {USER: x}}}\n");

	assert_int_equal(outcome.config->servers[0].conf.pin, PIN_WARN);
	assert_int_equal(outcome.warnings.count, 1);
	assert_non_null(strstr(outcome.warnings.items[0],
			       "servers.b.pin: env has claims: if the definitions differ"));
	end(&outcome);
}

/* AUTH-DWN-05: each issuer names its users as it likes. */
static void test_files_of_callers_of_several_issuers(void **state)
{
	static const char issuers[] =
		"public_url: https://gw.example\n"
		"auth: {mode: oauth, issuers: [{issuer: 'https://a.example'}%s]}\n"
		"servers: {a: {command: x, env: {KEY: {file: '/keys/${claim:sub}'}}}}\n";
	char text[400];

	for (int i = 0; i < 2; i++) {
		struct outcome outcome;
		bool is_told = false;

		snprintf(text, sizeof(text), issuers,
			 i == 0 ? "" : ", {issuer: 'https://b.example'}");
		outcome = load_good(text);
		for (size_t k = 0; k < outcome.warnings.count; k++)
			is_told |= strstr(outcome.warnings.items[k],
					  "servers.a.env: a file is named by claims, and there "
					  "are several issuers") != NULL;
		assert_int_equal(is_told, i == 1);
		end(&outcome);
	}
}

static void test_rules_of_arguments_that_cannot_be(void **state)
{
	/* Once, where it stands, however many servers have it from there. */
	ASSERT_PROBLEMS(
		"defaults:\n  redact: ['(a']\n  tools:\n    arguments:\n      deny_patterns: {'*': "
		"['(b']}\n      paths: {roots: [x]}\nservers: {a: {command: x, tools: {allow: ['*']}}, "
		"b: {command: x}}\n",
		"F:2:12: defaults.redact[0]: is not a usable pattern: missing closing parenthesis, at "
		"byte 2",
		"F:5:29: defaults.tools.arguments.deny_patterns.*[0]: is not a usable regular "
		"expression: missing closing parenthesis, at byte 2",
		"F:6:23: defaults.tools.arguments.paths.roots[0]: must be an absolute path without "
		"'..', not 'x'");
	ASSERT_PROBLEMS(ARGUMENTS("deny_patterns: {'*': [a, '(b']}"),
			"F:1:72: " ARGUMENTS_AT
			"deny_patterns.*[1]: is not a usable regular expression: missing closing "
			"parenthesis, at byte 2");
	ASSERT_PROBLEMS(
		ARGUMENTS("deny_patterns: {x: ['a*']}"),
		"F:1:67: " ARGUMENTS_AT
		"deny_patterns.x[0]: is not a usable regular expression: it matches the empty "
		"text, and so every text, at byte 0");
	ASSERT_PROBLEMS(ARGUMENTS("deny_patterns: {' ': [a]}"),
			"F:1:68: " ARGUMENTS_AT "deny_patterns. : the name of the tool is empty");
	ASSERT_PROBLEMS(ARGUMENTS("forbidden_keys: [a, ' ']"),
			"F:1:67: " ARGUMENTS_AT
			"forbidden_keys[1]: the name of the member is empty");
	ASSERT_PROBLEMS(ARGUMENTS("paths: {roots: [data, /a/../b]}"),
			"F:1:63: " ARGUMENTS_AT
			"paths.roots[0]: must be an absolute path without '..', "
			"not 'data'",
			"F:1:69: " ARGUMENTS_AT
			"paths.roots[1]: must be an absolute path without '..', "
			"not '/a/../b'");
	ASSERT_PROBLEMS(
		ARGUMENTS("paths: {members: [path]}"),
		"F:1:64: " ARGUMENTS_AT
		"paths.members: needs tools.arguments.paths.roots, like [/srv/data]: paths must "
		"stay in those directories");
}

#define OAUTH(rest) "public_url: 'https://a.example'\nauth: {mode: oauth, " rest "}\n"

/* What is copied from a browser's address, or from a client's entry, is told from what is meant. */
static void test_addresses_of_something_else(void **state)
{
	static const char twice[] =
		"F:2:13: public_url: ends with the path of a, which is added to it: clients get "
		"https://x.example/a/mcp/a/mcp. Write https://x.example";
	static const char *const urls[] = { "https://x.example/mcp", "https://x.example/a/mcp" };

	ASSERT_PROBLEMS(SERVER OAUTH("issuers: [{issuer: "
				     "'https://id.example/r/x/.well-known/openid-configuration'}]"),
			"F:3:40: auth.issuers[0].issuer: is the address of a document of the "
			"issuer; write the issuer itself: https://id.example/r/x");
	ASSERT_PROBLEMS(
		SERVER OAUTH("issuers: [{issuer: "
			     "'https://id.example/.well-known/oauth-authorization-server/r/x'}]"),
		"F:3:40: auth.issuers[0].issuer: is the address of a document of the "
		"issuer; write the issuer itself: https://id.example/r/x");
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		char *text = mem_printf(SERVER "public_url: %s\n", urls[i]);
		struct outcome outcome = load_good(text);
		size_t told = 0;

		for (size_t j = 0; j < outcome.warnings.count; j++)
			told += strcmp(outcome.warnings.items[j], twice) == 0;
		assert_int_equal(told, i);
		end(&outcome);
		free(text);
	}
}

/* AUTH-ISS-01, AUTH-OPQ-01, AUTH-DCR-01 */
static void test_issuers(void **state)
{
	struct outcome outcome = load_good(SERVER OAUTH(
		"issuers: [{issuer: 'https://id.example', audience: [x], jwks_interval: 1s, leeway: 0,\n"
		"  introspection: {client_id: c, client_secret: s3cret, always: true,\n"
		"    auth_method: client_secret_post}, max_lifetime: 1d,\n"
		"    required_claims: {tid: [a, 5], v: ['true']}},\n"
		"  {issuer: 'http://127.0.0.1:9000', algorithms: [RS512], jwks_uri: "
		"'http://127.0.0.1:9000/k',\n   allow_private: true}],\n"
		"  initial_scopes: [i], dpop: required, metadata_facade: off, bind_client: false,\n"
		"  registration_facade: {client_id: r, redirect_uris: ['https://c.example/cb']}"));
	const struct authorization_conf *auth = &outcome.config->frontend.authorization;
	const struct metadata_conf *metadata = &outcome.config->frontend.metadata;

	assert_int_equal(auth->mode, AUTHORIZATION_OAUTH);
	assert_int_equal(auth->issuers.count, 2);
	assert_string_equal(auth->issuers.items[0].issuer, "https://id.example");
	assert_int_equal(auth->issuers.items[0].algorithms.count, 4);
	assert_int_equal(auth->issuers.items[0].leeway_ms, 0);
	assert_string_equal(auth->issuers.items[0].client_secret, "s3cret");
	assert_true(auth->issuers.items[0].introspect_always);
	assert_null(auth->issuers.items[0].introspection_endpoint);
	assert_int_equal(auth->issuers.items[0].auth_method, CLIENT_SECRET_POST);
	assert_int_equal(auth->issuers.items[0].max_lifetime_ms, 86400000);
	assert_int_equal(auth->issuers.items[0].required_claims.count, 2);
	assert_string_equal(auth->issuers.items[0].required_claims.items[0].values.items[1].p, "5");
	assert_int_equal(auth->issuers.items[1].required_claims.count, 0);
	assert_int_equal(auth->issuers.items[1].max_lifetime_ms, 0);
	assert_string_equal(auth->issuers.items[1].algorithms.items[0].p, "RS512");
	assert_int_equal(auth->issuers.items[1].leeway_ms, 60000);
	assert_int_equal(auth->issuers.items[1].jwks_interval_ms, 10000);
	assert_true(auth->issuers.items[1].allow_private);
	assert_int_equal(auth->dpop, AUTHORIZATION_DPOP_REQUIRED);
	assert_int_equal(metadata->facade, METADATA_FACADE_OFF);
	assert_false(auth->binds_client);
	assert_string_equal(metadata->client_id.p, "r");
	assert_int_equal(metadata->redirect_uris.count, 1);
	end(&outcome);
}

#define INTROSPECTION(rest) \
	OAUTH("issuers: [{issuer: 'https://a.example', introspection: {client_id: c, " rest "}}]")

/* A key of Ed25519, as YAML has it on one line. */
#define CLIENT_KEY                                                                           \
	"\"-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpez" \
	"JpGXA7rAMcrn9g\\n-----END PRIVATE KEY-----\\n\""

/* AUTH-OPQ-01: one of the two, as the method says, and a key that can sign. */
static void test_credentials_for_introspection(void **state)
{
	struct outcome outcome = load_good(SERVER INTROSPECTION(
		"auth_method: private_key_jwt, client_key_id: k, client_key: " CLIENT_KEY));
	const struct verifier_issuer_conf *issuer =
		&outcome.config->frontend.authorization.issuers.items[0];

	assert_int_equal(issuer->auth_method, CLIENT_PRIVATE_KEY_JWT);
	assert_string_equal(issuer->client_key_id, "k");
	assert_memory_equal(issuer->client_key, "-----BEGIN PRIVATE KEY-----\nMC4", 31);
	end(&outcome);
	ASSERT_PROBLEMS(
		SERVER INTROSPECTION("auth_method: private_key_jwt, client_secret: x"),
		"F:3:76: auth.issuers[0].introspection: the key 'client_key' is missing",
		"F:3:136: auth.issuers[0].introspection.client_secret: is not used with this "
		"auth_method; set 'client_key' instead");
	ASSERT_PROBLEMS(SERVER INTROSPECTION("client_secret: x, client_key: " CLIENT_KEY),
			"F:3:121: auth.issuers[0].introspection.client_key: is not used with this "
			"auth_method; set 'client_secret' instead");
	ASSERT_PROBLEMS(
		SERVER INTROSPECTION("auth_method: private_key_jwt, client_key: x"),
		"F:3:133: auth.issuers[0].introspection.client_key: it is not a private key in PEM "
		"form without a passphrase");
}

/* AUTH-CFG-01 */
static void test_issuers_that_cannot_be(void **state)
{
	ASSERT_PROBLEMS(
		SERVER "auth: {mode: oauth}\n",
		"F:2:14: auth.mode: oauth needs public_url, like https://mcp.example.com: the names "
		"by which issuers know the servers are made from it",
		"F:2:14: auth.mode: oauth needs auth.issuers, like [{issuer: "
		"https://id.example.com}]");
	ASSERT_PROBLEMS(
		SERVER OAUTH("issuers: [{algorithms: [none, HS256, RS256]}]"),
		"F:3:45: auth.issuers[0].algorithms[0]: 'none' is not a supported signature "
		"algorithm; use RS256, PS256, ES256, EdDSA, or RS, PS, ES with 384 or 512",
		"F:3:51: auth.issuers[0].algorithms[1]: 'HS256' is not a supported signature "
		"algorithm; use RS256, PS256, ES256, EdDSA, or RS, PS, ES with 384 or 512",
		"F:3:31: auth.issuers[0]: the key 'issuer' is missing");
	ASSERT_PROBLEMS(
		SERVER OAUTH(
			"issuers: [{issuer: 'https://a.example', introspection: {always: "
			"true}}, {issuer: 'https://a.example', introspection: {client_id: c}}]"),
		"F:3:76: auth.issuers[0].introspection: the key 'client_id' is missing",
		"F:3:138: auth.issuers[1].introspection: the key 'client_secret' is missing",
		"F:3:102: auth.issuers[1].issuer: this issuer is listed twice");
	/* AUTH-AS-03 */
	ASSERT_PROBLEMS(
		SERVER OAUTH("issuers: [{issuer: 'https://a.example', jwks_uri: "
			     "'http://127.0.0.1:1/k'}]"),
		"F:3:71: auth.issuers[0].jwks_uri: must begin with https://, like the issuer");
	ASSERT_PROBLEMS(
		SERVER OAUTH(
			"issuers: [{issuer: 'https://a.example', required_claims: {tid: []}}]"),
		"F:3:78: auth.issuers[0].required_claims: the claim 'tid' has an empty list of "
		"values, so no token would pass");
	ASSERT_PROBLEMS(
		SERVER OAUTH("issuers: [{issuer: 'https://a.example'}], x_api_key: true"),
		"F:3:74: auth.x_api_key: needs auth.tokens, like [{name: ci, sha256: HEX, expires: "
		"2027-01-31}]: X-API-Key is for static tokens");
	ASSERT_PROBLEMS(
		"servers: {a: {command: x, clients: [c], algorithms: [none]}}\n",
		"F:1:54: servers.a.algorithms[0]: 'none' is not a supported signature algorithm; "
		"use RS256, PS256, ES256, EdDSA, or RS, PS, ES with 384 or 512",
		"F:1:36: servers.a.clients: needs 'auth.mode: oauth': it is about tokens from "
		"issuers",
		"F:1:53: servers.a.algorithms: needs 'auth.mode: oauth': it is about tokens from "
		"issuers");
	ASSERT_PROBLEMS(
		SERVER "auth: {issuers: [{issuer: 'https://a.example'}]}\n",
		"F:2:17: auth.issuers: needs 'auth.mode: oauth': issuers are not used otherwise");
	ASSERT_PROBLEMS(
		SERVER OAUTH("issuers: [{issuer: 'https://a.example', ca: "
			     "/nonexistent/ca.crt}]"),
		"F:3:65: auth.issuers[0].ca: /nonexistent/ca.crt: cannot be opened: No such "
		"file or directory");
	ASSERT_PROBLEMS(SERVER OAUTH("issuers: [{issuer: 'https://a.example'}], "
				     "registration_facade: {redirect_uris: [x]}"),
			"F:3:84: auth.registration_facade: the key 'client_id' is missing");
}

/* AUTH-CFG-01, AUTH-AS-03: plain http for this machine alone, no user, query or fragment. */
static void test_issuers_must_be_safe_to_ask(void **state)
{
	static const char *const bad[] = { "http://id.example",    "https://u@id.example",
					   "https://id.example?x", "https://id.example#x",
					   "ftp://id.example",     "id.example" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char *text = mem_printf(SERVER OAUTH("issuers: [{issuer: '%s'}]"), bad[i]);
		struct outcome outcome = load_readable(text, false);

		assert_null(outcome.config);
		assert_int_equal(outcome.problems.count, 1);
		assert_non_null(strstr(outcome.problems.items[0], "auth.issuers[0].issuer: "));
		end(&outcome);
		free(text);
	}
}

/* What is left out of a decision would be allowed to everybody. */
static void test_too_many_scopes(void **state)
{
	struct buf text = { 0 };

	buf_append_str(&text, "servers: {a: {command: x, scopes: [");
	for (int i = 0; i <= SCOPES_MAX; i++)
		buf_printf(&text, "s%d, ", i);
	buf_append_str(&text, "s0]}}\n" TOKEN_MODE "}\n");
	ASSERT_PROBLEMS(buf_terminate(&text), "F:1:1: there are more than 256 different scopes");
	buf_fini(&text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_of_the_daemon),
		cmocka_unit_test(test_defaults_of_a_server),
		cmocka_unit_test(test_values_of_every_type),
		cmocka_unit_test(test_confinement_of_a_server),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_defaults_section),
		cmocka_unit_test(test_environment_and_references),
		cmocka_unit_test(test_unknown_keys_name_the_nearest),
		cmocka_unit_test(test_tool_limits),
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_audit),
		cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_impossible_values),
		cmocka_unit_test(test_tls),
		cmocka_unit_test(test_tokens_and_scopes),
		cmocka_unit_test(test_tokens_and_scopes_that_cannot_be),
		cmocka_unit_test(test_names_of_tools_are_folded),
		cmocka_unit_test(test_names_of_tools_that_cannot_be),
		cmocka_unit_test(test_rules_of_names),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_roles_that_cannot_be),
		cmocka_unit_test(test_limits_in_vain),
		cmocka_unit_test(test_sections_in_vain),
		cmocka_unit_test(test_relations),
		cmocka_unit_test(test_roles_in_vain),
		cmocka_unit_test(test_rules_of_arguments),
		cmocka_unit_test(test_pins_and_claims),
		cmocka_unit_test(test_files_of_callers_of_several_issuers),
		cmocka_unit_test(test_rules_of_arguments_that_cannot_be),
		cmocka_unit_test(test_schemas_of_arguments),
		cmocka_unit_test(test_too_many_scopes),
		cmocka_unit_test(test_addresses_of_something_else),
		cmocka_unit_test(test_issuers),
		cmocka_unit_test(test_credentials_for_introspection),
		cmocka_unit_test(test_issuers_that_cannot_be),
		cmocka_unit_test(test_issuers_must_be_safe_to_ask),
		cmocka_unit_test(test_reachable_listener_needs_two_lines),
		cmocka_unit_test(test_admin_is_for_this_machine),
		cmocka_unit_test(test_the_page_is_for_this_machine),
		cmocka_unit_test(test_hosts_that_are_ours),
		cmocka_unit_test(test_names_and_paths),
		cmocka_unit_test(test_environment_problems),
		cmocka_unit_test(test_variables_are_not_replaced),
		cmocka_unit_test(test_what_servers_write),
		cmocka_unit_test(test_problem_of_defaults_is_reported_once),
		cmocka_unit_test(test_no_server),
		cmocka_unit_test(test_node_of_a_cluster),
		cmocka_unit_test(test_literal_secret_in_a_readable_file),
		cmocka_unit_test(test_token_in_env_whose_time_is_over),
		cmocka_unit_test(test_many_problems_end_somewhere),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
