/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages are copied into the child's queue; large ones are moved there. What the child writes is
 * cut into lines, and each line into the messages in it.
 */
#include "upstream/stdio.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/pause.h"
#include "base/text.h"
#include "io/aside.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "process/child.h"
#include "session/principal.h"
#include "upstream/held.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

/* ---- lines ---- */

/*
 * Everything in a line is untrusted. Many deviations of servers from the protocol are tolerated
 * here, so that no code above has to.
 */

#define BATCH_MAX 1024
#define SALVAGE_TRIES 8 /* places in a line where a message may begin */

/* Takes a request or notification that deviates from the protocol, rewritten in its proper form. */
static void take_anew(struct upstream *upstream, const struct envelope *env)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope anew;
	int result;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",");
	if (env->kind == ENVELOPE_REQUEST) {
		buf_append_str(&text, "\"id\":");
		buf_append_slice(&text, env->id.text);
		buf_append_char(&text, ',');
	}
	buf_append_str(&text, "\"method\":\"");
	buf_append_slice(&text, env->method);
	buf_append_char(&text, '"');
	if (env->params.type != JSON_ABSENT) {
		buf_append_str(&text, ",\"params\":");
		buf_append_slice(&text, env->params.text);
	}
	buf_append_char(&text, '}');
	aside_open();
	result = scan_envelope(buf_slice(&text), &upstream->shared->limits, SCAN_LENIENT, &anew,
			       NULL);
	aside_close();
	if (result == 0 && upstream->state != UPSTREAM_CLOSED)
		upstream_on_message(upstream, &anew);
}

/*
 * A log line in JSON may have an id and a result, too: without "jsonrpc", only what has nothing but
 * the members of JSON-RPC is a message, and only from a server that never writes it.
 */
static bool is_foreign(struct upstream *upstream, const struct envelope *env)
{
	if (!env->lacks_version)
		upstream->writes_version = true;
	return env->lacks_version && (upstream->writes_version || env->has_other_members);
}

/* Takes a message, unless the upstream is closed meanwhile; -1: it is none. */
static int take_message(struct upstream *upstream, struct slice text, struct error *err)
{
	unsigned int flags = upstream->state == UPSTREAM_HANDSHAKE ? PLAIN_HANDSHAKE : 0;
	at_end(buf_fini) struct buf plain = { 0 };
	struct envelope env;
	int result;

	CHECK(upstream->state != UPSTREAM_CLOSED);
	aside_open();
	result =
		plain_scan(text, &upstream->shared->limits, SCAN_LENIENT, flags, &plain, &env, err);
	aside_close();
	if (upstream->state == UPSTREAM_CLOSED)
		return 0;
	if (result == 0 && is_foreign(upstream, &env))
		result = error_set(err, ERROR_INVALID, "\"jsonrpc\" is missing");
	else if (result == 0 && env.is_unusual && env.method.n > 0)
		take_anew(upstream, &env);
	else if (result == 0)
		upstream_on_message(upstream, &env);
	return result;
}

/* What the members of a text say that may be no JSON, and that is no message. */
struct unread {
	struct json id;
	size_t ids;
	bool has_version, has_method, has_outcome, has_others;
};

static int note_member(struct slice name, struct json value, void *arg)
{
	struct unread *unread = arg;

	if (slice_is_equal(name, SLICE_LIT("id"))) {
		unread->id = value;
		unread->ids++;
	} else if (slice_is_equal(name, SLICE_LIT("jsonrpc"))) {
		unread->has_version = true;
	} else if (slice_is_equal(name, SLICE_LIT("method"))) {
		unread->has_method = true;
	} else if (slice_is_equal(name, SLICE_LIT("result")) ||
		   slice_is_equal(name, SLICE_LIT("error"))) {
		unread->has_outcome = true;
	} else {
		unread->has_others |= !slice_is_equal(name, SLICE_LIT("params"));
	}
	return 0;
}

/* As is_foreign. What is cut off may still come. */
static bool may_be_message(const struct upstream *upstream, const struct unread *unread,
			   struct slice text, bool is_json)
{
	if (unread->ids != 1 || (!is_json && text.p[text.n - 1] != '}'))
		return false;
	return unread->has_version ||
	       (is_json && !upstream->writes_version && !unread->has_others && unread->has_outcome);
}

