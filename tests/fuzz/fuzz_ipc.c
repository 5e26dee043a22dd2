/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the messages between keeper, gateway and fetcher. What must hold: texts lie in the packet, one after the
 * other, behind the head and up to the end; a shorter or longer packet with the same head is none.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "io/ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool unpack(const uint8_t *data, size_t size, struct ipc_message *message, char **copy_r)
{
	*copy_r = malloc(size + 1); /* exact but for one: a read behind that is seen */
	if (size > 0)
		memcpy(*copy_r + 1, data, size);
	return ipc_unpack(slice_of(*copy_r + 1, size), message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ipc_message message, other;
	char *copy;
	char *longer;
	const char *at;

	if (unpack(data, size, &message, &copy)) {
		CHECK(size >= IPC_HEAD_BYTES && size <= IPC_PACKET_BYTES_MAX);
		at = copy + 1 + IPC_HEAD_BYTES;
		for (size_t i = 0; i < IPC_TEXTS_MAX; i++) {
			CHECK(message.texts[i].p == at);
			at += message.texts[i].n;
		}
		CHECK(at == copy + 1 + size);
		CHECK(message.fd_count == 0);
		longer = calloc(1, size + 1);
		memcpy(longer, data, size);
		CHECK(!ipc_unpack(slice_of(longer, size + 1), &other));
		CHECK(!ipc_unpack(slice_of(longer, size - 1), &other));
		free(longer);
	}
	free(copy);
	return 0;
}
