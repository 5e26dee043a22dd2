/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites a message with some parts replaced, in one pass from front to back; everything else is
 * copied byte for byte. This file knows no session and no process.
 *
 * Invariant: all slices lie in the message, which scan_envelope has accepted; whatever it says, the
 * result is again such a message, and never more than a few times its size.
 *
 * bridging.md §3, I6; FRONT-INIT-10, BACK-INIT-03.
 */
#include "router/convert.h"

#include <stdint.h>

#include "base/check.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "mcp/revision.h"
#include "upstream/send.h"

#define URL_ELICITATION_REQUIRED (-32042)

struct rewrite {
	unsigned int lost;
	struct slice text;  /* the message */
	const char *copied; /* up to here the message is in `out`, or replaced there */
	struct buf *out;
	bool is_inexpressible; /* in the reader's revision */
};

static struct rewrite rewrite_begin(struct convert *convert, unsigned int lost,
				    const struct envelope *env)
{
	return (struct rewrite){
		.lost = lost, .text = env->text, .copied = env->text.p, .out = &convert->text
	};
}

/* Leaves out `span`; its replacement is to be appended to `out`. Call it from front to back. */
static void rewrite_span(struct rewrite *rewrite, struct slice span)
{
	CHECK(span.p >= rewrite->copied);
	buf_append_slice(rewrite->out, slice_between(rewrite->copied, span.p));
	rewrite->copied = span.p + span.n;
}

const struct envelope *convert_finish(struct convert *convert, const struct envelope *env,
				      struct slice span)
{
	buf_append_slice(&convert->text, slice_between(span.p + span.n, env->text.p + env->text.n));
	if (scan_envelope(buf_slice(&convert->text), &scan_limits_none, SCAN_LENIENT, &convert->env,
			  NULL) < 0)
		return env; /* cannot happen: it was accepted before */
	return &convert->env;
}

static const struct envelope *rewrite_end(struct rewrite *rewrite, struct convert *convert,
					  const struct envelope *env)
{
	return rewrite->copied == rewrite->text.p ?
		       env :
		       convert_finish(convert, env, slice_of(rewrite->copied, 0));
}

void convert_fini(struct convert *convert)
{
	buf_fini(&convert->text);
}

/* ---- leaving out items of a list, members of an object ---- */

struct cut {
	struct rewrite *rewrite;
	const char *begin; /* of leading items that are left out, until the next one is met */
	const char *end;   /* of the last item */
	bool has_kept;
};

/* Takes the next item; a comma is left out with each item that is. */
static void cut_item(struct cut *cut, struct slice item, bool is_kept)
{
	if (cut->begin != NULL)
		rewrite_span(cut->rewrite, slice_between(cut->begin, item.p));
	cut->begin = NULL;
	if (!is_kept && cut->has_kept)
		rewrite_span(cut->rewrite, slice_between(cut->end, item.p + item.n));
	else if (!is_kept)
		cut->begin = item.p;
	cut->has_kept |= is_kept;
	cut->end = item.p + item.n;
}

static void cut_end(struct cut *cut)
{
	if (cut->begin != NULL)
		rewrite_span(cut->rewrite, slice_between(cut->begin, cut->end));
}

/* A member with its name. */
static struct slice member_span(struct slice name, struct json value)
{
	return slice_between(name.p - 1, value.text.p + value.text.n);
}

static void cut_member(struct rewrite *rewrite, struct slice object, struct slice name)
{
	struct cut cut = { .rewrite = rewrite };

	SCAN_MEMBERS(member, object)
		cut_item(&cut, member_span(member.name, member.value),
			 !slice_is_equal(member.name, name));
	cut_end(&cut);
}

static void each_element(struct json array, scan_element_fn *on_element, void *arg)
{
	if (array.type == JSON_ARRAY)
		(void)!scan_array(array.text, SIZE_MAX, on_element, arg,
				  NULL); /* or up to where it stops */
}

/* ---- content blocks ---- */

/* The number of bytes that a base64 text stands for, near enough for people. */
static size_t base64_size(struct slice text)
{
	size_t digits = 0;

	for (size_t i = 0; i < text.n; i++)
		digits += text.p[i] != '\\' && text.p[i] != '='; /* some write \/ */
	return digits / 4 * 3 + digits % 4 * 3 / 4;
}