/*
 * If it is known whose answer cannot be read, nobody has to wait for what will not come: our call
 * ends, or the server gets its own request back. REL-23
 */
static void note_unread(struct upstream *upstream, struct slice text, const struct error *err)
{
	bool is_json = err->kind != ERROR_SYNTAX;
	struct unread unread = { .ids = 0 };
	at_end(buf_fini) struct buf valid = { 0 };
	bool is_known;

	CHECK(text.n > 0 && err->kind != ERROR_NONE);
	aside_open();
	scan_members(text, note_member, &unread);
	is_known = may_be_message(upstream, &unread, text, is_json) &&
		   canonical_append(&valid, unread.id.text, 1) == 0;
	aside_close();
	if (upstream->state == UPSTREAM_CLOSED)
		return;
	if (is_known && (unread.has_outcome || !unread.has_method))
		upstream_on_malformed(upstream, unread.id, REASON_CHILD_PROTOCOL_ERROR);
	else if (is_known && is_json)
		upstream_refuse_request(upstream, unread.id, err->text);
}

static int take_element(struct slice element, void *arg)
{
	struct upstream *upstream = arg;
	struct error err;

	if (upstream->state == UPSTREAM_CLOSED)
		return -1;
	if (take_message(upstream, element, &err) == 0)
		return 0;
	child_note_garbage(upstream->child, element, err.text);
	note_unread(upstream, element, &err);
	return 0;
}

/* Whether a message may begin here: with a name of JSON-RPC, whichever the server writes first. */
static bool may_begin(const char *at, const char *end)
{
	static const struct slice names[] = {
		SLICE("\"jsonrpc\""), SLICE("\"id\""),     SLICE("\"result\""),
		SLICE("\"method\""),  SLICE("\"params\""), SLICE("\"error\""),
	};

	while (++at < end && strchr(" \t\r", *at) != NULL)
		;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (slice_has_prefix(slice_between(at, end), names[i]))
			return true;
	}
	return false;
}

/* The next place behind `at` where a message may begin; NULL: there is none. */
static const char *find_beginning(const char *at, const char *end)
{
	aside_open();
	do {
		at = memchr(at + 1, '{', (size_t)(end - at - 1));
		pause_point();
	} while (at != NULL && !may_begin(at, end));
	aside_close();
	return at;
}

/* A banner without a line end may precede a message. BACK-FRAME-04 */
static int take_rest(struct upstream *upstream, struct slice line)
{
	const char *end = line.p + line.n;
	const char *at = line.p;
	bool writes_version = upstream->writes_version; /* a log line may quote a message */
	size_t tries = 0;

	while (tries++ < SALVAGE_TRIES && (at = find_beginning(at, end)) != NULL) {
		if (upstream->state == UPSTREAM_CLOSED)
			return 0;
		if (take_message(upstream, slice_between(at, end), NULL) == 0) {
			upstream->writes_version = writes_version;
			return 0;
		}
	}
	return -1;
}

static int take_line(struct upstream *upstream, struct slice line, struct error *err)
{
	err->kind = ERROR_NONE;
	if (line.p[0] == '[') {
		/* Stopped without an error: an element has closed the upstream. */
		if (scan_array(line, BATCH_MAX, take_element, upstream, err) >= 0 ||
		    err->kind == ERROR_NONE)
			return 0;
	} else if (take_message(upstream, line, err) == 0) {
		return 0;
	}
	return err->kind == ERROR_SYNTAX ? take_rest(upstream, line) : -1;
}

/* As SDKs read it: what is not UTF-8 becomes U+FFFD. */
static void append_as_utf8(struct buf *out, struct slice text)
{
	while (text.n > 0) {
		size_t n = text_utf8_length(text);

		pause_point();
		buf_append_slice(out, n > 0 ? slice_of(text.p, n) : SLICE_LIT("\xEF\xBF\xBD"));
		n = n > 0 ? n : 1;
		text = slice_of(text.p + n, text.n - n);
	}
}

