/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the body decoder: each case is fed whole, byte by byte and at every split; payload,
 * verdict and rest must be the same each time.
 */
#include "http/parse.h"

#include "base/buf.h"
#include "base/unit_test.h"

#define MAX 64

struct outcome {
	enum http_body_status verdict;
	int status;
	struct buf payload;
	size_t used;
};

static struct http_request chunked(void)
{
	return (struct http_request){ .body = HTTP_BODY_CHUNKED };
}

static struct http_request by_length(uint64_t length)
{
	return (struct http_request){ .body = HTTP_BODY_LENGTH, .content_length = length };
}

/* Feeds one piece; false once the verdict is out. */
static bool feed(struct http_body_reader *reader, struct slice piece, struct outcome *outcome)
{
	struct slice in = piece, payload;

	do {
		outcome->verdict = http_body_read(reader, &in, &payload, &outcome->status);
		buf_append_slice(&outcome->payload, payload);
	} while (outcome->verdict == HTTP_BODY_MORE && in.n > 0);
	outcome->used += piece.n - in.n;
	return outcome->verdict == HTTP_BODY_MORE;
}

/* `at` cuts in two; 0 feeds byte by byte. */
static struct outcome run(const struct http_request *request, struct slice in, size_t at)
{
	struct http_body_reader reader;
	struct outcome outcome = { .status = 0 };
	size_t step = at;
	bool more = true;

	assert_int_equal(http_body_init(&reader, request, MAX), 0);
	for (size_t done = 0; more && done < in.n; done += step) {
		step = at == 0 ? 1 : (done == 0 && at < in.n ? at : in.n - done);
		/* An exact copy, so that a read beyond the piece is seen. */
		char *copy = malloc(step);

		memcpy(copy, in.p + done, step);
		more = feed(&reader, slice_of(copy, step), &outcome);
		free(copy);
	}
	if (in.n == 0)
		feed(&reader, in, &outcome);
	return outcome;
}

static void check(const struct http_request *request, struct slice in, const struct outcome *wanted)
{
	for (size_t at = 0; at <= in.n; at++) {
		struct outcome got = run(request, in, at);

		assert_int_equal(got.verdict, wanted->verdict);
		if (wanted->verdict == HTTP_BODY_BAD)
			assert_int_equal(got.status, wanted->status);
		else
			assert_int_equal(got.used, wanted->used);
		assert_true(slice_is_equal(buf_slice(&got.payload), buf_slice(&wanted->payload)));
		buf_fini(&got.payload);
	}
}

static void check_done(const struct http_request *request, struct slice in, const char *payload,
		       size_t rest)
{
	struct outcome wanted = { .verdict = HTTP_BODY_DONE, .used = in.n - rest };

	buf_append_str(&wanted.payload, payload);
	check(request, in, &wanted);
	buf_fini(&wanted.payload);
}

/* What comes before the fault is handed out, but nothing after it. */
static void check_bad(const char *in, int status, const char *payload)
{
	struct http_request request = chunked();
	struct outcome wanted = { .verdict = HTTP_BODY_BAD, .status = status };

	buf_append_str(&wanted.payload, payload);
	check(&request, slice_str(in), &wanted);
	buf_fini(&wanted.payload);
}

static void test_no_body_takes_nothing(void **state)
{
	struct http_request request = { .body = HTTP_BODY_NONE };

	check_done(&request, slice_str(""), "", 0);
	check_done(&request, slice_str("GET / "), "", 6);
}

static void test_length_is_exact(void **state)
{
	struct http_request five = by_length(5), none = by_length(0);

	check_done(&five, slice_str("hello"), "hello", 0);
	check_done(&five, slice_str("helloGET / HTTP/1.1"), "hello", 14);
	check_done(&none, slice_str(""), "", 0);
	check_done(&none, slice_str("GET"), "", 3);
}

static void test_length_not_reached_asks_for_more(void **state)
{
	struct http_request five = by_length(5);
	struct outcome wanted = { .verdict = HTTP_BODY_MORE, .used = 4 };

	buf_append_str(&wanted.payload, "hell");
	check(&five, slice_str("hell"), &wanted);
	buf_fini(&wanted.payload);
}

/* SEC-29, FRONT-HTTP-09: judged from the announcement, before a byte of it. */
static void test_length_over_cap_is_413(void **state)
{
	struct http_body_reader reader;
	struct http_request at_cap = by_length(MAX), over = by_length(MAX + 1);
	struct http_request huge = by_length(9999999999999999999u);

	assert_int_equal(http_body_init(&reader, &at_cap, MAX), 0);
	assert_int_equal(http_body_init(&reader, &over, MAX), 413);
	assert_int_equal(http_body_init(&reader, &huge, MAX), 413);
}

static void test_chunks_are_joined(void **state)
{
	struct http_request request = chunked();

	check_done(&request, slice_str("0\r\n\r\n"), "", 0);
	check_done(&request, slice_str("5\r\nhello\r\n0\r\n\r\n"), "hello", 0);
	check_done(&request, slice_str("1\r\na\r\n2\r\nbc\r\n0\r\n\r\nPOST"), "abc", 4);
	check_done(&request, slice_str("000000000000003\r\n\r\n\r\r\n000\r\n\r\n"), "\r\n\r", 0);
	check_done(&request, slice_str("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"),
		   "01234567890123456789", 0);
}

