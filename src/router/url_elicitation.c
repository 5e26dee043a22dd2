/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only what is examined here is passed on, so names that are repeated, or written with escapes,
 * mean nothing to a client.
 */
#include "router/url_elicitation.h"

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "jsonrpc/value.h"

#define URL_ELICITATION_REQUIRED (-32042)

static struct json member(struct slice object, const char *name)
{
	return scan_member(object, slice_str(name));
}

static void append_member(struct buf *out, const char *name, struct json value)
{
	buf_printf(out, ",\"%s\":", name);
	buf_append_slice(out, value.text);
}

/* ---- what a server wants ---- */

static int read_one(struct slice element, void *arg)
{
	struct buf *wanted = arg;
	struct json id = member(element, "elicitationId");
	struct json message = member(element, "message");
	struct json url = member(element, "url");
	struct slice mode = scan_plain_string(member(element, "mode"));

	if (id.type != JSON_STRING || id.text.n > URL_ELICITATION_ID_MAX ||
	    message.type != JSON_STRING || url.type != JSON_STRING ||
	    !slice_is_equal(mode, SLICE_LIT("url")) ||
	    wanted->len + message.text.n + url.text.n > URL_ELICITATIONS_BYTES_MAX)
		return -1;
	buf_append_str(wanted, wanted->len == 0 ? "[{\"id\":" : ",{\"id\":");
	buf_append_slice(wanted, id.text);
	append_member(wanted, "message", message);
	append_member(wanted, "url", url);
	buf_append_char(wanted, '}');
	return 0;
}

bool url_elicitation_read(struct slice error, struct buf *wanted)
{
	static const char *const path[] = { "data", "elicitations" };
	struct json elicitations = scan_path(error, path, ARRAY_LEN(path));
	struct error err;
	long long code;

	CHECK(wanted->len == 0);
	if (value_read_integer(member(error, "code"), &code) < 0 ||
	    code != URL_ELICITATION_REQUIRED)
		return false;
	if (elicitations.type != JSON_ARRAY ||
	    scan_array(elicitations.text, URL_ELICITATIONS_MAX, read_one, wanted, &err) <= 0) {
		wanted->len = 0;
		return false;
	}
	buf_append_char(wanted, ']');
	return true;
}

/* ---- what a client is asked ---- */

/* Calls on_element for each element. Cannot fail: we wrote the text. */
static void each(struct slice wanted, scan_element_fn *on_element, void *arg)
{
	struct error err;

	CHECK(scan_array(wanted, URL_ELICITATIONS_MAX, on_element, arg, &err) > 0);
}

struct asking {
	struct buf *out;
	size_t number;
};

static int append_request(struct slice element, void *arg)
{
	struct asking *asking = arg;
	struct json url = member(element, "url");

	asking->number++;
	if (url.type == JSON_ABSENT)
		return 0;
	buf_printf(asking->out,
		   "%s\"e%zu\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\"",
		   asking->out->len > 0 ? "," : "", asking->number);
	append_member(asking->out, "message", member(element, "message"));
	append_member(asking->out, "url", url);
	buf_append_str(asking->out, "}}");
	return 0;
}

void url_elicitation_append_requests(struct buf *out, struct slice wanted)
{
	struct asking asking = { .out = out };

	CHECK(out->len == 0);
	each(wanted, append_request, &asking);
}

/* ---- what it answers ---- */

enum answer { NOT_ASKED, MISSING, ACCEPTED, DECLINED };

struct answers {
	enum answer of[URL_ELICITATIONS_MAX];
	size_t count; /* of what was wanted */
	bool is_malformed;
	struct buf *left;
	size_t copied;
};

static int note_asked(struct slice element, void *arg)
{
	struct answers *answers = arg;

	answers->of[answers->count++] =
		member(element, "url").type == JSON_ABSENT ? NOT_ASKED : MISSING;
	return 0;
}

static int note_answer(struct slice name, struct json value, void *arg)
{
	struct answers *answers = arg;
	struct slice action = scan_plain_string(member(value.text, "action"));
	enum answer *answer;
	uint64_t number;

	if (name.n < 2 || name.p[0] != 'e' || name.p[1] == '0' ||
	    text_parse_u64(slice_of(name.p + 1, name.n - 1), &number) < 0 ||
	    number > answers->count || answers->of[number - 1] == NOT_ASKED)
		return 0;
	answer = &answers->of[number - 1];
	answers->is_malformed = *answer != MISSING; /* it was answered twice */
	if (slice_is_equal(action, SLICE_LIT("accept")))
		*answer = ACCEPTED;
	else if (slice_is_equal(action, SLICE_LIT("decline")) ||
		 slice_is_equal(action, SLICE_LIT("cancel")))
		*answer = DECLINED;
	else
		answers->is_malformed = true;
	return answers->is_malformed ? -1 : 0;
}

static bool has(const struct answers *answers, enum answer answer)
{
	for (size_t i = 0; i < answers->count; i++)
		if (answers->of[i] == answer)
			return true;
	return false;
}

static int copy_left(struct slice element, void *arg)
{
	struct answers *answers = arg;

	buf_append_char(answers->left, answers->copied == 0 ? '[' : ',');
	if (answers->of[answers->copied++] == MISSING) {
		buf_append_slice(answers->left, element);
		return 0;
	}
	buf_append_str(answers->left, "{\"id\":");
	buf_append_slice(answers->left, member(element, "id").text);
	buf_append_char(answers->left, '}');
	return 0;
}

enum url_answers url_elicitation_read_answers(struct slice wanted, struct json responses,
					      struct buf *left)
{
	struct answers answers = { .left = left };

	if (responses.type != JSON_ABSENT && responses.type != JSON_OBJECT)
		return URL_ANSWERS_MALFORMED;
	each(wanted, note_asked, &answers);
	scan_members(responses.text, note_answer, &answers);
	if (answers.is_malformed)
		return URL_ANSWERS_MALFORMED;
	if (has(&answers, DECLINED))
		return URL_ANSWERS_DECLINED;
	if (!has(&answers, MISSING))
		return URL_ANSWERS_ACCEPTED;
	each(wanted, copy_left, &answers);
	buf_append_char(left, ']');
	return URL_ANSWERS_PARTIAL;
}
