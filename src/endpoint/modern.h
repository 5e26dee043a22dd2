/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request of the modern era must be before it is dispatched: pure functions of its head, its body and the schema
 * of the tool that it calls. What may refuse it beyond that, and how it is told, is admission's. requirements.md §3, §14.
 */
#ifndef MCPGATED_ENDPOINT_MODERN_H
#define MCPGATED_ENDPOINT_MODERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct http_request;

/* Of the head. A field that is absent has p == NULL. */
struct modern_head {
	struct slice version, method, name; /* MCP-Protocol-Version, Mcp-Method, Mcp-Name */
	struct slice params;                /* lines, for http_next_param */
	bool is_repeated; /* a field of MCP came more than once; Mcp-Param-* not counted */
};

enum modern_era {
	MODERN_ERA_LEGACY,
	MODERN_ERA_MODERN,
	MODERN_ERA_UNKNOWN, /* the field of the head names a version of neither: FRONT-VER-02 */
};

/* What a POST is, as far as its era is concerned. */
struct modern_post {
	struct slice version; /* MCP-Protocol-Version; absent: p == NULL */
	const struct envelope *messages;
	size_t count;
	bool is_batch;
	bool has_session; /* Mcp-Session-Id names a live one of this caller's */
};

/* Why a request is refused: with this status, and a JSON-RPC error that echoes its id. FRONT-ERA-09 */
struct modern_problem {
	int status;
	int code;         /* of enum mcp_error */
	const char *text; /* a literal; nothing of the request is in it */
	/*
	 * What data names, or empty. With MCP_UNSUPPORTED_VERSION, and with MCP_METHOD_NOT_FOUND for initialize: the
	 * claim, as JSON text, for revision_append_supported.
	 */
	struct slice requested;
	bool is_legacy_claim; /* a revision with a handshake: only modern ones are to be named. FRONT-ERA-05 */
	const char *data; /* with MCP_MISSING_CAPABILITY: all of data, JSON text. MOD-CAP-01 */
};

/* The fields of the head that matter here; slices of `request`. */
void modern_head_read(const struct http_request *request, struct modern_head *head_r);
/* A copy in one piece of memory, which is the caller's, for free(). */
char *modern_head_copy(const struct modern_head *head, struct modern_head *copy_r);

/*
 * Which era's rules a POST is under. It is modern if its head or one of its messages names a version in a way of the modern
 * era; a claim that names a revision with a handshake, in a live session, counts for nothing.
 */
enum modern_era modern_classify(const struct modern_post *post);

/*
 * Steps 1 to 7 of the ladder, the first failure wins. False: *problem_r is filled.
 *
 * env         a single message, scanned strictly (an array is refused before, with MCP_INVALID_REQUEST)
 * has_tasks   the extension io.modelcontextprotocol/tasks is advertised here
 *
 * An answer is refused. A notification passes unchecked: what fields it needs is not defined, and it has no effect.
 * FRONT-ERA-02 to -06, -08, FRONT-HTTP-08, MOD-HDR-01 to -03, MOD-META-02, -05.
 */
bool modern_check(const struct modern_head *head, const struct envelope *env, bool has_tasks,
		  struct modern_problem *problem_r) must_check;
/*
 * Step 8, of a tools/call: what the schema's x-mcp-header annotations mirror is in the head as in the body. All is fine if
 * modern_check_schema says that they do not count. `input_schema` was scanned as valid JSON, or is empty.
 * MOD-HDR-04 to -06.
 */
bool modern_check_params(const struct modern_head *head, const struct envelope *env,
			 struct slice input_schema, struct modern_problem *problem_r) must_check;
/* NULL, or why the annotations of this tool do not count: a text for the log. MOD-HDR-06 */
const char *modern_check_schema(struct slice input_schema);

/*
 * Appends what the value of Mcp-Name or Mcp-Param-* means. False, with nothing appended: it has bytes that it may not have,
 * or is marked as base64 and is not the one text that stands for some UTF-8. MOD-HDR-02, -03
 */
bool modern_decode_value(struct slice value, struct buf *out) must_check;
/* Whether it has only bytes that the value of a field of MCP may have. */
bool modern_is_plain(struct slice value);
/* Whether the value of such a field means the same as this JSON string. */
bool modern_is_equal(struct slice value, struct json string);

#endif
