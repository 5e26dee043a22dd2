/* SPDX-License-Identifier: Apache-2.0 */
/* All tools in one table by their names; then each description is read once, word by word. */
#include "policy/shadows.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/scan.h"

#define WORD_MIN 4
#define WORD_MAX 128 /* longer ones are not looked for */

struct entry {
	struct map_link by_name;
	const struct shadow_side *side;
	const struct pin *tool;
	const struct pin *told; /* the last whose description was found to name it */
};

struct search {
	const struct shadow_side *side; /* that is looked at */
	const struct pin *pin;
	struct map by_name;
	uint64_t seed;
	struct entry *entries;
	size_t count;
	size_t told;
	shadow_fn *on_shadow;
	void *arg;
};

static void shadows_tell(struct search *search, const struct entry *entry, bool is_mention)
{
	const struct shadow shadow = { search->side, search->pin, entry->side, entry->tool,
				       is_mention };

	if (search->told++ < SHADOWS_MAX)
		search->on_shadow(&shadow, search->arg);
}

/* ---- tools of one name ---- */

static bool is_of(const struct search *search, const struct entry *entry, struct slice folded)
{
	return entry->side != search->side && slice_is_equal(entry->tool->folded, folded);
}

static void add_tool(struct search *search)
{
	struct slice folded = search->pin->folded;
	struct entry *entry = &search->entries[search->count++];
	uint64_t key = text_hash(search->seed, folded);

	MAP_EACH(const struct entry, other, &search->by_name, key, by_name)
		if (is_of(search, other, folded))
			shadows_tell(search, other, false);
	*entry = (struct entry){ .side = search->side, .tool = search->pin };
	map_insert_link(&search->by_name, key, &entry->by_name);
}

/* ---- descriptions ---- */

static bool is_edge(char c)
{
	return c == '.' || c == '-';
}

static void take_word(struct search *search, struct slice word)
{
	char folded[WORD_MAX];

	while (word.n > 0 && is_edge(word.p[word.n - 1]))
		word.n--;
	for (; word.n > 0 && is_edge(word.p[0]); word.n--)
		word.p++;
	if (word.n < WORD_MIN || word.n > WORD_MAX)
		return;
	for (size_t i = 0; i < word.n; i++)
		folded[i] =
			word.p[i] >= 'A' && word.p[i] <= 'Z' ? (char)(word.p[i] | 0x20) : word.p[i];
	word.p = folded;
	MAP_EACH(struct entry, entry, &search->by_name, text_hash(search->seed, word), by_name) {
		if (entry->told == search->pin || !is_of(search, entry, word))
			continue;
		entry->told = search->pin;
		shadows_tell(search, entry, true);
	}
}

static void take_description(struct search *search)
{
	const struct pin *pin = search->pin;
	struct slice definition =
		pin->state == PIN_APPROVED ? pin->approved.text : pin->waiting.text;
	struct json description = scan_member(definition, SLICE_LIT("description"));
	at_end(buf_fini) struct buf text = { 0 };
	size_t begin = 0;

	if (scan_decode_string(description, &text) == 0) {
		for (size_t i = 0; i <= text.len; i++) {
			if (i < text.len && slice_is_name(slice_of(text.data + i, 1), "_-."))
				continue;
			take_word(search, slice_of(text.data + begin, i - begin));
			begin = i + 1;
		}
	}
}

/* ---- all of them ---- */

static void shadows_walk(struct search *search, const struct shadow_side *side, bool reads)
{
	search->side = side;
	LIST_EACH(struct pin, pin, &side->pins->all, link) {
		search->pin = pin;
		if (search->pin->is_gone)
			continue;
		if (!reads && search->pin->kind == PERMISSION_TOOL)
			add_tool(search);
		else if (reads && search->pin->kind <= PERMISSION_PROMPT)
			take_description(search);
	}
}

void shadows_find(const struct shadow_side *sides, size_t count, shadow_fn *on_shadow, void *arg)
{
	struct search search = { .on_shadow = on_shadow, .arg = arg };
	size_t pins = 0;

	for (size_t i = 0; i < count; i++)
		pins += sides[i].pins->count;
	if (pins == 0)
		return;
	search.seed = sides[0].pins->seed;
	search.entries = mem_zalloc(pins * sizeof(*search.entries));
	for (size_t i = 0; i < count; i++)
		shadows_walk(&search, &sides[i], false);
	for (size_t i = 0; i < count; i++)
		shadows_walk(&search, &sides[i], true);
	map_fini(&search.by_name);
	free(search.entries);
}
