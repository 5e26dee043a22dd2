/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies by length and in chunks. Payload is handed out as slices of the caller's bytes; nothing is
 * copied or kept. Chunk extensions and trailers are refused, not skipped: no client here sends any,
 * and each is a place where two readers can disagree.
 *
 * Invariant: one byte of framing is judged at a time, so a split changes the runs of payload but
 * not their sum nor the verdict; total never exceeds max.
 *
 * RFC 9112 §6.3, §7.1; SEC-20, SEC-21, SEC-29.
 */
#include "http/body.h"

enum body_place {
	BODY_DATA,    /* `left` bytes of payload follow */
	BODY_SIZE,    /* within the digits of a chunk's size */
	BODY_SIZE_LF, /* the digits' CR was seen */
	BODY_DATA_CR, /* a chunk's data is over */
	BODY_DATA_LF,
	BODY_LAST_CR, /* after the line of the chunk of size 0 */
	BODY_LAST_LF,
	BODY_COMPLETE,
	BODY_REFUSED,
};

#define DIGITS_MAX 15 /* 60 bits: sums of two sizes do not overflow */
#define OVERHEAD_FREE (16u * 1024)
#define OVERHEAD_PER_BYTE 4

int http_body_init(struct http_body_reader *reader, const struct http_request *request,
		   uint64_t max)
{
	memset(reader, 0, sizeof(*reader));
	reader->coding = request->body;
	reader->max = max;
	reader->place = BODY_COMPLETE;
	if (request->body == HTTP_BODY_CHUNKED)
		reader->place = BODY_SIZE;
	if (request->body != HTTP_BODY_LENGTH)
		return 0;
	if (request->content_length > max) {
		reader->place = BODY_REFUSED;
		return 413;
	}
	reader->left = request->content_length;
	if (reader->left > 0)
		reader->place = BODY_DATA;
	return 0;
}

bool http_body_is_complete(const struct http_body_reader *reader)
{
	return reader->place == BODY_COMPLETE;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

static int take_exactly(struct http_body_reader *reader, char c, char wanted, enum body_place next)
{
	if (c != wanted)
		return 400;
	reader->place = (int)next;
	return 0;
}

/* One byte outside the payload. Returns 0 or the status to refuse with. */
static int take_framing(struct http_body_reader *reader, char c)
{
	int value;

	if (++reader->overhead > OVERHEAD_FREE + OVERHEAD_PER_BYTE * reader->total)
		return 400;
	switch ((enum body_place)reader->place) {
	case BODY_SIZE:
		if (reader->digits > 0 && c == '\r') {
			reader->place = BODY_SIZE_LF;
			return 0;
		}
		value = hex_value(c);
		if (value < 0 || ++reader->digits > DIGITS_MAX)
			return 400;
		reader->left = reader->left << 4 | (unsigned int)value;
		return 0;
	case BODY_SIZE_LF:
		CHECK(reader->total <= reader->max);
		reader->digits = 0;
		if (c == '\n' && reader->left > reader->max - reader->total)
			return 413;
		return take_exactly(reader, c, '\n', reader->left > 0 ? BODY_DATA : BODY_LAST_CR);
	case BODY_DATA_CR:
		return take_exactly(reader, c, '\r', BODY_DATA_LF);
	case BODY_DATA_LF:
		return take_exactly(reader, c, '\n', BODY_SIZE);
	case BODY_LAST_CR:
		return take_exactly(reader, c, '\r', BODY_LAST_LF);
	case BODY_LAST_LF:
		return take_exactly(reader, c, '\n', BODY_COMPLETE);
	case BODY_DATA:
	case BODY_COMPLETE:
	case BODY_REFUSED:
		break;
	}
	return 400;
}

static struct slice take_payload(struct http_body_reader *reader, struct slice *in)
{
	size_t size = in->n < reader->left ? in->n : (size_t)reader->left;
	struct slice payload = slice_of(in->p, size);

	CHECK(reader->left > 0);
	in->p += size;
	in->n -= size;
	reader->left -= size;
	reader->total += size;
	if (reader->left == 0)
		reader->place = reader->coding == HTTP_BODY_CHUNKED ? BODY_DATA_CR : BODY_COMPLETE;
	return payload;
}

enum http_body_status http_body_read(struct http_body_reader *reader, struct slice *in,
				     struct slice *payload_r, int *status_r)
{
	*payload_r = (struct slice){ NULL, 0 };
	while (reader->place != BODY_COMPLETE && reader->place != BODY_DATA && in->n > 0) {
		*status_r = take_framing(reader, *in->p);
		if (*status_r != 0) {
			reader->place = BODY_REFUSED;
			return HTTP_BODY_BAD;
		}
		in->p++;
		in->n--;
	}
	if (reader->place == BODY_DATA && in->n > 0)
		*payload_r = take_payload(reader, in);
	return reader->place == BODY_COMPLETE ? HTTP_BODY_DONE : HTTP_BODY_MORE;
}