/*
 * Passes on the messages in one line, of whatever kind; anything that is not a message is logged.
 * May close the upstream.
 */
static void lines_take(struct upstream *upstream, struct slice line)
{
	at_end(buf_fini) struct buf as_utf8 = { 0 };
	struct error err;
	int result;

	CHECK(line.n > 0 && upstream->state != UPSTREAM_CLOSED);
	result = take_line(upstream, line, &err);
	if (result < 0 && err.kind == ERROR_SYNTAX && !text_is_utf8(line)) {
		aside_open();
		append_as_utf8(&as_utf8, line);
		aside_close();
		line = buf_slice(&as_utf8);
		if (upstream->state != UPSTREAM_CLOSED)
			result = take_line(upstream, line, &err);
	}
	if (result < 0 && upstream->state != UPSTREAM_CLOSED) {
		child_note_garbage(upstream->child, line, err.text);
		note_unread(upstream, line, &err);
	}
}

/* ---- long line ---- */

static void append(char *text, size_t *length, char c)
{
	if (*length < LONG_LINE_TEXT_BYTES)
		text[*length] = c;
	if (*length <= LONG_LINE_TEXT_BYTES)
		++*length;
}

static void end_message(struct long_line *line, long_line_fn *on_id, void *arg)
{
	bool is_response = line->has_id && !line->has_method && line->id_length > 0 &&
			   line->id_length <= LONG_LINE_TEXT_BYTES;

	line->has_id = line->has_method = line->is_id = line->is_name = false;
	if (is_response)
		on_id(slice_of(line->id, line->id_length), arg);
}

static bool is_name(const struct long_line *line, struct slice name)
{
	return line->length == name.n && memcmp(line->text, name.p, name.n) == 0;
}

/* Between a member's name and its value. */
static void begin_value(struct long_line *line)
{
	if (!line->is_name)
		return;
	line->is_name = false;
	line->is_id = is_name(line, SLICE_LIT("id")) && !line->has_id;
	line->has_method = line->has_method || is_name(line, SLICE_LIT("method"));
	if (line->is_id) {
		line->has_id = true;
		line->id_length = 0;
	}
}

static void begin_name(struct long_line *line)
{
	line->is_name = true;
	line->is_id = false;
	line->length = 0;
}

static void take_bracket(struct long_line *line, char c, long_line_fn *on_id, void *arg)
{
	bool is_message = c == '{' || c == '}';

	if (c == '{' || c == '[') {
		if (line->members == 0)
			line->members = c == '{' ? 1 : 2;
		if (++line->depth == line->members && is_message)
			begin_name(line);
		return;
	}
	if (line->depth == line->members && is_message)
		end_message(line, on_id, arg);
	line->depth -= line->depth > 0;
}

static void take_in_string(struct long_line *line, char c)
{
	if (line->is_escaped)
		line->is_escaped = false;
	else if (c == '\\')
		line->is_escaped = true;
	else
		line->is_string = c != '"';
	if (line->depth != line->members)
		return;
	if (line->is_name && line->is_string)
		append(line->text, &line->length, c);
	else if (line->is_id)
		append(line->id, &line->id_length, c);
}

static void take(struct long_line *line, char c, long_line_fn *on_id, void *arg)
{
	bool is_member = line->depth == line->members && line->depth > 0;

	if (c == '{' || c == '[' || c == '}' || c == ']') {
		take_bracket(line, c, on_id, arg);
		return;
	}
	if (c == '"')
		line->is_string = true;
	else if (is_member && c == ':')
		begin_value(line);
	else if (is_member && c == ',')
		begin_name(line);
	if (is_member && line->is_id && c != ':' && c != ' ' && c != '\t' && c != '\r')
		append(line->id, &line->id_length, c);
}

void long_line_take(struct long_line *line, struct slice part, bool is_end, long_line_fn *on_id,
		    void *arg)
{
	for (size_t i = 0; i < part.n; i++) {
		if (line->is_string)
			take_in_string(line, part.p[i]);
		else
			take(line, part.p[i], on_id, arg);
	}
	CHECK(line->length <= LONG_LINE_TEXT_BYTES + 1);
	CHECK(line->id_length <= LONG_LINE_TEXT_BYTES + 1);
	if (is_end)
		end_message(line, on_id, arg);
}

