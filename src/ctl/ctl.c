/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgatectl: the operator's tool. One row for each command: what it takes, and the function. All but doctor and
 * token ask the daemon at its admin socket.
 */
#include <build_version.h>
#include <getopt.h>
#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/config.h"
#include "ctl/client.h"
#include "ctl/client_config.h"
#include "ctl/commands.h"
#include "ctl/complete.h"
#include "ctl/line.h"
#include "ctl/output.h"

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif

#define DEFAULT_FILE SYSCONFDIR "/mcpgated/mcpgated.yaml"

/* What a command orders: POST /COMMAND?PARAMETER=WORD. */
struct order {
	const char *parameter; /* NULL: it has none */
	const char *done;      /* what has happened; printed before the number */
	const char *if_none;   /* printed behind the number 0; NULL: nothing */
	const char *member; /* of the answer, which has the number; NULL: there is none to tell */
};

static int give(const struct line *line, const struct order *order)
{
	const char *name = line->words[0];
	char *target = order->parameter == NULL ?
			       mem_printf("/%s", name) :
			       mem_printf("/%s?%s=%s", name, order->parameter, line->words[1]);
	json_t *answer = line_ask(line, "POST", target, line_no_body);
	json_t *number = order->member != NULL ? json_object_get(answer, order->member) : NULL;

	if (answer != NULL && !line->is_json && order->member == NULL)
		puts(order->done);
	else if (answer != NULL && !line->is_json)
		printf("%s%lld%s\n", order->done, (long long)json_integer_value(number),
		       order->if_none != NULL && json_integer_value(number) == 0 ? order->if_none :
										   "");
	return line_finish(answer);
}

/* ---- the commands ---- */

static void show_event(struct slice data)
{
	json_auto_t *entry = json_loadb(data.p, data.n, JSON_ALLOW_NUL, NULL);

	show_log_line(entry);
}

static void print_event(struct slice data)
{
	printf("%.*s\n", SLICE_ARG(data));
	fflush(stdout);
}

static int follow_logs(const struct line *line)
{
	int status = line_follow(line, mem_printf("/logs?server=%s&follow=1", line->words[1]),
				 line->is_json ? print_event : show_event);

	if (status == 0)
		fputs("mcpgatectl: the daemon has stopped, or the server no longer exists\n",
		      stderr);
	return status;
}

static int run_logs(const struct line *line)
{
	json_t *answer;
	const json_t *lines;

	if (line->follows)
		return follow_logs(line);
	answer = line_ask(line, "GET", mem_printf("/logs?server=%s", line->words[1]), line_no_body);
	lines = json_object_get(answer, "lines");
	for (size_t i = 0; i < json_array_size(lines) && !line->is_json; i++)
		show_log_line(json_array_get(lines, i));
	return line_finish(answer);
}

/* As it is: nothing in it acts on a terminal (obs/metric.h). */
static int run_metrics(const struct line *line)
{
	const struct client_request request = { .socket = line->socket,
						.method = "GET",
						.target = "/metrics" };
	at_end(client_reply_fini) struct client_reply reply = { .status = 0 };
	struct error err = { ERROR_NONE, "" };
	int status = 0;

	if (client_ask(&request, &reply, &err) < 0)
		return line_fail(err.text);
	if (reply.status == 200)
		fwrite(reply.body.data, 1, reply.body.len, stdout);
	else
		status = line_fail("the daemon refused the request");
	return status;
}

static int examine_servers(const struct line *line)
{
	const struct config_request request = {
		.file = line->command != NULL ? NULL : line->file,
		.command = line->command,
		.env = line->env,
		.env_count = line->env_count,
	};
	at_end(config_free) struct config *config = line_load(&request);
	int ill;

	if (config == NULL) {
		/* After the first build there is no configuration yet. */
		if (line->command == NULL && strcmp(line->file, DEFAULT_FILE) == 0 &&
		    access(line->file, F_OK) != 0)
			line_fail(
				"use -c for another file; a single server needs none: mcpgatectl doctor -- "
				"COMMAND [ARGUMENT...]");
		return EXIT_USAGE;
	}
	ill = doctor_examine(config, line->count > 1 ? line->words[1] : NULL, &line->claims);
	if (ill < 0)
		return line_fail("there is no such server in the configuration");
	return ill > 0 ? EXIT_FAILED : 0;
}

