/* SPDX-License-Identifier: Apache-2.0 */
/* Command line, configuration, start. Everything else is done by the keeper and the gateway. */
#include <build_version.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "config/config.h"
#include "config/self_signed.h"
#include "config/tree.h"
#include "keeper/keeper.h"
#include "keeper/kernel_features.h"
#include "keeper/listeners.h"
#include "keeper/records.h"
#include "keeper/upgrade.h"

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif

#define DEFAULT_FILE SYSCONFDIR "/mcpgated/mcpgated.yaml"
#define EXIT_USAGE 2
#define VARIABLES_MAX 256 /* of --env */
#define HOSTS_MAX 16      /* of --host */

enum action { ACTION_RUN, ACTION_TEST, ACTION_PRINT, ACTION_DUMP, ACTION_HELP, ACTION_VERSION };

struct command_line {
	enum action action;
	const char *dump;
	const char *env[VARIABLES_MAX];
	const char *hosts[HOSTS_MAX];
	size_t listen_count;
	struct config_request request;
};

static const char help[] =
	"usage: mcpgated [LISTENER] [-c FILE]            run with a configuration file\n"
	"       mcpgated [LISTENER] [--host NAME]... [--token-file F] [--name N]\n"
	"                [--env NAME[=VALUE]]... [--isolation MODE] -- COMMAND [ARGUMENT...]\n"
	"                                                serve one stdio MCP server over HTTP\n"
	"       mcpgated [LISTENER] [--host NAME]... [--token-file F] --import FILE\n"
	"                                                serve every server in a client's JSON file\n"
	"       mcpgated -t [-c FILE | --import FILE | -- COMMAND...]\n"
	"                                                check the configuration and exit\n"
	"       mcpgated --print-config [-c FILE | --import FILE | -- COMMAND...]\n"
	"                                                print the effective configuration\n"
	"\n"
	"  -c, --config FILE    configuration file (default: " DEFAULT_FILE ")\n"
	"      --listen ADDR    host:port, [v6]:port or unix:PATH (default: 127.0.0.1:8808)\n"
	"      --tls CERT,KEY   enable TLS with these two PEM files; self: make them once, and\n"
	"                       print how clients trust them (without -c)\n"
	"      --plaintext      allow other machines to connect without TLS, behind a TLS proxy\n"
	"                       (LISTENER stands for these three options)\n"
	"      --name NAME      name of the single server\n"
	"      --env NAME       pass on the environment variable NAME to it; may be repeated\n"
	"      --env NAME=VALUE set NAME to VALUE, which is visible in process listings\n"
	"      --host NAME      a further host name that clients use; may be repeated\n"
	"      --token-file F   require one of the tokens in F (one per line) from clients\n"
	"      --isolation MODE whom one process of it serves: session (default),\n"
	"                       principal or shared\n"
	"      --log-level L    what is logged: error, warn, info (default) or debug\n"
	"      --import FILE    take the servers from an MCP client's JSON file\n"
	"  -t, --test           check only; report every problem with file:line:column\n"
	"      --print-config   print the configuration with secrets masked\n"
	"      --dump WHAT      print \"sample\" (a commented file), \"schema\" (a JSON Schema of\n"
	"                       the file, for editors), or as roff \"manual\" (the\n"
	"                       options), \"events\" (of the log), \"audit\" (its fields),\n"
	"                       \"reasons\" (of errors) or \"metrics\"\n"
	"      --version, --help\n";

enum {
	OPTION_LISTEN = 256,
	OPTION_TLS,
	OPTION_PLAINTEXT,
	OPTION_NAME,
	OPTION_ENV,
	OPTION_HOST,
	OPTION_TOKEN_FILE,
	OPTION_ISOLATION,
	OPTION_LOG_LEVEL,
	OPTION_IMPORT,
	OPTION_PRINT,
	OPTION_DUMP,
	OPTION_VERSION,
	OPTION_HELP
};

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "test", no_argument, NULL, 't' },
	{ "listen", required_argument, NULL, OPTION_LISTEN },
	{ "tls", required_argument, NULL, OPTION_TLS },
	{ "plaintext", no_argument, NULL, OPTION_PLAINTEXT },
	{ "name", required_argument, NULL, OPTION_NAME },
	{ "env", required_argument, NULL, OPTION_ENV },
	{ "host", required_argument, NULL, OPTION_HOST },
	{ "token-file", required_argument, NULL, OPTION_TOKEN_FILE },
	{ "isolation", required_argument, NULL, OPTION_ISOLATION },
	{ "log-level", required_argument, NULL, OPTION_LOG_LEVEL },
	{ "import", required_argument, NULL, OPTION_IMPORT },
	{ "print-config", no_argument, NULL, OPTION_PRINT },
	{ "dump", required_argument, NULL, OPTION_DUMP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ NULL, 0, NULL, 0 },
};

