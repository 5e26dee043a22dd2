/* SPDX-License-Identifier: Apache-2.0 */
/* Each is sent, and its outcome shown, in words. */
#include "ctl/commands.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/document.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "config/forms.h"
#include "config/tree.h"
#include "ctl/output.h"

/* ---- can ---- */

/*
 * The body of the request (the caller frees it). `words` are PRINCIPAL SERVER TOOL, without those
 * that options replace. NULL: err says what is wrong.
 */
static char *can_write(const struct can_question *question, char *const *words, int count,
		       struct error *err)
{
	bool has_who = question->claims != NULL || question->token != NULL;
	bool has_what = question->prompt != NULL || question->resource != NULL;
	json_t *claims = NULL;
	json_auto_t *order = NULL;

	if ((question->claims != NULL && question->token != NULL) ||
	    (question->prompt != NULL && question->resource != NULL) ||
	    count != 3 - has_who - has_what) {
		error_set(err, ERROR_INVALID,
			  "usage: mcpgatectl can WHO|--claims JSON|--token NAME SERVER "
			  "TOOL|--prompt NAME|--resource URI");
		return NULL;
	}
	if (question->claims != NULL && (claims = line_read_claims(question->claims, err)) == NULL)
		return NULL;
	order = json_pack("{s:o*, s:s*, s:s*, s:s, s:s*, s:s*, s:s*}", "claims", claims, "token",
			  question->token, "principal", has_who ? NULL : words[0], "server",
			  words[!has_who], "prompt", question->prompt, "resource",
			  question->resource, "tool", has_what ? NULL : words[count - 1]);
	if (order == NULL)
		error_set(err, ERROR_INVALID, "a name is not valid UTF-8");
	return json_dumps(order, JSON_COMPACT);
}

static void show_line(const char *label, const char *text)
{
	if (text != NULL && text[0] != '\0')
		escape_print(stdout, label, slice_str(text), "");
}

static void show_texts(const char *label, const json_t *list)
{
	at_end(buf_fini) struct buf text = { 0 };

	for (size_t i = 0; i < json_array_size(list); i++)
		buf_printf(&text, "%s%s", i > 0 ? ", " : "",
			   json_string_value(json_array_get(list, i)));
	show_line(label, buf_terminate(&text));
}

static void can_show(const json_t *answer)
{
	bool is_allowed = json_is_true(json_object_get(answer, "allowed"));

	show_line(is_allowed ? "yes: " : "no: ", document_string(answer, "why"));
	show_line("  rule:                ", document_string(answer, "rule"));
	show_line("  which stands at:     ", document_string(answer, "rule_at"));
	show_texts("  roles of the caller: ", json_object_get(answer, "roles"));
	show_texts("  roles that allow it: ", json_object_get(answer, "roles_that_allow"));
	show_line("  scopes that it needs: ", document_string(answer, "scopes_needed"));
	show_line("  scopes of the caller: ", document_string(answer, "scopes"));
}

/* 0: yes, 1: no, 2: it cannot be told. */
int orders_can(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	at_end(mem_free) char *question =
		can_write(&line->can, line->words + 1, line->count - 1, &err);
	json_auto_t *answer = NULL;
	bool is_allowed;

	if (question == NULL)
		return line_refuse_usage(err.text);
	answer = line_ask(line, "POST", mem_strdup("/can"), slice_str(question));
	if (answer == NULL)
		return EXIT_USAGE;
	if (!line->is_json)
		can_show(answer);
	is_allowed = json_is_true(json_object_get(answer, "allowed"));
	return is_allowed ? 0 : EXIT_FAILED;
}

/* ---- deny ---- */

/* What is added to the clock must not come out as a time that is over. */
#define DENY_MS_MAX (UINT64_C(36500) * 24 * 3600 * 1000)