/* The inside of a string, not decoded. */
static struct slice inside(struct json string)
{
	return slice_of(string.text.p + 1, string.text.n - 2);
}

static struct slice block_type(struct slice block)
{
	return scan_plain_string(scan_member(block, SLICE_LIT("type")));
}

/*
 * Appends the text block that stands for a block. Returns false if none is needed, or the block is
 * malformed.
 */
static bool append_block(struct buf *out, unsigned int lost, struct slice block)
{
	struct slice type = block_type(block);
	bool is_audio = lost & REVISION_AUDIO && slice_is_equal(type, SLICE_LIT("audio"));
	bool is_link = lost & REVISION_LINKS && slice_is_equal(type, SLICE_LIT("resource_link"));
	struct json name, content, annotations;

	if (!is_audio && !is_link)
		return false;
	name = scan_member(block, is_audio ? SLICE_LIT("mimeType") : SLICE_LIT("name"));
	content = scan_member(block, is_audio ? SLICE_LIT("data") : SLICE_LIT("uri"));
	annotations = scan_member(block, SLICE_LIT("annotations"));
	if (name.type != JSON_STRING || content.type != JSON_STRING)
		return false;
	buf_append_str(out, "{\"type\":\"text\",\"text\":\"");
	buf_append_str(out, is_audio ? "[audio: " : "");
	buf_append_slice(out, inside(name));
	if (is_audio) {
		buf_printf(out, ", %zu bytes omitted]", base64_size(inside(content)));
	} else {
		buf_append_str(out, ": ");
		buf_append_slice(out, inside(content));
	}
	buf_append_char(out, '"');
	if (annotations.type == JSON_OBJECT)
		write_member(out, SLICE_LIT("annotations"), annotations.text);
	buf_append_char(out, '}');
	return true;
}

static int rewrite_block(struct slice block, void *arg)
{
	struct rewrite *rewrite = arg;
	at_end(buf_fini) struct buf text = { 0 };

	if (append_block(&text, rewrite->lost, block)) {
		rewrite_span(rewrite, block);
		buf_append_slice(rewrite->out, buf_slice(&text));
	}
	return 0;
}

static int rewrite_prompt_message(struct slice message, void *arg)
{
	return rewrite_block(scan_member(message, SLICE_LIT("content")).text, arg);
}

/* ---- responses of servers ---- */

static int rewrite_tool(struct slice tool, void *arg)
{
	static const char *const path[] = { "execution", "taskSupport" };
	struct cut *cut = arg;
	struct slice support = scan_plain_string(scan_path(tool, path, ARRAY_LEN(path)));
	bool is_kept = !slice_is_equal(support, SLICE_LIT("required"));

	cut_item(cut, tool, is_kept);
	if (is_kept)
		cut_member(cut->rewrite, tool, SLICE_LIT("execution"));
	return 0;
}

static void rewrite_result(struct rewrite *rewrite, enum method_id method, struct slice result)
{
	bool is_content = rewrite->lost & (REVISION_AUDIO | REVISION_LINKS);
	bool is_tasks = rewrite->lost & REVISION_TASKS;
	struct cut cut = { .rewrite = rewrite };

	if (method == METHOD_TOOLS_CALL && is_content) {
		each_element(scan_member(result, SLICE_LIT("content")), rewrite_block, rewrite);
	} else if (method == METHOD_PROMPTS_GET && is_content) {
		each_element(scan_member(result, SLICE_LIT("messages")), rewrite_prompt_message,
			     rewrite);
	} else if (method == METHOD_TOOLS_LIST && is_tasks) {
		each_element(scan_member(result, SLICE_LIT("tools")), rewrite_tool, &cut);
		cut_end(&cut);
	} else if (method == METHOD_INITIALIZE && is_tasks) {
		cut_member(rewrite, scan_member(result, SLICE_LIT("capabilities")).text,
			   SLICE_LIT("tasks"));
	}
}

