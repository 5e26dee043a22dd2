/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three sources of a configuration, with real files; and that what is printed (the effective
 * configuration, the sample) is read back as the same. Secrets: masked, forgotten.
 */
#include "config/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "config/options.h"
#include "config/tree.h"

/* A file of its own for each test; the path is the state. */
static int make_file(void **state)
{
	char *path = mem_strdup("/tmp/mcpgated-config-XXXXXX");
	int fd = mkstemp(path);

	*state = path;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	int result = unlink(*state);

	free(*state);
	return result;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Of the last load. */
static struct config_problems warnings;

static struct config *load(const struct config_request *request)
{
	struct config_problems problems = { 0 };
	struct config *config;

	config_problems_fini(&warnings);
	config = config_load(request, &problems, &warnings);

	if (config == NULL)
		fail_msg("refused: %s", problems.items[0]);
	assert_int_equal(problems.count, 0);
	return config;
}

/* Exactly one problem; `expected` follows the path of the file, if one is given. */
static void assert_problem(const struct config_request *request, const char *path,
			   const char *expected)
{
	struct config_problems problems = { 0 };
	char *line = mem_printf("%s%s", path, expected);

	config_problems_fini(&warnings);
	assert_null(config_load(request, &problems, &warnings));
	assert_int_equal(problems.count, 1);
	assert_string_equal(problems.items[0], line);
	config_problems_fini(&problems);
	free(line);
}

/* What `print` writes; the caller frees it. */
static char *printed(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	config_print(config, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void test_file(void **state)
{
	struct config_request request = { .file = *state };
	struct config *config;

	write_file(*state, "servers: {a: {command: x}}\n");
	config = load(&request);
	assert_string_equal(config->servers[0].endpoint.path.p, "/a/mcp");
	config_free(&config);
	assert_null(config);
	write_file(*state, "servers: [\n");
	assert_problem(&request, *state,
		       ":2:1: not valid YAML: did not find expected node content, while parsing a "
		       "flow node");
	write_file(*state, "servers: {a: {command: x}}\nlimit: 1\n");
	assert_problem(&request, *state, ":2:1: unknown key 'limit'; did you mean 'limits'?");
	request.file = "/nonexistent/mcpgated.yaml";
	assert_problem(&request, request.file, ": cannot be opened: No such file or directory");
	request.file = NULL;
	assert_problem(&request, "", "command line: neither a file nor a command is given");
}

static void test_problems_come_in_the_order_of_lines(void **state)
{
	static const char *const texts[] = {
		"/f:10:2: c",
		"no place 127.0.0.1:8808: x",
		"/a:1:1: elsewhere",
		"/f:9:12: b",
		"/f:9:12: b too",
		"/f:9:3: a",
		"/a:b:7:1: a name with a colon",
		"last",
	};
	static const int order[] = { 5, 3, 4, 0, 2, 6, 1, 7 };
	struct config_problems problems = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		problem_add(&problems, "%s", texts[i]);
	problems_sort(&problems, "/f");
	assert_int_equal(problems.count, ARRAY_LEN(texts));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_string_equal(problems.items[i], texts[order[i]]);
	config_problems_fini(&problems);
}

/* What is found late, in files, is told where it stands. */
static void test_problems_of_all_stages_are_sorted(void **state)
{
	struct config_request request = { .file = *state };
	struct config_problems problems = { 0 };

	config_problems_fini(&warnings);
	write_file(*state, "listen:\n  - {address: x, tls: {certificate: /nonexistent/c, key: "
			   "/nonexistent/c}}\nlog:\n  level: loud\nservers: {a: {}}\n");
	assert_null(config_load(&request, &problems, &warnings));
	assert_true(problems.count >= 5);
	for (size_t i = 0; i < problems.count; i++)
		assert_int_equal(problems.items[i][strlen(*state) + 1],
				 i + 2 == problems.count ? '4' :
				 i + 1 == problems.count ? '5' :
							   '2');
	config_problems_fini(&problems);
}

static void test_file_that_is_too_large(void **state)
{
	struct config_request request = { .file = *state };

	assert_int_equal(truncate(*state, (1 << 20) + 1), 0);
	assert_problem(&request, *state, ": is larger than 1024 KiB");
}

/* DEF-25 */
static void test_file_that_others_may_write_is_refused(void **state)
{
	static const mode_t modes[] = { 0620, 0602, 0666 };
	struct config_request request = { .file = *state };
	char *expected = mem_printf(
		": is writable by group or others, but only its owner may write to it: chmod go-w "
		"%s",
		(char *)*state);

	write_file(*state, "servers: {a: {command: x}}\n");
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(chmod(*state, modes[i]), 0);
		assert_problem(&request, *state, expected);
	}
	write_file(*state, "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}");
	request = (struct config_request){ .import_file = *state };
	assert_problem(&request, *state, expected);
	free(expected);
}

/* DEF-25 */
static void test_secret_that_others_may_read_is_a_warning(void **state)
{
	struct config_request request = { .file = *state };
	struct config *config;

	write_file(*state, "servers: {a: {command: x, env: {T_TOKEN: t}}}\n");
	assert_int_equal(chmod(*state, 0644), 0);
	config = load(&request);
	assert_int_equal(warnings.count, 1);
	config_free(&config);
	assert_int_equal(chmod(*state, 0640), 0);
	config = load(&request);
	assert_int_equal(warnings.count, 0);
	config_free(&config);
}

/* DEF-25, AUTH-CFG-01: wherever the secret stands. */
static void test_open_file_of_a_secret_is_a_warning(void **state)
{
	struct config_request request = { .file = *state };
	char *secret = mem_printf("%s.secret", (const char *)*state);
	char *text = mem_printf("servers: {a: {command: x, env: {T: {file: %s}}}}\n", secret);
	struct config *config;

	write_file(*state, text);
	write_file(secret, "s3cret\n");
	assert_int_equal(chmod(secret, 0644), 0);
	config = load(&request);
	assert_int_equal(warnings.count, 1);
	assert_non_null(strstr(warnings.items[0], "everybody can read this secret"));
	config_free(&config);
	assert_int_equal(chmod(secret, 0640), 0);
	config = load(&request);
	assert_int_equal(warnings.count, 0);
	config_free(&config);
	unlink(secret);
	free(secret);
	free(text);
}

static void test_import(void **state)
{
	struct config_request request = { .import_file = *state, .listen = { "127.0.0.1:0" } };
	struct config *config;

	write_file(*state,
		   "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"y\"]}, \"b\": "
		   "{\"command\": \"x\", \"disabled\": true}, \"far\": {\"url\": \"u\"}}}");
	config = load(&request);
	assert_int_equal(config->server_count, 2);
	assert_string_equal(config->servers[0].endpoint.path.p, "/a/mcp");
	assert_string_equal(config->servers[0].args.items[0].p, "y");
	assert_false(config->servers[1].enabled);
	assert_int_equal(warnings.count, 2);
	assert_string_equal(config->listen[0].address, "127.0.0.1:0");
	config_free(&config);
	write_file(*state, "{\"mcpServers\": {\"far\": {\"url\": \"u\"}}}");
	assert_problem(&request, *state,
		       ": no entry can be served; at least one must have a command or a URL");
}

static void test_one_command(void **state)
{
	char *const command[] = { "npx", "-y", "@scope/server-everything", NULL };
	struct config_request request = { .command = command };
	struct config *config = load(&request);

	assert_int_equal(config->server_count, 1);
	assert_string_equal(config->servers[0].conf.name, "everything");
	assert_string_equal(config->servers[0].endpoint.path.p, "/mcp");
	assert_string_equal(config->servers[0].command, "npx");
	assert_int_equal(config->servers[0].args.count, 2);
	assert_string_equal(config->servers[0].args.items[1].p, "@scope/server-everything");
	assert_string_equal(config->listen[0].address, "127.0.0.1:8808");
	config_free(&config);
	request.name = "mine";
	request.listen[0] = "unix:/run/x";
	config = load(&request);
	assert_string_equal(config->servers[0].conf.name, "mine");
	assert_string_equal(config->listen[0].address, "unix:/run/x");
	config_free(&config);
	request.listen[0] = NULL;
	request.name = "My.Name";
	assert_problem(
		&request, "",
		"command line: the server name 'My.Name' must have 1 to 64 lowercase letters, "
		"digits, '-' and '_', and begin with a letter or digit");
	request.name = NULL;
	request.listen[0] = "here";
	assert_problem(&request, "",
		       "--listen: listen[0].address: must end in ':' and a port from 0 to 65535, "
		       "like 127.0.0.1:8808");
}

static void test_variables_of_the_command_line(void **state)
{
	char *const command[] = { "x", NULL };
	const char *env[] = { "MODE=fast=er", "API_KEY=k", "EMPTY=", "CONFIG_TEST_VARIABLE" };
	struct config_request request = { .command = command, .env = env, .env_count = 4 };
	const struct config_pair *pairs;
	struct config *config;
	char *text;

	assert_int_equal(setenv("CONFIG_TEST_VARIABLE", "from here", 1), 0);
	config = load(&request);
	pairs = config->servers[0].env;
	assert_int_equal(config->servers[0].env_count, 4);
	assert_string_equal(pairs[0].name, "MODE");
	assert_string_equal(pairs[0].value, "fast=er");
	assert_string_equal(pairs[2].value, "");
	assert_string_equal(pairs[3].value, "from here");
	text = printed(config);
	assert_non_null(strstr(text, "env: {MODE: \"fast=er\", API_KEY: \"***\", EMPTY: \"\", "
				     "CONFIG_TEST_VARIABLE: \"***\"}"));
	free(text);
	config_free(&config);
	assert_int_equal(unsetenv("CONFIG_TEST_VARIABLE"), 0);
	env[0] = "CONFIG_TEST_VARIABLE";
	request.env_count = 1;
	assert_problem(&request, "",
		       "--env: servers.x.env.CONFIG_TEST_VARIABLE.env: the variable "
		       "CONFIG_TEST_VARIABLE is not set in the daemon's environment");
	env[0] = "=x";
	assert_problem(&request, "", "--env: '' cannot be the name of a variable");
	env[0] = "A=1";
	env[1] = "A";
	request.env_count = 2;
	assert_problem(&request, "", "--env: A is given twice");
}

static void test_listen_replaces_that_of_the_file(void **state)
{
	struct config_request request = { .file = *state, .listen = { "127.0.0.1:0" } };
	struct config *config;

	write_file(*state, "listen: [{address: 127.0.0.1:1}, {address: 127.0.0.1:2}]\n"
			   "servers: {a: {command: x}}\n");
	config = load(&request);
	assert_int_equal(config->listen_count, 1);
	assert_string_equal(config->listen[0].address, "127.0.0.1:0");
	config_free(&config);
}

static void assert_problems(const struct config_request *request, const char *first,
			    const char *second)
{
	struct config_problems problems = { 0 };

	config_problems_fini(&warnings);
	assert_null(config_load(request, &problems, &warnings));
	assert_int_equal(problems.count, second != NULL ? 2 : 1);
	assert_string_equal(problems.items[0], first);
	if (second != NULL)
		assert_string_equal(problems.items[1], second);
	config_problems_fini(&problems);
}

#define REACHED "--listen: listen[0].address: other machines may reach 0.0.0.0:1, and "
#define ADD_TLS(self)                                           \
	REACHED "it has no TLS; add --tls CERTIFICATE,KEY" self \
		"; or, if a proxy in front has TLS, --plaintext"
#define OR_SELF ", or --tls self, which makes them"
#define ADD_TOKENS                                                                         \
	REACHED "no token is required; add --token-file FILE (mcpgatectl token new makes " \
		"a token)"

/* DEF-01, DEF-02, DEF-04: the remedy is an option where there is no file. */
static void test_reachable_listener_of_the_command_line(void **state)
{
	char *const command[] = { "x", NULL };
	struct config_request request = { .command = command, .listen = { "0.0.0.0:1" } };
	struct config *config;

	assert_problems(&request, ADD_TLS(OR_SELF), ADD_TOKENS);
	request.plaintext = true;
	assert_problems(&request, ADD_TOKENS, NULL);
	request.plaintext = false;
	request.token_file = *state;
	write_file(*state, "0123456789abcdef0123456789abcdef\n");
	assert_problems(&request, ADD_TLS(OR_SELF), NULL);
	request.plaintext = true;
	config = load(&request);
	assert_true(config->listen[0].plaintext);
	config_free(&config);
	request = (struct config_request){ .file = *state, .listen = { "0.0.0.0:1" } };
	write_file(*state, "servers: {a: {command: x}}\nauth: {mode: anonymous}\n");
	assert_problems(&request, ADD_TLS(""), NULL);
	write_file(*state, "servers: {a: {command: x}}\n");
	request.plaintext = true;
	assert_problems(&request,
			REACHED "no token is required. In the configuration file, add at "
				"the top level the line 'auth: {mode: token, tokens: [{name: NAME, "
				"sha256: HASH}]}'; or, if everybody who can connect may use the "
				"servers, the line 'auth: {mode: anonymous}'",
			NULL);
}

static void test_certificate_of_the_command_line(void **state)
{
	char *const command[] = { "x", NULL };
	struct config_request request = { .command = command, .tls = "/nonexistent/c,k" };
	char *directory = getcwd(NULL, 0);
	char *key = mem_printf("--tls: listen[0].tls.key: %s/k: cannot be opened: No such file or "
			       "directory",
			       directory);

	(void)state;
	assert_problems(&request,
			"--tls: listen[0].tls.certificate: /nonexistent/c: cannot be opened: No "
			"such file or directory",
			key);
	request.tls = "alone";
	assert_problem(&request, "",
		       "--tls: must be the two files CERTIFICATE,KEY, or self, not 'alone'");
	free(key);
	free(directory);
}

/* Loads `yaml`, prints it, loads that, prints it again: both prints must be equal. */
static void assert_round_trip(const char *path, const char *yaml)
{
	struct config_request request = { .file = path };
	struct config *config;
	char *first, *second;

	write_file(path, yaml);
	config = load(&request);
	first = printed(config);
	config_free(&config);
	write_file(path, first);
	config = load(&request);
	second = printed(config);
	config_free(&config);
	assert_string_equal(first, second);
	free(first);
	free(second);
}

static void test_printed_configuration_is_read_back(void **state)
{
	assert_round_trip(
		*state,
		"servers: {a: {command: x, scopes: ['a:b'], tools: {scopes: {'d*': [t, u], "
		"e: []}}}}\nauth: {mode: token, scope_hierarchy: {t: [u]}, tokens: [{name: "
		"'n: m', sha256: "
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, expires: "
		"2027-01-31}, {name: o, sha256: "
		"0f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, servers: "
		"[a]}]}\n");
	assert_round_trip(
		*state,
		"servers: {a: {command: x, audience: [b], clients: [c, 'd e'], "
		"algorithms: [ES256]}}\npublic_url: 'https://a.example'\n"
		"auth: {mode: oauth, dpop: on, initial_scopes: [i], issuers: [{issuer: "
		"'https://id.example', audience: [x], jwks_uri: 'https://id.example/k', "
		"max_lifetime: 2h, required_claims: {tid: [a, 'b: c'], 'x y': ['1']}, "
		"introspection: {client_id: i, client_secret: s, auth_method: client_secret_post}}, "
		"{issuer: 'http://[::1]:1', allow_private: true, leeway: 5s}],\n"
		"  registration_facade: {client_id: r}}\n");
	assert_round_trip(*state, "servers: {}\n");
	assert_round_trip(*state, "servers: {a: {command: x}}\n");
	assert_round_trip(
		*state, "servers: {a: {command: x, tools: {rename: {a: b}, describe: {a: 'b: c'}, "
			"annotations: {a: {title: 'true', readOnlyHint: true}}}}}\n");
	assert_round_trip(
		*state,
		"listen: [{address: '[::]:1', plaintext: true}, {address: unix:/a b}]\n"
		"public_url: https://x\nhosts: [a, '[::1]']\norigins: [http://y]\n"
		"auth: {mode: anonymous}\nlimits: {message: 1025, idle_timeout: 1500ms}\n"
		"streams: {response: sse, json_grace: 0}\nlog: {level: debug, format: json}\n"
		"servers:\n  a:\n    command: ./x y\n    enabled: false\n"
		"    args: ['', ' ', '#', null_, 'null', 'true', '~', '1', \"\\n\\t\\u2028\\u0085\\x7f\","
		" \"\\\\\\\"\", 'ä€😀', '- x', 'a: b', \"\\uFEFF\"]\n"
		"    env: {A: '', 'B C': \"x\\ny\"}\n    inherit_env: []\n    cwd: /tmp\n"
		"    start: {backoff: 1500ms..2m}\n    tool_timeout: {'x: y': 1s}\n"
		"    user: u\n    umask: 0027\n    resources: {open_files: 99, memory: 3MiB, cpu: 7%}\n"
		"    sandbox: {mode: landlock, read: ['/a b'], connect: [1, 65535], bind: any,\n"
		"      udp: none, unix_sockets: true, gateway: true}\n"
		"  b_2: {command: y}\n");
}

static void test_arguments_survive_printing(void **state)
{
	static const char *const args[] = {
		"",  " a ",      "\n\r\t", "\"\\'",  "\xc2\x85\xe2\x80\xa8",
		"ä", "\x01\x7f", "yes",    "{a: b}", "\xef\xbb\xbf"
	};
	char *command[ARRAY_LEN(args) + 2] = { "x" };
	struct config_request by_command = { .command = command };
	struct config_request by_file = { .file = *state };
	struct config *config;
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(args); i++)
		command[i + 1] = (char *)(uintptr_t)args[i];
	config = load(&by_command);
	text = printed(config);
	config_free(&config);
	write_file(*state, text);
	free(text);
	config = load(&by_file);
	assert_int_equal(config->servers[0].args.count, ARRAY_LEN(args));
	for (size_t i = 0; i < ARRAY_LEN(args); i++)
		assert_string_equal(config->servers[0].args.items[i].p, args[i]);
	config_free(&config);
}

/* DEF-24 */
static void test_secrets_are_not_printed(void **state)
{
	struct config_request request = { .file = *state };
	struct config *config;
	char *text;

	assert_int_equal(setenv("MCPGATED_TEST_VALUE", "s3cret-b", 1), 0);
	write_file(*state,
		   "servers: {a: {command: x, env: {A_TOKEN: s3cret-a, B: {env: "
		   "MCPGATED_TEST_VALUE}, MODE: fast}}}\npublic_url: 'https://a.example'\n"
		   "auth: {mode: oauth, issuers: [{issuer: 'https://i.example', introspection: "
		   "{client_id: c, client_secret: {env: MCPGATED_TEST_VALUE}}}]}\n");
	config = load(&request);
	assert_string_equal(config->servers[0].env[1].value, "s3cret-b");
	text = printed(config);
	assert_null(strstr(text, "s3cret"));
	assert_string_equal(config->frontend.authorization.issuers.items[0].client_secret,
			    "s3cret-b");
	assert_non_null(strstr(text, "client_secret: \"***\""));
	assert_non_null(strstr(text, "env: {A_TOKEN: \"***\", B: \"***\", MODE: fast}"));
	free(text);
	config_free(&config);
	assert_int_equal(unsetenv("MCPGATED_TEST_VALUE"), 0);
}

/* SEC-61: what the gateway reads is the same configuration, without what the children alone may know. */
static void test_gateway_reads_all_but_secrets_of_servers(void **state)
{
	struct config_request request = { .file = *state };
	struct config *config, *read;
	struct error err;
	char *text = NULL, *again;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	write_file(
		*state,
		"servers:\n  a: {command: x, args: [--key=s3cret], request_timeout: 7s, env: {A: s3cret, "
		"WHO: 's3cret ${claim:sub}/${claim:\"team}', T: '${claim:sub}'}}\n"
		"public_url: https://mcp.example\n"
		"auth: {mode: oauth, issuers: [{issuer: 'https://i.example', introspection: "
		"{client_id: c, client_secret: shown-to-issuers}}],\n  tokens: [{name: n, sha256: "
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, tools: {a: [t]}}]}\n"
		"roles: {r: {when: {groups: [g]}, allow: {a: ['*']}, prompts: {deny: {'*': [p]}}}}\n");
	config = load(&request);
	config_print_for_gateway(config, out);
	fclose(out);
	assert_null(strstr(text, "s3cret"));
	read = config_read_checked(slice_of(text, size), &err);
	assert_non_null(read);
	assert_int_equal(read->servers[0].args.count, 0);
	assert_int_equal(read->servers[0].conf.claims.count, 2);
	assert_true(slices_has(read->servers[0].conf.claims, SLICE_LIT("sub")));
	assert_true(slices_has(read->servers[0].conf.claims, SLICE_LIT("\"team")));
	assert_int_equal(read->servers[0].conf.request_timeout_ms, 7000);
	assert_int_equal(read->servers[0].conf.permissions.role_count, 3);
	assert_null(strstr(text, "shown-to-issuers"));
	again = printed(read);
	free(text);
	text = printed(config);
	/* All else is the same; env is what comes between. */
	assert_memory_equal(again, text, (size_t)(strstr(text, "    args:") - text));
	assert_string_equal(strstr(again, "    inherit_env:"), strstr(text, "    inherit_env:"));
	free(text);
	free(again);
	config_free(&config);
	config_free(&read);
	assert_null(config_read_checked(SLICE_LIT("["), &err));
}

