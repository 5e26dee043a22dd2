/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the ladder of modern requests. The input is lines: MCP-Protocol-Version, Mcp-Method, Mcp-Name, a tool's input
 * schema, the body; then Mcp-Param-* fields as `Name: value`, without this prefix. A line of "-" alone is an absent field.
 * What must hold: no refusal is half filled; what passes says the same in the head and in the body. That is compared here by
 * a parser of JSON that builds a tree, and by writing base64 instead of reading it.
 */
/* Both parsers have names like JSON_ARRAY. */
#define json_type jansson_type
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_INTEGER JANSSON_INTEGER
#define JSON_REAL JANSSON_REAL
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef json_type
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_INTEGER
#undef JSON_REAL
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "endpoint/modern.h"
#include "jsonrpc/param_headers.h"
#include "mcp/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX "io.modelcontextprotocol/"

static const struct scan_limits limits = { .depth_max = 128, .id_max = 256 };

struct input {
	struct modern_head head;
	struct slice schema;
	struct slice body;
};

static struct slice cut_field(struct slice *rest)
{
	struct slice line = slice_trim(slice_cut(rest, '\n'));

	return slice_is_equal(line, SLICE_LIT("-")) ? slice_of(NULL, 0) : line;
}

static bool is_value(struct slice value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* Lines as a parsed head has them. */
static void append_params(struct buf *out, struct slice rest)
{
	while (rest.n > 0) {
		struct slice line = slice_cut(&rest, '\n');
		const char *colon = line.n > 0 ? memchr(line.p, ':', line.n) : NULL;

		if (colon == NULL || colon == line.p || !is_value(line))
			continue;
		buf_append_str(out, "mcp-PARAM-");
		buf_append_slice(out, line);
		buf_append_str(out, "\r\n");
	}
}

/* ---- what is right, said another way ---- */

static bool is_type(const json_t *value, jansson_type type)
{
	return value != NULL && json_typeof(value) == type;
}

static struct slice string_of(const json_t *value)
{
	return slice_of(json_string_value(value), json_string_length(value));
}

/* Whether a field with this value stands for the text. */
static bool stands_for(struct slice field, struct slice text)
{
	struct buf wanted = { 0 };
	char *code = mem_alloc(text.n / 3 * 4 + 5);
	int length =
		EVP_EncodeBlock((unsigned char *)code, (const unsigned char *)text.p, (int)text.n);
	bool is_code;

	buf_append_str(&wanted, "=?base64?");
	buf_append(&wanted, code, (size_t)length);
	buf_append_str(&wanted, "?=");
	is_code = slice_is_equal(buf_slice(&wanted), field);
	buf_fini(&wanted);
	free(code);
	if (is_code)
		return true;
	if (slice_has_prefix(field, SLICE_LIT("=?base64?")) && field.n > 9 &&
	    memcmp(field.p + field.n - 2, "?=", 2) == 0)
		return false;
	for (size_t i = 0; i < field.n; i++)
		if ((unsigned char)field.p[i] > 0x7e)
			return false;
	return slice_is_equal(field, text);
}

/* A number, read from a field by the C library. */
static bool stands_for_number(struct slice field, const json_t *value)
{
	struct buf said = { 0 };
	char *end;
	bool is_same;

	CHECK(modern_decode_value(field, &said));
	is_same = (is_type(value, JANSSON_INTEGER) || is_type(value, JANSSON_REAL)) &&
		  strtod(buf_terminate(&said), &end) == json_number_value(value) && *end == '\0' &&
		  said.len > 0;
	buf_fini(&said);
	return is_same;
}

static void check_field(struct slice lines, const char *name, const json_t *value)
{
	struct slice field = { NULL, 0 };
	size_t count = 0;

	while (lines.n > 0) {
		struct slice line = slice_cut(&lines, '\n');
		struct slice found = slice_cut(&line, ':');

		found = slice_of(found.p + 10, found.n - 10); /* behind Mcp-Param- */
		line.n--;                                     /* its carriage return */
		if (!slice_is_equal_nocase(found, slice_str(name)))
			continue;
		field = slice_trim(line);
		count++;
	}
	if (value == NULL || is_type(value, JANSSON_NULL)) {
		CHECK(count == 0);
		return;
	}
	CHECK(count == 1);
	if (is_type(value, JANSSON_STRING))
		CHECK(stands_for(field, string_of(value)));
	else if (is_type(value, JANSSON_TRUE))
		CHECK(stands_for(field, SLICE_LIT("true")));
	else if (is_type(value, JANSSON_FALSE))
		CHECK(stands_for(field, SLICE_LIT("false")));
	else
		CHECK(stands_for_number(field, value));
}

/* The annotations of a schema of which all count: they stand nowhere else. */
static void check_properties(const json_t *schema, const json_t *arguments, struct slice lines)
{
	const char *name;
	json_t *property;

	json_object_foreach(json_object_get(schema, "properties"), name, property)
	{
		const json_t *value = json_object_get(arguments, name);
		const json_t *header = json_object_get(property, "x-mcp-header");

		if (header != NULL)
			check_field(lines, json_string_value(header), value);
		check_properties(property, value, lines);
	}
}

static const char *mirrored_by(const char *method)
{
	if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0)
		return "name";
	if (strcmp(method, "resources/read") == 0)
		return "uri";
	return strncmp(method, "tasks/", 6) == 0 ? "taskId" : NULL;
}

