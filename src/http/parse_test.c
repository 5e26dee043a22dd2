/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the request head parser. A case is raw bytes and the outcome; each is fed whole, byte by
 * byte and at every split, from exact heap copies, and must come out the same each time. Refused
 * cases carry a second request behind the head, which nothing may reach.
 */
#include "http/parse.h"

#include "base/buf.h"
#include "base/unit_test.h"

#define INNER "GET /inner HTTP/1.1\r\nHost: inner\r\n\r\n"
#define HOST "Host: h\r\n"

static const struct http_parse_limits limits = { .line_max = 64, .head_max = 512, .fields_max = 8 };

struct outcome {
	long length; /* 0 if all bytes came and nothing was decided */
	int status;
	const char *reason;
	struct http_request request;
};

/* Feeds the first `upto` bytes from a copy without a byte behind it. */
static bool feed(struct slice in, size_t upto, size_t *seen, struct outcome *outcome)
{
	static char *copy;

	free(copy); /* the slices of the last outcome live until now */
	copy = malloc(upto > 0 ? upto : 1);
	memcpy(copy, in.p, upto);
	outcome->length = http_parse_head(slice_of(copy, upto), &limits, seen, &outcome->request,
					  &outcome->status, &outcome->reason);
	return outcome->length != 0;
}

static struct outcome parse_whole(struct slice in)
{
	struct outcome outcome = { .status = 0 };
	size_t seen = 0;

	feed(in, in.n, &seen, &outcome);
	return outcome;
}

static struct outcome parse_bytewise(struct slice in)
{
	struct outcome outcome = { .status = 0 };
	size_t seen = 0;

	for (size_t upto = 1; upto <= in.n; upto++) {
		if (feed(in, upto, &seen, &outcome))
			break;
	}
	return outcome;
}

static struct outcome parse_split(struct slice in, size_t at)
{
	struct outcome outcome = { .status = 0 };
	size_t seen = 0;

	if (!feed(in, at, &seen, &outcome))
		feed(in, in.n, &seen, &outcome);
	return outcome;
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->length, b->length);
	if (a->length < 0) {
		assert_int_equal(a->status, b->status);
		assert_string_equal(a->reason, b->reason);
	}
}

static void check_splits(struct slice in)
{
	struct outcome whole = parse_whole(in), other = parse_bytewise(in);

	check_same(&whole, &other);
	for (size_t at = 1; at < in.n; at++) {
		other = parse_split(in, at);
		check_same(&whole, &other);
	}
}

static void check_refused(struct slice in, int status)
{
	struct outcome outcome;

	check_splits(in);
	outcome = parse_whole(in);
	if (outcome.length != -1 || outcome.status != status)
		print_error("%.*s\n", SLICE_ARG(in));
	assert_int_equal(outcome.length, -1);
	assert_int_equal(outcome.status, status);
	assert_non_null(outcome.reason);
	assert_true(strlen(outcome.reason) > 0);
}

/* The slices are valid until the next parse. */
static struct http_request check_accepted(struct slice in, size_t rest)
{
	struct outcome outcome;

	check_splits(in);
	outcome = parse_whole(in);
	if (outcome.length <= 0)
		print_error("%.*s\n", SLICE_ARG(in));
	assert_int_equal(outcome.length, in.n - rest);
	return outcome.request;
}

static struct http_request accept_head(const char *head)
{
	return check_accepted(slice_str(head), 0);
}

static void assert_slice(struct slice got, const char *wanted)
{
	if (!slice_is_equal(got, slice_str(wanted)))
		print_error("got '%.*s', wanted '%s'\n", SLICE_ARG(got), wanted);
	assert_true(slice_is_equal(got, slice_str(wanted)));
}

struct refusal {
	int status;
	struct slice in;
};

static void check_refusals(const struct refusal *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_refused(cases[i].in, cases[i].status);
}

