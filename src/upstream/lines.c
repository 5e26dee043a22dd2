/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything in a line is untrusted. Many deviations of servers from the protocol are tolerated
 * here, so that no code above has to.
 */
#include "upstream/lines.h"

#include "base/error.h"
#include "process/child.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

#define BATCH_MAX 1024

/* Takes a request or notification that deviates from the protocol, rewritten in its proper form. */
static void take_anew(struct upstream *upstream, const struct envelope *env)
{
	struct buf text = { 0 };
	struct envelope anew;
	struct error err;

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
	if (scan_envelope(buf_slice(&text), &upstream->shared->limits, SCAN_LENIENT, &anew, &err) ==
	    0)
		upstream_on_message(upstream, &anew);
	buf_fini(&text);
}

/* Appends text with every escaped slash, which can only occur in strings, unescaped. */
static void append_plain_slashes(struct buf *out, struct slice text)
{
	char *to = buf_reserve(out, text.n);

	for (size_t i = 0; i < text.n; i++) {
		bool is_escape = text.p[i] == '\\' && i + 1 < text.n;

		if (is_escape && text.p[i + 1] != '/')
			*to++ = text.p[i];
		i += is_escape;
		*to++ = text.p[i];
	}
	out->len = (size_t)(to - out->data);
}

/*
 * Some libraries escape every slash, and nearly all methods have one, as do the names in _meta:
 * lookups would miss them. The result is arbitrary if text is not JSON.
 */
static bool hides_what_is_read(struct slice text)
{
	static const struct slice slash = SLICE("\\/"), name = SLICE("modelcontextprotocol\\/");

	return text.n > 0 && memchr(text.p, '\\', text.n) != NULL && /* most have none */
	       memmem(text.p, text.n, slash.p, slash.n) != NULL &&
	       (memmem(text.p, text.n, name.p, name.n) != NULL ||
		scan_member(text, SLICE_LIT("method")).has_escape);
}

/* text: with unescaped slashes, wherever that matters. */
static int take_plain(struct upstream *upstream, struct slice text, struct error *err)
{
	struct envelope env;

	if (scan_envelope(text, &upstream->shared->limits, SCAN_LENIENT, &env, err) == 0) {
		if (env.is_unusual && env.method.n > 0)
			take_anew(upstream, &env);
		else
			upstream_on_message(upstream, &env);
		return 0;
	}
	if (err->kind == ERROR_SYNTAX || scan_member(text, SLICE_LIT("method")).type != JSON_ABSENT)
		return -1;
	/*
	 * Nothing was read beyond what is nested too deeply, but many servers write the id last. It
	 * is only looked up there, because we do not know whether that part is JSON.
	 */
	if (env.id.type == JSON_ABSENT && err->kind == ERROR_LIMIT)
		env.id = scan_member(text, SLICE_LIT("id"));
	upstream_on_malformed(upstream, env.id);
	return -1;
}

static int take_text(struct upstream *upstream, struct slice text, struct error *err)
{
	struct buf plain = { 0 };
	int result;

	if (!hides_what_is_read(text))
		return take_plain(upstream, text, err);
	append_plain_slashes(&plain, text);
	result = take_plain(upstream, buf_slice(&plain), err);
	buf_fini(&plain);
	return result;
}

static int take_element(struct slice element, void *arg)
{
	struct upstream *upstream = arg;
	struct error err;

	if (upstream->state == UPSTREAM_CLOSED)
		return -1;
	if (take_text(upstream, element, &err) < 0)
		child_note_garbage(upstream->child, element, err.text);
	return 0;
}

void lines_take(struct upstream *upstream, struct slice line)
{
	static const struct slice start = SLICE("{\"jsonrpc\"");
	struct error err = { ERROR_NONE, "" };
	struct error again;
	const char *at = NULL;

	CHECK(line.n > 0 && upstream->state != UPSTREAM_CLOSED);
	if (line.p[0] == '[') {
		/* Stopped without an error: an element has closed the upstream. */
		if (scan_array(line, BATCH_MAX, take_element, upstream, &err) >= 0 ||
		    err.kind == ERROR_NONE)
			return;
	} else if (take_text(upstream, line, &err) == 0) {
		return;
	}
	/* A banner without a line end may precede a message. BACK-FRAME-04 */
	if (err.kind == ERROR_SYNTAX && line.n > 1)
		at = memmem(line.p + 1, line.n - 1, start.p, start.n);
	if (at == NULL || take_text(upstream, slice_between(at, line.p + line.n), &again) < 0)
		child_note_garbage(upstream->child, line, err.text);
}