/* One more of an option that can be repeated. */
static bool add(const char *option, const char **texts, size_t *count, size_t max)
{
	if (*count == max) {
		fprintf(stderr, "mcpgated: %s may be given at most %zu times\n", option, max);
		return false;
	}
	texts[(*count)++] = optarg;
	return true;
}

/* The first and only value of an option. */
static bool take(const char *option, const char **text_r)
{
	if (*text_r != NULL) {
		fprintf(stderr, "mcpgated: %s is given twice\n", option);
		return false;
	}
	*text_r = optarg;
	return true;
}

/* What is done in place of running. */
static bool take_action(struct command_line *line, enum action action)
{
	if (line->action == ACTION_HELP || line->action == ACTION_VERSION)
		return true;
	if (line->action != ACTION_RUN && line->action != action) {
		fputs("mcpgated: -t, --print-config and --dump are mutually exclusive\n", stderr);
		return false;
	}
	line->action = action;
	return true;
}

/* Returns false if the option cannot be taken; the reason has been printed. */
static bool take_option(struct command_line *line, int option)
{
	struct config_request *request = &line->request;

	switch (option) {
	case 'c':
		return take("-c", &request->file);
	case 't':
		return take_action(line, ACTION_TEST);
	case OPTION_LISTEN:
		return add("--listen", request->listen, &line->listen_count, CONFIG_LISTEN_MAX);
	case OPTION_TLS:
		return take("--tls", &request->tls);
	case OPTION_PLAINTEXT:
		return request->plaintext = true;
	case OPTION_NAME:
		return take("--name", &request->name);
	case OPTION_ENV:
		return add("--env", line->env, &request->env_count, VARIABLES_MAX);
	case OPTION_HOST:
		return add("--host", line->hosts, &request->host_count, HOSTS_MAX);
	case OPTION_TOKEN_FILE:
		return take("--token-file", &request->token_file);
	case OPTION_ISOLATION:
		return take("--isolation", &request->isolation);
	case OPTION_LOG_LEVEL:
		return take("--log-level", &request->log_level);
	case OPTION_IMPORT:
		return take("--import", &request->import_file);
	case OPTION_PRINT:
		return take_action(line, ACTION_PRINT);
	case OPTION_DUMP:
		return take_action(line, ACTION_DUMP) && take("--dump", &line->dump);
	case OPTION_VERSION:
		line->action = ACTION_VERSION;
		return true;
	case OPTION_HELP:
		line->action = ACTION_HELP;
		return true;
	default:
		return false;
	}
}

/* "--" belongs to us only where options end; what follows is the command, whatever it looks like. */
static int parse_command_line(struct command_line *line, int argc, char **argv)
{
	struct config_request *request = &line->request;
	int sources;
	int option;

	request->env = line->env;
	request->hosts = line->hosts;

	while ((option = getopt_long(argc, argv, "+c:t", options, NULL)) != -1) {
		if (!take_option(line, option))
			return -1;
	}
	if (optind < argc) {
		if (strcmp(argv[optind - 1], "--") != 0) {
			fprintf(stderr,
				"mcpgated: unexpected argument '%s'; give a configuration file with "
				"-c, or a command after --\n",
				argv[optind]);
			return -1;
		}
		request->command = argv + optind;
	} else if (strcmp(argv[optind - 1], "--") == 0) {
		fprintf(stderr, "mcpgated: the command after -- is missing\n");
		return -1;
	}
	sources = (request->file != NULL) + (request->import_file != NULL) +
		  (request->command != NULL);
	if (line->action == ACTION_DUMP && sources > 0) {
		fputs("mcpgated: --dump prints what no configuration changes: it takes no -c, --import or command\n",
		      stderr);
		return -1;
	}
	if (sources > 1) {
		fprintf(stderr, "mcpgated: -c, --import and a command are mutually exclusive\n");
		return -1;
	}
	if ((request->name != NULL || request->isolation != NULL || request->env_count > 0) &&
	    request->command == NULL) {
		fprintf(stderr, "mcpgated: --name, --env and --isolation require a command; in a "
				"configuration file use servers.NAME\n");
		return -1;
	}
	if ((request->token_file != NULL || request->host_count > 0 ||
	     request->log_level != NULL) &&
	    request->command == NULL && request->import_file == NULL) {
		fprintf(stderr,
			"mcpgated: --token-file, --host and --log-level require a command or --import; "
			"in a configuration file use auth.tokens, hosts and log.level\n");
		return -1;
	}
	if (sources == 0)
		request->file = DEFAULT_FILE;
	if ((request->tls != NULL || request->plaintext) && request->file != NULL &&
	    request->listen[0] == NULL) {
		fprintf(stderr, "mcpgated: --tls and --plaintext require --listen, a command or "
				"--import; in a configuration file use listen\n");
		return -1;
	}
	if (request->tls != NULL && strcmp(request->tls, "self") == 0 && request->file != NULL) {
		fputs("mcpgated: --tls self requires a command or --import; in a configuration "
		      "file use listen[].tls with the files of a certificate\n",
		      stderr);
		return -1;
	}
	return 0;
}