static int run_doctor(const struct line *line)
{
	int status;

	if (line->is_json)
		finding_collect();
	status = line->url != NULL ? oauth_run(line) : examine_servers(line);
	if (status != EXIT_USAGE)
		finding_flush();
	return status;
}

/* ---- token ---- */

/* Makes one, with its entry for auth.tokens. The daemon never sees the token itself: its configuration has the hash. */
static void print_token(const char *given, bool is_json)
{
	const char *name = given != NULL ? given : "client";
	struct line_token token;

	line_make_token(&token);
	if (is_json)
		printf("{\"name\":\"%s\",\"token\":\"%s\",\"sha256\":\"%s\"}\n", name, token.text,
		       token.hash);
	else
		/* As it stands it may be a file of tokens, too. */
		printf("# For the client; with the name behind it, a line of --token-file; shown this "
		       "once:\n%s%s%s\n"
		       "# For auth.tokens in the configuration:\n#   - {name: %s, sha256: %s}\n",
		       token.text, given != NULL ? " " : "", given != NULL ? given : "", name,
		       token.hash);
}

static int run_token(const struct line *line)
{
	CHECK(line->count == 2);
	if (strcmp(line->words[1], "new") != 0)
		return line_refuse_usage("usage: mcpgatectl token new [--name NAME]");
	if (line->name != NULL && !line_is_plain(line->name))
		return line_refuse_usage("a name may only have letters, digits, - and _");
	print_token(line->name, line->is_json);
	return 0;
}

/* ---- the table ---- */

static const char claims_help[] =
	"      --claims JSON   for tools, prompts, resources and call: as for a caller whose token has these\n"
	"                      claims, where a server's env or headers have ${claim:NAME}\n";

