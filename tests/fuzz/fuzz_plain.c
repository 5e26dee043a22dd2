/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the plain spelling, and of values. What must hold: a plain spelling is its own; it means
 * the same, apart from empty arrays; ids are the same as themselves, in any spelling of the number.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX, .id_max = 256 };

static void check_meaning(struct slice text, struct slice plain)
{
	struct buf one = { 0 }, other = { 0 };

	if (memchr(text.p, '[', text.n) == NULL) {
		CHECK(canonical_append(&one, text, SCAN_DEPTH_MAX) == 0);
		CHECK(canonical_append(&other, plain, SCAN_DEPTH_MAX) == 0);
		CHECK(slice_is_equal(buf_slice(&one), buf_slice(&other)));
	}
	buf_fini(&one);
	buf_fini(&other);
}

static void check_id(struct json id)
{
	struct buf other = { 0 };
	uint64_t own = value_own_id(id);
	long long number;

	if (id.type == JSON_ABSENT)
		return;
	CHECK(value_is_same_id(id.text, id.text));
	if (own > 0 && id.type == JSON_NUMBER)
		CHECK(value_read_integer(id, &number) == 0 && (uint64_t)number == own);
	if (id.type == JSON_NUMBER && scan_int(id, &number) == 0) {
		buf_append_slice(&other, id.text);
		buf_append_str(&other, ".0");
		CHECK(value_is_same_id(id.text, buf_slice(&other)) || id.text.n > 60);
	}
	buf_fini(&other);
}

static void check(struct slice text, unsigned int scan_flags, unsigned int plain_flags)
{
	struct buf room = { 0 }, again_room = { 0 };
	struct envelope env, again;
	struct error err;

	if (plain_scan(text, &limits, scan_flags, plain_flags, &room, &env, &err) == 0) {
		check_meaning(text, env.text);
		check_id(env.id);
		CHECK(plain_scan(env.text, &limits, scan_flags, plain_flags, &again_room, &again,
				 &err) == 0);
		CHECK(again_room.len == 0 && again.kind == env.kind);
	}
	buf_fini(&room);
	buf_fini(&again_room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size > 0 ? size : 1);

	if (size > 0)
		memcpy(copy, data, size);
	for (unsigned int flags = 0; flags < 4; flags++)
		check(slice_of(copy, size), flags & 1 ? SCAN_LENIENT : 0,
		      flags & 2 ? PLAIN_HANDSHAKE : 0);
	free(copy);
	return 0;
}
