/* SPDX-License-Identifier: Apache-2.0 */
/* A table says which member of params is the name that a method needs. */
#include "remote/message_headers.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "jsonrpc/param_headers.h"
#include "mcp/revision.h"

#define BASE64_PREFIX SLICE_LIT("=?base64?")
#define BASE64_SUFFIX SLICE_LIT("?=")

static const struct {
	struct slice method;
	size_t member; /* of struct envelope: a struct json */
} named[] = {
	{ SLICE("tools/call"), offsetof(struct envelope, name) },
	{ SLICE("prompts/get"), offsetof(struct envelope, name) },
	{ SLICE("resources/read"), offsetof(struct envelope, uri) },
	{ SLICE("tasks/get"), offsetof(struct envelope, task_id) },
	{ SLICE("tasks/update"), offsetof(struct envelope, task_id) },
	{ SLICE("tasks/cancel"), offsetof(struct envelope, task_id) },
};

static bool is_literal(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < 0x20 || text.p[i] > 0x7e)
			return false;
	return text.n > 0 && text.p[0] != ' ' && text.p[text.n - 1] != ' ' &&
	       !slice_has_prefix(text, BASE64_PREFIX);
}

void message_headers_append_value(struct buf *out, struct slice text)
{
	char *at;

	if (is_literal(text)) {
		buf_append_slice(out, text);
		return;
	}
	CHECK(text.n <= INT_MAX);
	buf_append_slice(out, BASE64_PREFIX);
	at = buf_reserve(out, (text.n + 2) / 3 * 4 + 1);
	out->len += (size_t)EVP_EncodeBlock((unsigned char *)at, (const unsigned char *)text.p,
					    (int)text.n);
	buf_append_slice(out, BASE64_SUFFIX);
}

struct slice message_headers_revision(const struct envelope *env)
{
	struct slice name = env->kind == ENVELOPE_REQUEST ?
				    scan_plain_string(env->protocol_version) :
				    (struct slice){ NULL, 0 };

	return revision_is_modern(name) ? name : (struct slice){ NULL, 0 };
}

static void add_text(struct slice text, const char *name, message_header_fn *add, void *arg)
{
	at_end(buf_fini) struct buf value = { 0 };

	message_headers_append_value(&value, text);
	add(name, buf_terminate(&value), arg);
}

void message_headers_add(const struct envelope *env, message_header_fn *add, void *arg)
{
	struct slice revision = message_headers_revision(env);

	if (revision.n == 0)
		return;
	add_text(revision, "MCP-Protocol-Version", add, arg);
	add_text(env->method, "Mcp-Method", add, arg);
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		const struct json *member = (const void *)((const char *)env + named[i].member);
		at_end(buf_fini) struct buf name = { 0 };

		if (slice_is_equal(env->method, named[i].method) &&
		    scan_decode_string(*member, &name) == 0)
			add_text(buf_slice(&name), "Mcp-Name", add, arg);
	}
}

struct params {
	message_header_fn *add;
	void *arg;
};

static int add_param(const struct param_header *header, void *arg)
{
	const struct params *params = arg;
	at_end(buf_fini) struct buf name = { 0 }, text = { 0 };
	bool is_string = header->value.type == JSON_STRING;

	buf_append_str(&name, "Mcp-Param-");
	buf_append_slice(&name, header->name);
	if (is_string && scan_decode_string(header->value, &text) == 0)
		add_text(buf_slice(&text), buf_terminate(&name), params->add, params->arg);
	else if (!is_string && header->value.type != JSON_ABSENT && header->value.type != JSON_NULL)
		add_text(header->value.text, buf_terminate(&name), params->add, params->arg);
	return 0;
}

void message_headers_add_params(const struct envelope *env, struct slice input_schema,
				message_header_fn *add, void *arg)
{
	struct params params = { add, arg };

	param_headers_each(input_schema, env->arguments.text, add_param, &params);
}