/* The daemon keeps entries in memory alone; the operator is told the line for the configuration. */
static void print_denial(const json_t *entry)
{
	const char *issuer = document_string(entry, "issuer");
	const char *by = document_string(entry, "by");
	const char *name = document_string(entry, "name");
	json_int_t until_ms = json_integer_value(json_object_get(entry, "until_ms"));
	char until[QUANTITY_TEXT_MAX];
	at_end(buf_fini) struct buf text = { 0 };

	quantity_format_date((uint64_t)until_ms / 1000 * 1000, until);
	printf("entry %lld is in force until %s; sessions ended: %lld\n",
	       json_integer_value(json_object_get(entry, "number")), until,
	       json_integer_value(json_object_get(entry, "sessions_ended")));
	puts("It is lost at a restart (in a cluster, if the store loses it and no other node runs). To keep it, add this to auth.deny in the configuration:");
	buf_append_str(&text, "  - {issuer: ");
	yaml_append_text(&text, issuer != NULL ? issuer : "");
	buf_printf(&text, ", %s: ", by != NULL ? by : "");
	yaml_append_text(&text, name != NULL ? name : "");
	buf_printf(&text, ", until: %s}", until);
	escape_print(stdout, "", buf_slice(&text), "");
}

static int add_denial(const struct line *line)
{
	json_t *until = NULL;
	json_auto_t *order = NULL;
	uint64_t for_ms;
	at_end(mem_free) char *text = NULL;

	if (line->deny.duration != NULL) {
		if (quantity_parse_duration(slice_str(line->deny.duration), &for_ms) < 0 ||
		    for_ms == 0 || for_ms > DENY_MS_MAX)
			return line_refuse_usage(
				"--for takes a time like 90m, 12h or 30d, up to 36500d");
		until = json_integer((json_int_t)(clock_wall_ms() + for_ms));
	}
	order = json_pack("{s:s*, s:s*, s:s*, s:s*, s:s*, s:o*}", "issuer", line->deny.issuer,
			  "sub", line->deny.sub, "client_id", line->deny.client_id, "jti",
			  line->deny.jti, "sid", line->deny.sid, "until_ms", until);
	if (order == NULL)
		return line_refuse_usage("a name is not valid UTF-8");
	text = json_dumps(order, JSON_COMPACT);
	return line_tell(line, "POST", mem_strdup("/deny-add"), slice_str(text), print_denial);
}

static void print_removed(const json_t *answer)
{
	printf("entry %lld removed\n", json_integer_value(json_object_get(answer, "removed")));
}

static int remove_denial(const struct line *line)
{
	const char *number = line->words[2];

	if (!line_is_plain(number))
		return line_refuse_usage("give the number of the entry");
	return line_tell(line, "POST", mem_printf("/deny-remove?number=%s", number), line_no_body,
			 print_removed);
}

int orders_deny(const struct line *line)
{
	const char *what = line->words[1];

	CHECK(line->count >= 2);
	if (strcmp(what, "add") == 0 && line->count == 2)
		return add_denial(line);
	if (strcmp(what, "list") == 0 && line->count == 2)
		return line_report(line, show_list);
	if (strcmp(what, "remove") == 0 && line->count == 3)
		return remove_denial(line);
	return line_refuse_usage("usage: mcpgatectl deny add|list|remove NUMBER");
}

/*
 * ---- pins ----
 *
 * Definitions are written as indented JSON, and compared line by line: what is the same at both
 * ends is left out.
 */

#define CONTEXT_LINES 2

/* Whether it waits for the operator and has this name; NULL: any name. */
static bool pins_is_wanted(const json_t *pin, const char *name)
{
	return document_text(pin, "digest").n > 0 &&
	       (name == NULL || slice_is_equal(document_text(pin, "name"), slice_str(name)));
}

/* To be freed. NULL: it is not kept. */
static char *write_indented(struct slice definition)
{
	json_auto_t *value =
		definition.n > 0 ?
			json_loadb(definition.p, definition.n,
				   JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES,
				   NULL) :
			NULL;
	char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);

	return text != NULL || definition.n == 0 ? text : mem_dup_slice(definition);
}

/* How many lines both begin with. */
static size_t count_same(struct slice a, struct slice b)
{
	size_t count = 0;

	while (a.p != NULL && b.p != NULL &&
	       slice_is_equal(slice_cut(&a, '\n'), slice_cut(&b, '\n')))
		count++;
	return count;
}

static size_t count_lines(struct slice text)
{
	size_t count = 0;

	for (; text.p != NULL; count++)
		slice_cut(&text, '\n');
	return count;
}

