/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON-RPC messages of our own. Never writes again what a peer wrote; that is splice.
 *
 * JSON-RPC 2.0 §4, §5; requirements.md §0.
 */
#include "jsonrpc/write.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/pause.h"
#include "base/text.h"
#include "jsonrpc/scan.h"

/* ---- bytes with a count of references ---- */

/*
 * Messages. Knows nothing of what is in them. A copied text lies behind the struct, in the same
 * allocation; a taken one keeps its own.
 */

struct msg *msg_new(struct slice text)
{
	struct msg *msg = mem_alloc(sizeof(*msg) + text.n);
	char *bytes = (char *)(msg + 1);

	if (text.n > 0)
		memcpy(bytes, text.p, text.n);
	*msg = (struct msg){ .refs = 1, .text = slice_of(bytes, text.n) };
	return msg;
}

static struct slice moved(struct slice part, struct slice from, const char *to)
{
	if (part.p == NULL)
		return part;
	CHECK(part.p >= from.p && part.p + part.n <= from.p + from.n);
	return slice_of(to + (part.p - from.p), part.n);
}

struct msg *msg_new_scanned(const struct envelope *env)
{
	struct slice form = env->canonical.text;
	struct msg *msg = mem_alloc(sizeof(*msg) + sizeof(*env) + env->text.n + form.n);
	struct envelope *own = (struct envelope *)(msg + 1);
	char *bytes = (char *)(own + 1);

	memcpy(bytes, env->text.p, env->text.n);
	*own = *env;
	own->text = slice_of(bytes, env->text.n);
	own->method = moved(env->method, env->text, bytes);
	if (form.n > 0)
		memcpy(bytes + env->text.n, form.p, form.n);
	own->canonical.text.p = bytes + env->text.n;
	for (size_t i = 0; i < ENVELOPE_MEMBERS; i++)
		own->members[i].text = moved(env->members[i].text, env->text, bytes);
	*msg = (struct msg){ .refs = 1, .text = own->text, .env = own };
	return msg;
}

struct msg *msg_new_take(struct buf *buf)
{
	struct msg *msg = mem_alloc(sizeof(*msg));

	CHECK(buf->len == 0 || buf->data != NULL);
	*msg = (struct msg){ .refs = 1, .text = buf_slice(buf), .owned = buf->data };
	*buf = (struct buf){ NULL, 0, 0 };
	return msg;
}

struct msg *msg_ref(struct msg *msg)
{
	CHECK(msg->refs > 0);
	msg->refs++;
	return msg;
}

void msg_unref(struct msg **msg)
{
	struct msg *old = *msg;

	*msg = NULL;
	if (old == NULL)
		return;
	CHECK(old->refs > 0);
	if (--old->refs > 0)
		return;
	free(old->owned);
	free(old);
}

/* ---- splicing ---- */

/*
 * Copies a message with edits. Does not look at what the text means: outside strings a valid text
 * has no separators, inside it has no raw line breaks, so bytes tell the places.
 *
 * bridging.md I6; RPC-04, BACK-FRAME-01.
 */

static void splice_escape_separators(struct buf *out, struct slice s)
{
	static const struct {
		struct slice raw;
		const char *escape;
	} separators[] = {
		{ SLICE("\xC2\x85"), "\\u0085" },
		{ SLICE("\xE2\x80\xA8"), "\\u2028" },
		{ SLICE("\xE2\x80\xA9"), "\\u2029" },
	};
	const char *end = s.p + s.n;
	const char *copied = s.p;
	bool may_have_one = memchr(s.p, '\xC2', s.n) != NULL || memchr(s.p, '\xE2', s.n) != NULL;

	for (const char *p = s.p; may_have_one && p < end; p++) {
		bool may_be_one = *p == '\xC2' || *p == '\xE2';

		pause_point();
		for (size_t i = 0; may_be_one && i < ARRAY_LEN(separators); i++) {
			if (!slice_has_prefix(slice_between(p, end), separators[i].raw))
				continue;
			buf_append_slice(out, slice_between(copied, p));
			buf_append_str(out, separators[i].escape);
			copied = p + separators[i].raw.n;
		}
	}
	buf_append_slice(out, slice_between(copied, end));
}

static void splice_blank(struct buf *out, size_t from, char c)
{
	char *end = out->data + out->len;

	for (char *p = out->data + from; (p = memchr(p, c, (size_t)(end - p))) != NULL; p++) {
		*p = ' ';
		pause_point();
	}
}

static void splice_copy(struct buf *out, struct slice s, unsigned int flags)
{
	size_t before = out->len;

	if (s.n == 0)
		return;
	if (flags & SPLICE_ESCAPE_SEPARATORS)
		splice_escape_separators(out, s);
	else
		buf_append_slice(out, s);
	if (flags & SPLICE_ONE_LINE) {
		splice_blank(out, before, '\n');
		splice_blank(out, before, '\r');
	}
}

void splice_append(struct buf *out, struct slice text, const struct splice_edit *edits,
		   size_t count, unsigned int flags)
{
	const char *p = text.p;
	const char *end = text.n > 0 ? text.p + text.n : text.p;

	CHECK(count == 0 || edits != NULL);
	for (size_t i = 0; i < count; i++) {
		const struct splice_edit *edit = &edits[i];

		CHECK(edit->span.p >= p && edit->span.p + edit->span.n <= end);
		splice_copy(out, slice_between(p, edit->span.p), flags);
		splice_copy(out, edit->with, flags);
		p = edit->span.p + edit->span.n;
	}
	splice_copy(out, slice_between(p, end), flags);
}

