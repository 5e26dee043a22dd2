/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a command's arguments says what stands where: `SERVER`, `a|b|c`, a word of its own; in brackets or not. */
#include "ctl/complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "ctl/client.h"
#include "ctl/line.h"

#define ANSWER_MS 2000 /* somebody has pressed a key, and waits */

struct typed {
	const char *word; /* the last one, as far as it is there */
	const char *command;
	int place; /* of it among the command's arguments; without a command 0 */
	char socket[CLIENT_PATH_BYTES];
};

static void offer(const struct typed *typed, struct slice candidate)
{
	if (slice_has_prefix(candidate, slice_str(typed->word)))
		printf("%.*s\n", SLICE_ARG(candidate));
}

/* ---- names of servers ---- */

/* What is no name of a server is not offered: a shell may put it into the line as it is. */
static void offer_servers(const struct typed *typed)
{
	struct client_request request = { .socket = typed->socket,
					  .method = "GET",
					  .target = "/servers",
					  .total_ms = ANSWER_MS };
	struct client_reply reply;
	struct error err;
	json_t *report, *server;
	size_t i;

	if (client_ask(&request, &reply, &err) < 0)
		return;
	report = client_reply_read(&reply, &err);
	json_array_foreach(json_object_get(report, "servers"), i, server)
	{
		const char *name = json_string_value(json_object_get(server, "name"));

		if (name != NULL && line_is_plain(name) && name[0] != '-')
			offer(typed, slice_str(name));
	}
	json_decref(report);
	client_reply_fini(&reply);
}

/* ---- arguments ---- */

static bool is_name_of_server(struct slice form)
{
	return slice_is_equal(form, SLICE_LIT("SERVER")) || slice_is_equal(form, SLICE_LIT("S"));
}

/* `form`: without brackets. */
static void offer_argument(const struct typed *typed, struct slice form)
{
	if (is_name_of_server(form)) {
		offer_servers(typed);
		return;
	}
	while (form.n > 0) {
		struct slice word = slice_cut(&form, '|');

		if (word.n > 0 && word.p[0] >= 'a' && word.p[0] <= 'z')
			offer(typed, word);
	}
}

static void offer_arguments(const struct typed *typed, const char *arguments)
{
	struct slice rest = slice_str(arguments);

	for (int place = 1; rest.n > 0; place++) {
		struct slice form = slice_cut(&rest, ' ');

		if (form.n > 0 && form.p[0] == '[')
			form = slice_of(form.p + 1, form.n - 1);
		if (form.n > 0 && form.p[form.n - 1] == ']')
			form.n--;
		if (form.n == 0 || form.p[0] == '-') /* options, with what they take */
			return;
		if (place == typed->place)
			offer_argument(typed, form);
	}
}

/* ---- the line ---- */

/* Whether a word is an option that takes the next one. */
static bool takes_next(const struct option *options, const char *word)
{
	if (word[0] != '-')
		return false;
	for (; options->name != NULL; options++) {
		bool is_long = word[1] == '-' && strcmp(word + 2, options->name) == 0;
		bool is_short = word[1] == options->val && word[1] != '\0' && word[2] == '\0';

		if (is_long || is_short)
			return options->has_arg == required_argument;
	}
	return false;
}

/* False: the last word belongs to an option. */
static bool read_words(struct typed *typed, const struct option *options, char *const *words,
		       int count)
{
	for (int i = 0; i < count - 1; i++) {
		bool is_socket = strcmp(words[i], "-s") == 0 || strcmp(words[i], "--socket") == 0;

		if (takes_next(options, words[i])) {
			if (++i == count - 1)
				return false;
			if (is_socket)
				snprintf(typed->socket, sizeof(typed->socket), "%s", words[i]);
		} else if (words[i][0] != '-') {
			if (typed->command == NULL)
				typed->command = words[i];
			typed->place++;
		}
	}
	return true;
}

void complete_print(complete_command_fn *command, const struct option *options, char *const *words,
		    int count)
{
	struct typed typed = { .word = count > 0 ? words[count - 1] : "" };
	const char *arguments, *name;

	CHECK(count >= 0);
	client_find_socket(typed.socket);
	if (!read_words(&typed, options, words, count))
		return;
	if (typed.word[0] == '-') {
		for (; options->name != NULL; options++) {
			char text[40];

			offer(&typed, slice_of(text, (size_t)snprintf(text, sizeof(text), "--%s",
								      options->name)));
		}
		return;
	}
	for (size_t i = 0; (name = command(i, &arguments)) != NULL; i++) {
		if (typed.command == NULL)
			offer(&typed, slice_str(name));
		else if (strcmp(typed.command, name) == 0)
			offer_arguments(&typed, arguments);
	}
}