static void rewrite_error(struct rewrite *rewrite, struct slice error)
{
	struct json code = scan_member(error, SLICE_LIT("code"));
	long long number;

	if ((rewrite->lost & REVISION_MODES) == 0 || value_read_integer(code, &number) < 0 ||
	    number != URL_ELICITATION_REQUIRED)
		return;
	rewrite_span(rewrite, code.text);
	buf_printf(rewrite->out, "%d", MCP_INTERNAL_ERROR);
}

const struct envelope *convert_response(struct convert *convert, unsigned int lost,
					const struct method *method, const struct envelope *env)
{
	struct rewrite rewrite = rewrite_begin(convert, lost, env);

	if (lost == 0)
		return env;
	if (env->kind == ENVELOPE_RESULT)
		rewrite_result(&rewrite, method->id, env->result.text);
	else
		rewrite_error(&rewrite, env->error.text);
	return rewrite_end(&rewrite, convert, env);
}

/* ---- forms that servers ask for ---- */

struct options {
	struct buf values;
	struct buf names;
	bool is_broken;
};

static void append_option(struct buf *list, struct slice text)
{
	buf_append_char(list, list->len > 0 ? ',' : '[');
	buf_append_slice(list, text);
}

static int take_option(struct slice option, void *arg)
{
	struct options *options = arg;
	struct json value = scan_member(option, SLICE_LIT("const"));
	struct json title = scan_member(option, SLICE_LIT("title"));

	if (value.type != JSON_STRING) {
		options->is_broken = true;
		return -1;
	}
	append_option(&options->values, value.text);
	append_option(&options->names, title.type == JSON_STRING ? title.text : value.text);
	return 0;
}

/* "oneOf":[{"const":…,"title":…},…] of a choice becomes "enum":[…],"enumNames":[…]. */
static int rewrite_choice(struct slice name, struct json choices, void *arg)
{
	struct rewrite *rewrite = arg;
	struct options options = { .is_broken = false };

	if (!slice_is_equal(name, SLICE_LIT("oneOf")))
		return 0;
	each_element(choices, take_option, &options);
	if (options.is_broken || options.values.len == 0) {
		rewrite->is_inexpressible = true;
	} else {
		rewrite_span(rewrite, member_span(name, choices));
		buf_append_str(rewrite->out, "\"enum\":");
		buf_append_slice(rewrite->out, buf_slice(&options.values));
		buf_append_str(rewrite->out, "],\"enumNames\":");
		buf_append_slice(rewrite->out, buf_slice(&options.names));
		buf_append_char(rewrite->out, ']');
	}
	buf_fini(&options.values);
	buf_fini(&options.names);
	return -1;
}

static void rewrite_fields(struct rewrite *rewrite, struct slice fields)
{
	SCAN_MEMBERS(field, fields) {
		struct slice text = field.value.text;

		/* Only a field with several choices is an array. */
		if (slice_is_equal(block_type(text), SLICE_LIT("array")))
			rewrite->is_inexpressible = true;
		else if (scan_member(text, SLICE_LIT("enum")).type == JSON_ABSENT)
			scan_members(text, rewrite_choice, rewrite);
		if (rewrite->is_inexpressible)
			return;
	}
}

/* ---- messages to sample from ---- */

struct split {
	struct rewrite *rewrite;
	struct slice first;
	struct buf messages; /* one for each block */
	struct slice role;   /* with its quotes */
	size_t count;
	bool is_broken;
};

static bool is_tool_use(struct slice block)
{
	struct slice type = block_type(block);

	return slice_is_equal(type, SLICE_LIT("tool_use")) ||
	       slice_is_equal(type, SLICE_LIT("tool_result"));
}

static int split_block(struct slice block, void *arg)
{
	struct split *split = arg;

	if (block_type(block).n == 0) { /* no block; many short ones could become very large */
		split->is_broken = true;
		return -1;
	}
	split->rewrite->is_inexpressible |= is_tool_use(block);
	if (split->count++ == 0)
		split->first = block;
	buf_append_str(&split->messages, split->count > 1 ? ",{\"role\":" : "{\"role\":");
	buf_append_slice(&split->messages, split->role);
	buf_append_str(&split->messages, ",\"content\":");
	if (!append_block(&split->messages, split->rewrite->lost, block))
		buf_append_slice(&split->messages, block);
	buf_append_char(&split->messages, '}');
	return 0;
}

