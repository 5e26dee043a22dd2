/* SPDX-License-Identifier: Apache-2.0 */
/* Params are written member by member, each value as it was received. */
#include "upstream/modern.h"

#include "base/check.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/value.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/revision.h"
#include "upstream/setup.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define VERSIONS_MAX 64
#define FLAGS (SPLICE_ONE_LINE | SPLICE_ESCAPE_SEPARATORS)

bool modern_is_reserved(struct slice name)
{
	static const struct slice names[] = {
		SLICE(MODERN_META "protocolVersion"), SLICE(MODERN_META "clientCapabilities"),
		SLICE(MODERN_META "clientInfo"),      SLICE(MODERN_META "logLevel"),
		SLICE(MODERN_META "subscriptionId"),
	};

	return slices_has((struct slices){ names, ARRAY_LEN(names) }, name);
}

/* ---- requests ---- */

/* Begins the next member of the object that is open in `out`. */
static void append_name(struct buf *out, struct slice name)
{
	CHECK(out->len > 0);
	buf_append_str(out, out->data[out->len - 1] == '{' ? "\"" : ",\"");
	splice_append(out, name, NULL, 0, FLAGS);
	buf_append_str(out, "\":");
}

static void append_member(struct buf *out, struct slice name, struct slice value)
{
	append_name(out, name);
	splice_append(out, value, NULL, 0, FLAGS);
}

struct writing {
	struct buf *out;
	const struct upstream_setup *setup;
	const struct modern_request *request;
	struct slice meta; /* the client's */
};

static int copy_meta_member(struct slice name, struct json value, void *arg)
{
	const struct writing *writing = arg;
	const struct modern_request *request = writing->request;

	if (slice_is_equal(name, SLICE_LIT("progressToken")) ||
	    slice_is_equal(name, SLICE_LIT(MODERN_META "protocolVersion")) ||
	    slice_is_equal(name, SLICE_LIT(MODERN_META "logLevel")) ||
	    (modern_is_reserved(name) && !request->is_modern))
		return 0;
	append_member(writing->out, name, value.text);
	return 0;
}

/* The client's name and capabilities. */
static void append_client(const struct writing *writing)
{
	static const char *const path[] = { "params", "clientInfo" };
	const struct upstream_setup *setup = writing->setup;
	struct slice capabilities = writing->request->capabilities;
	struct json info = { .type = JSON_ABSENT };

	if (capabilities.n == 0)
		capabilities = buf_slice(&setup->capabilities);
	if (setup->initialize != NULL)
		info = scan_path(setup->initialize->text, path, ARRAY_LEN(path));
	append_member(writing->out, SLICE_LIT(MODERN_META "clientCapabilities"),
		      capabilities.n > 0 ? capabilities : SLICE_LIT("{}"));
	append_member(writing->out, SLICE_LIT(MODERN_META "clientInfo"),
		      info.type == JSON_OBJECT ?
			      info.text :
			      SLICE_LIT("{\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION
					"\"}"));
}

static void append_meta(const struct writing *writing)
{
	const struct modern_request *request = writing->request;
	struct buf *out = writing->out;

	buf_append_str(out, "\"_meta\":{");
	append_name(out, SLICE_LIT(MODERN_META "protocolVersion"));
	buf_printf(out, "\"%.*s\"", SLICE_ARG(revision_modern.name));
	if (!request->is_modern || writing->meta.n == 0) /* or it is our own, for a modern client */
		append_client(writing);
	if (request->level >= 0) {
		append_name(out, SLICE_LIT(MODERN_META "logLevel"));
		buf_printf(out, "\"%.*s\"", SLICE_ARG(level_name(request->level)));
	}
	if (request->token.n > 0)
		append_member(out, SLICE_LIT("progressToken"), request->token);
	scan_members(writing->meta, copy_meta_member, (void *)writing);
	buf_append_char(out, '}');
}

