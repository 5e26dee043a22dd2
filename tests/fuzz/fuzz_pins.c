/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the lines in which pins are remembered. What must hold: what is read is written, and read again as the same;
 * the bounds hold; nothing behind the text is read.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "policy/pins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As far as they are lines of ours. */
static void read_all(struct pins *pins, struct slice text)
{
	pins_init(pins);
	while (text.p != NULL && text.n > 0)
		if (pin_record_read(pins, slice_cut(&text, '\n')) < 0)
			break;
	CHECK(pins->count <= PINS_MAX && pins->waiting <= pins->count);
	CHECK(pins->text_bytes <= PINS_TEXT_BYTES_MAX && pins->with_text <= PINS_WITH_TEXT_MAX);
}

/* Without the name of the server, which is before each line. */
static void write_all(const struct pins *pins, struct buf *out)
{
	struct buf text = { 0 };
	struct slice rest;

	pin_record_write(pins, "s", true, &text);
	rest = buf_slice(&text);
	while (rest.n > 0) {
		struct slice line = slice_cut(&rest, '\n');

		CHECK(slice_is_equal(slice_cut(&line, '\t'), SLICE_LIT("s")));
		buf_append_slice(out, line);
		buf_append_char(out, '\n');
	}
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	struct buf text = { 0 }, other = { 0 };
	struct pins pins, again;

	memcpy(copy, data, size);
	read_all(&pins, slice_of(copy, size));
	write_all(&pins, &text);
	read_all(&again, buf_slice(&text));
	write_all(&again, &other);
	CHECK(again.count == pins.count && again.waiting == pins.waiting);
	CHECK(slice_is_equal(buf_slice(&text), buf_slice(&other)));
	pins_fini(&pins);
	pins_fini(&again);
	buf_fini(&text);
	buf_fini(&other);
	free(copy);
	return 0;
}