/* Only the two roles that exist: what is repeated for each block must be small. */
static bool is_known_role(struct json role)
{
	struct slice name = scan_plain_string(role);

	return slice_is_equal(name, SLICE_LIT("user")) ||
	       slice_is_equal(name, SLICE_LIT("assistant"));
}

/*
 * Rewrites content that is an array: a single block becomes the content; several become a message
 * each, if `message` is not empty.
 */
static void rewrite_blocks(struct rewrite *rewrite, struct slice message, struct json role,
			   struct json content)
{
	struct split split = { .rewrite = rewrite, .role = role.text };

	each_element(content, split_block, &split);
	if (split.is_broken) {
		rewrite->is_inexpressible = false; /* malformed: it stays as it is */
	} else if (split.count == 1) {
		rewrite_span(rewrite, slice_between(content.text.p, split.first.p));
		rewrite_block(split.first, rewrite);
		rewrite_span(rewrite, slice_between(split.first.p + split.first.n,
						    content.text.p + content.text.n));
	} else if (split.count > 1 && message.n > 0) {
		rewrite_span(rewrite, message);
		buf_append_slice(rewrite->out, buf_slice(&split.messages));
	}
	buf_fini(&split.messages);
}

static int rewrite_sampling_message(struct slice message, void *arg)
{
	struct rewrite *rewrite = arg;
	struct json role = scan_member(message, SLICE_LIT("role"));
	struct json content = scan_member(message, SLICE_LIT("content"));

	if (rewrite->lost & REVISION_MODES && is_tool_use(content.text))
		rewrite->is_inexpressible = true;
	else if (rewrite->lost & REVISION_MODES && content.type == JSON_ARRAY &&
		 is_known_role(role))
		rewrite_blocks(rewrite, message, role, content);
	else
		rewrite_block(content.text, rewrite);
	return rewrite->is_inexpressible ? -1 : 0;
}

const struct envelope *convert_server_request(struct convert *convert, unsigned int lost,
					      const struct method *method,
					      const struct envelope *env)
{
	static const char *const fields[] = { "requestedSchema", "properties" };
	struct rewrite rewrite = rewrite_begin(convert, lost, env);
	struct slice params = env->params.text;

	if (lost == 0)
		return env;
	if (method->id == METHOD_ELICITATION && lost & REVISION_MODES)
		rewrite_fields(&rewrite, scan_path(params, fields, ARRAY_LEN(fields)).text);
	else if (method->id == METHOD_SAMPLING && lost & REVISION_MODES &&
		 scan_member(params, SLICE_LIT("tools")).type != JSON_ABSENT)
		rewrite.is_inexpressible = true;
	else if (method->id == METHOD_SAMPLING)
		each_element(scan_member(params, SLICE_LIT("messages")), rewrite_sampling_message,
			     &rewrite);
	return rewrite.is_inexpressible ? NULL : rewrite_end(&rewrite, convert, env);
}

/* ---- messages of clients ---- */

const struct envelope *convert_request(struct convert *convert, unsigned int differing,
				       const struct method *method, const struct envelope *env)
{
	struct rewrite rewrite = rewrite_begin(convert, differing, env);

	if (differing == 0)
		return env;
	if (method->id == METHOD_COMPLETE && differing & REVISION_CONTEXT)
		cut_member(&rewrite, env->params.text, SLICE_LIT("context"));
	else if (method->id == METHOD_TOOLS_CALL && differing & REVISION_TASKS &&
		 env->task.type != JSON_ABSENT)
		cut_member(&rewrite, env->params.text, SLICE_LIT("task"));
	return rewrite_end(&rewrite, convert, env);
}

const struct envelope *convert_answer(struct convert *convert, unsigned int lost,
				      const struct method *method, const struct envelope *env)
{
	struct rewrite rewrite = rewrite_begin(convert, lost, env);
	struct json content;

	if (lost == 0 || method->id != METHOD_SAMPLING || env->kind != ENVELOPE_RESULT)
		return env;
	content = scan_member(env->result.text, SLICE_LIT("content"));
	if (lost & REVISION_MODES && content.type == JSON_ARRAY)
		rewrite_blocks(&rewrite, (struct slice){ NULL, 0 },
			       (struct json){ .type = JSON_ABSENT }, content);
	else
		rewrite_block(content.text, &rewrite);
	return rewrite_end(&rewrite, convert, env);
}

