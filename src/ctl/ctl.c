/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgatectl: the operator's tool. One row for each command: what it takes, and the function. All but doctor and
 * token ask the daemon at its admin socket.
 */
#include <getopt.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/config.h"
#include "ctl/escape.h"
#include "ctl/client.h"
#include "ctl/deny.h"
#include "ctl/doctor.h"
#include "ctl/oauth.h"
#include "ctl/mcp_client.h"
#include "ctl/show.h"
#include "ctl/token.h"
#include "ctl/tools.h"

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif

#define DEFAULT_FILE SYSCONFDIR "/mcpgated/mcpgated.yaml"
#define EXIT_FAILED 1
#define EXIT_USAGE 2

struct line {
	char socket[CLIENT_PATH_BYTES];
	const char *file;
	const char *format;
	const char *name;
	const char *url;
	const char *token_file;
	const char *ca_file;
	struct doctor_claims claims;
	struct deny_words deny;
	bool is_json;
	bool follows;
	char **words; /* the command's name and its arguments */
	int count;
	char *const *command; /* behind "--", or NULL */
};

/* ---- saying what is wrong ---- */

static int fail(const char *text)
{
	escape_print(stderr, "mcpgatectl: ", slice_str(text), "");
	return EXIT_FAILED;
}

static int refuse_usage(const char *text)
{
	fail(text);
	fputs("try: mcpgatectl --help\n", stderr);
	return EXIT_USAGE;
}

/* ---- asking the daemon ---- */

/* Returns the object that it answers, or NULL: what is wrong has been said. With --json it is printed as it came. */
static json_t *ask_with(const struct line *line, const char *method, const char *target,
			struct slice body)
{
	struct client_request request = { line->socket, method, target, body, NULL };
	struct client_reply reply;
	struct error err = { ERROR_NONE, "" };
	json_t *answer;

	if (client_ask(&request, &reply, &err) < 0) {
		fail(err.text);
		return NULL;
	}
	answer = client_reply_read(&reply, &err);
	if (reply.status != 200) {
		const char *why = json_string_value(json_object_get(answer, "error"));

		fail(why != NULL ? why : "the daemon refuses, and does not say why");
		json_decref(answer);
		answer = NULL;
	} else if (answer == NULL) {
		fail(err.text);
	} else if (line->is_json) {
		fwrite(reply.body.data, 1, reply.body.len, stdout);
	}
	client_reply_fini(&reply);
	return answer;
}

/* Takes target. */
static json_t *ask(const struct line *line, const char *method, char *target)
{
	json_t *answer = ask_with(line, method, target, slice_of(NULL, 0));

	free(target);
	return answer;
}

/* Takes the answer, or NULL. Returns the exit status. */
static int finish(json_t *answer)
{
	int status = answer != NULL ? 0 : EXIT_FAILED;

	json_decref(answer);
	return status;
}

static int report(const struct line *line, void (*show)(const json_t *report))
{
	json_t *answer = ask(line, "GET", mem_printf("/%s", line->words[0]));

	if (answer != NULL && !line->is_json)
		show(answer);
	return finish(answer);
}

/* What the daemon's paths take without encoding; everything else names nothing that there is. */
static bool is_plain(const char *word)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	return word[0] != '\0' && strspn(word, letters) == strlen(word);
}

/* What a command orders: POST /COMMAND?PARAMETER=WORD. */
struct order {
	const char *parameter; /* NULL: it has none */
	const char *done;      /* what has happened; printed before the number */
	const char *member;    /* of the answer, which has the number */
};

static int give(const struct line *line, const struct order *order)
{
	bool has_word = order->parameter != NULL;
	char *target = mem_printf("/%s%s%s%s%s", line->words[0], has_word ? "?" : "",
				  has_word ? order->parameter : "", has_word ? "=" : "",
				  has_word ? line->words[1] : "");
	json_t *answer = ask(line, "POST", target);
	json_t *number = json_object_get(answer, order->member);

	if (answer != NULL && !line->is_json)
		printf("%s%lld\n", order->done, (long long)json_integer_value(number));
	return finish(answer);
}

/* ---- the commands ---- */

static void show_event(struct slice data)
{
	json_t *entry = json_loadb(data.p, data.n, JSON_ALLOW_NUL, NULL);

	show_log_line(entry);
	json_decref(entry);
}

