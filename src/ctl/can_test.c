/* SPDX-License-Identifier: Apache-2.0 */
/* What can asks the daemon for, and how it shows the answer. */
#include "ctl/orders.c"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unit_test.h"

#define WORDS(...) ((char *const[]){ __VA_ARGS__ })

static void questions_are_whole(void **state)
{
	static const struct {
		struct can_question question;
		int count;
		const char *text; /* NULL: it is refused */
	} rows[] = {
		{ { NULL }, 3, "{\"principal\":\"a\",\"server\":\"s\",\"tool\":\"t\"}" },
		{ { .token = "n" }, 2, "{\"token\":\"n\",\"server\":\"a\",\"tool\":\"s\"}" },
		{ { .claims = "{\"x\":[1]}" },
		  2,
		  "{\"claims\":{\"x\":[1]},\"server\":\"a\",\"tool\":\"s\"}" },
		{ { .prompt = "p" }, 2, "{\"principal\":\"a\",\"server\":\"s\",\"prompt\":\"p\"}" },
		{ { .token = "n", .resource = "r:" },
		  1,
		  "{\"token\":\"n\",\"server\":\"a\",\"resource\":\"r:\"}" },
		{ { NULL }, 2, NULL },
		{ { .token = "n" }, 3, NULL },
		{ { .token = "n", .prompt = "p" }, 2, NULL },
		{ { .token = "n", .claims = "{}" }, 2, NULL },
		{ { .prompt = "p", .resource = "r:" }, 2, NULL },
		{ { .claims = "[]" }, 2, NULL },
		{ { .claims = "{\"a\":1,\"a\":2}" }, 2, NULL },
		{ { .claims = "{" }, 2, NULL },
		{ { .token = "\xff" }, 2, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct error err = { ERROR_NONE, "" };
		char *text =
			can_write(&rows[i].question, WORDS("a", "s", "t"), rows[i].count, &err);

		if (rows[i].text != NULL)
			assert_string_equal(text, rows[i].text);
		else
			assert_null(text);
		assert_int_equal(err.kind != ERROR_NONE, text == NULL);
		free(text);
	}
}

static const char *shown(const char *answer)
{
	static char text[1024];
	json_t *value = json_loads(answer, 0, NULL);
	int saved = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	size_t n;

	assert_non_null(file);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	can_show(value);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	json_decref(value);
	return text;
}

static void answers_are_shown(void **state)
{
	assert_string_equal(shown("{\"allowed\":true,\"why\":\"w\",\"rule\":\"r\",\"roles\":[\"a\","
				  "\"b\"],\"scopes\":\"\"}"),
			    "yes: w\n"
			    "  rule:                r\n"
			    "  roles of the caller: a, b\n");
	assert_string_equal(shown("{\"allowed\":false,\"why\":\"w\"}"), "no: w\n");
	assert_string_equal(shown("{\"why\":\"w\"}"), "no: w\n");
}

/* Names of roles, tools and scopes are texts of others. */
static void answers_cannot_act(void **state)
{
	assert_string_equal(shown("{\"why\":\"\\u001b[2J\",\"roles\":[\"\\u202e\"],"
				  "\"scopes_needed\":\"a\\nyes: b\"}"),
			    "no: \\x1b[2J\n"
			    "  roles of the caller: \\u202e\n"
			    "  scopes that it needs: a\\x0ayes: b\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_are_whole),
		cmocka_unit_test(answers_are_shown),
		cmocka_unit_test(answers_cannot_act),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