/* What was printed may not have arrived: on a full disk, say. */
static int check_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("mcpgated: cannot write the output");
	return 1;
}

static int dump(const char *what)
{
	static const struct {
		const char *name;
		void (*print)(FILE *out);
	} dumps[] = {
		{ "sample", config_print_sample },   { "manual", config_print_manual },
		{ "audit", config_print_audit },     { "events", config_print_events },
		{ "reasons", config_print_reasons }, { "schema", config_print_schema },
		{ "metrics", config_print_metrics },
	};

	for (size_t i = 0; i < ARRAY_LEN(dumps); i++) {
		if (strcmp(what, dumps[i].name) == 0) {
			dumps[i].print(stdout);
			return check_output();
		}
	}
	fputs("mcpgated: --dump takes sample, schema, manual, audit, events, metrics or reasons\n",
	      stderr);
	return EXIT_USAGE;
}

static void print_problems(const char *kind, const struct config_problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		fprintf(stderr, "mcpgated: %s%s\n", kind, problems->items[i]);
}

static void print_verdict(size_t warnings)
{
	if (warnings == 0)
		fputs("mcpgated: the configuration is fine\n", stderr);
	else
		fprintf(stderr, "mcpgated: the configuration is fine, with %zu warning%s\n",
			warnings, warnings == 1 ? "" : "s");
}

/* config_check_fn: what this machine can keep. */
static void check_machine(const struct config_request *request, const struct config *config,
			  const struct tree *root, struct config_problems *problems,
			  struct config_problems *warnings)
{
	kernel_features_check(config, request->running, root, problems);
	kernel_features_check_directories(config, root,
					  request->import_file != NULL ? warnings : problems);
	/* Where there is nothing else to serve, nothing is served without it. */
	kernel_features_check_commands(config, root,
				       request->command != NULL ? problems : warnings);
}

/* Without a file there is no start; the reader of a socket, or the journal, may come later. What is neither, the rules have refused. */
static void check_records(const struct config *config, const struct tree *root,
			  struct config_problems *problems, struct config_problems *warnings)
{
	const char *to = config->audit.to;
	bool is_file = to != NULL && to[0] == '/';
	struct error err;

	if ((is_file || (to != NULL && problems->count == 0)) && audit_writer_try(to, &err) < 0)
		problem_add_at(is_file ? problems : warnings,
			       tree_below(tree_below(root, "audit"), "to"), "%s: %s", to, err.text);
	if (log_file_try(config, &err) < 0)
		problem_add_at(config->log_target[0] == '/' ? problems : warnings,
			       tree_below(tree_below(root, "log"), "target"), "%s: %s",
			       config->log_target, err.text);
}

/* The same for -t, which tells what a start finds when it opens things, and what it logs. */
static void check_machine_and_tell(const struct config_request *request,
				   const struct config *config, const struct tree *root,
				   struct config_problems *problems,
				   struct config_problems *warnings)
{
	check_machine(request, config, root, problems, warnings);
	kernel_features_warn(config, root, warnings);
	check_records(config, root, problems, warnings);
	listeners_check(config, root, request->daemon, problems, warnings);
}

