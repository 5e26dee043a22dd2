/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and writes JSON-RPC messages. It keeps no state and reads nothing.
 * A message is compact JSON and so never holds a raw line break. JSON-RPC 2.0 §4, §5; MCP stdio.
 */
#include "demo/rpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static void write_all(const char *data, size_t size)
{
	while (size > 0) {
		ssize_t done = write(STDOUT_FILENO, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			fprintf(stderr, "mcpgated-demo: cannot write to standard output: %s\n",
				strerror(errno));
			_exit(1);
		}
		data += done;
		size -= (size_t)done;
	}
}

/* Takes message. */
static void send_message(json_t *message)
{
	char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t size;

	CHECK(text != NULL);
	size = strlen(text);
	text[size] = '\n'; /* in the place of the NUL, so that the line leaves in one write */
	write_all(text, size + 1);
	free(text);
	json_decref(message);
}

void rpc_send_result(const json_t *id, json_t *result)
{
	CHECK(id != NULL && result != NULL);
	send_message(json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

void rpc_send_error(const json_t *id, int code, const char *text, json_t *data)
{
	struct buf mended = { 0 };

	CHECK(code < 0);
	/* A text may quote the client cut short, and so end in half a character, which is no JSON. */
	buf_append_utf8(&mended, slice_str(text));
	send_message(json_pack("{s:s, s:O?, s:{s:i, s:s, s:o*}}", "jsonrpc", "2.0", "id", id,
			       "error", "code", code, "message", buf_terminate(&mended), "data",
			       data));
	buf_fini(&mended);
}

void rpc_send_notification(const char *method, json_t *params)
{
	send_message(
		json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

void rpc_send_request(json_int_t id, const char *method, json_t *params)
{
	CHECK(id > 0);
	send_message(json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", id, "method", method,
			       "params", params));
}
