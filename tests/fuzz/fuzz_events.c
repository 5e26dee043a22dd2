/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the reader of event streams. What must hold: nothing behind the bytes is read; wherever they are cut, the same
 * events come out, with the same last id; no event is longer than the bound.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "remote/event_reader.h"

#define MOST 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note(const struct server_event *event, void *arg)
{
	struct buf *seen = arg;

	CHECK(event->data.n > 0 && event->data.n <= MOST);
	buf_append_slice(seen, event->name);
	buf_append_char(seen, '\0');
	buf_append_slice(seen, event->data);
	buf_append_char(seen, '\0');
}

/* In two pieces, each in memory of its own. */
static int read_all(struct slice text, size_t cut, struct buf *seen, struct buf *last_id)
{
	struct event_reader reader = { .most = MOST, .retry_ms = EVENT_RETRY_NONE };
	int result = 0;

	for (int i = 0; i < 2 && result == 0; i++) {
		size_t n = i == 0 ? cut : text.n - cut;
		char *copy = malloc(n + (n == 0));

		memcpy(copy, text.p + (i == 0 ? 0 : cut), n);
		result = event_reader_take(&reader, slice_of(copy, n), note, seen);
		free(copy);
	}
	buf_append_slice(last_id, buf_slice(&reader.last_id));
	event_reader_fini(&reader);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of((const char *)data, size);
	struct buf whole = { 0 }, whole_id = { 0 }, cut = { 0 }, cut_id = { 0 };

	if (size > 0 && read_all(text, 0, &whole, &whole_id) == 0) {
		CHECK(read_all(text, data[0] % size, &cut, &cut_id) == 0);
		CHECK(slice_is_equal(buf_slice(&whole), buf_slice(&cut)));
		CHECK(slice_is_equal(buf_slice(&whole_id), buf_slice(&cut_id)));
	}
	buf_fini(&whole);
	buf_fini(&whole_id);
	buf_fini(&cut);
	buf_fini(&cut_id);
	return 0;
}
