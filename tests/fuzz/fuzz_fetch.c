/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the frames between gateway and fetcher. What must hold: texts lie in the packet, one after the other, behind
 * a head of one length and up to the end; a shorter or longer packet with the same head is none.
 */
#include <stdint.h>
#include <stdlib.h>

#include "auth/fetch_wire.h"
#include "base/check.h"

#define HEAD_BYTES 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool unpack(const uint8_t *data, size_t size, struct fetch_frame *frame, char **copy_r)
{
	*copy_r = malloc(size + 1); /* exact but for one: a read behind that is seen */
	if (size > 0)
		memcpy(*copy_r + 1, data, size);
	return fetch_wire_unpack(slice_of(*copy_r + 1, size), frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fetch_frame frame, other;
	char *copy;
	char *longer;
	const char *at;

	if (unpack(data, size, &frame, &copy)) {
		CHECK(size >= HEAD_BYTES && size <= FETCH_PACKET_BYTES_MAX);
		at = copy + 1 + HEAD_BYTES;
		for (size_t i = 0; i < FETCH_TEXTS; i++) {
			CHECK(frame.texts[i].p == at);
			at += frame.texts[i].n;
		}
		CHECK(at == copy + 1 + size);
		longer = calloc(1, size + 1);
		memcpy(longer, data, size);
		CHECK(!fetch_wire_unpack(slice_of(longer, size + 1), &other));
		CHECK(!fetch_wire_unpack(slice_of(longer, size - 1), &other));
		free(longer);
	}
	free(copy);
	return 0;
}