/* ---- processes ---- */

#define MOVE_BYTES (16 * 1024)
#define CREDENTIAL_ERROR_BYTES 300
#define CREDENTIAL_LINE_BYTES (CREDENTIAL_ERROR_BYTES + 64)

struct stdio {
	struct upstream upstream;
	struct child child;
	struct long_line long_line;
	/* Of a server with `auth`: until when its process has a token that is good, and what waits for the next one. */
	uint64_t good_until_ms, good_until_wall_ms; /* as credential_answer has them */
	uint64_t subject; /* the number of the caller's token that it was made for; 0: for none */
	struct credential_wait credential;
	struct task lacking;
	struct held held;
	struct buf token; /* conf.in_meta: the one that its process is told; empty: there is none */
};

static struct stdio *stdio_of(struct upstream *upstream)
{
	return container_of(upstream, struct stdio, upstream);
}

struct upstream *stdio_of_child(struct child *child)
{
	return &container_of(child, struct stdio, child)->upstream;
}

/* ---- its token ---- */

/*
 * The process is told its token, or why there is none, in a line that no message begins like; it comes before the
 * messages that need it. remote/remote.c. One that is a server itself (conf.in_meta) finds it in each request, and never sees a
 * request without. BACK-MSG-10
 */

static struct principal *principal_of(const struct upstream *upstream)
{
	return upstream->setup != NULL ? upstream->setup->principal : NULL;
}

static void stdio_tell_credential(struct stdio *stdio, const struct credential_answer *answer)
{
	at_end(buf_wipe) struct buf line = { 0 };

	if (stdio->upstream.server->conf.in_meta) {
		buf_wipe(&stdio->token);
		buf_append_slice(&stdio->token, answer->token);
		stdio->good_until_ms = answer->error == NULL ? answer->good_until_ms : 0;
		stdio->good_until_wall_ms = answer->good_until_wall_ms;
		return;
	}
	buf_reserve(&line, answer->token.n + CREDENTIAL_LINE_BYTES);
	if (answer->error != NULL)
		buf_printf(&line, CHILD_NO_CREDENTIAL_MARK "%.*s\n", CREDENTIAL_ERROR_BYTES,
			   answer->error);
	else
		buf_printf(&line, CHILD_CREDENTIAL_MARK "%.*s\n", SLICE_ARG(answer->token));
	stdio->good_until_ms = answer->good_until_ms;
	stdio->good_until_wall_ms = answer->good_until_wall_ms;
	child_write(&stdio->child, buf_slice(&line));
}

static void stdio_forget_credential(struct stdio *stdio)
{
	credential_cancel(&stdio->credential);
	task_cancel(&stdio->lacking);
	buf_wipe(&stdio->token);
	held_fini(&stdio->held);
	stdio->child.holds = false;
}

/*
 * Whether the line is a request that says who is calling: all but our own question whether the server is alive, to which no
 * other answer than its own may be taken.
 */
static bool stdio_says_caller(const struct upstream *upstream, struct slice line,
			      struct envelope *env_r)
{
	bool is_opening = upstream->state == UPSTREAM_HANDSHAKE && !upstream->is_inherited;

	return scan_envelope(line, &scan_limits_none, 0, env_r, NULL) == 0 &&
	       env_r->kind == ENVELOPE_REQUEST &&
	       (is_opening || !slice_is_equal(env_r->method, upstream->era->ping));
}

/* Writes a request, with its line end. */
static void stdio_write_told(struct stdio *stdio, const struct envelope *env)
{
	at_end(buf_wipe) struct buf member = { 0 }, line = { 0 };

	CHECK(stdio->token.len > 0);
	buf_reserve(&member, stdio->token.len + sizeof(SCAN_CALLER_META) + 8);
	buf_reserve(&line, env->text.n + member.cap + 32);
	buf_printf(&member, "\"" SCAN_CALLER_META "\":\"%.*s\"",
		   SLICE_ARG(buf_slice(&stdio->token)));
	write_with_meta(&line, env, buf_terminate(&member));
	buf_append_char(&line, '\n');
	child_write(&stdio->child, buf_slice(&line));
}