static void print_event(struct slice data)
{
	printf("%.*s\n", SLICE_ARG(data));
	fflush(stdout);
}

static int follow_logs(const struct line *line)
{
	char *target = mem_printf("/logs?server=%s&follow=1", line->words[1]);
	struct client_request request = { line->socket, "GET", target, .body = { NULL, 0 } };
	struct error err = { ERROR_NONE, "" };
	int result = client_follow(&request, line->is_json ? print_event : show_event, &err);

	free(target);
	if (result < 0)
		return fail(err.text);
	fprintf(stderr, "mcpgatectl: the daemon has ended\n");
	return 0;
}

static int run_logs(const struct line *line)
{
	json_t *answer;
	const json_t *lines;

	if (line->follows)
		return follow_logs(line);
	answer = ask(line, "GET", mem_printf("/logs?server=%s", line->words[1]));
	lines = json_object_get(answer, "lines");
	for (size_t i = 0; i < json_array_size(lines) && !line->is_json; i++)
		show_log_line(json_array_get(lines, i));
	return finish(answer);
}

static int run_tools(const struct line *line)
{
	const char *format = line->format != NULL ? line->format : "mcp";
	struct error err = { ERROR_NONE, "" };
	struct mcp_client client;
	json_t *converted = NULL;
	json_t *tools = NULL;

	if (mcp_client_open(&client, line->socket, line->words[1], &err) == 0)
		tools = mcp_client_list_tools(&client, &err);
	mcp_client_close(&client);
	if (tools == NULL)
		return fail(err.text);
	CHECK(json_is_array(tools));
	if (line->format == NULL && !line->is_json) {
		show_tools(tools);
	} else {
		converted = tools_convert(tools, format);
		CHECK(converted != NULL); /* the option has been looked at */
		tools_print_json(converted);
	}
	json_decref(converted);
	json_decref(tools);
	return 0;
}

/* The params of the call that the words ask for. */
static json_t *read_call(const struct line *line, struct error *err)
{
	const char *text = line->count > 3 ? line->words[3] : "{}";
	json_error_t why = { .text = "" };
	json_t *arguments = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	json_t *name = json_string(line->words[2]);

	if (json_is_object(arguments) && name != NULL)
		return json_pack("{s:o, s:o}", "name", name, "arguments", arguments);
	if (name == NULL)
		error_set(err, ERROR_INVALID, "the name of the tool is no UTF-8");
	else
		error_set(err, ERROR_INVALID,
			  "the arguments must be a JSON object, like '{\"text\":\"hello\"}'%s%s",
			  why.text[0] != '\0' ? ": " : "", why.text);
	json_decref(arguments);
	json_decref(name);
	return NULL;
}

static int run_call(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	json_t *params = read_call(line, &err);
	struct mcp_client client;
	json_t *result = NULL;
	bool is_error;

	CHECK(line->count >= 3);
	if (params == NULL)
		return refuse_usage(err.text);
	if (mcp_client_open(&client, line->socket, line->words[1], &err) == 0)
		result = mcp_client_ask(&client, "tools/call", json_incref(params), &err);
	mcp_client_close(&client);
	json_decref(params);
	if (result == NULL)
		return fail(err.text);
	is_error = json_is_true(json_object_get(result, "isError"));
	if (line->is_json)
		tools_print_json(result);
	else
		tools_print_result(result);
	json_decref(result);
	return is_error ? EXIT_FAILED : 0;
}

static int examine_oauth(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	char *token = NULL;
	char *ca = NULL;
	int ill = -1;

	if (line->token_file != NULL)
		token = oauth_read_token(line->token_file, &err);
	if (line->ca_file != NULL && err.kind == ERROR_NONE)
		ca = oauth_read_ca(line->ca_file, &err);
	if (err.kind == ERROR_NONE && oauth_check_url(line->url, &err) == 0)
		ill = oauth_examine(&(struct oauth_walk){ line->url, token, ca });
	if (token != NULL)
		explicit_bzero(token, strlen(token));
	free(token);
	free(ca);
	if (ill < 0)
		return refuse_usage(err.text);
	return ill > 0 ? EXIT_FAILED : 0;
}

