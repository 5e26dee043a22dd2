/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of a command's arguments says what stands where: `SERVER`, `a|b|c`, a word of its own; in brackets what may be left
 * out.
 */
#include "ctl/complete.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"
#include "ctl/client.h"
#include "ctl/line.h"

#define ANSWER_MS 2000 /* somebody has pressed a key, and waits */
#define GIVEN_MAX 8

struct typed {
	const char *word;   /* the last one, as far as it is there */
	const char *option; /* the name of the one whose value it is; NULL: of none */
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
	at_end(client_reply_fini) struct client_reply reply = { .status = 0 };
	json_t *report, *server;
	size_t i;

	if (client_ask(&request, &reply, NULL) < 0)
		return;
	report = client_reply_read(&reply, NULL);
	json_array_foreach(json_object_get(report, "servers"), i, server)
	{
		const char *name = json_string_value(json_object_get(server, "name"));

		if (name != NULL && line_is_plain(name) && name[0] != '-')
			offer(typed, slice_str(name));
	}
	json_decref(report);
}

/* ---- arguments ---- */

/* One of several words; else it stands for what somebody chooses. */
static bool is_word(struct slice form)
{
	return form.n > 0 && form.p[0] >= 'a' && form.p[0] <= 'z';
}

/* `form`: without brackets. */
static void offer_argument(const struct typed *typed, struct slice form)
{
	if (slice_has_part(SLICE_LIT("SERVER S"), ' ', form)) {
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
			   slice_has_part(form, '|', slice_str(typed->given[taken]))) {
			taken++;
		}
	}
}

/* ---- the line ---- */

/* The name of the option that takes the word behind this one; NULL: it is none. */
static const char *takes_next(const struct option *options, const char *word)
{
	if (word[0] != '-')
		return NULL;
	for (; options->name != NULL; options++) {
		bool is_long = word[1] == '-' && strcmp(word + 2, options->name) == 0;
		bool is_short = word[1] == options->val && word[1] != '\0' && word[2] == '\0';

		if (is_long || is_short)
			return options->has_arg == required_argument ? options->name : NULL;
	}
	return NULL;
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

/* False: there are more than any command takes. */
static bool read_words(struct typed *typed, const struct option *options, char *const *words,
		       int count)
{
	for (int i = 0; i < count - 1; i++) {
		const char *option = takes_next(options, words[i]);

		if (option != NULL) {
			/* Of --socket=PATH bash makes three words. */
			if (++i < count - 1 && strcmp(words[i], "=") == 0)
				i++;
			/* The last word is its value, or the `=` before that. */
			if (i == count - 1)
				typed->option = option;
			else if (strcmp(option, "socket") == 0)
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

static void offer_options(const struct typed *typed, const struct option *options)
{
	for (; options->name != NULL; options++) {
		char text[40];

		offer(typed,
		      slice_of(text, (size_t)snprintf(text, sizeof(text), "--%s", options->name)));
	}
}

/* `lead`: what of the word stands before the value. */
static void offer_values(const struct typed *typed, complete_value_fn *value, const char *option,
			 struct slice lead)
{
	const char *one;

	for (size_t i = 0; (one = value(option, i)) != NULL; i++) {
		char text[80];

		offer(typed, slice_of(text, (size_t)snprintf(text, sizeof(text), "%.*s%s",
							     SLICE_ARG(lead), one)));
	}
}

/* --OPTION=VALUE as one word. */
static void offer_joined(const struct typed *typed, const struct complete_forms *forms)
{
	const char *equals = strchr(typed->word, '=');

	for (const struct option *o = forms->options; o->name != NULL; o++)
		if (slice_is_equal(slice_between(typed->word + 2, equals), slice_str(o->name)))
			offer_values(typed, forms->value, o->name,
				     slice_between(typed->word, equals + 1));
}

static void offer_words(const struct typed *typed, const struct complete_forms *forms)
{
	static const char help[] = "help"; /* of a command, and in no row of them */
	bool is_help = typed->command != NULL && strcmp(typed->command, help) == 0;
	const char *arguments, *name;

	if (typed->command == NULL)
		offer(typed, slice_str(help));
	for (size_t i = 0; (name = forms->command(i, &arguments)) != NULL; i++) {
		if (typed->command == NULL || (is_help && typed->count == 0))
			offer(typed, slice_str(name));
		else if (strcmp(typed->command, name) == 0)
			offer_arguments(typed, arguments);
	}
}

void complete_print(const struct complete_forms *forms, char *const *words, int count)
{
	struct typed typed = { .word = count > 0 ? words[count - 1] : "" };

	CHECK(count >= 0);
	(void)client_find_socket(typed.socket);
	if (!read_words(&typed, forms->options, words, count))
		return;
	if (typed.option != NULL && strcmp(typed.word, "=") == 0)
		typed.word = "";
	if (typed.option != NULL)
		offer_values(&typed, forms->value, typed.option, slice_of(NULL, 0));
	else if (typed.word[0] == '-' && typed.word[1] == '-' && strchr(typed.word, '=') != NULL)
		offer_joined(&typed, forms);
	else if (typed.word[0] == '-')
		offer_options(&typed, forms->options);
	else
		offer_words(&typed, forms);
}