static const struct command {
	const char *name;
	const char *arguments;
	int arguments_min;
	int arguments_max;
	const char *help;
	const char *options; /* lines of help for what is its own; NULL: nothing */
	bool takes_url;      /* in place of a name */
	/* One of these three: prints a report, gives an order, or is a function of its own. */
	void (*show)(const json_t *report);
	struct order order;
	int (*run)(const struct line *line);
} commands[] = {
	{ "status", "", 0, 0, "the daemon and its servers", .show = show_status },
	{ "check", "[--ignore WHAT]", 0, 0,
	  "what needs attention; exit status 0: nothing, 1: look at it, 2: failing",
	  .options =
		  "      --ignore WHAT   for check: not this kind of problem, or not what is about this;\n"
		  "                      several with commas\n",
	  .run = show_check },
	{ "servers", "", 0, 0, "state, calls and latencies of each server", .show = show_servers },
	{ "top", "[-n N] [-d SECONDS]", 0, 0, "live view, one line per server",
	  .options = "  -n, --count N       for top: stop after N views; --once: after one\n"
		     "  -d, --delay SECONDS for top: time between views (default: 2)\n",
	  .run = top_run },
	{ "metrics", "", 0, 0, "the metrics, as Prometheus would read them", .run = run_metrics },
	{ "processes", "", 0, 0, "the server processes", .show = show_list },
	{ "sessions", "", 0, 0, "the open sessions", .show = show_list },
	{ "streams", "", 0, 0, "messages that wait for clients, or are kept for them",
	  .show = show_list },
	{ "logs", "SERVER [-f]", 1, 1, "the last lines of its stderr; -f: follow",
	  .run = run_logs },
	{ "restart", "SERVER", 1, 1, "replace its processes",
	  .order = { "server", "processes to be replaced: ", " (none is running)", "restarted" } },
	{ "end-session", "ID", 1, 1, "end the session whose id begins with ID",
	  .order = { "id", "sessions ended: ", NULL, "ended" } },
	{ "deny", "add|list|remove N", 1, 2, "refuse tokens from now on; see below",
	  .options =
		  "      --sub S, --client-id C, --jti J, --sid L\n"
		  "                      for deny add: refuse the tokens of this person, of this client, with\n"
		  "                      this token id, or of this login; give one of the four\n"
		  "      --issuer I      with deny add: whose tokens; 'static' for auth.tokens\n"
		  "      --for TIME      with deny add: for how long, like 12h (default: 24h)\n",
	  .run = orders_deny },
	{ "can", "WHO SERVER TOOL", 0, 3, "whether WHO may use it, and by which rule; see below",
	  .options =
		  "      WHO             for can: a caller with a session, by the sub of the token; or instead:\n"
		  "      --claims JSON   a caller whose token has these claims\n"
		  "      --token NAME    a caller with this entry of auth.tokens\n"
		  "      --prompt NAME, --resource URI\n"
		  "                      for can, instead of TOOL; exit status 0: yes, 1: no, 2: unknown\n",
	  .run = orders_can },
	{ "pins", "[approve|reject] [S]", 0, 3, "new and changed definitions; see below",
	  .options =
		  "      approve|reject S NAME, or --all\n"
		  "                      for pins: approve or reject the definitions of server S that wait\n",
	  .run = orders_pins },
	{ "drain", "", 0, 0, "stop the daemon once the calls in flight are done",
	  .order = { NULL, "the daemon stops after the calls in flight: ", NULL, "calls" } },
	{ "reload", "", 0, 0, "reload the configuration; exit status 1: refused",
	  .run = orders_reload },
	{ "upgrade", "", 0, 0, "let the program installed now take over; exit status 1: refused",
	  .run = orders_upgrade },
	{ "tools", "SERVER [--format F]", 1, 1, "its tools; F: mcp, openai or anthropic",
	  .options = claims_help, .run = offers_run_tools },
	{ "prompts", "SERVER", 1, 1, "its prompts", .options = claims_help,
	  .run = offers_run_prompts },
	{ "resources", "SERVER", 1, 1, "its resources and resource templates",
	  .options = claims_help, .run = offers_run_resources },
	{ "call", "SERVER TOOL [JSON]", 2, 3, "call a tool", .options = claims_help,
	  .run = offers_run_call },
	{ "token", "new [--name N]", 1, 1, "make a static token and its entry for auth.tokens",
	  .run = run_token },
	{ "client-config", "[SERVER] [--client C]", 0, 1,
	  "its entry for a client's file; C: cursor, vscode …",
	  .options =
		  "      --client C      for client-config: claude, claude-code (the default), cline, codex, cursor,\n"
		  "                      gemini, opencode, vscode, windsurf, zed; stdio: any that starts commands\n"
		  "                      --all: of every server; -c FILE: read the configuration instead of\n"
		  "                      asking the daemon;\n"
		  "                      --token-file F: include the token in F\n",
	  .run = client_config_run },
	{ "connect", "SERVER|URL", 1, 1, "be a stdio server to a client, and pass on to the daemon",
	  .options =
		  "      -c FILE, --token-file F\n"
		  "                      for connect: the configuration, and the token to send; by default\n"
		  "                      mcpgated.yaml and token in ~/.config/mcpgated, or the daemon is asked\n"
		  "                      --ca FILE: also trust the certificates in FILE (PEM)\n",
	  .takes_url = true, .run = connect_run },
	{ "adopt", "[CLIENT] [--undo]", 0, 1,
	  "serve what the clients of this user start; see below",
	  .options =
		  "      CLIENT          for adopt: a client, named as for client-config; by default all that have\n"
		  "                      a file\n"
		  "      --dry-run       for adopt: show what would be done\n"
		  "      --undo          for adopt: put the entries back, byte by byte\n"
		  "      --explain       for adopt: which servers one process may serve for all, and why\n",
	  .run = adopt_run },
	{ "doctor", "[SERVER] [-c FILE]", 0, 1,
	  "start servers once and report what is wrong; needs no daemon",
	  .options =
		  "  -c, --config FILE   for doctor (default: " DEFAULT_FILE
		  "); or: doctor -- COMMAND...\n"
		  "      --env N, --env N=V\n"
		  "                      for doctor -- COMMAND: an environment variable for it, as for mcpgated\n"
		  "      --oauth URL     for doctor: go through a client's authorization steps for the MCP\n"
		  "                      endpoint at URL, and explain each\n"
		  "      --token-file F  with --oauth: also try the token in F\n"
		  "      --ca FILE       with --oauth: also trust the CA certificates in FILE (PEM)\n"
		  "      --claim N=V     for doctor: the value of ${claim:N} in a server's env; may be repeated\n",
	  .run = run_doctor },
};

