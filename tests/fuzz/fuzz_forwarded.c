/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of Forwarded and X-Forwarded-For. Input: a letter that chooses the field, a line break, the
 * value. What must hold: a client that is no trusted proxy stays who it is; the last hop that is
 * believed has an address; nothing behind the value is read.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "http/places.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stranger(const struct http_trust *trust, const struct http_request *request)
{
	struct peer client;

	CHECK(peer_parse(SLICE_LIT("192.0.2.77"), &client));
	http_forwarded_apply(trust, request, &client);
	CHECK(client.family != 0 && client.address[3] == 77);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer_net net;
	const struct http_trust trust = { &net, 1 };
	struct http_request request = { .seen = 0 };
	struct peer client;
	enum http_field field;
	struct slice value;
	char *copy;

	if (size < 2)
		return 0;
	field = data[0] == 'f' ? HTTP_FORWARDED : HTTP_X_FORWARDED_FOR;
	copy = malloc(size - 2 > 0 ? size - 2 : 1); /* exact: a read behind it is seen */
	memcpy(copy, data + 2, size - 2);
	value = slice_of(copy, size - 2);
	request.fields[field] = value;
	request.seen = 1u << field;
	CHECK(peer_net_parse(SLICE_LIT("10.0.0.0/8"), &net));
	check_stranger(&trust, &request);
	CHECK(peer_parse(SLICE_LIT("10.0.0.1"), &client));
	http_forwarded_apply(&trust, &request, &client);
	CHECK(client.family != 0);
	free(copy);
	return 0;
}