const struct envelope *convert_initialize(struct convert *convert, unsigned int lost,
					  const struct envelope *env)
{
	struct rewrite rewrite = rewrite_begin(convert, lost, env);
	struct cut cut = { .rewrite = &rewrite };

	if (lost == 0)
		return env;
	SCAN_MEMBERS(member, scan_member(env->params.text, SLICE_LIT("capabilities")).text) {
		bool is_elicitation = slice_is_equal(member.name, SLICE_LIT("elicitation"));
		bool is_unknown = (lost & REVISION_TASKS &&
				   slice_is_equal(member.name, SLICE_LIT("tasks"))) ||
				  (lost & REVISION_ELICITATION && is_elicitation);
		/* What the older revision declares by presence alone has no members there. */
		bool was_bare =
			lost & REVISION_MODES &&
			(is_elicitation || slice_is_equal(member.name, SLICE_LIT("sampling")));

		cut_item(&cut, member_span(member.name, member.value), !is_unknown);
		if (!is_unknown && was_bare && member.value.type == JSON_OBJECT &&
		    member.value.text.n > 2) {
			rewrite_span(&rewrite, member.value.text);
			buf_append_str(rewrite.out, "{}");
		}
	}
	cut_end(&cut);
	return rewrite_end(&rewrite, convert, env);
}

/* ---- from modern servers ---- */

/* A result is rewritten member by member, each value unchanged. */

struct renewal {
	struct buf *out;
	const struct method *method; /* NULL: this is not a result */
	struct slice structured;     /* of a tool, if that is not an object */
	bool has_content;
};

/* Copies _meta without what legacy clients do not know; a _meta with nothing else is left out. */
static void copy_meta(struct renewal *renewal, struct slice name, struct json meta)
{
	at_end(buf_fini) struct buf inside = { 0 };

	buf_append_char(&inside, '{');
	SCAN_MEMBERS(member, meta.text)
		if (!slice_is_equal(member.name, SLICE_LIT(MODERN_META "serverInfo")) &&
		    !slice_is_equal(member.name, SLICE_LIT(MODERN_META "subscriptionId")))
			write_member(&inside, member.name, member.value.text);
	buf_append_char(&inside, '}');
	if (inside.len > 2 || meta.text.n <= 2)
		write_member(renewal->out, name, buf_slice(&inside));
}

/* ---- what tools return: before the modern era that was an object ---- */

#define WRAP_BEGIN "{\"type\":\"object\",\"properties\":{\"result\":"
#define WRAP_END "},\"required\":[\"result\"]}"

/*
 * An outputSchema that may allow both objects and other values is left out: nobody could tell which
 * values are to be wrapped.
 */
static int copy_tool(struct slice tool, void *arg)
{
	struct buf *out = arg;

	write_comma(out);
	if (scan_type(tool) != JSON_OBJECT) {
		buf_append_slice(out, tool);
		return 0;
	}
	buf_append_char(out, '{');
	SCAN_MEMBERS(member, tool) {
		struct slice schema = member.value.text;
		struct slice type = scan_plain_string(scan_member(schema, SLICE_LIT("type")));

		if (!slice_is_equal(member.name, SLICE_LIT("outputSchema")) ||
		    slice_is_equal(type, SLICE_LIT("object"))) {
			write_member(out, member.name, schema);
		} else if (type.n > 0) {
			write_member(out, member.name, SLICE_LIT(WRAP_BEGIN));
			buf_append_slice(out, schema);
			buf_append_str(out, WRAP_END);
		}
	}
	buf_append_char(out, '}');
	return 0;
}

static void copy_tools(struct buf *out, struct slice name, struct json tools)
{
	write_member(out, name, SLICE_LIT("["));
	(void)!scan_array(tools.text, SIZE_MAX, copy_tool, out, NULL);
	buf_append_char(out, ']');
}

static void copy_structured(struct renewal *renewal, struct slice name, struct json value)
{
	renewal->structured = value.text;
	write_member(renewal->out, name, SLICE_LIT("{\"result\":"));
	buf_append_slice(renewal->out, value.text);
	buf_append_char(renewal->out, '}');
}