static int examine_servers(const struct line *line)
{
	const struct config_request request = {
		.file = line->command != NULL ? NULL : line->file,
		.command = line->command,
	};
	struct config_problems problems = { NULL, 0 };
	struct config *config = config_load(&request, &problems);
	int ill;

	for (size_t i = 0; i < problems.count; i++)
		fail(problems.items[i]);
	config_problems_fini(&problems);
	if (config == NULL) {
		/* After the first build there is no configuration yet. */
		if (line->command == NULL && strcmp(line->file, DEFAULT_FILE) == 0 &&
		    access(line->file, F_OK) != 0)
			fail("-c names another file; one server needs none: mcpgatectl doctor -- "
			     "COMMAND [ARGUMENT...]");
		return EXIT_USAGE;
	}
	ill = doctor_examine(config, line->count > 1 ? line->words[1] : NULL, &line->claims);
	config_free(&config);
	if (ill < 0)
		return fail("there is no such server in the configuration");
	return ill > 0 ? EXIT_FAILED : 0;
}

static int run_doctor(const struct line *line)
{
	return line->url != NULL ? examine_oauth(line) : examine_servers(line);
}

static int run_token(const struct line *line)
{
	const char *name = line->name != NULL ? line->name : "client";

	CHECK(line->count == 2);
	if (strcmp(line->words[1], "new") != 0)
		return refuse_usage("usage: mcpgatectl token new [--name NAME]");
	if (!is_plain(name))
		return refuse_usage("a name has letters, digits, - and _ only");
	token_print_new(name, line->is_json);
	return 0;
}

static int add_denial(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	struct buf order = { 0 };
	json_t *entry;

	if (deny_append_order(&line->deny, &order, &err) < 0)
		return refuse_usage(err.text);
	entry = ask_with(line, "POST", "/deny-add", buf_slice(&order));
	if (entry != NULL && !line->is_json)
		deny_print_added(entry);
	buf_fini(&order);
	return finish(entry);
}

static int remove_denial(const struct line *line)
{
	json_t *answer;

	if (!is_plain(line->words[2]))
		return refuse_usage("an entry is named by its number");
	answer = ask(line, "POST", mem_printf("/deny-remove?number=%s", line->words[2]));
	if (answer != NULL && !line->is_json)
		printf("entry %s is no more\n", line->words[2]);
	return finish(answer);
}

static int run_deny(const struct line *line)
{
	const char *what = line->words[1];

	CHECK(line->count >= 2);
	if (strcmp(what, "add") == 0 && line->count == 2)
		return add_denial(line);
	if (strcmp(what, "list") == 0 && line->count == 2)
		return report(line, show_deny_list);
	if (strcmp(what, "remove") == 0 && line->count == 3)
		return remove_denial(line);
	return refuse_usage("usage: mcpgatectl deny add|list|remove NUMBER");
}

/* ---- the table ---- */

static const struct command {
	const char *name;
	const char *arguments;
	int arguments_min;
	int arguments_max;
	const char *help;
	/* One of these three: prints a report, gives an order, or is a function of its own. */
	void (*show)(const json_t *report);
	struct order order;
	int (*run)(const struct line *line);
} commands[] = {
	{ "status", "", 0, 0, "the daemon as a whole, and its servers", .show = show_status },
	{ "servers", "", 0, 0, "states, calls, latencies", .show = show_servers },
	{ "processes", "", 0, 0, "what runs", .show = show_processes },
	{ "sessions", "", 0, 0, "who is there", .show = show_sessions },
	{ "streams", "", 0, 0, "what waits for clients, or is kept for them",
	  .show = show_streams },
	{ "logs", "SERVER [-f]", 1, 1, "the last lines of its stderr; -f: and what comes",
	  .run = run_logs },
	{ "restart", "SERVER", 1, 1, "replace its processes",
	  .order = { "server", "processes that are replaced: ", "restarted" } },
	{ "end-session", "ID", 1, 1, "end a session; as much of its id as 'sessions' shows",
	  .order = { "id", "sessions ended: ", "ended" } },
	{ "deny", "add|list|remove N", 1, 2, "tokens that are refused from now on; see below",
	  .run = run_deny },
	{ "drain", "", 0, 0, "stop the daemon after the calls in flight",
	  .order = { NULL, "the daemon ends after the calls in flight: ", "calls" } },
	{ "reload", "", 0, 0, "open the log file and read the certificates again",
	  .order = { NULL, "asked; the log has the outcome: ", "reloading" } },
	{ "tools", "SERVER [--format F]", 1, 1, "its tools; F: mcp, openai or anthropic",
	  .run = run_tools },
	{ "call", "SERVER TOOL [JSON]", 2, 3, "call a tool", .run = run_call },
	{ "token", "new [--name N]", 1, 1, "make a static token, and its entry for auth.tokens",
	  .run = run_token },
	{ "doctor", "[SERVER] [-c FILE]", 0, 1,
	  "start servers once, and say what is wrong; no daemon needed", .run = run_doctor },
};