/*
 * The options of each command, but for --version and --help. Those that are in no row take --socket and --json; some print a
 * format of their own, and some ask no daemon. The first row that applies counts.
 */
static const struct use {
	const char *command;
	const char *form; /* its second word, URL, "--" or an option, that has these; NULL: any */
	const char *options;
} uses[] = {
	{ "check", NULL, "socket ignore json" },
	{ "top", "--once", "socket once json" },
	{ "top", NULL, "socket count delay json" },
	{ "metrics", NULL, "socket" },
	{ "logs", NULL, "socket follow json" },
	{ "deny", "add", "socket sub client-id jti sid issuer for json" },
	{ "can", NULL, "socket claims token prompt resource json" },
	{ "pins", NULL, "socket all json" },
	{ "tools", NULL, "socket claims format json" },
	{ "prompts", NULL, "socket claims json" },
	{ "resources", NULL, "socket claims json" },
	{ "call", NULL, "socket claims json" },
	{ "token", NULL, "name json" },
	{ "client-config", "--config", "client config token-file all" },
	{ "client-config", NULL, "socket client token-file all" },
	{ "doctor", "--oauth", "oauth token-file ca json" },
	{ "doctor", "--", "env claim json" },
	{ "doctor", NULL, "config claim json" },
	{ "connect", "URL", "token-file ca" },
	{ "connect", "--config", "config token-file ca" },
	{ "connect", NULL, "socket token-file ca" },
	{ "adopt", "--explain", "explain json" },
	{ "adopt", NULL, "dry-run undo json" },
};

static bool is_given(const struct line *line, const char *option)
{
	for (size_t i = 0; i < line->given_count; i++)
		if (strcmp(line->given[i], option) == 0)
			return true;
	return false;
}

static bool use_applies(const struct use *use, const struct line *line)
{
	if (strcmp(use->command, line->words[0]) != 0)
		return false;
	if (use->form == NULL)
		return true;
	if (strcmp(use->form, "--") == 0)
		return line->command != NULL;
	if (use->form[0] == '-')
		return is_given(line, use->form + strlen("--"));
	if (strcmp(use->form, "URL") == 0)
		return line->count > 1 && line_is_url(line->words[1]);
	return line->count > 1 && strcmp(use->form, line->words[1]) == 0;
}

static bool use_has(const struct use *use, const char *option)
{
	return slice_has_part(slice_str(use->options), ' ', slice_str(option));
}

/* `option`: of which the form needs not be told, as it is that; or NULL. */
static void append_use(struct buf *text, const struct use *use, const char *option)
{
	bool has_form = use->form != NULL && (option == NULL || strncmp(use->form, "--", 2) != 0 ||
					      strcmp(use->form + 2, option) != 0);

	buf_printf(text, "%s%s%s", use->command, has_form ? " " : "", has_form ? use->form : "");
}

/* What nearly all take is not said to be for some. */
static int refuse_option(const struct line *line, const struct use *use, const char *option)
{
	const struct use named = { line->words[0], use->form, "" };
	bool is_common = strcmp(option, "json") == 0 || strcmp(option, "socket") == 0;
	at_end(buf_fini) struct buf text = { 0 };
	size_t count = 0;

	append_use(&text, &named, NULL);
	buf_printf(&text, " takes no --%s", option);
	for (size_t i = 0; i < ARRAY_LEN(uses) && !is_common; i++) {
		if (!use_has(&uses[i], option))
			continue;
		buf_append_str(&text, count++ == 0 ? ": it is for " : ", ");
		append_use(&text, &uses[i], option);
	}
	return line_refuse_usage(buf_terminate(&text));
}

/* Of two values one would be ignored. */
static int refuse_second(const char *option)
{
	at_end(mem_free) char *text = mem_printf("--%s is given twice", option);

	return line_refuse_usage(text);
}