static void assert_rule_at(const struct config *config, struct rule rule, const char *server,
			   const char *expected)
{
	struct buf text = { 0 };

	(void)!rule_places_append(&config->rule_places, &rule, slice_str(server), &text);
	assert_string_equal(buf_terminate(&text), expected);
	buf_fini(&text);
}

static const char ruled[] = "defaults:\n"                               /* 1 */
			    "  concurrency: 4\n"                        /* 2 */
			    "  tools: {deny: [no_*,\n"                  /* 3 */
			    "                 never]}\n"                /* 4 */
			    "servers:\n"                                /* 5 */
			    "  a: {command: x}\n"                       /* 6 */
			    "  b:\n"                                    /* 7 */
			    "    command: '# Where the rules stand:'\n" /* 8 */
			    "    tools:\n"                              /* 9 */
			    "      deny:\n"                             /* 10 */
			    "      - one\n"                             /* 11 */
			    "      - two\n"                             /* 12 */
			    "      limits: [{tools: [a], calls: 1},\n"  /* 13 */
			    "               {tools: [b], calls: 1}]\n"  /* 14 */
			    "      arguments:\n"                        /* 15 */
			    "        deny_patterns:\n"                  /* 16 */
			    "          'x y.*': [a]\n"                  /* 17 */
			    "roles: {dev: {allow: {\n"                  /* 18 */
			    "  b: ['*'] }}}\n"                          /* 19 */
			    "auth: {mode: token, tokens: [\n"           /* 20 */
			    "  {name: m, roles: [dev], sha256: "        /* 21 */
			    "8f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08},\n"
			    "  {name: n, sha256: " /* 22 */
			    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08,\n"
			    "   tools: {a: [t,\n" /* 23 */
			    "               u]}}]}\n";