static void print_help(void)
{
	puts("usage: mcpgatectl [--socket PATH] [--json] COMMAND [ARGUMENT...]\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-11s %-20s %s\n", commands[i].name, commands[i].arguments,
		       commands[i].help);
	puts("\n"
	     "  -s, --socket PATH   the daemon's admin socket; else $XDG_RUNTIME_DIR/mcpgated/admin.sock\n"
	     "                      if it is there, else /run/mcpgated/admin.sock\n"
	     "      --json          what the daemon says, as it says it\n"
	     "  -c, --config FILE   for doctor (default: " DEFAULT_FILE
	     "); or: doctor -- COMMAND...\n"
	     "      --oauth URL     for doctor: walk a client's authorization handshake with the MCP\n"
	     "                      endpoint there, and explain each step\n"
	     "      --token-file F  with --oauth: try the token in F as well\n"
	     "      --ca FILE       with --oauth: trust the authorities in FILE (PEM) as well\n"
	     "      --claim N=V     for doctor: the value of ${claim:N} in a server's env; can be repeated\n"
	     "      --sub S, --client-id C, --jti J, --sid L\n"
	     "                      for deny add: refuse the tokens of this person, of this client, with\n"
	     "                      this number, of this login; one of the four\n"
	     "      --issuer I      with them: whose tokens; 'static' for those of auth.tokens\n"
	     "      --for TIME      with them: for how long, like 12h (default: 24h)\n"
	     "      --version, --help");
}

static int run_command(const struct command *command, const struct line *line)
{
	CHECK((command->show != NULL) + (command->order.done != NULL) + (command->run != NULL) ==
	      1);
	CHECK(command->order.parameter == NULL || command->arguments_min > 0);
	if (command->show != NULL)
		return report(line, command->show);
	return command->run != NULL ? command->run(line) : give(line, &command->order);
}

static int run(const struct line *line)
{
	const struct command *command = commands;
	const struct command *end = commands + ARRAY_LEN(commands);
	int given = line->count - 1;
	bool is_counted;
	char *why;
	int status;

	CHECK(line->count > 0);
	while (command < end && strcmp(command->name, line->words[0]) != 0)
		command++;
	is_counted =
		command < end && given >= command->arguments_min && given <= command->arguments_max;
	if (is_counted && (command->arguments_min == 0 || is_plain(line->words[1])))
		return run_command(command, line);
	why = command == end ?
		      mem_printf("there is no command '%s'", line->words[0]) :
		      mem_printf("%s: mcpgatectl %s %s",
				 is_counted ? "a name has letters, digits, - and _ only" : "usage",
				 command->name, command->arguments);
	status = refuse_usage(why);
	free(why);
	return status;
}

/* ---- the command line ---- */

enum {
	OPTION_JSON = 256,
	OPTION_FORMAT,
	OPTION_NAME,
	OPTION_OAUTH,
	OPTION_TOKEN_FILE,
	OPTION_CA,
	OPTION_CLAIM,
	OPTION_ISSUER,
	OPTION_SUB,
	OPTION_CLIENT_ID,
	OPTION_JTI,
	OPTION_SID,
	OPTION_FOR,
	OPTION_VERSION,
	OPTION_HELP
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "config", required_argument, NULL, 'c' },
	{ "follow", no_argument, NULL, 'f' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "name", required_argument, NULL, OPTION_NAME },
	{ "oauth", required_argument, NULL, OPTION_OAUTH },
	{ "token-file", required_argument, NULL, OPTION_TOKEN_FILE },
	{ "ca", required_argument, NULL, OPTION_CA },
	{ "claim", required_argument, NULL, OPTION_CLAIM },
	{ "issuer", required_argument, NULL, OPTION_ISSUER },
	{ "sub", required_argument, NULL, OPTION_SUB },
	{ "client-id", required_argument, NULL, OPTION_CLIENT_ID },
	{ "jti", required_argument, NULL, OPTION_JTI },
	{ "sid", required_argument, NULL, OPTION_SID },
	{ "for", required_argument, NULL, OPTION_FOR },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool is_format(const char *text)
{
	json_t *none = json_array();
	json_t *converted = tools_convert(none, text);

	json_decref(none);
	json_decref(converted);
	return converted != NULL;
}

