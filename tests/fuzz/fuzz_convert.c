/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the conversions between revisions. The input is what a peer put into params or result. What must
 * hold: what comes out is a message of the same kind with the same id, not much larger than what came
 * in; converting it once more changes nothing; where nothing is lost it is the very same message.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "router/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef const struct envelope *convert_fn(struct convert *convert, unsigned int lost,
					  const struct method *method, const struct envelope *env);

static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX, .id_max = 256 };

static const struct envelope *initialize(struct convert *convert, unsigned int lost,
					 const struct method *method, const struct envelope *env)
{
	(void)method;
	return convert_initialize(convert, lost, env);
}

static void check_one(convert_fn *fn, unsigned int lost, const struct method *method,
		      const struct envelope *env)
{
	struct convert first = { .text = { 0 } };
	struct convert second = { .text = { 0 } };
	const struct envelope *got = fn(&first, lost, method, env);

	CHECK(lost != 0 || got == env);
	CHECK(got != NULL || fn == convert_server_request);
	if (got != NULL) {
		CHECK(got == env || got == &first.env);
		CHECK(got->kind == env->kind && slice_is_equal(got->id.text, env->id.text));
		CHECK(slice_is_equal(got->method, env->method));
		CHECK(got->text.n <= 6 * env->text.n);
		CHECK(fn(&second, lost, method, got) == got);
	}
	convert_fini(&first);
	convert_fini(&second);
}

/* `input` as that member of a message, which is copied so that no byte behind it is there to be read. */
static void check_all(struct slice input, const char *before, convert_fn *fn)
{
	static const char *const methods[] = { "tools/call",
					       "prompts/get",
					       "tools/list",
					       "initialize",
					       "completion/complete",
					       "elicitation/create",
					       "sampling/createMessage" };
	static const unsigned int lost[] = { 0, REVISION_AUDIO, REVISION_LINKS | REVISION_CONTEXT,
					     REVISION_MODES | REVISION_TASKS, ~0u };
	struct buf text = { 0 };
	struct envelope env;
	struct error err;

	buf_append_str(&text, before);
	buf_append_slice(&text, input);
	buf_append_char(&text, '}');
	if (scan_envelope(buf_slice(&text), &limits, SCAN_LENIENT, &env, &err) == 0) {
		char *copy = malloc(env.text.n);
		size_t n = env.text.n;

		memcpy(copy, env.text.p, n);
		if (scan_envelope(slice_of(copy, n), &limits, SCAN_LENIENT, &env, &err) < 0)
			abort();
		for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
			for (size_t k = 0; k < ARRAY_LEN(lost); k++)
				check_one(fn, lost[k], method_find(slice_str(methods[i])), &env);
		}
		free(copy);
	}
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char result[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":";
	static const char error[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":";
	static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":";
	struct slice input = slice_of((const char *)data, size);

	check_all(input, result, convert_response);
	check_all(input, error, convert_response);
	check_all(input, result, convert_answer);
	check_all(input, request, convert_server_request);
	check_all(input, request, convert_request);
	check_all(input, request, initialize);
	return 0;
}
