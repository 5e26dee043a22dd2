/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the body decoder. The first byte chooses coding, cap and split; the rest is the input.
 * What must hold: every split gives the same payload, verdict and rest; payload keeps to the cap;
 * and the verdict on chunks is that of a second decoder here, written from the grammar alone.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	enum http_body_status verdict;
	int status;
	size_t used;
	struct buf payload;
};

static bool feed(struct http_body_reader *reader, struct slice piece, struct outcome *outcome)
{
	struct slice in = piece, payload;

	do {
		size_t before = in.n;

		outcome->verdict = http_body_read(reader, &in, &payload, &outcome->status);
		CHECK(in.n <= before && in.p + in.n == piece.p + piece.n);
		CHECK(payload.n == 0 || (payload.p >= piece.p && payload.p + payload.n <= in.p));
		CHECK(outcome->verdict != HTTP_BODY_MORE || before == 0 || in.n < before);
		buf_append_slice(&outcome->payload, payload);
	} while (outcome->verdict == HTTP_BODY_MORE && in.n > 0);
	outcome->used += piece.n - in.n;
	return outcome->verdict == HTTP_BODY_MORE;
}

static struct outcome decode(const struct http_request *request, uint64_t max, struct slice in,
			     size_t first, size_t step)
{
	struct http_body_reader reader;
	struct outcome outcome = { .used = 0 };
	size_t size = first < in.n ? first : in.n;

	outcome.status = http_body_init(&reader, request, max);
	if (outcome.status != 0) {
		CHECK(outcome.status == 413 && request->content_length > max);
		outcome.verdict = HTTP_BODY_BAD;
		return outcome;
	}
	while (feed(&reader, slice_of(in.p, size), &outcome) && in.n > size) {
		in = slice_of(in.p + size, in.n - size);
		size = step < in.n ? step : in.n;
	}
	CHECK(reader.total == outcome.payload.len && reader.total <= max);
	return outcome;
}

static void check_same(struct outcome *a, struct outcome *b)
{
	CHECK(a->verdict == b->verdict);
	CHECK(a->verdict != HTTP_BODY_BAD || a->status == b->status);
	CHECK(a->verdict == HTTP_BODY_BAD || a->used == b->used);
	CHECK(slice_is_equal(buf_slice(&a->payload), buf_slice(&b->payload)));
	buf_fini(&b->payload);
}

/*
 * The second decoder: *in at a chunk. Returns its size with the data in *data_r, or -1 if it is cut
 * short or wrong. Built on strspn and comparison; knows no state.
 */
static long long model_chunk(struct slice *in, struct slice *data_r)
{
	char digits[17] = "";
	size_t count;
	unsigned long long size;

	memcpy(digits, in->p, in->n < 16 ? in->n : 16);
	count = strspn(digits, "0123456789abcdefABCDEF");
	if (count == 0 || count > 15 || in->n < count + 2 || memcmp(in->p + count, "\r\n", 2) != 0)
		return -1;
	digits[count] = '\0';
	size = strtoull(digits, NULL, 16);
	*in = slice_of(in->p + count + 2, in->n - count - 2);
	if (in->n < size || in->n - size < 2 || memcmp(in->p + size, "\r\n", 2) != 0)
		return -1;
	*data_r = slice_of(in->p, (size_t)size);
	*in = slice_of(in->p + size + 2, in->n - (size_t)size - 2);
	return (long long)size;
}

/* True with payload and rest if `in` begins with a whole chunked body of up to max bytes. */
static bool model(struct slice *in, uint64_t max, struct buf *payload_r)
{
	struct slice data = { NULL, 0 };
	long long size;

	do {
		size = model_chunk(in, &data);
		if (size < 0 || (uint64_t)size > max - payload_r->len)
			return false;
		buf_append_slice(payload_r, data);
	} while (size > 0);
	return true;
}

static void check_model(const struct outcome *outcome, struct slice in, uint64_t max)
{
	struct buf payload = { .len = 0 };
	struct slice rest = in;
	bool whole = model(&rest, max, &payload);

	if (outcome->verdict == HTTP_BODY_DONE) {
		CHECK(whole && rest.n == in.n - outcome->used);
		CHECK(slice_is_equal(buf_slice(&payload), buf_slice(&outcome->payload)));
	} else if (whole) {
		/* Only a flood of framing may be refused against the grammar. */
		CHECK(outcome->verdict == HTTP_BODY_BAD && in.n > 16 * 1024);
	}
	buf_fini(&payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t caps[] = { 16, 1024 * 1024 };
	struct http_request request = { .body = HTTP_BODY_CHUNKED };
	struct outcome whole, other;
	struct slice in;
	uint64_t max;
	size_t split;

	if (size < 2)
		return 0;
	in = slice_of((const char *)data + 1, size - 1);
	max = caps[data[0] & 1];
	if ((data[0] & 6) == 6) {
		request.body = HTTP_BODY_LENGTH;
		request.content_length = data[0] >> 3;
	}
	split = (size_t)(data[0] >> 3) * in.n / 32;
	whole = decode(&request, max, in, in.n, 1);
	other = decode(&request, max, in, 1, 1);
	check_same(&whole, &other);
	other = decode(&request, max, in, split, in.n);
	check_same(&whole, &other);
	other = decode(&request, max, in, split, 3);
	check_same(&whole, &other);
	if (request.body == HTTP_BODY_CHUNKED)
		check_model(&whole, in, max);
	buf_fini(&whole.payload);
	return 0;
}