/* SEC-20, SEC-21: everything that two readers could read differently. */
static void test_chunk_syntax_is_exact(void **state)
{
	static const struct {
		const char *in;
		const char *payload;
	} cases[] = {
		{ "\r\n", "" },
		{ "+5\r\nhello\r\n", "" },
		{ "-1\r\n", "" },
		{ " 5\r\nhello\r\n", "" },
		{ "5 \r\nhello\r\n", "" },
		{ "5\t\r\nhello\r\n", "" },
		{ "0x5\r\nhello\r\n", "" },
		{ "g\r\n", "" },
		{ "5;name=value\r\nhello\r\n", "" }, /* extension */
		{ "5;\r\nhello\r\n", "" },
		{ "5\nhello\n0\n\n", "" }, /* bare LF */
		{ "5\rhello\r", "" },      /* bare CR */
		{ "5\r\r\nhello\r\n", "" },
		{ "5\r\nhello0\r\n\r\n", "hello" }, /* no CRLF behind the data */
		{ "5\r\nhello\n0\r\n\r\n", "hello" },
		{ "5\r\nhello\r0\r\n\r\n", "hello" },
		{ "5\r\nhello!\r\n0\r\n\r\n", "hello" }, /* one byte too many */
		{ "5\r\nhell\r\n0\r\n\r\n", "hell\r" },  /* one too few */
		{ "0\r\nTrailer: x\r\n\r\n", "" },
		{ "0\r\n\n", "" },
		{ "0\r\n\r\r", "" },
		{ "0000000000000000\r\n\r\n", "" }, /* 16 digits */
		{ "fffffffffffffffff\r\n", "" },
		{ "10000000000000005\r\nhello\r\n", "" }, /* would be 5 modulo 2^64 */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_bad(cases[i].in, 400, cases[i].payload);
}

/* SEC-21, SEC-29: the size is judged at the end of its line; no data byte is needed. */
static void test_chunk_over_cap_is_413_before_its_data(void **state)
{
	struct http_request request = chunked();
	struct outcome wanted = { .verdict = HTTP_BODY_MORE, .used = 4 };

	check_bad("41\r\n", 413, "");
	check_bad("fffffffffffffff\r\n", 413, "");
	check_bad("3\r\nabc\r\n3e\r\n", 413, "abc");
	check(&request, slice_str("40\r\n"), &wanted);
}

static void test_framing_byte_of_nul_is_refused(void **state)
{
	struct http_request request = chunked();
	struct outcome wanted = { .verdict = HTTP_BODY_BAD, .status = 400 };

	check(&request, slice_of("5\0\r\nhello", 9), &wanted);
}

/* SEC-21: many tiny chunks cost more framing than payload allows. */
static void test_framing_flood_is_refused(void **state)
{
	struct http_request request = chunked();
	struct http_body_reader reader;
	struct slice in, payload;
	enum http_body_status verdict = HTTP_BODY_MORE;
	int status = 0;
	size_t chunks = 0;

	assert_int_equal(http_body_init(&reader, &request, UINT64_MAX), 0);
	while (verdict == HTTP_BODY_MORE && chunks < 20000) {
		in = slice_str("01\r\nx\r\n");
		while (verdict == HTTP_BODY_MORE && in.n > 0)
			verdict = http_body_read(&reader, &in, &payload, &status);
		chunks++;
	}
	assert_int_equal(verdict, HTTP_BODY_BAD);
	assert_int_equal(status, 400);
	/* Six bytes of framing for one of payload: two too many, 16 KiB of credit. */
	assert_in_range(chunks, 8190, 8194);
}

static void test_larger_chunks_never_flood(void **state)
{
	struct http_request request = chunked();
	struct http_body_reader reader;
	struct slice in, payload;
	int status = 0;

	assert_int_equal(http_body_init(&reader, &request, UINT64_MAX), 0);
	for (size_t chunks = 0; chunks < 40000; chunks++) {
		in = slice_str("2\r\nxx\r\n");
		while (in.n > 0)
			assert_int_equal(http_body_read(&reader, &in, &payload, &status),
					 HTTP_BODY_MORE);
	}
	assert_int_equal(reader.total, 80000);
}

static void test_verdict_stays(void **state)
{
	struct http_request request = chunked();
	struct http_body_reader reader;
	struct slice in = SLICE("zz"), payload;
	int status = 0;

	assert_int_equal(http_body_init(&reader, &request, MAX), 0);
	assert_int_equal(http_body_read(&reader, &in, &payload, &status), HTTP_BODY_BAD);
	in = slice_str("0\r\n\r\n");
	assert_int_equal(http_body_read(&reader, &in, &payload, &status), HTTP_BODY_BAD);
	assert_int_equal(status, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_body_takes_nothing),
		cmocka_unit_test(test_length_is_exact),
		cmocka_unit_test(test_length_not_reached_asks_for_more),
		cmocka_unit_test(test_length_over_cap_is_413),
		cmocka_unit_test(test_chunks_are_joined),
		cmocka_unit_test(test_chunk_syntax_is_exact),
		cmocka_unit_test(test_chunk_over_cap_is_413_before_its_data),
		cmocka_unit_test(test_framing_byte_of_nul_is_refused),
		cmocka_unit_test(test_framing_flood_is_refused),
		cmocka_unit_test(test_larger_chunks_never_flood),
		cmocka_unit_test(test_verdict_stays),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
