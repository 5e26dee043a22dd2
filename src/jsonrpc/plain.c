/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most messages are plain: the scan tells which may not be, and only these are written anew. First the
 * names and the method, because the scan may not have found what it reads under other spellings; then,
 * with its findings, the strings and empty arrays.
 *
 * Invariant: the meaning of the text does not change, apart from the empty arrays.
 */
#include "jsonrpc/plain.h"

#include "base/text.h"
#include "jsonrpc/write.h"

#define READ_MAX 16
#define CAPABILITIES_DEPTH 2 /* of a declared capability's own members */

struct rewrite {
	struct buf *out;
	const char *copied;           /* what stands before it has been written */
	const char *end;              /* of the text */
	struct json read[READ_MAX];   /* the strings that are read */
	struct json object[READ_MAX]; /* what is read as an object */
	size_t read_count;
	size_t object_count;
	struct slice capabilities;
	size_t base;    /* the depth of `capabilities` */
	bool is_open;   /* below one that anybody may define: only its own form is known */
	bool is_method; /* the value that comes next */
	bool is_changed;
};

static void put(struct rewrite *rewrite, struct slice span, struct slice with)
{
	CHECK(span.p >= rewrite->copied && span.p + span.n <= rewrite->end);
	if (slice_is_equal(span, with))
		return;
	buf_append_slice(rewrite->out, slice_between(rewrite->copied, span.p));
	buf_append_slice(rewrite->out, with);
	rewrite->copied = span.p + span.n;
	rewrite->is_changed = true;
}

/*
 * Half a surrogate pair has no other spelling. Names that are read are ASCII: others stay as they
 * are.
 */
static void put_plain_string(struct rewrite *rewrite, struct json string, bool is_name)
{
	struct buf decoded = { 0 }, written = { 0 };
	struct slice text;

	if (scan_decode_string(string, &decoded) == 0) {
		text = buf_slice(&decoded);
		write_string(&written, text);
		if (!is_name || text_verbatim_length(text) == text.n)
			put(rewrite, string.text, buf_slice(&written));
	}
	buf_fini(&decoded);
	buf_fini(&written);
}

/* Whether the value of this member is the method of the message. */
static bool is_of_method(const struct scan_token *name)
{
	struct buf room = { 0 };
	struct slice text;
	bool is_it = name->depth == 1 && scan_read_string(name->value, &room, &text) == 0 &&
		     slice_is_equal(text, SLICE_LIT("method"));

	buf_fini(&room);
	return is_it;
}

static bool is_among(const struct json *values, size_t count, const char *at)
{
	CHECK(count <= READ_MAX && at != NULL);
	for (size_t i = 0; i < count; i++) {
		if (values[i].type != JSON_ABSENT && values[i].text.p == at)
			return true;
	}
	return false;
}

static bool is_within(struct slice outer, const char *at)
{
	return outer.n > 0 && at >= outer.p && at < outer.p + outer.n;
}

/* Notes whether what follows are the settings of an extension, whose arrays are its own. */
static void note_capability(struct rewrite *rewrite, const struct scan_token *token)
{
	struct slice name = scan_plain_string(token->value);

	if (!is_within(rewrite->capabilities, token->value.text.p))
		return;
	if (rewrite->base == 0)
		rewrite->base = token->depth;
	if (token->depth == rewrite->base)
		rewrite->is_open = slice_is_equal(name, SLICE_LIT("extensions")) ||
				   slice_is_equal(name, SLICE_LIT("experimental"));
}

static bool is_object(const struct rewrite *rewrite, const struct scan_token *token)
{
	const char *at = token->value.text.p;

	if (is_among(rewrite->object, rewrite->object_count, at))
		return true;
	return is_within(rewrite->capabilities, at) &&
	       (rewrite->base == 0 || !rewrite->is_open ||
		token->depth < rewrite->base + CAPABILITIES_DEPTH);
}