static void check_passed(const struct modern_head *head, const json_t *tree)
{
	const char *method = json_string_value(json_object_get(tree, "method"));
	const json_t *params = json_object_get(tree, "params");
	const json_t *meta = json_object_get(params, "_meta");
	const char *mirrored = mirrored_by(method);

	CHECK(!head->is_repeated);
	CHECK(slice_is_equal(head->version, SLICE_LIT("2026-07-28")));
	CHECK(slice_is_equal(head->version,
			     string_of(json_object_get(meta, PREFIX "protocolVersion"))));
	CHECK(slice_is_equal(head->method, slice_str(method)));
	CHECK(is_type(json_object_get(meta, PREFIX "clientCapabilities"), JANSSON_OBJECT));
	CHECK(strcmp(method, "initialize") != 0 && strcmp(method, "ping") != 0);
	if (mirrored != NULL) {
		CHECK(is_type(json_object_get(params, mirrored), JANSSON_STRING));
		CHECK(stands_for(head->name, string_of(json_object_get(params, mirrored))));
	}
}

/* ---- */

static void check_problem(const struct modern_problem *problem)
{
	bool is_about_versions = problem->requested.n > 0;

	CHECK(problem->text != NULL && (problem->status == 400 || problem->status == 404));
	CHECK((problem->status == 404) == (problem->code == MCP_METHOD_NOT_FOUND));
	CHECK((problem->data != NULL) == (problem->code == MCP_MISSING_CAPABILITY));
	CHECK(problem->code != MCP_UNSUPPORTED_VERSION || is_about_versions);
	CHECK(!is_about_versions || problem->code == MCP_UNSUPPORTED_VERSION ||
	      problem->code == MCP_METHOD_NOT_FOUND);
	CHECK(!problem->is_legacy_claim || is_about_versions);
}

static void check_era(const struct input *input, const struct envelope *env, const json_t *tree)
{
	struct modern_post post = { .version = input->head.version, .messages = env, .count = 1 };
	const json_t *meta = json_object_get(json_object_get(tree, "params"), "_meta");
	bool is_claimed = json_object_get(meta, PREFIX "protocolVersion") != NULL;
	bool is_named = slice_is_equal(post.version, SLICE_LIT("2026-07-28"));

	CHECK((modern_classify(&post) == MODERN_ERA_MODERN) == (is_claimed || is_named));
	post.has_session = true;
	CHECK(modern_classify(&post) != MODERN_ERA_MODERN || is_claimed || is_named);
	CHECK(!is_named || modern_classify(&post) == MODERN_ERA_MODERN);
}

static void check_request(const struct input *input, const struct envelope *env, const json_t *tree,
			  bool has_tasks)
{
	struct modern_problem problem = { .status = 0 };

	if (modern_check(&input->head, env, has_tasks, &problem)) {
		if (tree != NULL && env->kind == ENVELOPE_REQUEST)
			check_passed(&input->head, tree);
	} else {
		check_problem(&problem);
	}
}

static void check_params(const struct input *input, const struct envelope *env, const json_t *tree)
{
	struct modern_problem problem = { .status = 0 };
	const char *why = param_headers_check(input->schema);
	json_t *schema;

	if (!modern_check_params(&input->head, env, input->schema, &problem)) {
		CHECK(why == NULL);
		check_problem(&problem);
		return;
	}
	schema = json_loadb(input->schema.p, input->schema.n,
			    JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	if (why == NULL && schema != NULL && tree != NULL)
		check_properties(schema,
				 json_object_get(json_object_get(tree, "params"), "arguments"),
				 input->head.params);
	json_decref(schema);
}

/* A schema comes from a message that was scanned whole. */
static bool is_json(struct slice schema)
{
	struct buf out = { 0 };
	struct envelope env;
	struct error err;
	bool is_good;

	buf_append_str(&out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
	buf_append_slice(&out, schema);
	buf_append_char(&out, '}');
	is_good = scan_envelope(buf_slice(&out), &limits, 0, &env, &err) == 0 &&
		  env.result.text.n == slice_trim(schema).n;
	buf_fini(&out);
	return is_good;
}

static void check_all(const struct input *input)
{
	struct envelope env;
	struct error err;
	json_t *tree;

	if (scan_envelope(input->body, &limits, 0, &env, &err) < 0)
		return;
	tree = json_loadb(input->body.p, input->body.n, JSON_ALLOW_NUL, NULL);
	if (tree != NULL)
		check_era(input, &env, tree);
	check_request(input, &env, tree, false);
	check_request(input, &env, tree, true);
	if (is_json(input->schema))
		check_params(input, &env, tree);
	json_decref(tree);
}

/* A copy behind which no byte is there to be read. */
static struct slice copy_exactly(struct slice s)
{
	char *copy = malloc(s.n > 0 ? s.n : 1);

	if (s.n > 0)
		memcpy(copy, s.p, s.n);
	return slice_of(copy, s.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of((const char *)data, size);
	struct buf params = { 0 };
	struct modern_head head;
	struct input input;
	char *kept;

	head.version = cut_field(&rest);
	head.method = cut_field(&rest);
	head.name = cut_field(&rest);
	head.is_repeated = size % 64 == 0;
	input.schema = copy_exactly(cut_field(&rest));
	input.body = copy_exactly(slice_cut(&rest, '\n'));
	append_params(&params, rest);
	head.params = buf_slice(&params);
	kept = modern_head_copy(&head, &input.head);
	check_all(&input);
	free(kept);
	free((void *)(uintptr_t)input.schema.p);
	free((void *)(uintptr_t)input.body.p);
	buf_fini(&params);
	return 0;
}