/* As if the server had answered so. */
static void stdio_refuse(struct upstream *upstream, const struct envelope *env, const char *why)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope answer;

	write_error(&text, env->id.text, MCP_INTERNAL_ERROR, slice_str(why),
		    (struct slice){ NULL, 0 });
	if (scan_envelope(buf_slice(&text), &scan_limits_none, 0, &answer, NULL) == 0)
		upstream_on_message(upstream, &answer);
}

/* Takes the message, with its line end. */
static void stdio_pass(struct stdio *stdio, struct buf *message)
{
	if (message->len < MOVE_BYTES)
		child_write(&stdio->child, buf_slice(message));
	else
		child_write_take(&stdio->child, message);
}

/* What was held is written; if there is no token (error), its requests are refused. May close the upstream. */
static void stdio_release(struct stdio *stdio, struct held *held, const char *error)
{
	struct upstream *upstream = &stdio->upstream;
	at_end(mem_free) char *why =
		mem_printf("%s is told who calls, and that cannot be said: %s",
			   upstream->server->conf.name, error != NULL ? error : "");
	bool in_meta = upstream->server->conf.in_meta;
	struct buf message;
	struct envelope env;

	while (upstream->state != UPSTREAM_CLOSED && held_take(held, &message)) {
		if (!in_meta || !stdio_says_caller(upstream, buf_slice(&message), &env))
			stdio_pass(stdio, &message);
		else if (error != NULL)
			stdio_refuse(upstream, &env, why);
		else
			stdio_write_told(stdio, &env);
		buf_fini(&message);
	}
	held_fini(held);
}

/* One that is to be started for its caller cannot be, without one of his; of any other each call says why. */
static void stdio_take_credential(struct stdio *stdio, const struct credential_answer *answer)
{
	const struct upstream *upstream = &stdio->upstream;
	struct held held;

	if (answer->error != NULL && upstream->server->conf.for_caller &&
	    upstream->state == UPSTREAM_HANDSHAKE && !upstream->is_inherited) {
		child_lack_credential(&stdio->child);
		return;
	}
	stdio_tell_credential(stdio, answer);
	/* What comes while these are written does not wait. */
	held_move(&held, &stdio->held);
	stdio->child.holds = false;
	stdio_release(stdio, &held, answer->error);
}

static void stdio_on_credential(struct credential_wait *wait,
				const struct credential_answer *answer)
{
	stdio_take_credential(container_of(wait, struct stdio, credential), answer);
}

static bool stdio_get_credential(struct stdio *stdio, struct credential_answer *answer_r)
{
	struct upstream *upstream = &stdio->upstream;
	struct principal *principal = principal_of(upstream);
	const struct shown_token *subject = credential_subject(upstream->server, principal);

	stdio->subject = subject != NULL ? subject->number : 0;
	stdio->credential.on_done = stdio_on_credential;
	return credential_get(&upstream->shared->credentials, upstream->server, principal,
			      &stdio->credential, answer_r);
}

/* Whether the token that its process has is the one for what its caller has shown last, and good. */
static bool stdio_has_credential(const struct stdio *stdio)
{
	const struct upstream *upstream = &stdio->upstream;
	const struct shown_token *subject =
		credential_subject(upstream->server, principal_of(upstream));

	return clock_now_ms() < stdio->good_until_ms &&
	       clock_wall_now_ms() < stdio->good_until_wall_ms &&
	       (subject == NULL || subject->number == stdio->subject);
}

/* What is known already is told when nothing of who asks is on the call stack. */
static void stdio_on_lacking(struct task *task)
{
	struct stdio *stdio = container_of(task, struct stdio, lacking);
	struct credential_answer answer;

	if (stdio->credential.credential == NULL && !stdio_has_credential(stdio) &&
	    stdio_get_credential(stdio, &answer))
		stdio_take_credential(stdio, &answer);
}