static struct slice skip_lines(struct slice text, size_t count)
{
	for (; count > 0; count--)
		slice_cut(&text, '\n');
	return text;
}

/* How many they end with, of those behind the first `from`. */
static size_t count_same_at_end(struct slice a, struct slice b, size_t from)
{
	size_t lines_a = count_lines(a), lines_b = count_lines(b);
	size_t most = (lines_a < lines_b ? lines_a : lines_b) - from;
	size_t same = 0;

	a = skip_lines(a, lines_a - most);
	b = skip_lines(b, lines_b - most);
	for (; most > 0; most--)
		same = slice_is_equal(slice_cut(&a, '\n'), slice_cut(&b, '\n')) ? same + 1 : 0;
	return same;
}

static void print_lines(const char *before, struct slice text, size_t from, size_t count)
{
	for (text = skip_lines(text, from); text.p != NULL && count > 0; count--)
		escape_print(stdout, before, slice_cut(&text, '\n'), "\t");
}

static void print_difference(struct slice old, struct slice new)
{
	size_t head = count_same(old, new);
	size_t tail = count_same_at_end(old, new, head);
	size_t context = head < CONTEXT_LINES ? head : CONTEXT_LINES;

	print_lines("      ", old, head - context, context);
	print_lines("    - ", old, head, count_lines(old) - head - tail);
	print_lines("    + ", new, head, count_lines(new) - head - tail);
	print_lines("      ", new, count_lines(new) - tail,
		    tail < CONTEXT_LINES ? tail : CONTEXT_LINES);
}

/* As they are, where no difference can be seen otherwise (in the last of many digits, say). */
static void write_both(const json_t *pin, char **old_r, char **new_r)
{
	*old_r = write_indented(document_text(pin, "approved"));
	*new_r = write_indented(document_text(pin, "waiting"));
	if (*old_r == NULL || *new_r == NULL || strcmp(*old_r, *new_r) != 0)
		return;
	free(*old_r);
	free(*new_r);
	*old_r = mem_dup_slice(document_text(pin, "approved"));
	*new_r = mem_dup_slice(document_text(pin, "waiting"));
}

/* Shows what would be approved, as removed and added lines. */
static void pins_show_difference(const json_t *pin)
{
	at_end(mem_free) char *old = NULL, *new = NULL;
	bool is_new = slice_is_equal(document_text(pin, "state"), SLICE_LIT("new"));
	bool is_withheld =
		slice_is_equal(document_text(pin, "until_approved"), SLICE_LIT("withheld"));

	write_both(pin, &old, &new);
	escape_printf(stdout, "%.*s: the %.*s %.*s is %.*s, and %s",
		      SLICE_ARG(document_text(pin, "server")),
		      SLICE_ARG(document_text(pin, "kind")), SLICE_ARG(document_text(pin, "name")),
		      SLICE_ARG(document_text(pin, "state")),
		      is_withheld ? "withheld until it is approved" : "passed on (pin: warn)");
	if (new == NULL)
		puts("    (its definition is too long to be kept: only its digest is)");
	else if (is_new)
		print_lines("    + ", slice_str(new), 0, SIZE_MAX);
	else if (old == NULL)
		print_lines("    ? ", slice_str(new), 0, SIZE_MAX);
	else
		print_difference(slice_str(old), slice_str(new));
}

static void print_shadow(const json_t *shadow)
{
	bool is_mention = slice_is_equal(document_text(shadow, "by"), SLICE_LIT("description"));

	escape_printf(stdout, "%.*s: the %.*s %.*s %s the tool %.*s of %.*s",
		      SLICE_ARG(document_text(shadow, "server")),
		      SLICE_ARG(document_text(shadow, "kind")),
		      SLICE_ARG(document_text(shadow, "name")),
		      is_mention ? "has a description that names" : "has the name of",
		      SLICE_ARG(document_text(shadow, "tool")),
		      SLICE_ARG(document_text(shadow, "other")));
}

