/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the file in which the eras of servers are remembered. What must hold: what is refused leaves nothing; what is
 * read is written, and read again as the same; nothing behind the text is read.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "keeper/era_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct era_table table, again;

static void check_same(void)
{
	CHECK(table.count == again.count);
	for (size_t i = 0; i < table.count; i++) {
		const struct era_entry *one = &table.entries[i], *other = &again.entries[i];

		CHECK(memcmp(&one->digest, &other->digest, sizeof(one->digest)) == 0);
		CHECK(one->memory.era == other->memory.era && one->memory.era <= ERA_MODERN);
		CHECK(one->memory.probed_at_ms == other->memory.probed_at_ms);
		CHECK(one->noted_at_ms == other->noted_at_ms);
		CHECK(era_table_find(&table, &one->digest) == one);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	struct buf text = { 0 };
	struct error err;

	memcpy(copy, data, size);
	if (era_table_read(&table, slice_of(copy, size), &err) < 0) {
		CHECK(table.count == 0);
	} else {
		era_table_write(&table, &text);
		CHECK(era_table_read(&again, buf_slice(&text), &err) == 0);
		check_same();
	}
	buf_fini(&text);
	free(copy);
	return 0;
}
