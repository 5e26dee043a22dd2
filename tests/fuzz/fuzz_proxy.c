/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the PROXY header. What must hold: what is incomplete stays so for every shorter piece; a
 * whole header has the same end and client whatever comes behind it; a client has an address.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "io/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long parse(const uint8_t *data, size_t size, struct peer *peer)
{
	struct error err;
	char *copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	long length;

	if (size > 0)
		memcpy(copy, data, size);
	*peer = (struct peer){ .family = 99 };
	length = proxy_header_parse(slice_of(copy, size), peer, &err);
	free(copy);
	CHECK(length >= -1 && length <= (long)size && length <= PROXY_HEADER_BYTES_MAX);
	return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer whole, piece;
	struct peer_net net;
	long length = parse(data, size, &whole);
	size_t before = length > 0 ? (size_t)length - 1 : length == 0 ? size : 0;
	char text[PEER_TEXT_BYTES];

	CHECK(length > 0 || whole.family == 99);
	for (size_t n = 0; n <= before; n += n < 300 ? 1 : 97)
		CHECK(parse(data, n, &piece) == 0);
	if (length > 0) {
		CHECK(parse(data, (size_t)length, &piece) == length);
		CHECK(memcmp(&whole, &piece, sizeof(whole)) == 0);
		if (whole.family != 99)
			peer_format(&whole, text);
	}
	if (size > 0 && peer_parse(slice_of((const char *)data, size), &piece))
		CHECK(piece.family != 0);
	if (size > 0 && peer_net_parse(slice_of((const char *)data, size), &net))
		peer_net_has(&net, &piece);
	return 0;
}
