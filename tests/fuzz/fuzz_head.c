/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the request head parser. The first byte chooses limits and a split; the rest is the
 * input. What must hold: whole, byte by byte and in two pieces give the same outcome; slices lie
 * inside the head; an accepted head alone parses to the same again; a head that is accepted keeps
 * the rules that a smuggled request would break, checked here in the plainest way.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	long length;
	int status;
	const char *reason;
	struct http_request request;
};

static const struct http_parse_limits limits[] = {
	{ .line_max = 8192, .head_max = 32768, .fields_max = 64 },
	{ .line_max = 32, .head_max = 128, .fields_max = 4 },
	{ .line_max = 64, .head_max = 60, .fields_max = 1 },
	{ .line_max = 0, .head_max = 4, .fields_max = 0 },
};

static bool feed(struct slice in, const struct http_parse_limits *limit, size_t *seen,
		 struct outcome *outcome)
{
	outcome->length = http_parse_head(in, limit, seen, &outcome->request, &outcome->status,
					  &outcome->reason);
	return outcome->length != 0;
}

/* The first piece, then grows by `step`. */
static struct outcome parse_steps(struct slice in, const struct http_parse_limits *limit,
				  size_t first, size_t step)
{
	struct outcome outcome = { .length = 0 };
	size_t seen = 0;

	for (size_t upto = first; upto < in.n; upto += step) {
		if (feed(slice_of(in.p, upto), limit, &seen, &outcome))
			return outcome;
	}
	feed(in, limit, &seen, &outcome);
	return outcome;
}

static void check_same_slice(struct slice a, const char *base_a, struct slice b, const char *base_b)
{
	CHECK(a.n == b.n);
	CHECK((a.p == NULL) == (b.p == NULL));
	CHECK(a.p == NULL || a.p - base_a == b.p - base_b);
}

static void check_same(const struct outcome *a, const char *base_a, const struct outcome *b,
		       const char *base_b)
{
	const struct http_request *x = &a->request, *y = &b->request;

	CHECK(a->length == b->length);
	if (a->length < 0)
		CHECK(a->status == b->status && a->reason == b->reason);
	if (a->length <= 0)
		return;
	CHECK(x->method == y->method && x->minor_version == y->minor_version);
	CHECK(x->keep_alive == y->keep_alive && x->expects_continue == y->expects_continue);
	CHECK(x->body == y->body && x->content_length == y->content_length);
	CHECK(x->seen == y->seen && x->repeated == y->repeated);
	check_same_slice(x->method_name, base_a, y->method_name, base_b);
	check_same_slice(x->target, base_a, y->target, base_b);
	check_same_slice(x->path, base_a, y->path, base_b);
	check_same_slice(x->query, base_a, y->query, base_b);
	check_same_slice(x->params, base_a, y->params, base_b);
	for (size_t i = 0; i < HTTP_FIELD_COUNT; i++)
		check_same_slice(x->fields[i], base_a, y->fields[i], base_b);
}

static void check_inside(struct slice part, struct slice head)
{
	if (part.p == NULL) {
		CHECK(part.n == 0);
		return;
	}
	CHECK(part.p >= head.p && part.p + part.n <= head.p + head.n);
	for (size_t i = 0; i < part.n; i++)
		CHECK(part.p[i] != '\r' && part.p[i] != '\n' && part.p[i] != '\0');
}

static void check_slices(const struct http_request *request, struct slice head)
{
	check_inside(request->method_name, head);
	check_inside(request->target, head);
	check_inside(request->path, head);
	check_inside(request->query, head);
	for (size_t i = 0; i < HTTP_FIELD_COUNT; i++) {
		check_inside(request->fields[i], head);
		CHECK(http_has(request, (enum http_field)i) == (request->fields[i].p != NULL));
	}
	CHECK((request->repeated & ~request->seen) == 0);
}

/* Line ends are CRLF, the first empty line is the end, nothing else below space but tabs. */
static void check_lines(struct slice head)
{
	CHECK(head.n >= 16 && memcmp(head.p + head.n - 4, "\r\n\r\n", 4) == 0);
	CHECK(memmem(head.p, head.n - 1, "\r\n\r\n", 4) == NULL);
	for (size_t i = 0; i < head.n; i++) {
		unsigned char c = (unsigned char)head.p[i];

		if (c == '\r')
			CHECK(head.p[i + 1] == '\n');
		else if (c == '\n')
			CHECK(i > 0 && head.p[i - 1] == '\r');
		else
			CHECK((c >= 0x20 && c != 0x7f) || c == '\t');
		if (c == '\n' && i + 1 < head.n)
			CHECK(head.p[i + 1] != ' ' && head.p[i + 1] != '\t');
	}
}

/* How many lines begin with this name and a colon, in any case. */
static unsigned int count_lines(struct slice head, struct slice name)
{
	unsigned int count = 0;
	struct slice line;

	while (head.n > 0) {
		line = slice_cut(&head, '\n');
		if (line.n > name.n && line.p[name.n] == ':' &&
		    slice_is_equal_nocase(slice_of(line.p, name.n), name))
			count++;
	}
	return count;
}

