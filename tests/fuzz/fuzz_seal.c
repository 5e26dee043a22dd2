/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of sealed requestState. The input is what a client sends; then it is what is sealed, and its first bytes say
 * what is changed. What must hold: nothing that a client makes up opens; what was sealed opens as it was; changed, it
 * does not.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "router/seal.h"
#include "session/principal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW 1700000000

static const struct identity caller = { SLICE("https://as.example"), SLICE("ann"), SLICE("cli") };
static struct seal_keys keys;
static struct digest digest;
static const struct seal_binding binding = { .server = SLICE("books"),
					     .caller = &caller,
					     .digest = &digest };

static int open_text(struct slice text, struct seal *seal_r, struct buf *plain)
{
	struct json value = { .type = JSON_STRING, .text = text };
	struct error err;

	return seal_open(&keys, &binding, value, NOW, plain, seal_r, &err);
}

/* With a good beginning, the rest is the client's; the caller's text is copied, so that no byte behind it is read. */
static void check_made_up(const uint8_t *data, size_t size)
{
	struct buf text = { 0 };
	struct buf plain = { 0 };
	struct seal seal;
	char *copy;

	buf_append_str(&text, "\"");
	if (size > 0 && data[0] != 'g') {
		buf_append_str(&text, "g2.");
		buf_append(&text, keys.process.kid, SEAL_KID_CHARS);
		buf_append_str(&text, ".");
	}
	buf_append(&text, data, size);
	buf_append_str(&text, "\"");
	copy = malloc(text.len);
	memcpy(copy, text.data, text.len);
	CHECK(open_text(slice_of(copy, text.len), &seal, &plain) == -1);
	free(copy);
	buf_fini(&text);
	buf_fini(&plain);
}

static void check_round(const uint8_t *data, size_t size)
{
	struct seal made = { .kind = size % SEAL_TASK + SEAL_PARKED,
			     .round = (uint32_t)size,
			     .child = size * 77777777777,
			     .issued_at_s = NOW,
			     .expires_at_s = NOW + 1,
			     .text = { (const char *)data, size } };
	struct buf text = { 0 };
	struct buf plain = { 0 };
	struct seal seal;

	seal_append(&text, &keys, &binding, &made);
	CHECK(open_text(buf_slice(&text), &seal, &plain) == 0);
	CHECK(seal.kind == made.kind && seal.round == made.round && seal.child == made.child);
	CHECK(slice_is_equal(seal.text, made.text));
	if (size >= 3 && data[2] != 0) {
		size_t at = 1 + (data[0] << 8 | data[1]) % (text.len - 2);

		text.data[at] = (char)(text.data[at] ^ data[2]);
		buf_fini(&plain);
		CHECK(open_text(buf_slice(&text), &seal, &plain) == -1);
	}
	buf_fini(&text);
	buf_fini(&plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (keys.process.kid[0] == '\0')
		seal_keys_init(&keys, NULL, 0);
	check_made_up(data, size);
	check_round(data, size);
	return 0;
}
