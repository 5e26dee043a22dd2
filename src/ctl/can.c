/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/can.h"

#include <stdio.h>

#include "base/buf.h"
#include "ctl/escape.h"

static int set_text(json_t *order, const char *member, const char *text, struct error *err)
{
	if (json_object_set_new(order, member, json_string(text)) == 0)
		return 0;
	return error_set(err, ERROR_INVALID, "%s is not valid UTF-8", member);
}

static int set_who(json_t *order, const struct can_question *question, const char *principal,
		   struct error *err)
{
	json_t *claims;

	if (question->claims == NULL)
		return set_text(order, question->token != NULL ? "token" : "principal",
				question->token != NULL ? question->token : principal, err);
	claims = json_loads(question->claims, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(claims)) {
		json_decref(claims);
		return error_set(err, ERROR_INVALID,
				 "--claims takes a JSON object, like {\"groups\": [\"dev\"]}");
	}
	json_object_set_new(order, "claims", claims);
	return 0;
}

static int set_what(json_t *order, const struct can_question *question, const char *tool,
		    struct error *err)
{
	if (question->prompt != NULL)
		return set_text(order, "prompt", question->prompt, err);
	if (question->resource != NULL)
		return set_text(order, "resource", question->resource, err);
	return set_text(order, "tool", tool, err);
}

char *can_write(const struct can_question *question, char *const *words, int count,
		struct error *err)
{
	bool has_who = question->claims != NULL || question->token != NULL;
	bool has_what = question->prompt != NULL || question->resource != NULL;
	json_t *order;
	char *text = NULL;

	if ((question->claims != NULL && question->token != NULL) ||
	    (question->prompt != NULL && question->resource != NULL) ||
	    count != 3 - has_who - has_what) {
		error_set(err, ERROR_INVALID,
			  "usage: mcpgatectl can WHO|--claims JSON|--token NAME SERVER "
			  "TOOL|--prompt NAME|--resource URI");
		return NULL;
	}
	order = json_object();
	if (set_who(order, question, words[0], err) == 0 &&
	    set_text(order, "server", words[!has_who], err) == 0 &&
	    set_what(order, question, words[count - 1], err) == 0)
		text = json_dumps(order, JSON_COMPACT);
	json_decref(order);
	return text;
}

static void show_line(const char *label, const char *text)
{
	if (text != NULL && text[0] != '\0')
		escape_print(stdout, label, slice_str(text), "");
}

static void show_list(const char *label, const json_t *list)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < json_array_size(list); i++)
		buf_printf(&text, "%s%s", i > 0 ? ", " : "",
			   json_string_value(json_array_get(list, i)));
	show_line(label, buf_terminate(&text));
	buf_fini(&text);
}

void can_show(const json_t *answer)
{
	bool is_allowed = json_is_true(json_object_get(answer, "allowed"));

	show_line(is_allowed ? "yes: " : "no: ", json_string_value(json_object_get(answer, "why")));
	show_line("  rule:                ", json_string_value(json_object_get(answer, "rule")));
	show_line("  which stands at:     ", json_string_value(json_object_get(answer, "rule_at")));
	show_list("  roles of the caller: ", json_object_get(answer, "roles"));
	show_list("  roles that allow it: ", json_object_get(answer, "roles_that_allow"));
	show_line("  scopes that it needs: ",
		  json_string_value(json_object_get(answer, "scopes_needed")));
	show_line("  scopes of the caller: ", json_string_value(json_object_get(answer, "scopes")));
}