/* The token that its server has refused is used no more, once another one can be got. */
static void stdio_judge_refusal(struct stdio *stdio)
{
	struct upstream *upstream = &stdio->upstream;

	if (stdio->child.was_refused && upstream->server->conf.credential > 0 &&
	    credential_refused(&upstream->shared->credentials, upstream->server,
			       principal_of(upstream), stdio->good_until_ms,
			       stdio->child.started_at_ms)) {
		stdio->child.was_refused = false;
		stdio->good_until_ms = 0;
	}
}

static bool stdio_is_holding(const struct stdio *stdio)
{
	return !held_is_empty(&stdio->held) || stdio->credential.credential != NULL;
}

/* Whether a message may be written now; false: it has to wait for a token. */
static bool stdio_is_authorized(struct stdio *stdio)
{
	struct upstream *upstream = &stdio->upstream;
	struct credential_answer answer;

	if (upstream->server->conf.credential == 0)
		return true;
	if (stdio_is_holding(stdio))
		return false;
	stdio_judge_refusal(stdio);
	if (stdio_has_credential(stdio))
		return true;
	if (!stdio_get_credential(stdio, &answer))
		return false;
	if (answer.error == NULL)
		stdio_tell_credential(stdio, &answer);
	else
		task_schedule(upstream->shared->loop, &stdio->lacking);
	return answer.error == NULL;
}

/* A request that is given up before it was written is not written, and neither is that it is. */
static void stdio_hold(struct stdio *stdio, struct buf *message)
{
	struct envelope env;
	uint64_t id = 0;

	if (scan_envelope(buf_slice(message), &scan_limits_none, 0, &env, NULL) == 0) {
		if (env.kind == ENVELOPE_REQUEST)
			id = value_own_id(env.id);
		else if (method_find(env.method)->id == METHOD_CANCELLED &&
			 held_give_up(&stdio->held,
				      value_own_id(scan_member(env.params.text,
							       SLICE_LIT("requestId")))))
			message->len = 0;
	}
	if (message->len > 0)
		held_add(&stdio->held, id, message);
	stdio->child.holds = !held_is_empty(&stdio->held);
}

/* ---- what the process does ---- */

static void stdio_on_started(struct child *child)
{
	upstream_on_started(stdio_of_child(child));
}

static void stdio_on_line(struct child *child, struct slice line)
{
	struct upstream *upstream = stdio_of_child(child);

	if (upstream->state == UPSTREAM_CLOSED)
		return;
	if (upstream->setup == NULL) {
		child_note_garbage(child, line, "nothing was asked yet");
		return;
	}
	upstream_on_sign_of_life(upstream);
	log_payload("from_server", upstream->server->conf.name, &line, 1);
	lines_take(upstream, line);
}

static void on_long_response(struct slice id, void *arg)
{
	struct upstream *upstream = arg;
	at_end(buf_fini) struct buf text = { 0 };

	if (memchr(id.p, '\\', id.n) != NULL)
		return; /* no id of ours, and nobody has looked at its escapes */
	buf_append_str(&text, "{\"id\":");
	buf_append_slice(&text, id);
	buf_append_char(&text, '}');
	if (upstream->state != UPSTREAM_CLOSED)
		upstream_on_malformed(upstream, scan_member(buf_slice(&text), SLICE_LIT("id")),
				      REASON_CHILD_LINE_TOO_LONG);
}

static void stdio_on_long_line(struct child *child, struct slice part, bool is_end)
{
	struct upstream *upstream = stdio_of_child(child);
	struct long_line *line = &stdio_of(upstream)->long_line;

	if (upstream->state == UPSTREAM_CLOSED)
		return;
	upstream_on_sign_of_life(upstream);
	if (line->depth == 0 && part.n > 0)
		child_note_garbage(child, part, "it is longer than limits.response allows");
	long_line_take(line, part, is_end, on_long_response, upstream);
	if (is_end)
		*line = (struct long_line){ .depth = 0 };
}

static void stdio_on_refused(struct child *child)
{
	struct stdio *stdio = stdio_of(stdio_of_child(child));

	stdio_judge_refusal(stdio);
	if (stdio->upstream.server->conf.credential > 0 && !child->was_refused &&
	    !stdio_is_holding(stdio))
		task_schedule(stdio->upstream.shared->loop, &stdio->lacking);
}