static int copy_param(struct slice name, struct json value, void *arg)
{
	const struct writing *writing = arg;
	struct slice cursor = writing->request->cursor;
	struct slice task_id = writing->request->task_id;

	if (!writing->request->is_modern && slice_is_equal(name, SLICE_LIT("task")))
		return 0;
	if (slice_is_equal(name, SLICE_LIT("_meta")) ||
	    slice_is_equal(name, SLICE_LIT("inputResponses")) ||
	    slice_is_equal(name, SLICE_LIT("requestState")))
		return 0;
	if (cursor.n > 0 && slice_is_equal(name, SLICE_LIT("cursor")))
		value.text = cursor;
	if (task_id.n > 0 && slice_is_equal(name, SLICE_LIT("taskId")))
		value.text = task_id;
	append_member(writing->out, name, value.text);
	return 0;
}

void modern_append_params(struct buf *out, const struct upstream_setup *setup, struct slice params,
			  const struct modern_request *request)
{
	struct writing writing = { .out = out,
				   .setup = setup,
				   .request = request,
				   .meta = scan_member(params, SLICE_LIT("_meta")).text };

	CHECK(setup != NULL && out->len == 0);
	buf_append_char(out, '{');
	append_meta(&writing);
	scan_members(params, copy_param, &writing);
	if (request->input_responses.n > 0)
		append_member(out, SLICE_LIT("inputResponses"), request->input_responses);
	if (request->request_state.n > 0)
		append_member(out, SLICE_LIT("requestState"), request->request_state);
	buf_append_char(out, '}');
}

/* ---- what a server says of itself ---- */

static int is_ours(struct slice element, void *arg)
{
	bool *is_found = arg;

	if (scan_type(element) == JSON_STRING &&
	    slice_is_equal(slice_of(element.p + 1, element.n - 2), revision_modern.name))
		*is_found = true;
	return 0;
}

/* Whether an array of revisions includes the modern one. */
static bool has_ours(struct json versions)
{
	bool is_found = false;
	struct error err;

	return versions.type == JSON_ARRAY &&
	       scan_array(versions.text, VERSIONS_MAX, is_ours, &is_found, &err) >= 0 && is_found;
}

bool modern_is_named(struct slice error)
{
	static const char *const path[] = { "data", "supported" };
	long long code;

	return value_read_integer(scan_member(error, SLICE_LIT("code")), &code) == 0 &&
	       code == MCP_UNSUPPORTED_VERSION && has_ours(scan_path(error, path, ARRAY_LEN(path)));
}

/* Tasks of the legacy era are a different protocol. bridging.md §2.5 */
static int copy_capability(struct slice name, struct json value, void *arg)
{
	if (!slice_is_equal(name, SLICE_LIT("tasks")))
		append_member(arg, name, value.text);
	return 0;
}

/* MOD-DISC-01, bridging.md §2.2 */
int modern_read_discovery(struct slice result, const char *name, struct buf *out)
{
	static const char *const path[] = { "_meta", MODERN_META "serverInfo" };
	struct json kind = scan_member(result, SLICE_LIT("resultType"));
	struct json capabilities = scan_member(result, SLICE_LIT("capabilities"));
	struct json instructions = scan_member(result, SLICE_LIT("instructions"));
	struct json info = scan_path(result, path, ARRAY_LEN(path));

	if (!has_ours(scan_member(result, SLICE_LIT("supportedVersions"))) ||
	    capabilities.type != JSON_OBJECT ||
	    (kind.type != JSON_ABSENT &&
	     !slice_is_equal(scan_plain_string(kind), SLICE_LIT("complete"))))
		return -1;
	buf_printf(out, "{\"protocolVersion\":\"%.*s\",\"capabilities\":{",
		   SLICE_ARG(revision_modern.name));
	scan_members(capabilities.text, copy_capability, out);
	buf_append_char(out, '}');
	append_name(out, SLICE_LIT("serverInfo"));
	if (info.type == JSON_OBJECT)
		splice_append(out, info.text, NULL, 0, FLAGS);
	else
		buf_printf(out, "{\"name\":\"%s\",\"version\":\"0\"}", name);
	if (instructions.type == JSON_STRING)
		append_member(out, SLICE_LIT("instructions"), instructions.text);
	buf_append_char(out, '}');
	return 0;
}
