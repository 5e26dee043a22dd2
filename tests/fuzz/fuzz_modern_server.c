/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of what passes between clients of the legacy era and servers of the modern one. The input is what either put into
 * a result, an error or params. What must hold: what comes out is a message of the same kind, not much larger, without
 * what older clients do not know, and translating it once more changes nothing; the params that a server is sent are one
 * object with one _meta; what a server says of itself becomes an InitializeResult, or nothing.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "router/convert.h"
#include "upstream/send.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX / 2, .id_max = 256 };

typedef const struct envelope *translate_fn(struct convert *convert, const struct method *method,
					    const struct envelope *env);

static const struct envelope *notification(struct convert *convert, const struct method *method,
					   const struct envelope *env)
{
	(void)method;
	return modern_server_notification(convert, env);
}

static void check_one(translate_fn *fn, const struct method *method, const struct envelope *env)
{
	struct convert first = { .text = { 0 } }, second = { .text = { 0 } };
	const struct envelope *once = fn(&first, method, env);
	const struct envelope *twice = fn(&second, method, once);

	CHECK(once == env || once == &first.env);
	CHECK(once->kind == env->kind && slice_is_equal(once->id.text, env->id.text));
	CHECK(once->text.n <= 8 * env->text.n + 256);
	CHECK(slice_is_equal(once->text, twice->text));
	CHECK(scan_member(once->result.text, SLICE_LIT("resultType")).type == JSON_ABSENT);
	convert_fini(&first);
	convert_fini(&second);
}

/* The envelope lies in a copy, so that no byte behind it is there to be read. False: it is no message. */
static bool scan_copy(struct slice before, struct slice input, unsigned int flags, char **copy_r,
		      struct envelope *env_r)
{
	struct buf text = { 0 };
	struct error err;
	bool is_valid;

	buf_append_slice(&text, before);
	buf_append_slice(&text, input);
	buf_append_char(&text, '}');
	is_valid = scan_envelope(buf_slice(&text), &limits, flags, env_r, &err) == 0;
	*copy_r = malloc(text.len);
	memcpy(*copy_r, text.data, text.len);
	is_valid = is_valid &&
		   scan_envelope(slice_of(*copy_r, text.len), &limits, flags, env_r, &err) == 0;
	buf_fini(&text);
	return is_valid;
}

static void check_translation(struct slice before, struct slice input, translate_fn *fn)
{
	static const char *const methods[] = { "tools/call", "tools/list", "prompts/get" };
	struct envelope env;
	char *copy;

	if (scan_copy(before, input, SCAN_LENIENT, &copy, &env)) {
		for (size_t i = 0; i < ARRAY_LEN(methods); i++)
			check_one(fn, method_find(slice_str(methods[i])), &env);
		if (env.kind == ENVELOPE_ERROR)
			(void)modern_is_named(env.error.text);
	}
	free(copy);
}

static void check_discovery(const struct envelope *env)
{
	struct buf out = { 0 }, text = { 0 };
	struct envelope written;
	struct error err;

	if (modern_read_discovery(env->result.text, "name", &out) < 0) {
		buf_fini(&out);
		return;
	}
	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
	buf_append_slice(&text, buf_slice(&out));
	buf_append_char(&text, '}');
	if (scan_envelope(buf_slice(&text), &limits, SCAN_LENIENT, &written, &err) < 0)
		abort();
	CHECK(scan_member(written.result.text, SLICE_LIT("capabilities")).type == JSON_OBJECT);
	CHECK(scan_member(written.result.text, SLICE_LIT("serverInfo")).type == JSON_OBJECT);
	buf_fini(&out);
	buf_fini(&text);
}

static int count_member(struct slice name, struct json value, void *arg)
{
	size_t *count = arg;

	(void)value;
	*count += slice_is_equal(name, SLICE_LIT("_meta")) ||
		  slice_is_equal(name, SLICE_LIT("requestState"));
	return 0;
}

static void check_params(const struct envelope *env, bool is_modern)
{
	static const struct upstream_setup setup = { .initialize = NULL };
	const struct modern_request request = { .is_modern = is_modern,
						.token = SLICE("7"),
						.level = 1,
						.input_responses = SLICE("{}"),
						.request_state = SLICE("\"s\"") };
	struct buf out = { 0 }, text = { 0 };
	struct envelope written;
	struct error err;
	size_t count = 0;

	modern_append_params(&out, &setup, env->params.text, &request);
	CHECK(memchr(out.data, '\n', out.len) == NULL);
	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":");
	buf_append_slice(&text, buf_slice(&out));
	buf_append_char(&text, '}');
	/* A separator in a name has become an escape, which clients may not write there. */
	if (scan_envelope(buf_slice(&text), &limits, SCAN_LENIENT, &written, &err) < 0)
		abort();
	scan_members(written.params.text, count_member, &count);
	CHECK(count == 2 && slice_is_equal(written.progress_token.text, SLICE_LIT("7")));
	buf_fini(&out);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct slice result = SLICE("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":");
	static const struct slice error = SLICE("{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":");
	static const struct slice told = SLICE("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":");
	static const struct slice asked =
		SLICE("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":");
	struct slice input = slice_of((const char *)data, size);
	struct envelope env;
	char *copy;

	check_translation(result, input, modern_server_response);
	check_translation(error, input, modern_server_response);
	check_translation(told, input, notification);
	if (scan_copy(result, input, SCAN_LENIENT, &copy, &env))
		check_discovery(&env);
	free(copy);
	if (scan_copy(asked, input, 0, &copy, &env) && env.params.type == JSON_OBJECT) {
		check_params(&env, false);
		check_params(&env, true);
	}
	free(copy);
	return 0;
}
