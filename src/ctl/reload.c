/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/reload.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "ctl/escape.h"

static size_t print_list(FILE *out, const json_t *answer, const char *member, const char *before)
{
	const json_t *list = json_object_get(answer, member);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		escape_print(out, before, slice_str(text != NULL ? text : ""), "");
	}
	return json_array_size(list);
}

static void print_servers(const json_t *answer)
{
	size_t count = print_list(stdout, answer, "added", "added: ");

	count += print_list(stdout, answer, "changed", "changed, for new sessions: ");
	count += print_list(stdout, answer, "rules", "changed, for all sessions: ");
	count += print_list(stdout, answer, "removed", "removed: ");
	if (count == 0)
		puts("no server has changed; everything else is now as the file says");
	print_list(stdout, answer, "listen_added", "listening: ");
	print_list(stdout, answer, "listen_changed", "changed, for new connections: ");
	print_list(stdout, answer, "listen_removed", "no longer listening: ");
}

int reload_run(const struct line *line)
{
	json_t *answer = line_ask(line, "POST", mem_strdup("/reload"), line_no_body);
	bool is_used = json_is_true(json_object_get(answer, "used"));
	size_t errors = json_array_size(json_object_get(answer, "errors"));

	CHECK(line->count == 1);
	if (answer != NULL && !line->is_json) {
		print_list(stderr, answer, "errors", "mcpgatectl: ");
		print_list(stderr, answer, "warnings", "mcpgatectl: warning: ");
		if (is_used)
			print_servers(answer);
		else
			fputs("mcpgatectl: nothing has changed: the previous configuration stays "
			      "in use\n",
			      stderr);
	}
	if (answer == NULL || (is_used && errors == 0))
		return line_finish(answer);
	json_decref(answer);
	return EXIT_FAILED;
}