/* SEC-22 */
static void test_request_line_is_exact(void **state)
{
	static const struct refusal cases[] = {
		{ 400, SLICE(" / HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET \r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /\r\n" HOST "\r\n" INNER) }, /* HTTP/0.9 */
		{ 400, SLICE("GET / \r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET  / HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /  HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1 \r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET\t/ HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /a b HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1 HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("G@T / HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET/ HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("G\0T / HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /\0 HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /\x01 HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /\x7f HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /\r HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\0\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET / XTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/\r\n" HOST "\r\n" INNER) },
		{ 400,
		  SLICE("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n") }, /* one empty line is skipped */
		{ 400, SLICE("\r\r\nGET / HTTP/1.1\r\n" HOST "\r\n") },
		{ 400, SLICE(" \r\nGET / HTTP/1.1\r\n" HOST "\r\n") },
		{ 400, SLICE("\nGET / HTTP/1.1\r\n" HOST "\r\n") },
	};

	check_refusals(cases, ARRAY_LEN(cases));
}

/* SEC-22 */
static void test_other_versions_are_505(void **state)
{
	static const struct refusal cases[] = {
		{ 505, SLICE("GET / HTTP/2.0\r\n" HOST "\r\n" INNER) },
		{ 505, SLICE("GET / HTTP/1.2\r\n" HOST "\r\n" INNER) },
		{ 505, SLICE("GET / HTTP/0.9\r\n" HOST "\r\n" INNER) },
		{ 505, SLICE("GET / HTTP/1.10\r\n" HOST "\r\n" INNER) },
		{ 505, SLICE("GET / HTTP/01.1\r\n" HOST "\r\n" INNER) },
		{ 505, SLICE("GET / http/1.1\r\n" HOST "\r\n" INNER) },
		{ 505, SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") },
	};

	check_refusals(cases, ARRAY_LEN(cases));
}

/* SEC-22: the authority form is for proxies; '*' is for OPTIONS. */
static void test_target_is_a_path_or_a_url(void **state)
{
	static const struct refusal cases[] = {
		{ 400, SLICE("GET http:///a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET http://?a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET http:/h/a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET ftp://h/a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET http://u@h/a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET http://h:x/a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET http://h,i/a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET http://h/a HTTP/1.1\r\n\r\n" INNER) },
		{ 400, SLICE("GET http://h/a HTTP/1.1\r\nHost: u@h\r\n\r\n" INNER) },
		{ 400, SLICE("CONNECT h:443 HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET * HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("OPTIONS ** HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("OPTIONS *?a HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET mcp HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET ?q HTTP/1.1\r\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET /a#b HTTP/1.1\r\n" HOST "\r\n" INNER) },
	};
	struct http_request request;

	check_refusals(cases, ARRAY_LEN(cases));
	request = accept_head("OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
	assert_slice(request.path, "*");
	assert_null(request.query.p);
}

/* RFC 9112 §3.2.2: Host is ignored then. */
static void test_authority_of_a_url(void **state)
{
	static const struct {
		const char *head, *host, *path, *query;
	} rows[] = {
		{ "GET http://a:1/p?q HTTP/1.1\r\nHost: b\r\n\r\n", "a:1", "/p", "q" },
		{ "POST HTTPS://[::1]/p HTTP/1.1\r\nHost: b\r\n\r\n", "[::1]", "/p", NULL },
		{ "GET http://a HTTP/1.1\r\nHost:b\r\n\r\n", "a", "/", NULL },
		{ "GET http://a?q=/ HTTP/1.1\r\nHost: b\r\n\r\n", "a", "/", "q=/" },
		{ "GET http://a/?q HTTP/1.0\r\n\r\n", "a", "/", "q" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_request request = accept_head(rows[i].head);

		assert_slice(request.fields[HTTP_HOST], rows[i].host);
		assert_true(http_has(&request, HTTP_HOST));
		assert_slice(request.path, rows[i].path);
		if (rows[i].query != NULL)
			assert_slice(request.query, rows[i].query);
		else
			assert_null(request.query.p);
	}
}

static void test_target_is_split_at_first_question_mark(void **state)
{
	struct http_request request;

	request = accept_head("GET /a%20b?x=1?y HTTP/1.1\r\n" HOST "\r\n");
	assert_slice(request.target, "/a%20b?x=1?y");
	assert_slice(request.path, "/a%20b");
	assert_slice(request.query, "x=1?y");
	request = accept_head("GET /? HTTP/1.1\r\n" HOST "\r\n");
	assert_slice(request.path, "/");
	assert_int_equal(request.query.n, 0);
	assert_non_null(request.query.p);
	request = accept_head("GET /mcp HTTP/1.1\r\n" HOST "\r\n");
	assert_null(request.query.p);
}

static void test_methods_are_exact_in_case(void **state)
{
	static const struct {
		const char *head;
		enum http_method method;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", HTTP_GET },
		{ "HEAD / HTTP/1.1\r\n" HOST "\r\n", HTTP_HEAD },
		{ "POST / HTTP/1.1\r\n" HOST "\r\n", HTTP_POST },
		{ "DELETE / HTTP/1.1\r\n" HOST "\r\n", HTTP_DELETE },
		{ "OPTIONS / HTTP/1.1\r\n" HOST "\r\n", HTTP_OPTIONS },
		{ "PUT / HTTP/1.1\r\n" HOST "\r\n", HTTP_PUT },
		{ "PATCH / HTTP/1.1\r\n" HOST "\r\n", HTTP_PATCH },
		{ "TRACE / HTTP/1.1\r\n" HOST "\r\n", HTTP_OTHER }, /* SEC-22 */
		{ "CONNECT / HTTP/1.1\r\n" HOST "\r\n", HTTP_OTHER },
		{ "get / HTTP/1.1\r\n" HOST "\r\n", HTTP_OTHER },
		{ "GETS / HTTP/1.1\r\n" HOST "\r\n", HTTP_OTHER },
		{ "!#$%&'*+-.^_`|~9 / HTTP/1.1\r\n" HOST "\r\n", HTTP_OTHER },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(accept_head(cases[i].head).method, cases[i].method);
	assert_slice(accept_head("TRACE / HTTP/1.1\r\n" HOST "\r\n").method_name, "TRACE");
}

/* SEC-20 */
static void test_field_lines_are_exact(void **state)
{
	static const struct refusal cases[] = {
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A\t: b\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A b: c\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n" INNER) }, /* obs-fold */
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n " HOST "\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A: b\n\r\n" INNER) }, /* bare LF */
		{ 400, SLICE("GET / HTTP/1.1\n" HOST "\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\n"
			     "Host: h\n\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A: b\rB: c\r\n\r\n" INNER) }, /* bare CR */
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A: b\r\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A: \r\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "\rA: b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A\r: b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "A\0: b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "\0: b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "(A): b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "\"A\": b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "\xc3\xa4: b\r\n\r\n" INNER) },
	};

	check_refusals(cases, ARRAY_LEN(cases));
}

/* SEC-20: each byte at each place of a value, around the eight-byte step. */
static void test_field_value_bytes(void **state)
{
	for (unsigned int c = 0; c < 256; c++) {
		bool good = (c >= 0x20 && c != 0x7f) || c == '\t';

		for (size_t at = 0; at < 19; at++) {
			char head[] = "GET / HTTP/1.1\r\nHost: h\r\nA: ...................\r\n\r\n";
			struct outcome outcome;

			head[sizeof("GET / HTTP/1.1\r\nHost: h\r\nA: ") - 1 + at] = (char)c;
			outcome = parse_whole(slice_of(head, sizeof(head) - 1));
			assert_int_equal(outcome.length, good ? (long)sizeof(head) - 1 : -1);
			if (!good)
				assert_int_equal(outcome.status, 400);
		}
	}
}

/* FRONT-HTTP-07 */
static void test_names_in_any_case_and_values_trimmed(void **state)
{
	struct http_request request;

	request = accept_head("POST /mcp HTTP/1.1\r\nhOST:h\r\nmcp-method: \t tools/list \t\r\n"
			      "MCP-NAME:  foo \r\nAccept:\r\nX: y\r\n\r\n");
	assert_slice(request.fields[HTTP_HOST], "h");
	assert_slice(request.fields[HTTP_MCP_METHOD], "tools/list");
	assert_slice(request.fields[HTTP_MCP_NAME], "foo");
	assert_true(http_has(&request, HTTP_ACCEPT));
	assert_int_equal(request.fields[HTTP_ACCEPT].n, 0);
	assert_false(http_has(&request, HTTP_ORIGIN));
	assert_int_equal(request.repeated, 0);
	request = accept_head("GET / HTTP/1.1\r\nHost: h\r\nMCP-METHOD: TOOLS/LIST  x\r\n\r\n");
	assert_slice(request.fields[HTTP_MCP_METHOD], "TOOLS/LIST  x");
}

static const char *value_for(size_t field)
{
	switch (field) {
	case HTTP_CONTENT_LENGTH:
		return "7";
	case HTTP_TRANSFER_ENCODING:
		return "chunked";
	case HTTP_EXPECT:
		return "100-continue";
	default:
		return "value";
	}
}

static void test_every_known_field_is_found(void **state)
{
	for (size_t field = 0; field < HTTP_FIELD_COUNT; field++) {
		const char *value = value_for(field);
		struct buf head = { .len = 0 };
		struct http_request request;

		buf_printf(&head, "POST / HTTP/1.1\r\n%s%s: %s\r\n%sX: y\r\n\r\n",
			   field == HTTP_HOST ? "" : HOST, http_field_names[field].p, value,
			   "Acc: a\r\nOrigiN2: b\r\nHosT-: c\r\n");
		request = check_accepted(buf_slice(&head), 0);
		assert_int_equal(request.seen, 1u << field | 1u << HTTP_HOST);
		assert_slice(request.fields[field], value);
		buf_fini(&head);
	}
}

/* FRONT-HTTP-08, SEC-30: the frontend decides; the parser must tell. */
static void test_repeated_fields_are_told(void **state)
{
	static const enum http_field told[] = {
		HTTP_CONTENT_TYPE,     HTTP_ORIGIN,     HTTP_AUTHORIZATION,
		HTTP_MCP_SESSION_ID,   HTTP_MCP_METHOD, HTTP_MCP_PROTOCOL_VERSION,
		HTTP_LAST_EVENT_ID,    HTTP_MCP_NAME,   HTTP_ACCEPT,
		HTTP_CONTENT_ENCODING,
	};

	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		struct buf head = { .len = 0 };
		struct http_request request;

		buf_printf(&head, "POST / HTTP/1.1\r\n" HOST "%s: a\r\n%s: b\r\n\r\n",
			   http_field_names[told[i]].p, http_field_names[told[i]].p);
		request = check_accepted(buf_slice(&head), 0);
		assert_int_equal(request.repeated, 1u << told[i]);
		assert_slice(request.fields[told[i]], "a");
		buf_fini(&head);
	}
}

/* MOD-HDR-04 */
static void test_params_are_found(void **state)
{
	static const struct {
		const char *lines;  /* behind Host */
		const char *params; /* NULL: none */
		const char *found;
	} cases[] = {
		{ "", NULL, "" },
		{ "Mcp-Param: a\r\n", NULL, "" },
		{ "Mcp-Param-: a\r\n", NULL, "" },
		{ "X-Mcp-Param-A: a\r\n", NULL, "" },
		{ "X: Mcp-Param-A: a\r\n", NULL, "" },
		{ "Mcp-Param-A: a\r\n", "Mcp-Param-A: a\r\n", "A=a;" },
		{ "mcp-pARAM-a:\r\n", "mcp-pARAM-a:\r\n", "a=;" },
		{ "Mcp-Param-A: \t a:b \t\r\nX: y\r\n", "Mcp-Param-A: \t a:b \t\r\n", "A=a:b;" },
		{ "Y: z\r\nMcp-Param-B: b\r\nMcp-Name: n\r\nMCP-PARAM-A: a\r\nX: y\r\n",
		  "Mcp-Param-B: b\r\nMcp-Name: n\r\nMCP-PARAM-A: a\r\n", "B=b;A=a;" },
		{ "Mcp-Param-A: 1\r\nMcp-Param-A: 2\r\nmcp-param-a: 3\r\n",
		  "Mcp-Param-A: 1\r\nMcp-Param-A: 2\r\nmcp-param-a: 3\r\n", "A=1;A=2;a=3;" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf head = { .len = 0 }, found = { .len = 0 };
		struct slice rest, name, value;
		struct http_request request;

		buf_printf(&head, "POST / HTTP/1.1\r\n" HOST "%s\r\n", cases[i].lines);
		request = check_accepted(buf_slice(&head), 0);
		assert_int_equal(request.params.p != NULL, cases[i].params != NULL);
		if (cases[i].params != NULL)
			assert_slice(request.params, cases[i].params);
		rest = request.params;
		while (http_next_param(&rest, &name, &value))
			buf_printf(&found, "%.*s=%.*s;", SLICE_ARG(name), SLICE_ARG(value));
		assert_slice(buf_slice(&found), cases[i].found);
		buf_fini(&head);
		buf_fini(&found);
	}
}

static void test_asked_params(void **state)
{
	static const struct {
		const char *asked;
		const char *found;
	} cases[] = {
		{ "", "" },
		{ "mcp-param-a", "mcp-param-a;" },
		{ "accept, MCP-Param-A ,x,Mcp-Param-b-c,", "MCP-Param-A;Mcp-Param-b-c;" },
		{ "mcp-param-", "" },
		{ "mcp-param-a b, mcp-param-c:d, mcp-param-\"e\", xmcp-param-f", "" },
		{ ",,mcp-param-a,,", "mcp-param-a;" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice rest = slice_str(cases[i].asked), name;
		struct buf found = { .len = 0 };

		while (http_next_asked_param(&rest, &name))
			buf_printf(&found, "%.*s;", SLICE_ARG(name));
		assert_slice(buf_slice(&found), cases[i].found);
		buf_fini(&found);
	}
}

static void test_a_copy_is_whole(void **state)
{
	static const char head[] = "POST /a?b HTTP/1.1\r\nHost: h\r\nMcp-Param-A: 1\r\n"
				   "Accept:\r\nMcp-Param-B: 2\r\nX: y\r\n\r\n";
	struct http_request request, copy;
	size_t size;
	char *text;

	request = accept_head(head);
	text = http_request_copy(&request, &copy, &size);
	accept_head("GET /other HTTP/1.1\r\nHost: other\r\n\r\n"); /* ends the first's slices */
	assert_slice(copy.method_name, "POST");
	assert_slice(copy.target, "/a?b");
	assert_slice(copy.path, "/a");
	assert_slice(copy.query, "b");
	assert_slice(copy.fields[HTTP_HOST], "h");
	assert_slice(copy.params, "Mcp-Param-A: 1\r\nAccept:\r\nMcp-Param-B: 2\r\n");
	assert_true(http_has(&copy, HTTP_ACCEPT));
	free(text);
	request = accept_head("GET /other HTTP/1.1\r\nHost: other\r\n\r\n");
	text = http_request_copy(&request, &copy, &size);
	assert_null(copy.params.p);
	assert_slice(copy.fields[HTTP_HOST], "other");
	free(text);
}

/* SEC-23 */
static void test_host_is_one_and_well_formed(void **state)
{
	static const struct refusal cases[] = {
		{ 400, SLICE("GET / HTTP/1.1\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost:\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: :80\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: []\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n" INNER) },
	};
	static const char *const good[] = {
		"GET / HTTP/1.1\r\nHost: localhost:8808\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.example.\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a:\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:80\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
	};

	check_refusals(cases, ARRAY_LEN(cases));
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		accept_head(good[i]);
}

/* SEC-20 */
static void test_content_length_is_one_number(void **state)
{
	static const struct refusal cases[] = {
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Content-Length: 5\r\nContent-Length: 5\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Content-Length: 5\r\ncontent-length: 6\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: -0\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5 5\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5.0\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\0\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Content-Length: 1e1\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Content-Length: 18446744073709551621\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Content-Length: 00000000000000000005\r\n\r\n" INNER) },
		{ 400, SLICE("GET / HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n" INNER) },
	};
	struct http_request request;

	check_refusals(cases, ARRAY_LEN(cases));
	request = accept_head("POST / HTTP/1.1\r\n" HOST
			      "Content-Length: 9999999999999999999\r\n\r\n");
	assert_int_equal(request.body, HTTP_BODY_LENGTH);
	assert_true(request.content_length == 9999999999999999999u);
	request = accept_head("GET / HTTP/1.0\r\nContent-Length:\t0 \r\n\r\n");
	assert_int_equal(request.body, HTTP_BODY_LENGTH);
	assert_int_equal(request.content_length, 0);
	assert_int_equal(accept_head("POST / HTTP/1.1\r\n" HOST "\r\n").body, HTTP_BODY_NONE);
}

/* SEC-20 */
static void test_transfer_coding_is_a_single_chunked(void **state)
{
	static const struct refusal cases[] = {
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: x\r\nContent-Length: 5\r\n\r\n" INNER) },
		{ 400,
		  SLICE("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: gzip, chunked\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: chunked, chunked\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: chunked, identity\r\n\r\n" INNER) },
		{ 501,
		  SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: chunked;x=y\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: \"chunked\"\r\n\r\n" INNER) },
		{ 501,
		  SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n" INNER) },
		{ 501,
		  SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: ,chunked\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n" INNER) },
		{ 501,
		  SLICE("POST / HTTP/1.1\r\n" HOST
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" INNER) },
		{ 501, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n" INNER) },
		{ 400, SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
			     "chunked\r\n\r\n" INNER) },
		{ 400,
		  SLICE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n" INNER) },
	};

	check_refusals(cases, ARRAY_LEN(cases));
	assert_int_equal(accept_head("POST / HTTP/1.1\r\n" HOST
				     "transfer-encoding:  CHUNKED\t\r\n\r\n")
				 .body,
			 HTTP_BODY_CHUNKED);
	assert_int_equal(accept_head("GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n")
				 .body,
			 HTTP_BODY_CHUNKED);
}

static void test_expect_knows_100_continue_only(void **state)
{
	static const struct refusal cases[] = {
		{ 417, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Content-Length: 5\r\nExpect: x\r\n\r\n" INNER) },
		{ 417, SLICE("POST / HTTP/1.1\r\n" HOST "Expect:\r\n\r\n" INNER) },
		{ 417, SLICE("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue, x\r\n\r\n" INNER) },
		{ 417, SLICE("POST / HTTP/1.1\r\n" HOST
			     "Expect: 100-continue\r\nExpect: x\r\n\r\n" INNER) },
		{ 417, SLICE("POST / HTTP/1.0\r\n" HOST "Expect: x\r\n\r\n" INNER) },
	};

	check_refusals(cases, ARRAY_LEN(cases));
	assert_true(accept_head("POST / HTTP/1.1\r\n" HOST
				"Content-Length: 5\r\nExpect: 100-Continue\r\n\r\n")
			    .expects_continue);
	assert_true(accept_head("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n"
				"Expect: 100-continue\r\n\r\n")
			    .expects_continue);
	assert_false(accept_head("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n")
			     .expects_continue);
	assert_false(
		accept_head("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
			.expects_continue);
}

static void test_connection_is_a_list(void **state)
{
	static const struct {
		const char *head;
		bool keep_alive;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\n" HOST
		  "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
		  true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: not close\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "connection: CLOSE\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: x ,\tclose , y\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: ,,close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: x\r\nConnection: close\r\n\r\n", false },
		{ "GET / HTTP/1.0\r\n\r\n", false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(accept_head(cases[i].head).keep_alive, cases[i].keep_alive);
}

static void test_one_empty_line_is_skipped(void **state)
{
	struct http_request request;

	request = check_accepted(slice_str("\r\nGET /x HTTP/1.1\r\n" HOST "\r\nrest"), 4);
	assert_slice(request.path, "/x");
}

static void test_incomplete_heads_ask_for_more(void **state)
{
	struct slice head = SLICE("\r\nGET / HTTP/1.1\r\n" HOST "\r\n");
	struct http_request request;
	const char *reason;
	size_t seen = 0;
	int status;

	for (size_t n = 0; n < head.n; n++) {
		struct slice part = slice_of(head.p, n);

		assert_int_equal(parse_whole(part).length, 0);
		assert_int_equal(parse_bytewise(part).length, 0);
		assert_int_equal(http_parse_head(part, &limits, &seen, &request, &status, &reason),
				 0);
		assert_int_equal(seen, n); /* nothing is sought twice */
	}
}

static void test_next_request_is_left_alone(void **state)
{
	check_accepted(slice_str("GET / HTTP/1.1\r\n" HOST "\r\n" INNER), strlen(INNER));
	check_accepted(slice_of("GET / HTTP/1.1\r\n" HOST "\r\n\0\n\r\xff", 31), 4);
}

/* `total` bytes: start, then 'a's, then tail. */
static struct buf padded(const char *start, size_t total, const char *tail)
{
	struct buf buf = { .len = 0 };

	buf_append_str(&buf, start);
	while (buf.len + strlen(tail) < total)
		buf_append_char(&buf, 'a');
	buf_append_str(&buf, tail);
	return buf;
}

/* SEC-28, DEF-10 */
static void test_long_request_line_is_414(void **state)
{
	const char *tail = " HTTP/1.1\r\n" HOST "\r\n";
	size_t most = limits.line_max + strlen("\r\n" HOST "\r\n");
	struct buf fits = padded("GET /", most, tail), over = padded("GET /", most + 1, tail);
	struct buf lead = padded("\r\nGET /", most + 2, tail);
	struct buf endless = padded("GET /", limits.line_max + 2, "");
	struct buf nonsense = padded("\1\2", limits.line_max + 2, "");

	check_accepted(buf_slice(&fits), 0);
	check_accepted(buf_slice(&lead), 0);
	check_refused(buf_slice(&over), 414);
	check_refused(buf_slice(&endless), 414); /* without its end */
	check_refused(buf_slice(&nonsense), 414);
	buf_fini(&fits);
	buf_fini(&lead);
	buf_fini(&over);
	buf_fini(&endless);
	buf_fini(&nonsense);
}

/* SEC-28, DEF-10, FRONT-HTTP-09 */
static void test_long_head_is_431(void **state)
{
	const char *start = "GET / HTTP/1.1\r\n" HOST "A: ";
	struct buf fits = padded(start, limits.head_max, "\r\n\r\n");
	struct buf over = padded(start, limits.head_max + 1, "\r\n\r\n");
	struct buf endless = padded(start, limits.head_max, "");
	struct buf invalid = padded("GET / HTTP/1.1\r\n : \1", limits.head_max, "");

	check_accepted(buf_slice(&fits), 0);
	check_refused(buf_slice(&over), 431);
	check_refused(buf_slice(&endless), 431);
	check_refused(buf_slice(&invalid), 431);
	buf_fini(&fits);
	buf_fini(&over);
	buf_fini(&endless);
	buf_fini(&invalid);
}

/* SEC-28, DEF-10 */
static void test_many_fields_are_431(void **state)
{
	struct slice seven = SLICE("A:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:\r\nG:\r\n");
	struct buf fits = { .len = 0 }, over = { .len = 0 };

	buf_printf(&fits, "GET / HTTP/1.1\r\n" HOST "%s\r\n", seven.p);
	buf_printf(&over, "GET / HTTP/1.1\r\n" HOST "%sH:\r\n\r\n", seven.p);
	check_accepted(buf_slice(&fits), 0);
	check_refused(buf_slice(&over), 431);
	buf_fini(&fits);
	buf_fini(&over);
}

/* A sender of bare line feeds waits for an answer; it gets one before its time is up. */
static void test_bare_line_feed_is_refused_at_once(void **state)
{
	check_refused(slice_str("GET / HTTP/1.1\n"), 400);
	check_refused(slice_str("GET / HTTP/1.1\r\n" HOST "\n"), 400);
	check_refused(slice_str("\n"), 400);
}

/* FRONT-HTTP-03 */
static void test_accept_ranges(void **state)
{
	static const struct {
		const char *accept;
		bool json;
		bool events;
	} cases[] = {
		{ "application/json, text/event-stream", true, true },
		{ "text/event-stream,application/json", true, true },
		{ "Application/JSON", true, false },
		{ "text/event-stream", false, true },
		{ "*/*", true, true },
		{ "text/*", false, true },
		{ "TEXT/*;q=0.1", false, true },
		{ "text/html, image/gif, *; q=.2, */*; q=.2", true, true },
		{ "application/json;q=0", false, false },
		{ "application/json; q=0.000, */*", false, true },
		{ "*/*, application/json;q=0", false, true },
		{ "text/*;q=0, text/event-stream", false, true },
		{ "application/json;q=0.001", true, false },
		{ "application/json;charset=utf-8;Q=0", false, false },
		{ "application/json;x=\"a,q=0;\\\",\", text/event-stream", true, true },
		{ "text/plain;x=\"a, application/json\"", false, false },
		{ "application/jsonx, xapplication/json", false, false },
		{ "application/json-seq, text/event", false, false },
		{ "application", false, false },
		{ "/*, *", false, false },
		{ "text /event-stream", false, false },
		{ "", false, false },
		{ ",,;,", false, false },
		{ "application/json;q=0, application/json", true, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice accept = slice_str(cases[i].accept);

		assert_int_equal(http_accepts(accept, "application/json"), cases[i].json);
		assert_int_equal(http_accepts(accept, "text/event-stream"), cases[i].events);
	}
	assert_false(http_accepts((struct slice){ NULL, 0 }, "application/json"));
}

/* Both types asked for at once get what each of them gets alone. */
static void test_accepted_types(void **state)
{
	static const char *const cases[] = {
		"application/json, text/event-stream",
		"text/event-stream, application/json",
		"application/json, text/event-strea",
		"application/json",
		"text/event-stream",
		"text/html",
		"application/json,text/event-stream",
		"*/*",
	};
	struct http_request request = { .seen = 1u << HTTP_ACCEPT };
	struct http_accepted accepted;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		request.fields[HTTP_ACCEPT] = slice_str(cases[i]);
		accepted = http_request_accepted(&request);
		assert_int_equal(accepted.json,
				 http_accepts(slice_str(cases[i]), "application/json"));
		assert_int_equal(accepted.events,
				 http_accepts(slice_str(cases[i]), "text/event-stream"));
	}
	request = (struct http_request){ .seen = 0 };
	accepted = http_request_accepted(&request);
	assert_true(accepted.json && accepted.events);
}

/* FRONT-HTTP-06, SEC-02 */
static void test_media_type(void **state)
{
	static const struct {
		const char *value;
		bool good;
	} cases[] = {
		{ "application/json", true },
		{ "Application/JSON", true },
		{ "application/json;charset=utf-8", true },
		{ "application/json ; Charset=\"UTF-8\"", true },
		{ "application/json; profile=x; charset=utf-8", true },
		{ "application/json;", true },
		{ "application/json; x=\"a;charset=latin1,\"", true },
		{ "application/json; charset=utf-16", false },
		{ "application/json; charset=", false },
		{ "application/json; charset=utf-8; charset=latin1", false },
		{ "application/json; charset=iso-8859-1", false },
		{ "application/json, text/plain", false },
		{ "application/json; x=y, text/plain", false },
		{ "text/plain", false },
		{ "text/plain; application/json", false },
		{ "application/x-www-form-urlencoded", false },
		{ "multipart/form-data; boundary=application/json", false },
		{ "application/json-seq", false },
		{ "application/jsonx", false },
		{ "application/*", false },
		{ "application /json", false },
		{ "", false },
		{ ";", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(http_is_media_type(slice_str(cases[i].value), "application/json"),
				 cases[i].good);
	assert_false(http_is_media_type((struct slice){ NULL, 0 }, "application/json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_line_is_exact),
		cmocka_unit_test(test_other_versions_are_505),
		cmocka_unit_test(test_target_is_a_path_or_a_url),
		cmocka_unit_test(test_authority_of_a_url),
		cmocka_unit_test(test_target_is_split_at_first_question_mark),
		cmocka_unit_test(test_methods_are_exact_in_case),
		cmocka_unit_test(test_field_lines_are_exact),
		cmocka_unit_test(test_field_value_bytes),
		cmocka_unit_test(test_names_in_any_case_and_values_trimmed),
		cmocka_unit_test(test_every_known_field_is_found),
		cmocka_unit_test(test_repeated_fields_are_told),
		cmocka_unit_test(test_params_are_found),
		cmocka_unit_test(test_asked_params),
		cmocka_unit_test(test_a_copy_is_whole),
		cmocka_unit_test(test_host_is_one_and_well_formed),
		cmocka_unit_test(test_content_length_is_one_number),
		cmocka_unit_test(test_transfer_coding_is_a_single_chunked),
		cmocka_unit_test(test_expect_knows_100_continue_only),
		cmocka_unit_test(test_connection_is_a_list),
		cmocka_unit_test(test_one_empty_line_is_skipped),
		cmocka_unit_test(test_incomplete_heads_ask_for_more),
		cmocka_unit_test(test_next_request_is_left_alone),
		cmocka_unit_test(test_long_request_line_is_414),
		cmocka_unit_test(test_long_head_is_431),
		cmocka_unit_test(test_many_fields_are_431),
		cmocka_unit_test(test_bare_line_feed_is_refused_at_once),
		cmocka_unit_test(test_accept_ranges),
		cmocka_unit_test(test_accepted_types),
		cmocka_unit_test(test_media_type),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