static bool is_empty_array(const char *at, const char *end)
{
	CHECK(at < end);
	if (*at++ != '[')
		return false;
	while (at < end && strchr(" \t\r\n", *at) != NULL)
		at++;
	return at < end && *at == ']';
}

static int rewrite_token(const struct scan_token *token, void *arg)
{
	struct rewrite *rewrite = arg;
	const char *at = token->value.text.p;

	if (token->kind == SCAN_NAME) {
		note_capability(rewrite, token);
		rewrite->is_method = is_of_method(token);
		if (token->value.has_escape)
			put_plain_string(rewrite, token->value, true);
	} else if (token->kind == SCAN_STRING) {
		if (token->value.has_escape &&
		    (rewrite->is_method || is_among(rewrite->read, rewrite->read_count, at)))
			put_plain_string(rewrite, token->value, false);
	} else if (is_empty_array(at, rewrite->end) && is_object(rewrite, token)) {
		put(rewrite, slice_between(at, memchr(at, ']', (size_t)(rewrite->end - at)) + 1),
		    SLICE_LIT("{}"));
	}
	return 0;
}

/* Rewrites *text_r into room, which may hold it; returns whether anything was to be rewritten. */
static bool rewrite_text(struct rewrite *rewrite, struct slice *text_r, struct buf *room)
{
	struct buf out = { 0 };

	CHECK(text_r->n > 0 && rewrite->out == NULL && !rewrite->is_changed);
	rewrite->out = &out;
	rewrite->copied = text_r->p;
	rewrite->end = text_r->p + text_r->n;
	scan_tokens(*text_r, rewrite_token, rewrite);
	if (!rewrite->is_changed) {
		buf_fini(&out);
		return false;
	}
	buf_append_slice(&out, slice_between(rewrite->copied, rewrite->end));
	buf_fini(room);
	*room = out;
	*text_r = buf_slice(room);
	return true;
}

static bool rewrite_names(struct slice *text_r, struct buf *room)
{
	struct rewrite rewrite = { .out = NULL };

	return rewrite_text(&rewrite, text_r, room);
}

static struct slice capabilities_of(const struct envelope *env, unsigned int plain_flags)
{
	static const struct slice name = SLICE("capabilities");

	if (env->client_capabilities.type != JSON_ABSENT)
		return env->client_capabilities.text;
	if (slice_is_equal(env->method, SLICE_LIT("initialize")))
		return scan_member(env->params.text, name).text;
	return (plain_flags & PLAIN_HANDSHAKE) != 0 ? scan_member(env->result.text, name).text :
						      slice_of(NULL, 0);
}

static bool rewrite_values(const struct envelope *env, struct slice capabilities,
			   struct slice *text_r, struct buf *room)
{
	struct rewrite rewrite = {
		.read = { env->name, env->uri, env->cursor, env->task_id, env->request_state,
			  env->protocol_version, env->log_level, env->result_type, env->cache_scope,
			  env->resumable_state },
		.read_count = 10,
		.object = { env->params, env->arguments, env->meta, env->result, env->result_meta },
		.object_count = 5,
		.capabilities = capabilities,
	};

	return rewrite_text(&rewrite, text_r, room);
}

int plain_scan(struct slice text, const struct scan_limits *limits, unsigned int scan_flags,
	       unsigned int plain_flags, struct buf *room, struct envelope *env_r,
	       struct error *err)
{
	int result = scan_envelope(text, limits, scan_flags, env_r, err);
	struct slice capabilities;

	if (env_r->may_be_plainer && rewrite_names(&text, room))
		result = scan_envelope(text, limits, scan_flags, env_r, err);
	if (result < 0)
		return result;
	capabilities = capabilities_of(env_r, plain_flags);
	if ((env_r->may_be_plainer ||
	     (capabilities.n > 0 && memchr(capabilities.p, '[', capabilities.n) != NULL)) &&
	    rewrite_values(env_r, capabilities, &text, room))
		result = scan_envelope(text, limits, scan_flags, env_r, err);
	return result;
}