/* -1: all that are given do something; else the exit status. */
static int check_options(const struct line *line)
{
	static const struct use others = { .options = "socket json" }, all = { .options = "help" },
				repeated = { .options = "env claim help" };
	const struct use *use = uses;

	while (use < uses + ARRAY_LEN(uses) && !use_applies(use, line))
		use++;
	if (use == uses + ARRAY_LEN(uses))
		use = &others;
	for (size_t i = 0; i < line->given_count; i++) {
		if (!use_has(&all, line->given[i]) && !use_has(use, line->given[i]))
			return refuse_option(line, use, line->given[i]);
		for (size_t j = 0; j < i; j++)
			if (strcmp(line->given[i], line->given[j]) == 0 &&
			    !use_has(&repeated, line->given[i]))
				return refuse_second(line->given[i]);
	}
	return -1;
}

static void print_row(const struct command *command)
{
	printf("  %-11s %-20s %s\n", command->name, command->arguments, command->help);
}

static void print_help(void)
{
	puts("usage: mcpgatectl [--socket PATH] [--json] COMMAND [ARGUMENT...]\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		print_row(&commands[i]);
	puts("\n"
	     "  -s, --socket PATH   the daemon's admin socket (default: $MCPGATED_SOCKET, else\n"
	     "                      $XDG_RUNTIME_DIR/mcpgated/admin.sock if it exists, else\n"
	     "                      /run/mcpgated/admin.sock)\n"
	     "      --json          print the daemon's answer as JSON");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (commands[i].options != NULL &&
		    (i == 0 || commands[i].options != commands[i - 1].options))
			fputs(commands[i].options, stdout);
	puts("      --version, --help, COMMAND --help");
}

static const char *command_form(size_t i, const char **arguments_r)
{
	if (i >= ARRAY_LEN(commands))
		return NULL;
	*arguments_r = commands[i].arguments;
	return commands[i].name;
}

/* What --client and --format take. */
static const char *option_value(const char *option, size_t i)
{
	if (strcmp(option, "client") == 0)
		return client_config_client(i);
	return strcmp(option, "format") == 0 ? tools_format(i) : NULL;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int refuse_command(const char *name)
{
	const char *nearest = NULL;
	size_t distance = SIZE_MAX;
	at_end(mem_free) char *why = NULL;

	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (text_is_nearer(slice_str(name), slice_str(commands[i].name), &distance))
			nearest = commands[i].name;
	if (nearest != NULL)
		why = mem_printf("there is no command '%s'; did you mean '%s'?", name, nearest);
	else
		why = mem_printf("there is no command '%s'", name);
	return line_refuse_usage(why);
}

/* Of one command, if there is a name. */
static int help(const char *name)
{
	const struct command *command = name != NULL ? find_command(name) : NULL;

	if (name == NULL) {
		print_help();
		return 0;
	}
	if (command == NULL)
		return refuse_command(name);
	printf("usage: mcpgatectl [--socket PATH] [--json] %s %s\n\n", command->name,
	       command->arguments);
	print_row(command);
	if (command->options != NULL)
		printf("\n%s", command->options);
	return 0;
}

static int run(const struct line *line)
{
	const struct command *command = find_command(line->words[0]);
	int given = line->count - 1;
	at_end(mem_free) char *why = NULL;
	int status;

	CHECK(line->count > 0);
	if (command == NULL)
		return refuse_command(line->words[0]);
	if (given > 0 && command->arguments_max == 0)
		why = mem_printf("'%s' takes no argument like '%s'; usage: mcpgatectl %s%s%s",
				 command->name, line->words[1], command->name,
				 command->arguments[0] != '\0' ? " " : "", command->arguments);
	else if (given < command->arguments_min || given > command->arguments_max)
		why = mem_printf("usage: mcpgatectl %s %s", command->name, command->arguments);
	else if (command->arguments_min > 0 && !line_is_plain(line->words[1]) &&
		 !(command->takes_url && line_is_url(line->words[1])))
		why = mem_printf("a name may only have letters, digits, - and _: mcpgatectl %s %s",
				 command->name, command->arguments);
	if (why != NULL)
		return line_refuse_usage(why);
	status = check_options(line);
	if (status >= 0)
		return status;
	CHECK((command->show != NULL) + (command->order.done != NULL) + (command->run != NULL) ==
	      1);
	CHECK(command->order.parameter == NULL || command->arguments_min > 0);
	if (command->show != NULL)
		return line_report(line, command->show);
	return command->run != NULL ? command->run(line) : give(line, &command->order);
}

/* ---- the command line ---- */

enum {
	OPTION_ONCE = 256,
	OPTION_FORMAT,
	OPTION_CLAIM,
	OPTION_CLAIMS,
	OPTION_ENV,
	OPTION_VERSION,
	OPTION_FLAG = 0x1000, /* and where in struct line it is set */
	OPTION_TEXT = 0x10000 /* and where the text is kept, as it is */
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "config", required_argument, NULL, 'c' },
	{ "follow", no_argument, NULL, 'f' },
	{ "json", no_argument, NULL, OPTION_FLAG + offsetof(struct line, is_json) },
	{ "all", no_argument, NULL, OPTION_FLAG + offsetof(struct line, all) },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "count", required_argument, NULL, 'n' },
	{ "delay", required_argument, NULL, 'd' },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "name", required_argument, NULL, OPTION_TEXT + offsetof(struct line, name) },
	{ "oauth", required_argument, NULL, OPTION_TEXT + offsetof(struct line, url) },
	{ "token-file", required_argument, NULL, OPTION_TEXT + offsetof(struct line, token_file) },
	{ "ca", required_argument, NULL, OPTION_TEXT + offsetof(struct line, ca_file) },
	{ "env", required_argument, NULL, OPTION_ENV },
	{ "ignore", required_argument, NULL, OPTION_TEXT + offsetof(struct line, ignore) },
	{ "client", required_argument, NULL, OPTION_TEXT + offsetof(struct line, client) },
	{ "claim", required_argument, NULL, OPTION_CLAIM },
	{ "claims", required_argument, NULL, OPTION_CLAIMS },
	{ "token", required_argument, NULL, OPTION_TEXT + offsetof(struct line, can.token) },
	{ "prompt", required_argument, NULL, OPTION_TEXT + offsetof(struct line, can.prompt) },
	{ "resource", required_argument, NULL, OPTION_TEXT + offsetof(struct line, can.resource) },
	{ "issuer", required_argument, NULL, OPTION_TEXT + offsetof(struct line, deny.issuer) },
	{ "sub", required_argument, NULL, OPTION_TEXT + offsetof(struct line, deny.sub) },
	{ "client-id", required_argument, NULL,
	  OPTION_TEXT + offsetof(struct line, deny.client_id) },
	{ "jti", required_argument, NULL, OPTION_TEXT + offsetof(struct line, deny.jti) },
	{ "sid", required_argument, NULL, OPTION_TEXT + offsetof(struct line, deny.sid) },
	{ "for", required_argument, NULL, OPTION_TEXT + offsetof(struct line, deny.duration) },
	{ "dry-run", no_argument, NULL, OPTION_FLAG + offsetof(struct line, is_dry_run) },
	{ "undo", no_argument, NULL, OPTION_FLAG + offsetof(struct line, undoes) },
	{ "explain", no_argument, NULL, OPTION_FLAG + offsetof(struct line, wants_explanation) },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, OPTION_FLAG + offsetof(struct line, wants_help) },
	{ NULL, 0, NULL, 0 },
};

