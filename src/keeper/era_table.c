/* SPDX-License-Identifier: Apache-2.0 */
/* A few hundred at most: they are looked through. */
#include "keeper/era_table.h"

#include <string.h>

#include "base/text.h"

#define SECONDS_MAX (UINT64_MAX / 1000)

const struct era_entry *era_table_find(const struct era_table *table,
				       const struct program_digest *digest)
{
	for (size_t i = 0; i < table->count; i++)
		if (memcmp(&table->entries[i].digest, digest, sizeof(*digest)) == 0)
			return &table->entries[i];
	return NULL;
}

void era_table_set(struct era_table *table, const struct era_entry *entry)
{
	const struct era_entry *known = era_table_find(table, &entry->digest);
	size_t at = 0;

	if (known != NULL) {
		at = (size_t)(known - table->entries);
	} else if (table->count < ERA_TABLE_MAX) {
		at = table->count++;
	} else {
		for (size_t i = 1; i < ERA_TABLE_MAX; i++)
			if (table->entries[i].noted_at_ms < table->entries[at].noted_at_ms)
				at = i;
	}
	table->entries[at] = *entry;
}

void era_table_write(const struct era_table *table, struct buf *out)
{
	buf_append_slice(out, ERA_TABLE_FIRST_LINE);
	buf_append_char(out, '\n');
	for (size_t i = 0; i < table->count; i++) {
		const struct era_entry *entry = &table->entries[i];

		for (size_t k = 0; k < sizeof(entry->digest.bytes); k++)
			buf_printf(out, "%02x", entry->digest.bytes[k]);
		buf_printf(out, " %s %llu %llu\n", era_name(entry->memory.era),
			   (unsigned long long)entry->noted_at_ms / 1000,
			   (unsigned long long)entry->memory.probed_at_ms / 1000);
	}
}

static int read_era(struct slice word, enum era *era_r)
{
	for (enum era era = ERA_UNKNOWN; era <= ERA_MODERN; era++) {
		if (!slice_is_equal(word, slice_str(era_name(era))))
			continue;
		*era_r = era;
		return 0;
	}
	return -1;
}

static int read_seconds(struct slice word, uint64_t *ms_r)
{
	if (text_parse_u64(word, ms_r) < 0 || *ms_r > SECONDS_MAX)
		return -1;
	*ms_r *= 1000;
	return 0;
}

static int read_entry(struct slice line, struct era_entry *entry_r)
{
	struct slice digest = slice_cut(&line, ' ');
	struct slice era = slice_cut(&line, ' ');
	struct slice noted = slice_cut(&line, ' ');

	if (text_from_hex(digest, entry_r->digest.bytes, sizeof(entry_r->digest.bytes)) < 0 ||
	    read_era(era, &entry_r->memory.era) < 0 ||
	    read_seconds(noted, &entry_r->noted_at_ms) < 0)
		return -1;
	return read_seconds(line, &entry_r->memory.probed_at_ms);
}

int era_table_read(struct era_table *table_r, struct slice text, struct error *err)
{
	bool is_whole = text.n > 0 && text.n <= ERA_TABLE_TEXT_MAX && text.p[text.n - 1] == '\n';
	struct era_entry entry;

	table_r->count = 0;
	text.n -= is_whole;
	if (!is_whole || !slice_is_equal(slice_cut(&text, '\n'), ERA_TABLE_FIRST_LINE))
		return error_set(err, ERROR_INVALID, "it is from another version, or incomplete");
	while (text.p != NULL) {
		if (table_r->count == ERA_TABLE_MAX ||
		    read_entry(slice_cut(&text, '\n'), &entry) < 0) {
			table_r->count = 0;
			return error_set(err, ERROR_INVALID, "it has an invalid line");
		}
		era_table_set(table_r, &entry);
	}
	return 0;
}