/* SEC-63: the gateway, which gets a configuration without the lines of the file, knows where its rules stand. */
static void test_gateway_knows_where_rules_stand(void **state)
{
	static const struct rule first = { .key = RULE_TOOLS_DENY, .has_entry = true },
				 second = { .key = RULE_TOOLS_DENY, .has_entry = true, .entry = 1 },
				 of_role = { .key = RULE_ROLE_ALLOW,
					     .name = SLICE("dev"),
					     .member = SLICE("b"),
					     .has_entry = true },
				 of_token = { .key = RULE_TOKEN_TOOLS,
					      .number = 1,
					      .member = SLICE("a"),
					      .has_entry = true,
					      .entry = 1 },
				 pattern = { .key = RULE_DENY_PATTERNS,
					     .member = SLICE("x y.*"),
					     .has_entry = true };
	struct config_request request = { .file = *state };
	struct config *config, *read;
	char *text = NULL, *again = NULL, expected[256];
	size_t size, again_size;
	struct error err;
	FILE *out = open_memstream(&text, &size);

	write_file(*state, ruled);
	config = load(&request);
	config_print_for_gateway(config, out);
	fclose(out);
	read = config_read_checked(slice_of(text, size), &err);
	assert_non_null(read);
#define ASSERT_LINE(rule, server, line)                                            \
	snprintf(expected, sizeof(expected), "%s:%u", (const char *)*state, line); \
	assert_rule_at(read, rule, server, expected)
	ASSERT_LINE(first, "a", 3);
	ASSERT_LINE(second, "a", 4);
	ASSERT_LINE(first, "b", 11);
	ASSERT_LINE(second, "b", 12);
	ASSERT_LINE(((struct rule){ .key = RULE_TOOLS_DENY }), "b", 10);
	ASSERT_LINE(((struct rule){ .key = RULE_CONCURRENCY }), "b", 2);
	ASSERT_LINE(((struct rule){ .key = RULE_PIN }), "b", 7);
	ASSERT_LINE(((struct rule){ .key = RULE_TOOL_LIMITS, .has_entry = true, .entry = 1 }), "b",
		    14);
	ASSERT_LINE(pattern, "b", 17);
	ASSERT_LINE(of_role, "b", 19);
	ASSERT_LINE(of_token, "a", 24);
	ASSERT_LINE(((struct rule){ .key = RULE_ROLES }), "a", 18);
	assert_rule_at(read, (struct rule){ .key = RULE_DENIED_TOKENS }, "a", "");
#undef ASSERT_LINE
	/* And so does the next one. */
	out = open_memstream(&again, &again_size);
	config_print_for_gateway(read, out);
	fclose(out);
	assert_string_equal(strstr(again, "\n# Where"), strstr(text, "\n# Where"));
	free(text);
	free(again);
	config_free(&config);
	config_free(&read);
}