static bool is_format(const char *text)
{
	json_auto_t *none = json_array(), *converted = tools_convert(none, text);

	return converted != NULL;
}

/* What was printed may be lost only now, for instance on a full disk. */
static int check_output(int status)
{
	struct error err;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	error_set_errno(&err, "cannot write the output");
	return line_fail(err.text);
}

static const char *option_name(int option)
{
	const struct option *row = options;

	while (row->val != option)
		row++;
	return row->name;
}

/* Returns -1 to go on, or the exit status. */
static int take_option(struct line *line, int option)
{
	struct error err;
	json_t *claims;

	if (option != '?' && line->given_count == LINE_OPTIONS_MAX)
		return line_refuse_usage("too many options");
	if (option != '?')
		line->given[line->given_count++] = option_name(option);
	if (option >= OPTION_TEXT) {
		const char **text = (void *)((char *)line + (option - OPTION_TEXT));

		*text = optarg;
		return -1;
	}
	if (option >= OPTION_FLAG) {
		*((bool *)line + (option - OPTION_FLAG)) = true;
		return -1;
	}
	switch (option) {
	case 'c':
		line->file = optarg;
		line->has_file = true;
		return -1;
	case 's':
		if (strlen(optarg) >= CLIENT_PATH_BYTES)
			return line_refuse_usage("the path of the socket is too long");
		snprintf(line->socket, sizeof(line->socket), "%s", optarg);
		line->is_another = false;
		line->has_socket = true;
		return -1;
	case 'f':
		line->follows = true;
		return -1;
	case 'n':
		line->views = optarg;
		return -1;
	case 'd':
		line->delay = optarg;
		return -1;
	case OPTION_ONCE:
		line->views = "1";
		return -1;
	case OPTION_FORMAT:
		line->format = optarg;
		return is_format(optarg) ?
			       -1 :
			       line_refuse_usage("--format takes mcp, openai or anthropic");
	case OPTION_CLAIMS:
		line->can.claims = optarg;
		claims = line_read_claims(optarg, &err);
		json_decref(claims);
		return claims != NULL ? -1 : line_refuse_usage(err.text);
	case OPTION_CLAIM:
		return doctor_add_claim(&line->claims, optarg, &err) == 0 ?
			       -1 :
			       line_refuse_usage(err.text);
	case OPTION_ENV:
		if (line->env_count == LINE_VARIABLES_MAX)
			return line_refuse_usage("too many --env");
		line->env[line->env_count++] = optarg;
		return -1;
	case OPTION_VERSION:
		puts("mcpgatectl " BUILD_VERSION);
		return check_output(0);
	default:
		fputs("try: mcpgatectl --help\n", stderr);
		return EXIT_USAGE;
	}
}