static void stdio_on_lost(struct child *child, enum reason reason)
{
	stdio_judge_refusal(stdio_of(stdio_of_child(child)));
	stdio_forget_credential(stdio_of(stdio_of_child(child)));
	upstream_on_lost(stdio_of_child(child), reason);
}

static void stdio_on_gone(struct child *child)
{
	struct upstream *upstream = stdio_of_child(child);

	stdio_forget_credential(stdio_of(upstream));
	upstream_on_gone(upstream);
	loop_defer_free(upstream->shared->loop, stdio_of(upstream));
}

static const struct child_ops stdio_child_ops = {
	.on_started = stdio_on_started,
	.on_line = stdio_on_line,
	.on_long_line = stdio_on_long_line,
	.on_refused = stdio_on_refused,
	.on_lost = stdio_on_lost,
	.on_gone = stdio_on_gone,
};

/* ---- operations ---- */

static void stdio_start(struct upstream *upstream, struct slice claims)
{
	struct stdio *stdio = stdio_of(upstream);

	CHECK(upstream->child == NULL);
	upstream->child = &stdio->child;
	child_start(&stdio->child, upstream->server, claims, &stdio_child_ops);
	stdio->child.is_disposable = upstream->is_disposable;
}

static bool stdio_has_room(const struct upstream *upstream, size_t size)
{
	const struct stdio *stdio = container_of(upstream, const struct stdio, upstream);

	return held_is_empty(&stdio->held) ?
		       child_has_room(upstream->child, size) :
		       stdio->held.bytes + size <= upstream->server->conf.queue_max;
}

static void stdio_write(struct upstream *upstream, struct buf *message)
{
	struct stdio *stdio = stdio_of(upstream);
	const struct slice text = buf_slice(message);
	bool is_told = false, may_pass;
	struct envelope env;

	CHECK(message->len > 0);
	log_payload("to_server", upstream->server->conf.name, &text, 1);
	buf_append_char(message, '\n');
	if (upstream->child->is_held)
		child_resume(upstream->child);
	upstream->child->pipe->last_id = (uint32_t)upstream->last_id;
	if (upstream->server->conf.in_meta)
		is_told = stdio_says_caller(upstream, buf_slice(message), &env);
	may_pass = upstream->server->conf.in_meta && !is_told ? !stdio_is_holding(stdio) :
								stdio_is_authorized(stdio);
	if (!may_pass)
		stdio_hold(stdio, message);
	else if (is_told)
		stdio_write_told(stdio, &env);
	else
		stdio_pass(stdio, message);
}

static void stdio_note_failure(struct upstream *upstream, const char *error)
{
	child_note_failure(upstream->child, error);
}

static void stdio_stop(struct upstream *upstream, enum reason reason, bool is_at_once)
{
	stdio_forget_credential(stdio_of(upstream));
	if (upstream->child == NULL)
		loop_defer_free(upstream->shared->loop, stdio_of(upstream)); /* never started */
	else if (is_at_once)
		child_kill(upstream->child, reason);
	else
		child_stop(upstream->child, reason);
}

static const struct upstream_ops stdio_ops = {
	.start = stdio_start,
	.has_room = stdio_has_room,
	.write = stdio_write,
	.note_failure = stdio_note_failure,
	.stop = stdio_stop,
};

struct upstream *stdio_new(struct upstream_shared *shared, struct server *server)
{
	struct stdio *stdio = mem_zalloc(sizeof(*stdio));

	upstream_init(&stdio->upstream, &stdio_ops, shared, server);
	stdio->upstream.gives_way = true;
	held_init(&stdio->held);
	task_init(&stdio->lacking, stdio_on_lacking);
	return &stdio->upstream;
}

struct upstream *stdio_inherit(struct upstream_shared *shared, struct server *server,
			       const struct upstream_owner_ops *owner, uint64_t number, int pid,
			       const int fds[3])
{
	struct upstream *upstream = stdio_new(shared, server);
	struct stdio *stdio = stdio_of(upstream);

	upstream->child = &stdio->child;
	child_inherit(&stdio->child, server, number, pid, fds, &stdio_child_ops);
	upstream_begin_inherited(upstream, owner, stdio->child.pipe->last_id);
	return upstream;
}