/* The definitions that wait or are gone, with their differences, and the numbers of all. */
static void pins_show(const json_t *report)
{
	const json_t *shadows = json_object_get(report, "shadows");
	const json_t *pins = json_object_get(report, "pins");
	size_t waiting = 0;

	for (size_t i = 0; i < json_array_size(pins); i++) {
		const json_t *pin = json_array_get(pins, i);

		if (json_is_true(json_object_get(pin, "gone")))
			escape_printf(stdout, "%.*s: the %.*s %.*s is gone",
				      SLICE_ARG(document_text(pin, "server")),
				      SLICE_ARG(document_text(pin, "kind")),
				      SLICE_ARG(document_text(pin, "name")));
		if (!pins_is_wanted(pin, NULL))
			continue;
		pins_show_difference(pin);
		waiting++;
	}
	for (size_t i = 0; i < json_array_size(shadows); i++)
		print_shadow(json_array_get(shadows, i));
	printf("%zu definition%s known; ", json_array_size(pins),
	       json_array_size(pins) == 1 ? " is" : "s are");
	if (waiting > 0)
		printf("%zu wait%s for: mcpgatectl pins approve SERVER NAME\n", waiting,
		       waiting == 1 ? "s" : "");
	else
		puts("none is waiting");
}

static bool decide_on_pin(const struct line *line, const json_t *pin)
{
	char *target =
		mem_printf("/pins-%s?server=%s&number=%lld&digest=%s", line->words[1],
			   line->words[2], json_integer_value(json_object_get(pin, "number")),
			   document_string(pin, "digest"));

	return line_finish(line_ask(line, "POST", target, line_no_body)) == 0;
}

/* What is decided is shown: the daemon refuses it if it is another definition by then. */
static int decide_on_pins(const struct line *line)
{
	json_auto_t *report =
		line_ask(line, "GET", mem_printf("/pins?server=%s", line->words[2]), line_no_body);
	const json_t *pins = json_object_get(report, "pins");
	const char *name = line->count > 3 ? line->words[3] : NULL;
	size_t wanted = 0, decided = 0;

	for (size_t i = 0; i < json_array_size(pins); i++) {
		const json_t *pin = json_array_get(pins, i);

		if (!pins_is_wanted(pin, name))
			continue;
		if (!line->is_json)
			pins_show_difference(pin);
		wanted++;
		decided += decide_on_pin(line, pin);
	}
	if (report != NULL && wanted == 0 && name != NULL)
		line_fail("no definition of this name is waiting");
	else if (report != NULL && !line->is_json)
		printf("%s: %zu\n", line->words[1][0] == 'a' ? "approved" : "rejected", decided);
	return report != NULL && decided == wanted && (wanted > 0 || name == NULL) ? 0 :
										     EXIT_FAILED;
}

int orders_pins(const struct line *line)
{
	bool decides = line->count > 1 && (strcmp(line->words[1], "approve") == 0 ||
					   strcmp(line->words[1], "reject") == 0);

	if (decides && line->count > 2 && (line->count == 4) != line->all &&
	    line_is_plain(line->words[2]))
		return decide_on_pins(line);
	if (line->count > 2 || line->all || (line->count > 1 && !line_is_plain(line->words[1])))
		return line_refuse_usage("usage: mcpgatectl pins [SERVER] | "
					 "pins approve|reject SERVER NAME|--all");
	return line_tell(line, "GET",
			 mem_printf("/pins?server=%s", line->count > 1 ? line->words[1] : ""),
			 line_no_body, pins_show);
}

/* ---- reload ---- */

static size_t print_texts(FILE *out, const json_t *answer, const char *member, const char *before)
{
	const json_t *list = json_object_get(answer, member);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		escape_print(out, before, slice_str(text != NULL ? text : ""), "");
	}
	return json_array_size(list);
}

static void print_reloaded(const json_t *answer)
{
	size_t count = print_texts(stdout, answer, "added", "added: ");

	count += print_texts(stdout, answer, "changed", "changed, for new sessions: ");
	count += print_texts(stdout, answer, "rules", "changed, for all sessions: ");
	count += print_texts(stdout, answer, "removed", "removed: ");
	if (count == 0)
		puts("no server has changed; everything else is now as the file says");
	print_texts(stdout, answer, "listen_added", "listening: ");
	print_texts(stdout, answer, "listen_changed", "changed, for new connections: ");
	print_texts(stdout, answer, "listen_removed", "no longer listening: ");
}