int main(int argc, char **argv)
{
	struct line line = { .file = DEFAULT_FILE };
	const char *socket_of_environment = getenv(CLIENT_SOCKET_VARIABLE);
	bool is_doctor;
	int option;

	/* For the width of characters alone: all texts are UTF-8, whatever the user's own locale is. */
	setlocale(LC_CTYPE, "C.UTF-8");
	if (argc > 1 && strcmp(argv[1], "complete") == 0) {
		complete_print(&(struct complete_forms){ command_form, option_value, options },
			       argv + 2, argc - 2);
		return check_output(0);
	}
	line.is_another = !client_find_socket(line.socket);
	if (socket_of_environment != NULL && strlen(socket_of_environment) >= CLIENT_PATH_BYTES)
		return line_refuse_usage("the path in " CLIENT_SOCKET_VARIABLE " is too long");
	line.has_socket = socket_of_environment != NULL;
	/* What stands behind "--" is a command for doctor, and none of our options. */
	for (int i = 1; i < argc && line.command == NULL; i++) {
		if (strcmp(argv[i], "--") == 0) {
			line.command = argv + i + 1;
			argv[i] = NULL;
			argc = i;
		}
	}
	while ((option = getopt_long(argc, argv, "s:c:fn:d:", options, NULL)) != -1) {
		int status = take_option(&line, option);

		if (status >= 0)
			return status;
	}
	line.words = argv + optind;
	line.count = argc - optind;
	if (line.count > 0 && strcmp(line.words[0], "help") == 0)
		return check_output(help(line.words[1]));
	if (line.wants_help)
		return check_output(help(line.words[0]));
	if (line.count == 0)
		return line_refuse_usage("a command is missing");
	is_doctor = strcmp(line.words[0], "doctor") == 0;
	if (line.command != NULL && (!is_doctor || line.count > 1 || line.command[0] == NULL))
		return line_refuse_usage(
			"only doctor takes a command after --, and then no server");
	if (line.url != NULL && (!is_doctor || line.count > 1 || line.command != NULL))
		return line_refuse_usage("only doctor takes --oauth, and then no other argument");
	return check_output(run(&line));
}
