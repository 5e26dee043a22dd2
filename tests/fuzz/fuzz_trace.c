/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the trace that a head names. Input: traceparent, a line break, tracestate, a line break, a message. What must
 * hold: a message that was valid is so with the trace in its _meta, is about the same, and names the trace of the head.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "endpoint/caller.h"
#include "jsonrpc/scan.h"
#include "mcp/trace_context.h"
#include "trace/span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };

static void check_added(const struct envelope *before, struct slice text, struct slice parent)
{
	struct envelope env;
	struct error err;
	struct buf meant = { 0 };

	CHECK(scan_envelope(text, &limits, 0, &env, &err) == 0);
	CHECK(env.kind == before->kind && slice_is_equal(env.id.text, before->id.text));
	CHECK(slice_is_equal(env.method, before->method));
	CHECK(slice_is_equal(env.arguments.text, before->arguments.text));
	CHECK(slice_is_equal(env.progress_token.text, before->progress_token.text));
	CHECK(scan_decode_string(scan_member(env.meta.text, SLICE_LIT("traceparent")), &meant) ==
	      0);
	CHECK(slice_has_prefix(parent, slice_of(meant.data, 55)));
	buf_fini(&meant);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(
		size +
		1); /* exact, but for the end that has to be there: a read behind it is seen */
	struct slice rest = slice_of(copy, size), parent, state;
	struct http_request http = { .seen = 1u << HTTP_TRACEPARENT | 1u << HTTP_TRACESTATE };
	struct buf out = { 0 };
	struct envelope env;
	struct error err;
	char *members;

	memcpy(copy, data, size);
	parent = slice_cut(&rest, '\n');
	state = slice_cut(&rest, '\n');
	http.fields[HTTP_TRACEPARENT] = parent;
	http.fields[HTTP_TRACESTATE] = state;
	members = trace_of_head(&http);
	if (members != NULL && rest.n > 0 && scan_envelope(rest, &limits, 0, &env, &err) == 0 &&
	    trace_message_add(&out, &env, members))
		check_added(&env, buf_slice(&out), parent);
	buf_fini(&out);
	free(members);
	free(copy);
	return 0;
}
