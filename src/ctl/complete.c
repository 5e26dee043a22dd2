/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of a command's arguments says what stands where: `SERVER`, `a|b|c`, a word of its own; in brackets what may be left
 * out.
 */
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
#define GIVEN_MAX 8

struct typed {
	const char *word; /* the last one, as far as it is there */
	const char *command;
	const char *given[GIVEN_MAX]; /* the command's arguments before it */
	size_t count;
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

/* One of several words; else it stands for what somebody chooses. */
static bool is_word(struct slice form)
{
	return form.n > 0 && form.p[0] >= 'a' && form.p[0] <= 'z';
}

static bool has_word(struct slice form, const char *word)
{
	while (form.n > 0)
		if (slice_is_equal(slice_cut(&form, '|'), slice_str(word)))
			return true;
	return false;
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

		if (is_word(word))
			offer(typed, word);
	}
}

static void offer_arguments(const struct typed *typed, const char *arguments)
{
	struct slice rest = slice_str(arguments);
	size_t taken = 0; /* of those that are given */

	while (rest.n > 0) {
		struct slice form = slice_cut(&rest, ' ');
		bool may_be_left_out = form.n > 0 && form.p[0] == '[';

		if (may_be_left_out)
			form = slice_of(form.p + 1, form.n - 1);
		if (form.n > 0 && form.p[form.n - 1] == ']')
			form.n--;
		if (form.n == 0 || form.p[0] == '-') /* options, with what they take */
			return;
		if (taken == typed->count) {
			offer_argument(typed, form);
			if (!may_be_left_out)
				return;
		} else if (!may_be_left_out || !is_word(form) ||
			   has_word(form, typed->given[taken])) {
			taken++;
		}
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

/* What follows an option's name in one word, as in --socket=PATH and -sPATH; NULL: nothing does. */
static const char *joined_socket(const char *word)
{
	static const char name[] = "--socket=";

	if (strncmp(word, name, sizeof(name) - 1) == 0)
		return word + sizeof(name) - 1;
	return word[0] == '-' && word[1] == 's' && word[2] != '\0' ? word + 2 : NULL;
}

static void use_socket(struct typed *typed, const char *path)
{
	snprintf(typed->socket, sizeof(typed->socket), "%s", path);
}

/* False: the last word belongs to an option, or there are more than any command takes. */
static bool read_words(struct typed *typed, const struct option *options, char *const *words,
		       int count)
{
	for (int i = 0; i < count - 1; i++) {
		bool is_socket = strcmp(words[i], "-s") == 0 || strcmp(words[i], "--socket") == 0;

		if (takes_next(options, words[i])) {
			/* Of --socket=PATH bash makes three words. */
			if (++i < count - 1 && strcmp(words[i], "=") == 0)
				i++;
			if (i == count - 1)
				return false;
			if (is_socket)
				use_socket(typed, words[i]);
		} else if (joined_socket(words[i]) != NULL) {
			use_socket(typed, joined_socket(words[i]));
		} else if (words[i][0] != '-') {
			if (typed->command == NULL)
				typed->command = words[i];
			else if (typed->count == GIVEN_MAX)
				return false;
			else
				typed->given[typed->count++] = words[i];
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
