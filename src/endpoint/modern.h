/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requirements on a modern request before dispatch: pure functions of its header, its body and the
 * schema of the tool that it calls. Other refusals, and how they are reported, belong to admission.
 * requirements.md §3, §14.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct http_request;

/* Of the header. An absent field has p == NULL. */
struct modern_head {
	struct slice version, method, name; /* MCP-Protocol-Version, Mcp-Method, Mcp-Name */
	struct slice params;                /* header lines, for http_next_param */
	bool is_repeated; /* an MCP field came more than once; except Mcp-Param-* */
};

enum modern_era {
	MODERN_ERA_LEGACY,
	MODERN_ERA_MODERN,
	MODERN_ERA_UNKNOWN, /* the header names a version of neither era: FRONT-VER-02 */
};

/* What determines the era of a POST. */
struct modern_post {
	struct slice version; /* MCP-Protocol-Version; absent: p == NULL */
	const struct envelope *messages;
	size_t count;
	bool is_batch;
	bool has_session; /* Mcp-Session-Id names a live session of this caller */
};

/*
 * Why a request is refused: the HTTP status, and a JSON-RPC error that echoes its id. FRONT-ERA-09
 */
struct modern_problem {
	int status;
	int code;         /* one of enum mcp_error */
	const char *text; /* a literal, without anything from the request */
	/*
	 * What the error's data names, or empty. With MCP_UNSUPPORTED_VERSION, and with
	 * MCP_METHOD_NOT_FOUND for initialize: the claimed version as JSON text, for
	 * revision_append_supported.
	 */
	struct slice requested;
	bool is_legacy_claim; /* a legacy revision: data names only modern ones. FRONT-ERA-05 */
	const char *data; /* with MCP_MISSING_CAPABILITY: the whole data, JSON text. MOD-CAP-01 */
};

/* Reads the header fields that matter here; slices of `request`. */
void modern_head_read(const struct http_request *request, struct modern_head *head_r);
/* Copies it into one allocation, which the caller frees with free(). */
char *modern_head_copy(const struct modern_head *head, struct modern_head *copy_r);

/*
 * Which era's rules apply to a POST. It is modern if its header or one of its messages names a
 * version in a modern way; a claim of a legacy revision within a live session is ignored.
 */
enum modern_era modern_classify(const struct modern_post *post);

/*
 * Steps 1 to 7 of the ladder; the first failure wins. False: *problem_r is set.
 *
 * env         a single message, scanned strictly; an array was refused with MCP_INVALID_REQUEST
 * has_tasks   the extension io.modelcontextprotocol/tasks is advertised here
 *
 * An answer is refused. A notification passes unchecked: the fields it needs are undefined, and it
 * has no effect. FRONT-ERA-02 to -06, -08, FRONT-HTTP-08, MOD-HDR-01 to -03, MOD-META-02, -05.
 */
bool modern_check(const struct modern_head *head, const struct envelope *env, bool has_tasks,
		  struct modern_problem *problem_r) must_check;
/*
 * Step 8, for tools/call: the values that the schema's x-mcp-header annotations mirror are the same
 * in header and body. Passes if modern_check_schema rejects the annotations. `input_schema` is
 * valid JSON, or empty. MOD-HDR-04 to -06.
 */
bool modern_check_params(const struct modern_head *head, const struct envelope *env,
			 struct slice input_schema, struct modern_problem *problem_r) must_check;
/*
 * Appends the decoded value of Mcp-Name or Mcp-Param-*. False, with nothing appended: it has
 * illegal bytes, or it is marked as base64 but is not the canonical encoding of UTF-8 text.
 * MOD-HDR-02, -03
 */
bool modern_decode_value(struct slice value, struct buf *out) must_check;