/* Where the text of an option is kept; NULL: it is more than that. */
static const char **place_of(struct line *line, int option)
{
	const struct {
		int option;
		const char **place;
	} places[] = {
		{ 'c', &line->file },
		{ OPTION_NAME, &line->name },
		{ OPTION_OAUTH, &line->url },
		{ OPTION_TOKEN_FILE, &line->token_file },
		{ OPTION_CA, &line->ca_file },
		{ OPTION_ISSUER, &line->deny.issuer },
		{ OPTION_SUB, &line->deny.sub },
		{ OPTION_CLIENT_ID, &line->deny.client_id },
		{ OPTION_JTI, &line->deny.jti },
		{ OPTION_SID, &line->deny.sid },
		{ OPTION_FOR, &line->deny.duration },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (places[i].option == option)
			return places[i].place;
	return NULL;
}

/* What was printed may be lost only now, for instance on a full disk. */
static int check_output(int status)
{
	struct error err;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	error_set_errno(&err, "the output cannot be written");
	return fail(err.text);
}

/* Returns -1 to go on, or the exit status. */
static int take_option(struct line *line, int option)
{
	struct error err;

	if (place_of(line, option) != NULL) {
		*place_of(line, option) = optarg;
		return -1;
	}
	switch (option) {
	case 's':
		if (strlen(optarg) >= CLIENT_PATH_BYTES)
			return refuse_usage("the path of the socket is too long");
		snprintf(line->socket, sizeof(line->socket), "%s", optarg);
		return -1;
	case 'f':
		line->follows = true;
		return -1;
	case OPTION_JSON:
		line->is_json = true;
		return -1;
	case OPTION_FORMAT:
		line->format = optarg;
		return is_format(optarg) ? -1 :
					   refuse_usage("--format takes mcp, openai or anthropic");
	case OPTION_CLAIM:
		return doctor_add_claim(&line->claims, optarg, &err) == 0 ? -1 :
									    refuse_usage(err.text);
	case OPTION_VERSION:
		puts("mcpgatectl " PACKAGE_VERSION);
		return check_output(0);
	case OPTION_HELP:
		print_help();
		return check_output(0);
	default:
		fputs("try: mcpgatectl --help\n", stderr);
		return EXIT_USAGE;
	}
}

/* What stands behind "--" is a command for doctor, and none of our options. */
static int cut_command(struct line *line, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			line->command = argv + i + 1;
			argv[i] = NULL;
			return i;
		}
	}
	return argc;
}

int main(int argc, char **argv)
{
	struct line line = { .file = DEFAULT_FILE };
	bool is_doctor;
	int option;

	/* For the width of characters alone: all texts are UTF-8, whatever the user's own locale is. */
	setlocale(LC_CTYPE, "C.UTF-8");
	client_find_socket(line.socket);
	argc = cut_command(&line, argc, argv);
	while ((option = getopt_long(argc, argv, "s:c:f", options, NULL)) != -1) {
		int status = take_option(&line, option);

		if (status >= 0)
			return status;
	}
	line.words = argv + optind;
	line.count = argc - optind;
	if (line.count == 0)
		return refuse_usage("a command is missing");
	is_doctor = strcmp(line.words[0], "doctor") == 0;
	if (line.command != NULL && (!is_doctor || line.count > 1 || line.command[0] == NULL))
		return refuse_usage("only doctor takes a command after --, and then no server");
	if (line.url != NULL && (!is_doctor || line.count > 1 || line.command != NULL))
		return refuse_usage("only doctor takes --oauth, and then nothing else");
	if ((line.token_file != NULL || line.ca_file != NULL) && line.url == NULL)
		return refuse_usage("--token-file and --ca belong to doctor --oauth URL");
	if (line.claims.count > 0 && (!is_doctor || line.url != NULL))
		return refuse_usage("--claim belongs to doctor, when it starts servers");
	return check_output(run(&line));
}