/* Its errors and warnings. */
static void print_problems(const json_t *answer)
{
	print_texts(stderr, answer, "errors", "mcpgatectl: ");
	print_texts(stderr, answer, "warnings", "mcpgatectl: warning: ");
}

int orders_reload(const struct line *line)
{
	json_auto_t *answer = line_ask(line, "POST", mem_strdup("/reload"), line_no_body);
	bool is_used = json_is_true(json_object_get(answer, "used"));
	size_t errors = json_array_size(json_object_get(answer, "errors"));

	CHECK(line->count == 1);
	if (answer != NULL && !line->is_json) {
		print_problems(answer);
		if (is_used)
			print_reloaded(answer);
		else
			fputs("mcpgatectl: nothing has changed: the previous configuration stays "
			      "in use\n",
			      stderr);
	}
	return answer != NULL && is_used && errors == 0 ? 0 : EXIT_FAILED;
}

/* ---- upgrade ---- */

#define UPGRADE_STEP_MS 100
#define UPGRADE_TELL_MS 2000   /* then the reason of the wait is told */
#define UPGRADE_SILENT_MS 5000 /* a daemon that nobody can connect to for so long is gone */
#define EXIT_UNASKED 3         /* it could not be asked, or does not answer any more */

/* NULL: nobody answers at the moment. */
static json_t *ask_quietly(const struct line *line)
{
	const struct client_request request = { .socket = line->socket,
						.method = "GET",
						.target = "/status" };
	at_end(client_reply_fini) struct client_reply reply = { .status = 0 };

	if (client_ask(&request, &reply, NULL) < 0)
		return NULL;
	return reply.status == 200 ? client_reply_read(&reply, NULL) : NULL;
}

static uint64_t now_ms(void)
{
	clock_update();
	return clock_now_ms();
}

/* Until a gateway answers that has been started since then, and knows what has come of it. NULL: none does any more. */
static json_t *wait_for_another(const struct line *line, uint64_t since_ms)
{
	uint64_t heard_ms = since_ms;
	bool is_told = false;

	for (;;) {
		json_t *status = ask_quietly(line);
		json_int_t up_ms = json_integer_value(json_object_get(status, "uptime_ms"));

		if (json_is_string(json_object_get(status, "upgrade")) &&
		    (uint64_t)up_ms <= now_ms() - since_ms)
			return status;
		if (status != NULL)
			heard_ms = now_ms();
		json_decref(status);
		if (now_ms() - heard_ms > UPGRADE_SILENT_MS)
			return NULL;
		if (!is_told && now_ms() - since_ms > UPGRADE_TELL_MS) {
			fputs("mcpgatectl: the calls in flight are waited for\n", stderr);
			is_told = true;
		}
		poll(NULL, 0, UPGRADE_STEP_MS);
	}
}

int orders_upgrade(const struct line *line)
{
	json_auto_t *before = ask_quietly(line), *after = NULL;
	json_auto_t *answer = line_ask(line, "POST", mem_strdup("/upgrade"), line_no_body);
	uint64_t since_ms = now_ms();
	bool is_done;

	CHECK(line->count == 1);
	if (answer != NULL && !line->is_json)
		print_problems(answer);
	if (!json_is_true(json_object_get(answer, "used"))) {
		if (answer != NULL && !line->is_json)
			fputs("mcpgatectl: nothing has changed: the program that runs goes on\n",
			      stderr);
		return answer != NULL ? EXIT_FAILED : EXIT_UNASKED;
	}
	after = wait_for_another(line, since_ms);
	is_done = slice_is_equal(document_text(after, "upgrade"), SLICE_LIT("done"));
	if (after == NULL)
		line_fail("the daemon does not answer any more; its log has the reason");
	else if (!is_done)
		line_fail("the new program could not take over, and the one before goes on; the "
			  "log has the reason");
	else if (!line->is_json)
		printf("%s runs now, in place of %s\n", document_string(after, "version"),
		       document_string(before, "version"));
	return after == NULL ? EXIT_UNASKED : is_done ? 0 : EXIT_FAILED;
}