/* Adds the value as text, for clients that read only that. */
static void append_fallback(const struct renewal *renewal)
{
	struct buf *out = renewal->out;

	if (renewal->structured.n == 0 || renewal->has_content)
		return;
	write_member(out, SLICE_LIT("content"), SLICE_LIT("[{\"type\":\"text\",\"text\":"));
	write_string(out, renewal->structured);
	buf_append_str(out, "}]");
}

/* Returns false if the member is to be copied like any other. */
static bool copy_of_tools(struct renewal *renewal, struct slice name, struct json value)
{
	enum method_id method = renewal->method != NULL ? renewal->method->id : METHOD_OTHER;
	bool is_call = method == METHOD_TOOLS_CALL;

	if (method == METHOD_TOOLS_LIST && value.type == JSON_ARRAY &&
	    slice_is_equal(name, SLICE_LIT("tools"))) {
		copy_tools(renewal->out, name, value);
		return true;
	}
	if (is_call && value.type != JSON_OBJECT &&
	    slice_is_equal(name, SLICE_LIT("structuredContent"))) {
		copy_structured(renewal, name, value);
		return true;
	}
	renewal->has_content |= slice_is_equal(name, SLICE_LIT("content"));
	return false;
}

static void append_object(struct buf *out, const struct method *method, struct slice object,
			  struct slices left_out)
{
	struct renewal renewal = { .out = out, .method = method };

	buf_append_char(out, '{');
	SCAN_MEMBERS(member, object) {
		if (slices_has(left_out, member.name) ||
		    copy_of_tools(&renewal, member.name, member.value))
			continue;
		if (member.value.type == JSON_OBJECT &&
		    slice_is_equal(member.name, SLICE_LIT("_meta")))
			copy_meta(&renewal, member.name, member.value);
		else
			write_member(out, member.name, member.value.text);
	}
	append_fallback(&renewal);
	buf_append_char(out, '}');
}

static const struct envelope *write_object(struct convert *convert, const struct method *method,
					   const struct envelope *env, struct slice span,
					   struct slices left_out)
{
	buf_append_slice(&convert->text, slice_between(env->text.p, span.p));
	append_object(&convert->text, method, span, left_out);
	return convert_finish(convert, env, span);
}

/* Replaces codes that only the modern era has. requirements.md §19 */
static const struct envelope *write_error_code(struct convert *convert, const struct envelope *env)
{
	struct json code = scan_member(env->error.text, SLICE_LIT("code"));
	long long number;

	if (value_read_integer(code, &number) < 0 ||
	    (number != MCP_HEADER_MISMATCH && number != MCP_MISSING_CAPABILITY &&
	     number != MCP_UNSUPPORTED_VERSION))
		return env;
	buf_append_slice(&convert->text, slice_between(env->text.p, code.text.p));
	buf_printf(&convert->text, "%d", MCP_INTERNAL_ERROR);
	return convert_finish(convert, env, code.text);
}

const struct envelope *modern_server_response(struct convert *convert, const struct method *method,
					      const struct envelope *env)
{
	static const struct slice names[] = { SLICE("resultType"), SLICE("ttlMs"),
					      SLICE("cacheScope") };

	if (env->kind == ENVELOPE_ERROR)
		return write_error_code(convert, env);
	if (env->result.type != JSON_OBJECT)
		return env;
	return write_object(convert, method, env, env->result.text,
			    (struct slices){ names, ARRAY_LEN(names) });
}

const struct envelope *modern_server_notification(struct convert *convert,
						  const struct envelope *env)
{
	if (env->params.type != JSON_OBJECT)
		return env;
	return write_object(convert, NULL, env, env->params.text, (struct slices){ NULL, 0 });
}

enum modern_result modern_server_kind(struct json kind)
{
	struct slice name = scan_plain_string(kind);

	if (kind.type == JSON_ABSENT || slice_is_equal(name, SLICE_LIT("complete")))
		return MODERN_COMPLETE;
	if (slice_is_equal(name, SLICE_LIT("input_required")))
		return MODERN_INPUT_REQUIRED;
	return slice_is_equal(name, SLICE_LIT("task")) ? MODERN_TASK : MODERN_UNKNOWN;
}