/* SEC-63: what refuses by a key that no longer exists would send its reader nowhere. */
static void test_rules_are_of_options(void **state)
{
	for (enum rule_key key = RULE_NONE + 1; key < RULE_SERVER; key++) {
		size_t i = 0;

		while (i < options_count && strcmp(options_table[i].path, rule_key_text(key)) != 0)
			i++;
		if (i == options_count)
			fail_msg("there is no option %s", rule_key_text(key));
	}
}

/* SEC-61: what fetches knows the issuers and our credentials there, and neither servers nor tokens. */
static void test_fetcher_reads_issuers_alone(void **state)
{
	struct config_request request = { .file = *state };
	struct config *config, *read;
	const struct verifier_issuer_conf *issuer;
	struct error err;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	write_file(
		*state,
		"log: {level: debug}\n"
		"servers: {a: {command: x, args: [--key=s3cret], env: {A: s3cret}}}\n"
		"public_url: https://mcp.example\n"
		"auth: {mode: oauth, deny: [{issuer: static, sub: s3cret}], tokens: [{name: s3cret, sha256: "
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}], issuers: [{issuer: "
		"'https://i.example', allow_private: true, introspection: {client_id: c, "
		"client_secret: shown-to-issuers}}]}\n");
	config = load(&request);
	config_print_for_fetcher(config, out);
	fclose(out);
	assert_null(strstr(text, "s3cret"));
	assert_null(strstr(text, "9f86d0"));
	read = config_read_checked(slice_of(text, size), &err);
	assert_non_null(read);
	assert_int_equal(read->log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(read->server_count, 0);
	assert_int_equal(read->frontend.authorization.issuers.count, 1);
	issuer = &read->frontend.authorization.issuers.items[0];
	assert_string_equal(issuer->issuer, "https://i.example");
	assert_string_equal(issuer->client_secret, "shown-to-issuers");
	assert_true(issuer->allow_private);
	free(text);
	config_free(&config);
	config_free(&read);
}

/* The sample with its options as comments, or with each of them switched on. */
static char *sample(bool is_on)
{
	char *text = NULL, *from, *to;
	bool is_begin = true; /* nothing but spaces in this line yet */
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	config_print_sample(out);
	assert_int_equal(fclose(out), 0);
	for (from = to = text; *from != '\0'; from++) {
		if (!is_on || !is_begin || *from != '#' || from[1] == ' ' || from[1] == '\n')
			*to++ = *from;
		is_begin = *from == '\n' || (is_begin && *from == ' ');
	}
	*to = '\0';
	return text;
}

static void test_sample_has_the_defaults(void **state)
{
	struct config_request request = { .file = *state };
	struct config *config;
	char *plain, *expected;

	write_file(*state, "servers: {demo: {command: mcpgated-demo}}\n");
	config = load(&request);
	expected = printed(config);
	config_free(&config);
	for (int is_on = 0; is_on <= 1; is_on++) {
		char *text = sample(is_on != 0);

		write_file(*state, text);
		config = load(&request);
		plain = printed(config);
		assert_string_equal(plain, expected);
		config_free(&config);
		free(plain);
		free(text);
	}
	free(expected);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file, make_file, remove_file),
		cmocka_unit_test(test_problems_come_in_the_order_of_lines),
		cmocka_unit_test_setup_teardown(test_problems_of_all_stages_are_sorted, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_file_that_is_too_large, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_file_that_others_may_write_is_refused,
						make_file, remove_file),
		cmocka_unit_test_setup_teardown(test_secret_that_others_may_read_is_a_warning,
						make_file, remove_file),
		cmocka_unit_test_setup_teardown(test_open_file_of_a_secret_is_a_warning, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_import, make_file, remove_file),
		cmocka_unit_test(test_variables_of_the_command_line),
		cmocka_unit_test(test_one_command),
		cmocka_unit_test_setup_teardown(test_listen_replaces_that_of_the_file, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_reachable_listener_of_the_command_line,
						make_file, remove_file),
		cmocka_unit_test(test_certificate_of_the_command_line),
		cmocka_unit_test_setup_teardown(test_printed_configuration_is_read_back, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_arguments_survive_printing, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_secrets_are_not_printed, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_gateway_reads_all_but_secrets_of_servers,
						make_file, remove_file),
		cmocka_unit_test_setup_teardown(test_gateway_knows_where_rules_stand, make_file,
						remove_file),
		cmocka_unit_test(test_rules_are_of_options),
		cmocka_unit_test_setup_teardown(test_fetcher_reads_issuers_alone, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_sample_has_the_defaults, make_file,
						remove_file),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