static bool is_empty(struct slice object)
{
	const char *p = object.p + 1;

	while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
		p++;
	return *p == '}';
}

void write_with_meta(struct buf *out, const struct envelope *env, const char *members)
{
	bool has_meta = env->meta.type != JSON_ABSENT, has_params = env->params.type != JSON_ABSENT;
	struct slice at = has_meta ? env->meta.text : has_params ? env->params.text : env->text;
	const char *before = has_meta ? "" : has_params ? "\"_meta\":{" : "\"params\":{\"_meta\":{";
	const char *after = has_meta ? "" : has_params ? "}" : "}}";
	at_end(buf_fini) struct buf with = { 0 };
	struct splice_edit edit = { .span = at };

	if (scan_type(at) == JSON_OBJECT) {
		edit.span = slice_of(at.p + 1, 0); /* behind its brace */
		buf_printf(&with, "%s%s%s%s", before, members, after, is_empty(at) ? "" : ",");
	} else {
		buf_printf(&with, "{%s%s%s}", before, members, after);
	}
	edit.with = buf_slice(&with);
	splice_append(out, env->text, &edit, 1, 0);
}

/* ---- objects and lists ---- */

void write_comma(struct buf *out)
{
	char last = out->len > 0 ? out->data[out->len - 1] : '[';

	if (last != '{' && last != '[')
		buf_append_char(out, ',');
}

void write_name(struct buf *out, struct slice name)
{
	write_comma(out);
	buf_append_char(out, '"');
	buf_append_slice(out, name);
	buf_append_str(out, "\":");
}

void write_member(struct buf *out, struct slice name, struct slice value)
{
	write_name(out, name);
	buf_append_slice(out, value);
}

void splice_member(struct buf *out, struct slice name, struct slice value)
{
	write_comma(out);
	buf_append_char(out, '"');
	splice_append(out, name, NULL, 0, SPLICE_ONE_LINE | SPLICE_ESCAPE_SEPARATORS);
	buf_append_str(out, "\":");
	splice_append(out, value, NULL, 0, SPLICE_ONE_LINE | SPLICE_ESCAPE_SEPARATORS);
}

/* ---- messages ---- */

static void write_ascii(struct buf *out, char c)
{
	static const char escaped[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	const char *at = (unsigned char)c < 0x20 || c == '"' || c == '\\' ?
				 memchr(escaped, c, sizeof(escaped) - 1) :
				 NULL;

	if (at != NULL)
		buf_append(out, (char[]){ '\\', letters[at - escaped] }, 2);
	else if ((unsigned char)c < 0x20 || c == 0x7F)
		buf_printf(out, "\\u%04x", (unsigned int)c);
	else
		buf_append_char(out, c);
}

/* One valid character of two bytes or more. C1 controls and the line separators are escaped. */
static void write_foreign(struct buf *out, struct slice character)
{
	const unsigned char *u = (const unsigned char *)character.p;

	CHECK(character.n >= 2 && u[0] >= 0xC2);
	if (character.n == 2 && u[0] == 0xC2 && u[1] < 0xA0)
		buf_printf(out, "\\u00%02x", u[1]);
	else if (character.n == 3 && u[0] == 0xE2 && u[1] == 0x80 && (u[2] & 0xFE) == 0xA8)
		buf_printf(out, "\\u20%02x", u[2] - 0x80u);
	else
		buf_append_slice(out, character);
}

void write_string(struct buf *out, struct slice text)
{
	buf_reserve(out, text.n + 2); /* as most need it */
	buf_append_char(out, '"');
	while (text.n > 0) {
		size_t run = text_verbatim_length(text);
		size_t length = run > 0 ? run : text_utf8_length(text);

		pause_point();
		if (run > 0)
			buf_append(out, text.p, run);
		else if (length == 0)
			buf_append_str(out, "\xEF\xBF\xBD");
		else if (length == 1)
			write_ascii(out, *text.p);
		else
			write_foreign(out, slice_of(text.p, length));
		if (length == 0)
			length = 1;
		text = slice_of(text.p + length, text.n - length);
	}
	buf_append_char(out, '"');
}

static void write_begin(struct buf *out, struct slice id)
{
	buf_append_str(out, "{\"jsonrpc\":\"2.0\"");
	if (id.n == 0)
		return;
	buf_append_str(out, ",\"id\":");
	buf_append_slice(out, id);
}

void write_error(struct buf *out, struct slice id, int code, struct slice message,
		 struct slice data)
{
	write_begin(out, id);
	buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
	write_string(out, message);
	if (data.n > 0) {
		buf_append_str(out, ",\"data\":");
		buf_append_slice(out, data);
	}
	buf_append_str(out, "}}");
}

void write_result(struct buf *out, struct slice id, struct slice result)
{
	CHECK(result.n > 0);
	write_begin(out, id);
	buf_append_str(out, ",\"result\":");
	buf_append_slice(out, result);
	buf_append_char(out, '}');
}

void write_call(struct buf *out, struct slice id, struct slice method, struct slice params)
{
	CHECK(method.n > 0);
	write_begin(out, id);
	buf_append_str(out, ",\"method\":");
	write_string(out, method);
	if (params.n > 0) {
		buf_append_str(out, ",\"params\":");
		buf_append_slice(out, params);
	}
	buf_append_char(out, '}');
}
