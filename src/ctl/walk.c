/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that several steps ask. */
#include "ctl/walk.h"

#include "auth/document.h"
#include "ctl/finding.h"
#include "ctl/mcp_client.h"

json_t *walk_get(const struct walk *walk, const char *url, struct buf *why, bool *is_down_r)
{
	const struct web_question question = {
		.url = url, .method = "GET", .ca = walk->ca, .may_loopback = walk->is_loopback
	};
	struct error err = { ERROR_NONE, "" };
	struct web_answer answer;
	json_t *document = NULL;

	web_ask(&question, &answer);
	*is_down_r = answer.status == 0;
	if (answer.status == 0)
		buf_printf(why, "%s: %s", url, buf_terminate(&answer.error));
	else if (answer.status >= 300 && answer.status < 400)
		buf_printf(why, "%s: status %d, a redirect to %s, which clients do not follow", url,
			   answer.status, answer.location);
	else if (answer.status != 200)
		buf_printf(why, "%s: status %d", url, answer.status);
	else
		document = document_parse(buf_slice(&answer.body), &err);
	if (answer.status == 200 && document == NULL)
		buf_printf(why, "%s: it is not a JSON object (%s)", url, err.text);
	CHECK(document == NULL || answer.status == 200);
	web_answer_fini(&answer);
	return document;
}

json_t *walk_get_first(const struct walk *walk, walk_address_fn *address_of, const char *text,
		       struct buf *why, char **address_r)
{
	json_t *document = NULL;
	bool is_down = false;
	char *address;

	*address_r = NULL;
	for (size_t at = 0; document == NULL && !is_down; at++) {
		address = address_of(text, at);
		if (address == NULL)
			break;
		if (at > 0)
			buf_append_str(why, "; ");
		document = walk_get(walk, address, why, &is_down);
		free(*address_r);
		*address_r = address;
	}
	return document;
}

void walk_append_texts(struct buf *out, const json_t *array)
{
	size_t before = out->len;

	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *text = json_string_value(json_array_get(array, i));

		if (text != NULL)
			buf_printf(out, "%s%s", out->len > before ? " " : "", text);
	}
}

/* ---- initialize ---- */

/* NULL if the text is no response. */
static json_t *parse_response(struct slice text)
{
	struct error err;
	json_t *message = document_parse(text, &err);

	if (json_object_get(message, "result") != NULL || json_object_get(message, "error") != NULL)
		return message;
	json_decref(message);
	return NULL;
}

static json_t *find_response(struct slice body)
{
	json_t *message = parse_response(body);

	while (message == NULL && body.n > 0) {
		struct slice line = slice_cut(&body, '\n');

		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (slice_has_prefix(line, SLICE_LIT("data:")))
			message = parse_response(slice_of(line.p + 5, line.n - 5));
	}
	return message;
}

static bool has_response(struct slice body)
{
	json_t *message = find_response(body);

	json_decref(message);
	return message != NULL;
}

void walk_initialize(const struct walk *walk, const char *token, struct web_answer *answer_r)
{
	json_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method",
				    "initialize", "params", mcp_client_hello());
	char *text = json_dumps(message, JSON_COMPACT);
	struct web_question question = { .url = walk->url,
					 .method = "POST",
					 .body = slice_str(text),
					 .token = token,
					 .ca = walk->ca,
					 .may_loopback = walk->is_loopback,
					 .is_enough = has_response };
	struct web_answer ignored;

	web_ask(&question, answer_r);
	if (answer_r->status == 200 && answer_r->session[0] != '\0') {
		question.method = "DELETE"; /* nothing stays behind */
		question.body = slice_of(NULL, 0);
		question.session = answer_r->session;
		question.is_enough = NULL;
		web_ask(&question, &ignored);
		web_answer_fini(&ignored);
	}
	free(text);
	json_decref(message);
}

json_t *walk_result(const struct web_answer *answer)
{
	json_t *message = find_response(buf_slice(&answer->body));
	json_t *result = json_object_get(message, "result");

	result = document_string(result, "protocolVersion") != NULL ? json_incref(result) : NULL;
	json_decref(message);
	return result;
}

void walk_print_server(const char *what, const char *before, const json_t *result)
{
	const json_t *info = json_object_get(result, "serverInfo");
	const char *name = document_string(info, "name");
	const char *version = document_string(info, "version");

	finding_print("ok", what, "%s%s %s, revision %s", before, name != NULL ? name : "?",
		      version != NULL ? version : "?", document_string(result, "protocolVersion"));
}