static bool begins_with(struct slice text, struct slice beginning)
{
	return text.n >= beginning.n &&
	       slice_is_equal_nocase(slice_of(text.p, beginning.n), beginning);
}

/* A path, a URL with one, or the '*' of OPTIONS. RFC 9112 §3.2 */
static void check_target(const struct http_request *request)
{
	struct slice target = request->target;

	CHECK(target.n > 0 && request->path.n > 0);
	if (slice_is_equal(target, SLICE_LIT("*")))
		CHECK(request->method == HTTP_OPTIONS && slice_is_equal(request->path, target));
	else
		CHECK(request->path.p[0] == '/');
	if (target.p[0] != '/' && target.p[0] != '*')
		CHECK(begins_with(target, SLICE_LIT("http://")) ||
		      begins_with(target, SLICE_LIT("https://")));
	CHECK(memchr(request->path.p, '?', request->path.n) == NULL);
}

static void check_framing(const struct http_request *request, struct slice head)
{
	unsigned int lengths = count_lines(head, SLICE_LIT("content-length"));
	unsigned int codings = count_lines(head, SLICE_LIT("transfer-encoding"));
	unsigned int hosts = count_lines(head, SLICE_LIT("host"));
	bool has_authority = request->target.p[0] != '/' && request->target.p[0] != '*';

	CHECK(lengths + codings <= 1);
	CHECK((request->body == HTTP_BODY_LENGTH) == (lengths == 1));
	CHECK((request->body == HTTP_BODY_CHUNKED) == (codings == 1));
	CHECK(hosts <= 1 && (hosts == 1 || request->minor_version == 0));
	CHECK(request->body != HTTP_BODY_CHUNKED || request->minor_version == 1);
	check_target(request);
	for (size_t i = 0; i < HTTP_FIELD_COUNT; i++) {
		unsigned int count = count_lines(head, http_field_names[i]);

		/* The authority of a URL counts as Host, whether there is one or not. RFC 9112 §3.2.2 */
		CHECK((count > 0 || (i == HTTP_HOST && has_authority)) ==
		      http_has(request, (enum http_field)i));
		CHECK((count > 1) == ((request->repeated >> i & 1) != 0));
	}
}

/* Each Mcp-Param-* is found, and nothing else: lines are counted by their beginnings. */
static void check_params(const struct http_request *request, struct slice head)
{
	static const struct slice prefix = SLICE("mcp-param-");
	struct slice line, name, value, rest = request->params;
	size_t count = 0;

	CHECK(rest.p == NULL || (rest.p > head.p && rest.p + rest.n <= head.p + head.n - 2));
	while (http_next_param(&rest, &name, &value)) {
		CHECK(name.n > 0 && memchr(name.p, ':', name.n) == NULL);
		check_inside(name, head);
		check_inside(value, head);
		CHECK(slice_is_equal(value, slice_trim(value)));
		count++;
	}
	CHECK((count > 0) == (request->params.p != NULL));
	(void)slice_cut(&head, '\n');
	if (request->method_name.p >= head.p)
		(void)slice_cut(&head, '\n'); /* the first line was empty */
	while (head.n > 0) {
		line = slice_cut(&head, '\n');
		if (line.n > prefix.n && line.p[prefix.n] != ':' &&
		    slice_is_equal_nocase(slice_of(line.p, prefix.n), prefix))
			count--;
	}
	CHECK(count == 0);
}

static void check_accepted(const struct outcome *outcome, struct slice in,
			   const struct http_parse_limits *limit)
{
	struct slice head = slice_of(in.p, (size_t)outcome->length);
	struct outcome again;
	char *copy = malloc(head.n); /* exact: a read behind the head is seen */

	CHECK((size_t)outcome->length <= in.n && head.n <= limit->head_max);
	memcpy(copy, head.p, head.n);
	again = parse_steps(slice_of(copy, head.n), limit, head.n, 1);
	check_same(outcome, in.p, &again, copy);
	free(copy);
	check_slices(&outcome->request, head);
	check_lines(head);
	check_params(&outcome->request, head);
	check_framing(&outcome->request, head);
}

static void check_values(struct slice in)
{
	bool json = http_accepts(in, "application/json");

	CHECK(!json || memmem(in.p, in.n, "/", 1) != NULL);
	if (http_is_media_type(in, "application/json"))
		CHECK(json || memchr(in.p, ';', in.n) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct http_parse_limits *limit;
	struct outcome whole, other;
	struct slice in;
	size_t split;

	if (size < 2)
		return 0;
	limit = &limits[data[0] & 3];
	in = slice_of((const char *)data + 1, size - 1);
	split = (size_t)(data[0] >> 2) * in.n / 64;
	whole = parse_steps(in, limit, in.n, 1);
	other = parse_steps(in, limit, 1, 1);
	check_same(&whole, in.p, &other, in.p);
	other = parse_steps(in, limit, split, in.n);
	check_same(&whole, in.p, &other, in.p);
	other = parse_steps(in, limit, split, 7);
	check_same(&whole, in.p, &other, in.p);
	if (whole.length > 0)
		check_accepted(&whole, in, limit);
	check_values(in);
	return 0;
}
