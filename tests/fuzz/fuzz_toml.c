/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of TOML, and of the entries in it; the input is a file of Codex. What must hold: what is read is JSON, and says the same when it
 * is written as TOML again; each place lies in the file; an entry that leads elsewhere is all that has changed in the file, and the same
 * bytes come back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/import.h"
#include "config/jsonc.h"
#include "ctl/entry_text.h"
#include "jsonrpc/canonical.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define URL "\"http://127.0.0.1:1/a/mcp\""

static char url_name[] = "url", url[] = URL;

static int check_member(struct slice name, struct json value, void *arg)
{
	const struct jsonc *json = arg;
	struct jsonc_span span = jsonc_span(json, value.text);
	unsigned line, column;

	CHECK(span.from <= span.name && span.name <= json->original.n);
	CHECK(span.from <= span.to && span.value <= span.to && span.to <= json->original.n);
	jsonc_place(arg, name.p - 1, &line, &column);
	CHECK(line > 0 && column > 0);
	if (value.type == JSON_OBJECT)
		scan_members(value.text, check_member, arg);
	return 0;
}

/* Its canonical form; n 0: it is no TOML. */
static struct buf meaning(struct slice text)
{
	struct jsonc json = { 0 };
	struct buf out = { 0 };
	struct error err = { .text = "" };

	if (toml_read(&json, text, &err) == 0) {
		CHECK(canonical_append(&out, buf_slice(&json.text), SCAN_DEPTH_MAX) == 0);
		scan_members(buf_slice(&json.text), check_member, &json);
	} else {
		CHECK(err.text[0] != '\0');
	}
	jsonc_fini(&json);
	return out;
}

static void try_toml(struct slice text)
{
	struct buf once = meaning(text), written = { 0 }, twice;

	if (once.len > 0) {
		CHECK(once.len >= 2);
		buf_append_str(&written, "e=");
		toml_append(&written, buf_slice(&once));
		twice = meaning(buf_slice(&written));
		/* One deeper. */
		CHECK(twice.len == 0 || (twice.len == once.len + 6 &&
					 memcmp(twice.data + 5, once.data, once.len) == 0));
		buf_fini(&twice);
	}
	buf_fini(&once);
	buf_fini(&written);
}

static void count_entry(const struct import_entry *entry, void *arg)
{
	size_t *count = arg;

	CHECK(entry->name != NULL);
	++*count;
}

static size_t count_entries(struct slice text)
{
	size_t count = 0;
	struct error err;

	CHECK(import_entries(text, "f.toml", count_entry, &count, &err) == 0);
	return count;
}

static void try_entry(const struct import_entry *entry, void *arg)
{
	const struct entry_member member = { url_name, url };
	const struct slice *file = arg;
	struct slice was = slice_of(file->p + entry->at, entry->length);
	struct buf is = { 0 }, back = { 0 }, changed = { 0 };

	CHECK(entry->at + entry->length <= file->n);
	if (entry->server == NULL || entry_text_write(was, true, &member, 1, &is) < 0) {
		buf_fini(&is);
		return;
	}
	buf_append(&changed, file->p, entry->at);
	buf_append_slice(&changed, buf_slice(&is));
	buf_append_slice(&changed, slice_between(was.p + was.n, file->p + file->n));
	CHECK(count_entries(buf_slice(&changed)) == count_entries(*file));
	CHECK(memmem(changed.data, changed.len, URL, strlen(URL)) != NULL);
	CHECK(entry_text_restore(buf_slice(&is), true, was, buf_slice(&is), &back) == 0);
	CHECK(was.p[0] != '[' || slice_is_equal(buf_slice(&back), was));
	buf_fini(&is);
	buf_fini(&back);
	buf_fini(&changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err;
	struct slice text;
	char *copy;

	if (size > (1 << 16))
		return 0;
	copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	CHECK(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	text = slice_of(copy, size);
	try_toml(text);
	(void)!import_entries(text, "f.toml", try_entry, &text, &err);
	free(copy);
	return 0;
}