/* After a fresh build there is no configuration yet. */
static void hint_at_a_command(const struct command_line *line)
{
	const char *file = line->request.file;

	if (file != NULL && strcmp(file, DEFAULT_FILE) == 0 && access(file, F_OK) != 0)
		fputs("mcpgated: use -c for another file; a single server needs none: "
		      "mcpgated -- COMMAND [ARGUMENT...]\n",
		      stderr);
}

/* Whoever takes the file compares: it could have been exchanged on its way. */
static void print_certificate(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	struct self_signed_facts facts;

	if (self_signed_describe(path, &facts, NULL) < 0)
		return; /* whoever opens it says so */
	fprintf(stderr,
		"mcpgated: certificate: %s, until %s, SHA-256 %s\n"
		"mcpgated: clients trust that file: NODE_EXTRA_CA_CERTS=%s for Node.js, curl --cacert %s; "
		"is it the right one? openssl x509 -noout -fingerprint -sha256 -in %s\n",
		path, facts.until, facts.fingerprint, name, name, name);
}

static int run(struct config **config, const struct config_request *request,
	       struct upgrade *upgrade)
{
	struct programs programs;
	struct error err;
	int status;

	if (!(upgrade->is_back && programs_take(&programs, &upgrade->from)) &&
	    programs_open(&programs, &err) < 0) {
		fprintf(stderr, "mcpgated: %s\n", err.text);
		return 1;
	}
	if (request->tls != NULL && strcmp(request->tls, "self") == 0)
		print_certificate((*config)->listen[0].tls[0].certificate);
	status = keeper_run(config, request, &programs, upgrade);
	programs_close(&programs);
	return status;
}

/* They are those of the program that checks. */
static int check_programs(void)
{
	struct programs programs;
	struct error err;

	if (programs_open(&programs, &err) < 0) {
		fprintf(stderr, "mcpgated: %s\n", err.text);
		return 1;
	}
	programs_close(&programs);
	return 0;
}

static int with_configuration(struct command_line *line, struct upgrade *upgrade)
{
	static config_check_fn *const checks[] = {
		[ACTION_RUN] = check_machine,
		[ACTION_TEST] = check_machine_and_tell,
		[ACTION_PRINT] = NULL,
	};
	struct config_problems problems = { NULL, 0 }, warnings = { NULL, 0 };
	size_t warning_count;
	at_end(config_free) struct config *config = NULL;
	int status = 0;

	CHECK(line->action <= ACTION_PRINT);
	line->request.check = checks[line->action];
	line->request.makes_certificate = line->action == ACTION_RUN;
	config = config_load(&line->request, &problems, &warnings);
	print_problems("", &problems);
	print_problems("warning: ", &warnings);
	warning_count = warnings.count;
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
	if (config == NULL) {
		hint_at_a_command(line);
		return line->action == ACTION_TEST ? 1 : EXIT_USAGE;
	}
	if (line->action == ACTION_TEST && upgrade->is_checker) {
		status = check_programs();
		upgrade_print_format();
	} else if (line->action == ACTION_TEST) {
		print_verdict(warning_count);
	} else if (line->action == ACTION_PRINT) {
		config_print(config, stdout);
		status = check_output();
	} else {
		status = run(&config, &line->request, upgrade);
	}
	return status;
}

static int act(struct command_line *line, struct upgrade *upgrade)
{
	if (line->action == ACTION_HELP || line->action == ACTION_VERSION) {
		fputs(line->action == ACTION_HELP ? help : "mcpgated " BUILD_VERSION "\n", stdout);
		return check_output();
	}
	if (line->action == ACTION_DUMP)
		return dump(line->dump);
	line->request.daemon = upgrade->is_checker ? getpid() : 0;
	return with_configuration(line, upgrade);
}

int main(int argc, char **argv)
{
	struct command_line line = { .action = ACTION_RUN };
	struct upgrade upgrade;
	int status = EXIT_FAILURE;

	if (upgrade_begin(&upgrade, argv) < 0) {
		fputs("mcpgated: what the program before has left cannot be read here\n", stderr);
	} else if (parse_command_line(&line, argc, argv) < 0) {
		fputs("try: mcpgated --help\n", stderr);
		status = EXIT_USAGE;
	} else {
		status = act(&line, &upgrade);
	}
	if (upgrade.from.text.len > 0)
		upgrade_fall_back(&upgrade);
	upgrade_fini(&upgrade);
	return status;
}
